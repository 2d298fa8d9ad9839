/* SPDX-License-Identifier: Apache-2.0 */
/* tacho-record: runs a command with libtacho.so beside it.  The roof: may include anything. */
#include "collector/config.h"
#include "collector/found.h"
#include "collector/store.h"
#include "schemas/arena.h"
#include "schemas/buf.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONFIG_FILE_MAX = 1 << 20 };
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 }; /* as the shell has it */

struct record {
	const char *config, *library;
	bool doctor, help, version, quiet;
};
#define AT(member) offsetof(struct record, member)
static const struct option record_options[] = {
	{ "config", 0, OPTION_TEXT, "FILE", "read options from a JSON object", AT(config), NULL },
	{ "doctor", 0, OPTION_FLAG, NULL, "say what works on this machine", AT(doctor), "no" },
	{ "quiet", 'q', OPTION_FLAG, NULL, "no line about the log at the end", AT(quiet), "no" },
	{ "library", 0, OPTION_TEXT, "FILE", NULL, AT(library), NULL },
	{ "help", 'h', OPTION_FLAG, NULL, "this text", AT(help), "no" },
	{ "version", 0, OPTION_FLAG, NULL, "versions of tool and library", AT(version), "no" },
	{ 0 }
};

static void complain(const char *text)
{
	fprintf(stderr, "tacho-record: %s\n", text);
}

/* ---- options: defaults, file, environment, command line; later wins ---- */

static enum status value_of(const cJSON *item, struct buf *out, struct error *err)
{
	const cJSON *part;

	if (cJSON_IsString(item))
		buf_put_text(out, item->valuestring);
	else if (cJSON_IsBool(item))
		buf_put_text(out, cJSON_IsTrue(item) ? "yes" : "no");
	else if (cJSON_IsNumber(item))
		buf_putf(out, "%.15g", item->valuedouble);
	else if (cJSON_IsArray(item))
		cJSON_ArrayForEach(part, item) {
			if (out->len)
				buf_put_byte(out, ',');
			TRY(cJSON_IsArray(part) ? ST_USAGE : value_of(part, out, err));
		}
	else
		return fail(err, ST_USAGE, NOWHERE, "neither text, number, yes or no, nor a list");
	return buf_status(out, err);
}

/* Options borrow their texts, to the end. */
static struct arena texts;

static enum status take_keys(const cJSON *object, const struct option_set *sets, struct error *err)
{
	const cJSON *item;
	struct error why;
	struct buf text;
	char *copy;
	enum status status = ST_OK;

	arena_init(&texts, 2 * CONFIG_FILE_MAX);
	cJSON_ArrayForEach(item, object) {
		buf_init(&text, 65536);
		status = value_of(item, &text, &why);
		copy = arena_text(&texts, buf_text(&text), text.len);
		buf_release(&text);
		if (status == ST_OK && !copy)
			status = fail(&why, ST_MEMORY, NOWHERE, "no memory");
		if (status == ST_OK)
			status = option_set_text(sets, item->string, copy, &why);
		if (status != ST_OK)
			return fail(err, status, NOWHERE, "%s", why.text);
	}
	return ST_OK;
}

static enum status take_file(const char *path, const struct option_set *sets, struct error *err)
{
	FILE *f = fopen(path, "rb");
	char *text;
	size_t len;
	cJSON *root;
	struct error why;
	enum status status;

	if (!f)
		return fail(err, ST_IO, NOWHERE, "%s: %s", path, strerror(errno));
	text = calloc(1, CONFIG_FILE_MAX + 1);
	len = text ? fread(text, 1, CONFIG_FILE_MAX, f) : 0;
	fclose(f);
	root = text ? cJSON_ParseWithLength(text, len) : NULL;
	free(text);
	if (!cJSON_IsObject(root))
		status = fail(&why, ST_FORMAT, NOWHERE, "not a JSON object");
	else
		status = take_keys(root, sets, &why);
	cJSON_Delete(root);
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "%s: %s", path, why.text);
	return ST_OK;
}

static enum status take_arguments(const struct option_set *sets, int argc, char **argv,
				  int *operands, struct error *err)
{
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));
	struct config scratch;
	struct record own;
	const struct option_set first[] = { { config_options, &scratch },
					    { record_options, &own }, { NULL, NULL } };
	struct record *record = sets[1].into;
	enum status status;

	if (!copy)
		return fail(err, ST_MEMORY, NOWHERE, "no memory");
	memcpy(copy, argv, (size_t)argc * sizeof(*copy));
	option_defaults(first, NULL);
	/* once for --config, which comes before the rest by rank, not by place */
	status = option_arguments_until_operand(first, argc, copy, operands, err);
	free(copy);
	TRY(status);
	TRY(option_defaults(sets, err));
	if (own.config)
		TRY(take_file(own.config, sets, err));
	TRY(option_environment(sets, environ, err));
	TRY(option_arguments_until_operand(sets, argc, argv, operands, err));
	record->config = own.config;
	return ST_OK;
}

static int show_help(const struct option_set *sets)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	buf_put_text(&out, "tacho-record [options] -- COMMAND...     record a training program\n"
			   "tacho-record --doctor                    what works on this machine\n\n");
	option_help(sets, &out);
	buf_put_text(&out, "\nEach option is also a TACHO_ variable (TACHO_MAX_DISK=1G) and a key of "
			   "the config file.\nThe exit status is that of the command.\n");
	fputs(buf_text(&out), stdout);
	buf_release(&out);
	return 0;
}

/* ---- the library ---- */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Beside the tool, as built, or in lib/ beside its bin/, as installed. */
static enum status find_library(const char *asked, char out[PATH_MAX], struct error *err)
{
	static const char *const places[] = { "libtacho.so", "../lib/libtacho.so.1",
					      "../lib64/libtacho.so.1" };
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	if (asked && realpath(asked, out))
		return ST_OK;
	if (asked || n < 0)
		return fail(err, ST_ABSENT, NOWHERE, "%s: no such library", asked ? asked : "");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		if (is_file(path) && realpath(path, out))
			return ST_OK;
	}
	return fail(err, ST_ABSENT, NOWHERE, "libtacho.so is not beside %s, nor in ../lib", self);
}

/* ---- doctor ---- */

static void say_library(const char *library)
{
	size_t (*doctor)(char *text, size_t size);
	const char *(*version)(void);
	void *handle = dlopen(library, RTLD_NOW);
	char text[8192];

	if (!handle) {
		printf("library   cannot be loaded: %s\n", dlerror());
		return;
	}
	*(void **)&doctor = dlsym(handle, "tacho_doctor");
	*(void **)&version = dlsym(handle, "tacho_version");
	if (!doctor || !version) {
		printf("library   %s is no libtacho\n", library);
		return;
	}
	doctor(text, sizeof(text));
	fputs(text, stdout);
	if (strcmp(version(), TACHO_VERSION) != 0)
		printf("library   its version is not that of this tool, %s\n", TACHO_VERSION);
}

static void say_folder(const char *folder)
{
	struct error err;
	struct statvfs v;
	bool made = false;

	if (store_make_folder(folder, &made, &err) != ST_OK)
		printf("logs      %s\n", err.text);
	else if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &v) != 0)
		printf("logs      %s cannot be written to: %s\n", folder, strerror(errno));
	else
		printf("logs      %s can be written to, %.1f GiB free\n", folder,
		       (double)v.f_bavail * (double)v.f_frsize / (1 << 30));
	if (made)
		rmdir(folder);
}

static int doctor(const struct config *c, const char *library)
{
	static const char *const others[] = { "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
					      "LD_PRELOAD", "LD_AUDIT" };
	size_t i;

	setenv("TACHO_CUPTI_LIB", c->cupti_lib, 1); /* the one option that the library looks at here */
	say_library(library);
	say_folder(c->out);
	if (c->rank.rank != RANK_UNKNOWN)
		printf("rank      %u of %u, by %s\n", c->rank.rank, c->rank.world_size,
		       c->rank.launcher);
	else
		printf("rank      none: no launcher's variable is set\n");
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (getenv(others[i]))
			printf("others    %s=%s is set: another tool may be at work\n", others[i],
			       getenv(others[i]));
	return 0;
}

/* ---- the run ---- */

static pid_t child;

static void pass_on(int number)
{
	if (child > 0)
		kill(child, number);
}

static void set_variable(const char *name, const char *value, void *arg)
{
	setenv(name, value, 1);
}

/* CUDA calls one library when it comes to life: ours, unless somebody was there before. */
static void set_injection(const char *library)
{
	const char *said = getenv("CUDA_INJECTION64_PATH");
	char text[PATH_MAX + 160];

	if (!said || !*said || strcmp(said, library) == 0) {
		setenv("CUDA_INJECTION64_PATH", library, 1);
		return;
	}
	snprintf(text, sizeof(text), "CUDA_INJECTION64_PATH is %s, another tool's: it is left alone, "
		 "and work of the GPU may be recorded late or not at all", said);
	complain(text);
}

/* NVTX too; what is to be said about it goes into the last line. */
static void set_nvtx(const char *library, char *note, size_t cap)
{
	const char *said = getenv("NVTX_INJECTION64_PATH");

	if (!said || !*said || strcmp(said, library) == 0)
		setenv("NVTX_INJECTION64_PATH", library, 1);
	else
		snprintf(note, cap, "; without ranges of NVTX, because NVTX_INJECTION64_PATH is %s",
			 said);
}

/* Where tacho.py lies, as built or as installed; behind all that the user has set. */
static void set_python_path(const char *library)
{
	static const char *const places[] = { ".", "../share/tacho" };
	const char *before = getenv("PYTHONPATH"), *end = strrchr(library, '/');
	char folder[2 * PATH_MAX], path[2 * PATH_MAX + 16];
	struct buf text;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(folder, sizeof(folder), "%.*s/%s", (int)(end - library), library, places[i]);
		snprintf(path, sizeof(path), "%s/tacho.py", folder);
		if (is_file(path))
			break;
	}
	if (i == sizeof(places) / sizeof(places[0]) || !realpath(folder, path))
		return;
	buf_init(&text, 1 << 20);
	if (before && *before)
		buf_putf(&text, "%s:", before);
	buf_put_text(&text, path);
	setenv("PYTHONPATH", buf_text(&text), 1);
	buf_release(&text);
}

static void set_environment(struct config *c, const char *library)
{
	const char *before = getenv("LD_PRELOAD"), *said = getenv("TACHO_ENABLED");
	struct buf preload;

	/* who switched it off for good is not overruled by the tool's being there */
	c->enabled = c->enabled || !said || !*said;
	config_export(c, set_variable, NULL);
	set_injection(library);
	buf_init(&preload, 1 << 20);
	buf_put_text(&preload, library);
	if (before && *before)
		buf_putf(&preload, ":%s", before);
	setenv("LD_PRELOAD", buf_text(&preload), 1);
	buf_release(&preload);
	set_python_path(library);
}

/* Returns whether the folder was made here. */
static bool prepare_folder(const char *folder)
{
	char text[PATH_MAX + 128];
	struct error err;
	bool made = false;
	enum status status = store_make_folder(folder, &made, &err);

	if (status == ST_OK && access(folder, W_OK | X_OK) != 0)
		status = fail(&err, ST_IO, NOWHERE, "%s: %s", folder, strerror(errno));
	if (status != ST_OK) {
		snprintf(text, sizeof(text), "%s; the command runs without a log", err.text);
		complain(text);
	}
	return made;
}

static void run_command(char **command)
{
	int code;

	execvp(command[0], command);
	code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
	fprintf(stderr, "tacho-record: %s: %s\n", command[0], strerror(errno));
	_exit(code);
}

/* What a terminal sends reaches the command by itself; what was sent to us is passed on. */
static int wait_for_command(void)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT };
	int status = 0;
	size_t i;

	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		signal(passed[i], pass_on);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* As the command ended, so do we. */
static int end_as(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (!WIFSIGNALED(status))
		return 1;
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 }); /* the command's core is enough */
	signal(WTERMSIG(status), SIG_DFL);
	kill(getpid(), WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int record(struct config *c, const struct record *o, const char *library, char **command)
{
	struct found before, after;
	char note[PATH_MAX + 100] = "";
	bool made = prepare_folder(c->out);
	int status;

	found_init(&before);
	found_init(&after);
	found_look(&before, c->out, c->host);
	set_environment(c, library);
	if (c->nvtx)
		set_nvtx(library, note, sizeof(note));
	fflush(stdout);
	child = fork();
	if (child == 0)
		run_command(command);
	if (child < 0) {
		complain(strerror(errno));
		return status_exit(ST_MEMORY);
	}
	status = wait_for_command();
	found_look(&after, c->out, c->host);
	if (!o->quiet && !(WIFEXITED(status) && WEXITSTATUS(status) >= NOT_EXECUTABLE))
		found_tell(&before, &after, c->out, note);
	if (made)
		rmdir(c->out); /* stays, if something is in it */
	found_release(&before);
	found_release(&after);
	return end_as(status);
}

static int show_version(const char *library)
{
	printf("tacho-record %s, cJSON %s, library %s\n", TACHO_VERSION, cJSON_Version(),
	       *library ? library : "not found");
	return 0;
}

/* The library takes its folder relative to where it starts; that may be elsewhere. */
static void make_absolute(struct config *c, char out[2 * PATH_MAX])
{
	char here[PATH_MAX];

	if (c->out[0] == '/' || !getcwd(here, sizeof(here)))
		return;
	snprintf(out, 2 * PATH_MAX, "%s/%s", here, c->out);
	c->out = out;
}

int main(int argc, char **argv)
{
	static struct config config;
	static struct record own;
	static char library[PATH_MAX], out[2 * PATH_MAX];
	const struct option_set sets[] = { { config_options, &config }, { record_options, &own },
					   { NULL, NULL } };
	struct error err;
	enum status status;
	int operands = 0;

	status = take_arguments(sets, argc, argv, &operands, &err);
	if (status == ST_OK && own.help)
		return show_help(sets);
	if (status == ST_OK)
		status = find_library(own.library, library, &err);
	if (own.version)
		return show_version(library);
	if (status == ST_OK)
		status = config_check(&config, &err);
	if (status == ST_OK && !own.doctor && !operands)
		status = fail(&err, ST_USAGE, NOWHERE, "no command; see --help");
	if (status != ST_OK) {
		complain(err.text);
		return status_exit(status);
	}
	config_look_around(&config, environ);
	make_absolute(&config, out);
	if (own.doctor)
		return doctor(&config, library);
	return record(&config, &own, library, argv + 1);
}
