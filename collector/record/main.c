/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tacho-record: runs a command with libtacho.so preloaded.  As the main file of a tool it may
 * include from any folder of the collector.
 */
#include "collector/arena/arena.h"
#include "collector/arena/spawn.h"
#include "collector/config/config.h"
#include "collector/control/control.h"
#include "collector/record/internal.h"
#include "collector/recorder/recorder.h"
#include "collector/store/store.h"
#include "schemas/base/buf.h"
#include "schemas/base/plain.h"
#include "schemas/base/quantity.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct record {
	const char *config, *library, *ctl, *name;
	bool doctor, help, version, quiet, print_config;
};
#define AT(member) offsetof(struct record, member)
static const struct option record_options[] = {
	{ "config", 0, OPTION_TEXT, "FILE", "read options from a JSON object", AT(config), NULL },
	{ "print-config", 0, OPTION_FLAG, NULL, "print the settings as a config file with comments",
	  AT(print_config), "no" },
	{ "ctl", 0, OPTION_TEXT, "PID", "control a recorded process: start, stop, save or status",
	  AT(ctl), NULL },
	{ "doctor", 0, OPTION_FLAG, NULL, "report what works here, or in a command that follows",
	  AT(doctor), "no" },
	{ "quiet", 'q', OPTION_FLAG, NULL, "do not print the line about the log at the end",
	  AT(quiet), "no" },
	{ "library", 0, OPTION_TEXT, "FILE", NULL, AT(library), NULL },
	{ "help", 'h', OPTION_FLAG, NULL, "print this help", AT(help), "no" },
	{ "version", 0, OPTION_FLAG, NULL, "print the versions of tool and library", AT(version),
	  "no" },
	{ 0 }
};

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("tacho-record: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

/* ---- options: defaults, file, environment, command line; later sources have precedence ---- */

/* Sets options from one source: `file`, or the command line, or if `argc` is 0 the environment. */
static enum status take_source(const struct option_set *sets, struct config *c, const char *file,
			       int argc, char **argv, int *operands, struct error *err)
{
	struct config_source before;
	enum status status;

	config_source_begin(c, &before);
	if (file)
		status = record_config_take(file, sets, err);
	else if (argc)
		status = option_arguments_until_operand(sets, argc, argv, operands, err);
	else
		status = option_environment(sets, environ, err);
	TRY(status);
	return config_source_end(c, &before, err);
}

/* Finds --config, wherever it is given, because the file must be read before the other
 * arguments. */
static enum status find_config(int argc, char **argv, const char **out, struct error *err)
{
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));
	static struct config scratch;
	struct record own;
	const struct option_set sets[] = { { config_options, &scratch },
					   { preset_options, &scratch.preset },
					   { record_options, &own },
					   { NULL, NULL } };
	int operands;

	if (!copy)
		return fail_memory(err);
	memcpy(copy, argv, (size_t)argc * sizeof(*copy));
	option_defaults(sets, NULL);
	enum status status = option_arguments_until_operand(sets, argc, copy, &operands, err);
	free(copy);
	*out = own.config;
	return status;
}

static enum status take_arguments(const struct option_set *sets, int argc, char **argv,
				  int *operands, struct error *err)
{
	struct config *c = sets[0].into;
	const char *file = NULL;

	TRY(find_config(argc, argv, &file, err));
	TRY(option_defaults(sets, err));
	if (file)
		TRY(take_source(sets, c, file, 0, NULL, NULL, err));
	TRY(take_source(sets, c, NULL, 0, NULL, NULL, err));
	return take_source(sets, c, NULL, argc, argv, operands, err);
}

static int show_help(const struct option_set *sets)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	buf_put_text(&out, "tacho-record [options] -- COMMAND...\n"
			   "tacho-record --ctl PID start|stop|save|status\n\n");
	option_help(sets, &out);
	buf_put_text(&out,
		     "\nEach option is also a TACHO_ variable (TACHO_MAX_DISK=1G) and a key of "
		     "the config file.\nThe exit status is that of the command.\n");
	fputs(buf_text(&out), stdout);
	buf_release(&out);
	return 0;
}

/* ---- the run ---- */

/* Returns whether logs can be written to the folder; *made is set if the folder was created. */
static bool prepare_folder(const char *folder, bool *made)
{
	struct error err;
	enum status status = store_make_folder(folder, made, &err);

	if (status == ST_OK && access(folder, W_OK | X_OK) != 0)
		status = fail(&err, ST_IO, NOWHERE, "%s: %s", folder, strerror(errno));
	if (status != ST_OK)
		complain("%s; the command runs without a log", err.text);
	return status == ST_OK;
}

static void warn(const struct config *c, bool has_folder)
{
	struct buf out;
	char *line, *rest = NULL;

	buf_init(&out, 1 << 16);
	warn_of_options(c, &out);
	if (has_folder && ending_put_disk(c, &out))
		buf_put_text(&out, "; the command runs without a log\n");
	char *text = strdup(buf_text(&out));
	for (line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		complain("%s", line);
	free(text);
	buf_release(&out);
}

/*
 * Saves the rings of earlier runs whose tacho-record died as well.  Returns whether this run may
 * leave rings in the folder.
 */
static bool prepare_rings(const struct config *c)
{
	const char *folder = config_ring_dir(c);
	char size[UNIT_TEXT];
	struct error err;

	if (!c->ring && !*c->ring_dir)
		return false;
	if (store_ring_folder(folder, &err) != ST_OK) {
		complain("%s; the command runs without %s", err.text, c->ring ? "a log" : "it");
		return false;
	}
	bool on_tmpfs = arena_fits_in(c->ring_dir, 0);
	uint64_t least = ARENA_FILE + config_ring_space(c);
	if (on_tmpfs && !arena_fits_in(folder, least))
		complain("%s has no %s free%s: the rings of threads are in memory alone", folder,
			 unit_format_size(least, size),
			 c->ring ? ", with the ring and --min-free" : "");
	found_rings(folder, c->host, c->out, c->trigger_spec.death, 0, 0);
	return c->ring || on_tmpfs;
}

/* Handles a signal to tacho-record as a request if the options say so; otherwise returns false, and
 * the command gets it. */
static bool is_for_us(int number, pid_t child, void *arg)
{
	const struct config *c = arg;
	bool window = c->window_spec.on_demand && !c->window_spec.signal;
	bool save = c->ring && c->trigger_spec.signal && !c->trigger_spec.signal_number;

	if (number == SIGUSR1 && window)
		jobs_tell(child, "toggle");
	else if (number == SIGUSR2 && save)
		jobs_tell(child, "save");
	else
		return false;
	return true;
}

static int record(struct config *c, const struct record *o, const char *library, char **command)
{
	struct run run = { .command = command, .is_for_us = is_for_us, .arg = c };
	struct preload_others others = { 0 };
	struct found before, after;
	struct recorder recorder;

	run.recorder = &recorder;
	struct error err;
	char note[PATH_MAX + 100] = "";
	bool made = false;
	struct ending ending = { .config = c, .name = o->name, .command = command, .note = note };

	ending.had_folder = prepare_folder(c->out, &made);
	bool keeps_rings = prepare_rings(c);
	if (c->enabled)
		warn(c, ending.had_folder);
	seen_make();
	found_init(&before);
	found_init(&after);
	found_look(&before, c->out, c->host);
	if (preload_set(c, library, &others, &err) != ST_OK)
		complain("%s; the command runs without a log", err.text);
	if (others.cuda)
		complain("CUDA_INJECTION64_PATH is %s, another tool: it is loaded first, and GPU "
			 "work is not recorded if it uses CUPTI",
			 others.cuda);
	if (others.nvtx) /* the last line reports this */
		snprintf(note, sizeof(note),
			 "; without ranges of NVTX, because NVTX_INJECTION64_PATH is %s",
			 others.nvtx);
	if (recorder_start(&recorder, c->trigger_spec.hang_ns, &err) != ST_OK)
		complain("%s; the last events of a killed process are lost", err.text);
	if (run_command(&run, &err) != ST_OK)
		complain("%s", err.text);
	unsigned killed = recorder_settle(&recorder);
	if (killed == RECORDER_BUSY)
		complain("the recorder is slow, and still writes what the program has left");
	else if (killed == RECORDER_KILLED)
		complain("the recorder was killed: processes that began later are not recorded%s",
			 arena_fits_in(c->ring_dir, 0)
				 ? ""
				 : ", and events that none of its own have read are lost");
	else if (killed && killed != RECORDER_NO_SPACE)
		complain("%u of the recorder's processes were killed: later events are in a "
			 "separate log, as far as the rings had room",
			 killed);
	if (keeps_rings)
		ending.rings_left = found_rings(config_ring_dir(c), c->host, c->out,
						c->trigger_spec.death, run.child, run.status);
	found_look(&after, c->out, c->host);
	ending.recorder_killed = killed == RECORDER_KILLED;
	ending.lacks_space = killed == RECORDER_NO_SPACE;
	ending.seen = seen_read();
	if (!o->quiet && run.child)
		ending_print(&ending, &before, &after);
	if (made)
		rmdir(c->out); /* fails if the folder is not empty */
	found_release(&before);
	found_release(&after);
	return run.child ? run_end_as(run.status) : run.exit_code;
}

static int show_version(const char *library)
{
	printf("tacho-record %s, cJSON %s, library %s\n", TACHO_VERSION, cJSON_Version(),
	       *library ? library : "not found");
	return 0;
}

/* Makes the folder for logs absolute, because the command may start in another working
 * directory. */
static void make_absolute(struct config *c, char out[2 * PATH_MAX])
{
	char here[PATH_MAX];

	if (c->out[0] == '/' || !getcwd(here, sizeof(here)))
		return;
	snprintf(out, 2 * PATH_MAX, "%s/%s", here, c->out);
	c->out = out;
}

static bool is_word_of_control(const char *word)
{
	return !strcmp(word, "start") || !strcmp(word, "stop") || !strcmp(word, "save") ||
	       !strcmp(word, "status");
}

static int ask(const char *who, char *const *words, int count)
{
	char reply[CONTROL_REPLY + 1];
	struct error err;
	uint64_t pid = 0;
	enum status status = unit_parse_count(who, strlen(who), &pid, &err);

	if (status == ST_OK && (pid == 0 || pid > INT_MAX))
		status = fail(&err, ST_USAGE, NOWHERE, "--ctl: %s: no such process", who);
	if (status == ST_OK && count != 1)
		status = fail(&err, ST_USAGE, NOWHERE,
			      "--ctl %s: needs one of start, stop, save, status", who);
	if (status == ST_OK && !is_word_of_control(words[0]))
		status =
			fail(&err, ST_USAGE, NOWHERE,
			     "--ctl %s: %.40s: must be start, stop, save or status", who, words[0]);
	if (status == ST_OK)
		status = control_ask((int)pid, words[0], reply, &err);
	if (status != ST_OK) {
		complain("%s", err.text);
		return status_exit(status);
	}
	fputs(reply, stdout);
	return 0;
}

/* Prints the doctor's report, or without a library the config file. */
static int show(const struct config *c, const char *library, char **command)
{
	struct error err;
	struct buf out;
	enum status status = ST_OK;

	buf_init(&out, 1 << 20);
	if (library)
		record_doctor(c, library, command, &out);
	else
		status = record_config_print(c, &out, &err);
	if (status == ST_OK)
		fputs(buf_text(&out), stdout);
	else
		complain("%s", err.text);
	buf_release(&out);
	return status_exit(status);
}

int main(int argc, char **argv)
{
	static struct config config;
	static struct record own;
	static char library[PATH_MAX], out[2 * PATH_MAX];
	const struct option_set sets[] = { { config_options, &config },
					   { preset_options, &config.preset },
					   { record_options, &own },
					   { NULL, NULL } };
	struct error err;
	enum status status;
	int operands = 0;

	if (argc == 3 && !strcmp(argv[1], SPAWN_ARGUMENT)) {
		plain_set(getenv("TACHO_PLAIN"));
		return recorder_serve_program((uint32_t)strtoul(argv[2], NULL, 10));
	}
	run_hold_streams();
	status = take_arguments(sets, argc, argv, &operands, &err);
	own.name = argv[0] ? argv[0] : "";
	if (status == ST_OK && own.help)
		return show_help(sets);
	if (status == ST_OK && own.ctl)
		return ask(own.ctl, argv + 1, operands);
	if (status == ST_OK)
		status = config_check(&config, &err);
	if (status == ST_OK && own.print_config)
		return show(&config, NULL, NULL);
	if (status == ST_OK)
		status = preload_find(own.library, library, &err);
	if (own.version)
		return show_version(library);
	if (status == ST_OK && !own.doctor && !operands)
		status = fail(&err, ST_USAGE, NOWHERE, "no command; see --help");
	if (status != ST_OK) {
		complain("%s", err.text);
		return status_exit(status);
	}
	config_look_around(&config, environ);
	make_absolute(&config, out);
	if (own.doctor)
		return show(&config, library, argv + 1);
	return record(&config, &own, library, argv + 1);
}
