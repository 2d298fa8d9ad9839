/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tacho-convert converts traces to other formats.  Only this file reads the environment and makes
 * the exit code.
 */
#include "convert/cli/internal.h"

#include "analyze/engine/runs.h"
#include "convert/base/temporary.h"
#include "convert/output/gzip.h"
#include "schemas/base/plain.h"

#include <archive.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define TOOL "tacho-convert"

static const struct option own_rows[] = {
	{ "type", 't', OPTION_TEXT, "FORMAT", "output format (see below)",
	  offsetof(struct own_options, type), NULL },
	{ "args", 0, OPTION_TEXT, "lean|full",
	  "arguments to write: those that the format's readers use, or all (default full for "
	  "perfetto, "
	  "else lean)",
	  offsetof(struct own_options, args), NULL },
	{ "align", 0, OPTION_TEXT, "HOW",
	  "how to align the clocks of hosts: anchors, collectives (by their ends) or none",
	  offsetof(struct own_options, align), "anchors" },
	RUN_OPTION(offsetof(struct own_options, run)),
	{ "max-size", 0, OPTION_SIZE, "SIZE",
	  "maximum uncompressed size of a file: short events are merged until it fits",
	  offsetof(struct own_options, max_size), NULL },
	{ .name = NULL },
};

void print_error(const char *file, const struct error *err)
{
	say_error(TOOL, file, err);
	if (err->status == ST_CEILING && strstr(err->text, "memory"))
		say(TOOL, "a larger --memory raises the limit");
}

void note_fault(void *self, const char *file, const struct error *err)
{
	struct run *r = self;

	if (r->size.attempt <= 1) /* later attempts find the same error */
		print_error(file, err);
	if (r->worst == ST_OK)
		r->worst = err->status;
}

void print_clocks(void *self, const char *line)
{
	const struct run *r = self;

	if (r->size.attempt <= 1)
		say(TOOL, "%s", line);
}

/* ---- progress ---- */

static void look(void *self, struct progress_now *now)
{
	struct run *r = self;
	struct input_progress at;

	now->events = atomic_load(&r->events);
	now->done_bytes = atomic_load(&r->size.copied);
	pthread_mutex_lock(&r->lock);
	if (r->reading) {
		input_look(r->reading, &at);
		now->done_bytes = at.read_bytes;
		now->all_bytes = at.all_bytes;
		now->share = at.share;
	}
	pthread_mutex_unlock(&r->lock);
}

void set_reading(struct run *r, struct input *in)
{
	pthread_mutex_lock(&r->lock);
	r->reading = in;
	pthread_mutex_unlock(&r->lock);
}

static void show(void *self, const char *text)
{
	fputs(text, stderr);
}

void note_events(void *self, uint64_t events)
{
	atomic_store(&((struct run *)self)->events, events);
}

/* ---- the end of a run ---- */

static enum status commit(struct run *r, const char *account, uint64_t *bytes, struct error *err)
{
	struct out *outs[WRITERS + 1];

	if (r->common.strict && r->worst != ST_OK)
		return fail(err, r->worst, NOWHERE, "no output was written because of --strict");
	if (r->common.strict && r->account.lost_all)
		return fail(err, ST_FORMAT, NOWHERE,
			    "no output was written because of --strict: %s", account);
	for (size_t i = 0; i < WRITERS; i++)
		outs[i] = r->writers[i].out;
	outs[WRITERS] = r->done;
	for (size_t i = 0; i <= WRITERS; i++) {
		if (!outs[i])
			continue;
		TRY(out_commit(outs[i], err));
		*bytes += out_stored(outs[i]);
	}
	if (r->type == &sink_tensorboard)
		TRY(remove_xprof_caches(r, err));
	if (!r->scalars)
		return ST_OK;
	TRY(out_commit(r->scalars, err));
	*bytes += out_stored(r->scalars);
	return ST_OK;
}

/* Prints one line: the events read and written, why they differ, and the output's name and size. */
static void put_account(const struct run *r, const char *account, uint64_t bytes)
{
	bool is_named = r->common.output && strcmp(r->common.output, "-") != 0;
	char files[48] = "";

	if (r->common.quiet || !r->files)
		return;
	if (r->is_folder && !r->type->is_folder)
		snprintf(files, sizeof(files), "%llu %s in ", (unsigned long long)r->files,
			 r->files == 1 ? "file" : "files");
	say(TOOL, "%s%s%s%s, %.*f %s", account, is_named ? "; " : "", files,
	    is_named ? r->common.output : "", bytes < 100000 ? 0 : 1,
	    bytes < 100000 ? (double)bytes : (double)bytes / 1e6, bytes < 100000 ? "bytes" : "MB");
	if (r->size.totals.in) {
		struct buf b;

		buf_init(&b, TEXT_CEILING);
		size_account(&r->size, &b);
		say(TOOL, "%s", buf_text(&b));
		buf_release(&b);
	}
}

static enum status convert(struct run *r, char *const *operands, size_t count)
{
	struct error err = { .at = NOWHERE };
	const char *file = NULL;
	uint64_t bytes = 0;
	struct progress_ticker *ticker = NULL;
	struct buf account;
	struct passed_over passed;
	enum status status =
		source_paths_find(&r->paths, operands, count, r->budget.scratch, &passed, &err);

	if (!r->common.quiet) {
		say_passed_over(TOOL, passed.no_trace, PASSED_NO_TRACE);
		say_passed_over(TOOL, passed.own, PASSED_OWN);
		say_passed_over(TOOL, passed.twin, PASSED_TWIN);
		say_passed_over(TOOL, r->paths.special, PASSED_SPECIAL);
	}
	if (!r->common.quiet && isatty(STDERR_FILENO))
		ticker = progress_start(&(struct progress_hooks){ look, show }, r);
	if (status == ST_OK)
		status = name_rules_new(&r->rules, NULL, 0, &err);
	if (status == ST_OK)
		status = choose_run(r, &err);
	if (status == ST_OK && (r->type->wants_report || !is_one_output(r)))
		status = filter_find_origin(&r->filter, r->paths.paths, r->paths.count, &r->budget,
					    &err);
	if (status == ST_OK && r->type->wants_report)
		status = make_attachments(r, &err);
	if (status == ST_OK && is_one_output(r))
		status = convert_whole(r, &err, &file);
	else if (status == ST_OK)
		status = convert_each(r, &err);
	if (status == ST_OK && r->type == &sink_tensorboard && r->files)
		status = make_scalars(r, &err);
	progress_stop(ticker);
	if (status == ST_OK && !r->files && r->account.lost[LOSS_CUT_OUT])
		status = fail(&err, ST_USAGE, NOWHERE, "--ranks %.60s: the input has no such rank",
			      r->filter.ranks);
	buf_init(&account, TEXT_CEILING);
	account_put(&r->account, r->type->name, &account);
	if (status == ST_OK)
		status = commit(r, buf_text(&account), &bytes, &err);
	if (status != ST_OK)
		print_error(file, &err);
	else
		put_account(r, buf_text(&account), bytes);
	buf_release(&account);
	return status != ST_OK ? status : r->worst;
}

/* ---- the command line ---- */

static void put_help(const struct option_set *sets, struct buf *b)
{
	static const struct source_type *const sources[] = {
#define X(name) &source_##name,
		SOURCE_LIST(X)
#undef X
	};

	buf_put_text(
		b, "usage: tacho-convert INPUT... -t FORMAT [-o OUT] [options]\n\n"
		   "An INPUT is a file or folder, compressed or not, or - for standard input.\n\n");
	option_help(sets, b);
	buf_put_text(b, "\nFormats for -t:\n");
	for (size_t i = 0; sink_types[i]; i++)
		buf_putf(b, "  %-12s %s\n", sink_types[i]->name, sink_types[i]->help);
	buf_put_text(b, "\nFormats of an INPUT, detected by content:\n");
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		buf_putf(b, "  %-12s %s\n", sources[i]->name, sources[i]->help);
}

/* Prints the text of --help or --version. */
static enum status print_about(const struct run *r, const struct option_set *sets,
			       struct error *err)
{
	struct out *out = NULL;
	enum status status;
	struct buf b;

	buf_init(&b, TEXT_CEILING);
	if (r->common.help)
		put_help(sets, &b);
	else
		buf_putf(&b, "tacho-convert %s\nzlib %s, %s, cJSON %s; gzip by %s\n", TACHO_VERSION,
			 zlibVersion(), archive_version_string(), cJSON_Version(), gzip_library());
	status = out_open(&out, NULL, false, err);
	if (status == ST_OK)
		status = out_write(out, b.data, b.len, err);
	if (status == ST_OK)
		status = out_commit(out, err);
	out_free(out);
	buf_release(&b);
	return status;
}

/* Returns a hint which format to use for another name of a format, or NULL. */
static const char *known_elsewhere(const char *name)
{
	static const struct {
		const char *names, *words; /* names: each between blanks */
	} rows[] = {
		{ " json kineto speedscope catapult trace-event ",
		  "use -t chrome, whose JSON speedscope and Kineto's readers open too" },
		{ " pftrace proto protobuf ", "use -t perfetto for Perfetto's protobuf" },
		{ " xplane xspace xprof tb tfevents ",
		  "use -t tensorboard for XProf's XSpace and scalars" },
		{ " db sqlite3 duckdb ", "use -t sqlite for a database, or -t parquet for DuckDB" },
		{ " arrow feather orc avro ", "Tacho does not write this format; use -t parquet" },
		{ " nsys nsys-rep qdrep ",
		  "Tacho does not write this format; -t sqlite has its own tables" },
		{ " flamegraph ", "use -t folded, which flame graph tools read" },
		{ " otf2 ctf hdf5 h5 xlsx ", "Tacho does not write this format" },
		{ " html md markdown pdf report ",
		  "use tacho-analyze --format html or md for reports" },
		{ " txt ", "use -t text for a line for each event" },
		{ " tacho ", "use -t log for a Tacho log" },
		{ " tar zip tgz ", "use -t bundle for an archive" },
	};
	char word[40];

	snprintf(word, sizeof(word), " %.36s ", name);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strstr(rows[i].names, word))
			return rows[i].words;
	return NULL;
}

/* Fails with a message about an unknown format; `name` NULL: -t is missing. */
static enum status type_unknown(const char *name, struct error *err)
{
	struct similar s = { .name = name ? name : "", .len = name ? strlen(name) : 0 };
	char meant[SIMILAR_TEXT];

	for (size_t i = 0; sink_types[i]; i++)
		similar_try(&s, sink_types[i]->name);
	if (!name)
		return fail(err, ST_USAGE, NOWHERE, "-t FORMAT is missing%s",
			    similar_text(&s, meant));
	if (known_elsewhere(name))
		return fail(err, ST_USAGE, NOWHERE, "-t %.40s: %s", name, known_elsewhere(name));
	return fail(err, ST_USAGE, NOWHERE, "-t %.40s: no such format%s", name,
		    similar_text(&s, meant));
}

static enum status check_options(struct run *r, int operands, struct error *err)
{
	enum align_mode align;

	r->type = r->own.type ? sink_find(r->own.type) : NULL;
	if (!r->type)
		return type_unknown(r->own.type, err);
	if (r->own.args && strcmp(r->own.args, "lean") != 0 && strcmp(r->own.args, "full") != 0)
		return fail(err, ST_USAGE, NOWHERE, "--args %s: must be lean or full", r->own.args);
	if (!align_mode_find(r->own.align, &align))
		return fail(err, ST_USAGE, NOWHERE,
			    "--align %s: must be anchors, collectives or none", r->own.align);
	TRY(runs_option_check(r->own.run, err));
	if (!operands)
		return fail(err, ST_USAGE, NOWHERE, "no INPUT is given; - is standard input");
	if (r->type->is_binary && !r->common.output && !r->open.open && isatty(STDOUT_FILENO))
		return fail(err, ST_USAGE, NOWHERE, "cannot write %s to a terminal: use -o OUT",
			    r->type->name);
	r->size.is_on = r->own.max_size || r->type->viewer_most;
	if (r->own.max_size && !r->open.open &&
	    (!r->common.output || strcmp(r->common.output, "-") == 0))
		return fail(err, ST_USAGE, NOWHERE,
			    "--max-size writes a file repeatedly until it fits: use -o OUT");
	TRY(open_check(&r->open, r->type->name, r->common.output, err));
	TRY(options_check(&r->common, err));
	return filter_parse(&r->filter, err);
}

int main(int argc, char **argv)
{
	static struct run r = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct option_set sets[] = {
		{ own_rows, &r.own },
		{ open_rows, &r.open },
		{ common_options, &r.common },
		{ filter_options, &r.filter },
		{ NULL, NULL },
	};
	const char *tmp = getenv("TMPDIR");
	struct error err;
	int operands;
	enum status status = option_defaults(sets, &err), shown;

	if (status == ST_OK)
		status = option_environment(sets, environ, &err);
	if (status == ST_OK)
		status = option_arguments(sets, argc, argv, &operands, &err);
	plain_set(getenv("TACHO_PLAIN"));
	if (status == ST_OK && (r.common.help || r.common.version)) {
		status = print_about(&r, sets, &err);
		if (status != ST_OK)
			print_error(NULL, &err);
		return status_exit(status);
	}
	if (status == ST_OK)
		status = check_options(&r, operands, &err);
	if (status != ST_OK) {
		print_error(NULL, &err);
		if (status == ST_USAGE)
			say(TOOL, "--help lists them");
		return status_exit(status);
	}
	temporary_guard();
	buf_init(&r.names, TEXT_CEILING);
	r.budget = options_budget(&r.common, tmp && tmp[0] ? tmp : "/tmp");
	err.at = NOWHERE;
	status = open_begin(&r.open, &r.common.output, r.budget.scratch, &err);
	if (status != ST_OK) {
		print_error(NULL, &err);
	} else {
		status = convert(&r, argv + 1, (size_t)operands);
		shown = open_end(&r.open, r.common.output, r.files != 0, r.common.quiet, &err);
		if (shown != ST_OK)
			print_error(NULL, &err);
		status = status == ST_OK ? shown : status;
	}
	for (size_t i = 0; i < WRITERS; i++)
		out_free(r.writers[i].out);
	out_free(r.done);
	out_free(r.scalars);
	size_release(&r.size);
	for (size_t i = 0; i < ATTACHMENTS; i++)
		buf_release(&r.pages[i]);
	buf_release(&r.names);
	name_rules_free(r.rules);
	input_paths_free(&r.paths);
	return status_exit(status);
}
