/* SPDX-License-Identifier: Apache-2.0 */
/* tacho-analyze: inputs to a report. */
#include "analyze/engine.h"
#include "analyze/format.h"
#include "analyze/format_parts.h"
#include "analyze/options.h"
#include "analyze/report_check.h"
#include "convert/input.h"
#include "convert/options.h"
#include "convert/out.h"
#include "convert/progress.h"

#include <archive.h>
#include <cjson/cJSON.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

extern char **environ;

enum { RULES_MAX = 1024 * 1024, HELP_MAX = 64 * 1024, SCHEMA_MAX = 1 << 20, THREADS_MAX = 256 };
#define PAGE_MAX ((size_t)4 << 30) /* of a report as text */

struct tool {
	struct analyze_options own;
	struct common_options common;
	struct cut cut;
	const struct report_type *reports[REPORTS_ASKED + 1];
	const struct format_type *format;
	struct name_rules *rules;
	struct input_paths paths;
	struct engine_outcome *outcomes;
	struct tables *tables;
	struct buf page;
	struct progress progress;
};

static void complain(const char *path, const struct error *err)
{
	fprintf(stderr, "tacho-analyze: ");
	if (path)
		fprintf(stderr, "%s: ", path);
	if (err->at != NOWHERE)
		fprintf(stderr, "byte %llu: ", (unsigned long long)err->at);
	fprintf(stderr, "%s\n", err->text);
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- help and version ------------------------------------------------------------------- */

static void print_help(const struct option_set *sets)
{
	struct buf out;
	size_t i;

	buf_init(&out, HELP_MAX);
	buf_put_text(&out, "usage: tacho-analyze INPUT... [options]\n"
			   "An INPUT is a trace, a folder of traces, or - for standard input.\n\n");
	option_help(sets, &out);
	buf_put_text(&out, "\nreports:\n");
	for (i = 0; reports()[i]; i++)
		buf_putf(&out, "  %-9s %s\n", reports()[i]->name, reports()[i]->help);
	buf_put_text(&out, "formats:\n");
#define X(name) buf_putf(&out, "  %-9s %s\n", #name, format_##name.help);
	FORMAT_LIST(X)
#undef X
	fputs(buf_text(&out), stdout);
	buf_release(&out);
}

static void print_version(void)
{
	printf("tacho-analyze %s\n%s\ncJSON %s\nzlib %s\n", TACHO_VERSION,
	       archive_version_details(), cJSON_Version(), zlibVersion());
}

static void print_schema(void)
{
	struct buf out;

	buf_init(&out, SCHEMA_MAX);
	put_json_schema(&out);
	fputs(buf_text(&out), stdout);
	buf_release(&out);
}

/* ---- what the machine is ---------------------------------------------------------------- */

static const char *scratch_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && folder[0] ? folder : "/tmp";
}

static unsigned thread_count(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : (unsigned)count;
}

static bool variable_has(const char *name, const char *word)
{
	const char *value = getenv(name);

	return value && strstr(value, word);
}

static enum colour colour_of(bool is_terminal)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	if (!is_terminal || (none && none[0]) || !term || !term[0] || !strcmp(term, "dumb"))
		return COLOUR_NONE;
	if (!variable_has("COLORTERM", "truecolor") && !variable_has("COLORTERM", "24bit"))
		return COLOUR_16;
	/* "15;0": foreground and background of terminals that tell; a light one is 7 or 15 */
	return variable_has("COLORFGBG", ";15") || variable_has("COLORFGBG", ";7") ? COLOUR_LIGHT
										   : COLOUR_DARK;
}

static unsigned columns_of(bool is_terminal)
{
	struct winsize size;

	if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return 100;
}

/* ---- a run ------------------------------------------------------------------------------ */

static enum status rules_load(struct tool *t, struct error *err)
{
	struct error own = { 0 };
	enum status status;
	char *text;
	size_t len;
	FILE *f;

	if (!t->own.phases)
		return name_rules_new(&t->rules, NULL, 0, err);
	f = fopen(t->own.phases, "rb");
	if (!f)
		return fail(err, ST_IO, NOWHERE, "--phases: %s: cannot be opened", t->own.phases);
	text = malloc(RULES_MAX + 1);
	len = text ? fread(text, 1, RULES_MAX + 1, f) : 0;
	fclose(f);
	if (!text)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for rules");
	if (len > RULES_MAX)
		status = fail(&own, ST_CEILING, NOWHERE, "over 1 MiB");
	else
		status = name_rules_new(&t->rules, text, len, &own);
	free(text);
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "--phases: %s: %s", t->own.phases, own.text);
	return ST_OK;
}

static enum status settle(struct tool *t, struct error *err)
{
	TRY(options_check(&t->common, err));
	TRY(analyze_options_check(&t->own, err));
	TRY(reports_parse(t->own.report, t->reports, err));
	t->format = format_find(t->own.format);
	if (!t->format)
		return fail(err, ST_USAGE, NOWHERE, "--format %.40s: no such format",
			    t->own.format);
	if (t->format == &format_csv && t->reports[1])
		return fail(err, ST_USAGE, NOWHERE,
			    "csv holds one table: name one report, such as --report kernels");
	TRY(cut_parse(&t->cut, err));
	return rules_load(t, err);
}

static void show_progress(void *self, uint64_t events)
{
	struct tool *t = self;
	struct progress_now now = { .now_ns = clock_ns(), .events = events };
	struct buf line;

	buf_init(&line, 4096);
	if (progress_line(&t->progress, &now, &line))
		fputs(buf_text(&line), stderr);
	buf_release(&line);
}

static void hide_progress(struct tool *t)
{
	struct buf line;

	buf_init(&line, 4096);
	progress_end(&t->progress, &line);
	fputs(buf_text(&line), stderr);
	buf_release(&line);
}

static enum status analyze(struct tool *t, struct error *err)
{
	bool show = !t->common.quiet && isatty(STDERR_FILENO);
	struct engine_request how = {
		.paths = t->paths.paths, .count = t->paths.count, .reports = t->reports,
		.rules = t->rules, .cut = &t->cut, .per_step = t->own.per_step, .bins = t->format->bins,
		.memory_bytes = (size_t)t->common.memory_bytes, .threads = thread_count(),
		.scratch = scratch_folder(), .progress = show ? show_progress : NULL,
		.progress_self = t,
	};
	enum status status;

	if (how.threads > how.count)
		how.threads = (unsigned)how.count;
	t->outcomes = calloc(how.count, sizeof(*t->outcomes));
	if (!t->outcomes)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %zu inputs", how.count);
	t->progress.begin_ns = clock_ns();
	status = engine_run(&t->tables, &how, t->outcomes, err);
	hide_progress(t);
	return status;
}

/* Says what was wrong with inputs; the status of the first, ST_OK if none was. */
static enum status judge(const struct tool *t)
{
	enum status first = ST_OK;
	struct error err = { .at = NOWHERE };
	size_t i;

	for (i = 0; i < t->paths.count; i++) {
		const struct engine_outcome *o = &t->outcomes[i];

		if (o->status != ST_OK)
			complain(t->paths.paths[i], &o->error);
		if (o->status != ST_OK && first == ST_OK)
			first = o->status;
		if (!t->common.strict || o->status != ST_OK || !o->damaged)
			continue;
		fail(&err, ST_FORMAT, NOWHERE, "%llu records are damaged",
		     (unsigned long long)o->damaged);
		complain(t->paths.paths[i], &err);
		first = first == ST_OK ? ST_FORMAT : first;
	}
	return first;
}

static enum status print(struct tool *t, struct error *err)
{
	bool is_terminal = !t->common.output && isatty(STDOUT_FILENO);
	struct format_request how = {
		.tables = t->tables, .reports = t->reports, .colour = colour_of(is_terminal),
		.is_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8"),
		.width = columns_of(is_terminal), .view = options_view(&t->own),
	};
	bool is_folder = t->format->part && t->common.output;
	struct out *out;
	enum status status;

	if (!is_folder)
		TRY(t->format->write(&how, &t->page, err));
	TRY(out_open(&out, t->common.output, is_folder, err));
	if (is_folder)
		status = format_parts_write(t->format, &how, out, err);
	else
		status = out_write(out, t->page.data, t->page.len, err);
	if (status == ST_OK)
		status = out_commit(out, err);
	out_free(out);
	return status;
}

static bool asks_for(const struct tool *t, const struct report_type *type)
{
	size_t i;

	for (i = 0; t->reports[i]; i++)
		if (t->reports[i] == type)
			return true;
	return false;
}

/* With --strict a recording that is not to be trusted is an error, after it was said why. */
static enum status judge_checks(const struct tool *t, struct error *err)
{
	uint64_t bad = check_bad(t->tables);

	if (!t->common.strict || !bad)
		return ST_OK;
	return fail(err, ST_FORMAT, NOWHERE, "checks that are bad: %llu", (unsigned long long)bad);
}

static enum status run(struct tool *t, char **operands, size_t count, struct error *err)
{
	enum status status, inputs;
	size_t passed_over;

	TRY(settle(t, err));
	if (!count)
		return fail(err, ST_USAGE, NOWHERE, "no input; see --help");
	TRY(source_paths_find(&t->paths, operands, count, scratch_folder(), &passed_over, err));
	if (passed_over && !t->common.quiet)
		fprintf(stderr, "tacho-analyze: passed over %zu JSON files that are no traces\n",
			passed_over);
	status = analyze(t, err);
	inputs = t->outcomes ? judge(t) : ST_OK;
	if (status != ST_OK && inputs == ST_OK)
		return status;
	err->text[0] = '\0';
	if (inputs != ST_OK && ((t->common.strict && !asks_for(t, &report_check)) ||
				status != ST_OK))
		return inputs;
	status = print(t, err);
	if (status == ST_OK && asks_for(t, &report_check))
		status = judge_checks(t, err);
	return status != ST_OK ? status : inputs;
}

static void tool_release(struct tool *t)
{
	tables_free(t->tables);
	name_rules_free(t->rules);
	input_paths_free(&t->paths);
	free(t->outcomes);
	buf_release(&t->page);
}

int main(int argc, char **argv)
{
	struct tool t = { .tables = NULL };
	struct option_set sets[] = {
		{ analyze_options, &t.own }, { analyze_memory, &t.common },
		{ cut_options, &t.cut },     { common_options, &t.common },
		{ NULL, NULL },
	};
	struct error err = { .at = NOWHERE };
	enum status status;
	int operands = 0;

	setlocale(LC_CTYPE, "");
	buf_init(&t.page, PAGE_MAX);
	status = option_defaults(sets, &err);
	if (status == ST_OK)
		status = option_environment(sets, environ, &err);
	if (status == ST_OK)
		status = option_arguments(sets, argc, argv, &operands, &err);
	if (status == ST_OK && t.common.help)
		print_help(sets);
	else if (status == ST_OK && t.common.version)
		print_version();
	else if (status == ST_OK && t.own.schema)
		print_schema();
	else if (status == ST_OK)
		status = run(&t, argv + 1, (size_t)operands, &err);
	if (status != ST_OK && err.text[0])
		complain(NULL, &err);
	tool_release(&t);
	return status_exit(status);
}
