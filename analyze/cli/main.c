/* SPDX-License-Identifier: Apache-2.0 */
/* tacho-analyze: makes a report from inputs. */
#include "analyze/cli/internal.h"

#include "analyze/format/diff/diff.h"
#include "analyze/model/peaks.h"
#include "analyze/replay/edit.h"
#include "analyze/report/report_list.h"
#include "convert/base/temporary.h"
#include "schemas/base/crc32c.h"
#include "schemas/base/plain.h"

#include <archive.h>
#include <locale.h>
#include <stdlib.h>
#include <zlib.h>

extern char **environ;

enum { RULES_MAX = 1024 * 1024 };
#define PAGE_MAX ((size_t)4 << 30) /* limit for a report as text */

/* ---- help and version ------------------------------------------------------------------- */

static void put_help(const struct option_set *sets, struct buf *out)
{
	buf_put_text(out, "usage: tacho-analyze INPUT... [options]\n"
			  "       tacho-analyze --partial OUT INPUT...   --merge PARTIAL...\n"
			  "       tacho-analyze --diff A B [--fail-over 2%]   "
			  "--explain FIGURE [INPUT...]   --mcp FOLDER\n"
			  "An INPUT is a trace, a folder of traces, or - for standard input.\n\n");
	option_help(sets, out);
	buf_put_text(out, "\nreports:\n");
	for (size_t i = 0; report_types[i]; i++)
		buf_putf(out, "  %-9s %s\n", report_types[i]->name, report_types[i]->help);
	buf_put_text(out, "formats:\n");
#define X(name) buf_putf(out, "  %-9s %s\n", #name, format_##name.help);
	FORMAT_LIST(X)
#undef X
}

static enum status print_about(struct tool *t, const struct option_set *sets, struct error *err)
{
	if (t->common.help)
		put_help(sets, &t->page);
	else if (t->common.version)
		buf_putf(&t->page, "tacho-analyze %s\n%s\ncJSON %s\nzlib %s\n", TACHO_VERSION,
			 archive_version_details(), cJSON_Version(), zlibVersion());
	else
		(t->own.diff ? diff_put_schema : put_json_schema)(&t->page);
	t->common.output = NULL;
	return tool_write(t, t->page.data, t->page.len, err);
}

/* ---- a run ------------------------------------------------------------------------------ */

/* Reads a small file that an option names. The caller frees the text. */
static enum status file_load(const char *option, const char *path, char **text, size_t *len,
			     struct error *err)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		return fail(err, ST_IO, NOWHERE, "--%s: %s: cannot be opened", option, path);
	*text = malloc(RULES_MAX + 1);
	*len = *text ? fread(*text, 1, RULES_MAX + 1, f) : 0;
	fclose(f);
	if (!*text)
		return fail_memory(err);
	if (*len <= RULES_MAX)
		return ST_OK;
	free(*text);
	return fail(err, ST_CEILING, NOWHERE, "--%s: %s: over 1 MiB", option, path);
}

static enum status settle(struct tool *t, struct error *err)
{
	TRY(options_check(&t->common, err));
	TRY(analyze_options_check(&t->own, err));
	TRY(reports_parse(t->own.report, t->reports, err));
	if (t->own.what_if) {
		TRY(edit_sets_parse(&t->edits, &t->edit_count, t->own.what_if, err));
		t->hidden = what_if_report(t->reports);
	}
	if (t->own.compat)
		compat_report(t->own.compat, t->reports);
	t->format = format_find(t->own.format);
	if (!t->format) {
		const char *name = t->own.format;
		struct similar s = { .name = name, .len = strlen(name) };
		char meant[SIMILAR_TEXT];

		for (size_t i = 0; format_types[i]; i++)
			similar_try(&s, format_types[i]->name);
		return fail(err, ST_USAGE, NOWHERE, "--format %.40s: no such format%s", name,
			    similar_text(&s, meant));
	}
	if (t->format == &format_csv && t->reports[1] && t->reports[1] != t->hidden)
		return fail(err, ST_USAGE, NOWHERE,
			    "csv has one table: name one report, such as --report kernels");
	TRY(filter_parse(&t->filter, err));
	struct error own = { 0 };
	enum status status;
	char *text;
	size_t len;

	if (t->own.peaks) {
		TRY(file_load("peaks", t->own.peaks, &text, &len, err));
		status = peaks_load(&t->peaks, text, len, &own);
		free(text);
		if (status != ST_OK)
			return fail(err, status, NOWHERE, "--peaks: %s: %s", t->own.peaks,
				    own.text);
	}
	if (!t->own.phases)
		return name_rules_new(&t->rules, NULL, 0, err);
	TRY(file_load("phases", t->own.phases, &text, &len, err));
	status = name_rules_new(&t->rules, text, len, &own);
	t->rules_crc = crc32c(0, text, len);
	free(text);
	if (status != ST_OK)
		return fail(err, status, NOWHERE, "--phases: %s: %s", t->own.phases, own.text);
	return ST_OK;
}

static enum status run(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct engine_result result = { .tables = NULL };
	enum status status;

	TRY(settle(t, err));
	if (t->own.mcp)
		return count ? fail(err, ST_USAGE, NOWHERE,
				    "--mcp needs a folder and accepts no inputs")
			     : mcp_serve(t->own.mcp, err);
	if (t->own.explain)
		return run_explain(t, operands, count, err);
	if (t->own.diff)
		return run_diff(t, operands, count, err);
	if (t->own.baseline)
		return run_baseline(t, operands, count, err);
	if (t->own.merge)
		return run_merge(t, operands, count, err);
	if (t->own.partial)
		return run_partial(t, operands, count, err);
	if (mpi_is_there())
		return run_mpi(t, operands, count, err);
	status = tool_read(t, operands, count, t->reports, t->format->pictures, &result, err);
	if (status == ST_OK)
		status = tool_conclude(t, &result, engine_is_filtered(&t->filter), err);
	engine_result_release(&result);
	return status;
}

int main(int argc, char **argv)
{
	struct tool t = { .rules = NULL };
	struct option_set sets[] = {
		{ analyze_options, &t.own },
		{ analyze_memory, &t.common },
		{ filter_options, &t.filter },
		{ common_options, &t.common },
		{ NULL, NULL },
	};
	struct error err = { .at = NOWHERE };
	int operands = 0;

	setlocale(LC_CTYPE, "");
	plain_set(getenv("TACHO_PLAIN"));
	temporary_guard();
	buf_init(&t.page, PAGE_MAX);
	enum status status = option_defaults(sets, &err);
	if (status == ST_OK)
		status = option_environment(sets, environ, &err);
	if (status == ST_OK)
		status = option_arguments(sets, argc, argv, &operands, &err);
	if (status == ST_OK)
		status = t.common.help || t.common.version || t.own.schema
				 ? print_about(&t, sets, &err)
				 : run(&t, argv + 1, (size_t)operands, &err);
	if (status != ST_OK && err.text[0])
		tool_complain(NULL, &err);
	name_rules_free(t.rules);
	free(t.edits);
	peaks_free(t.peaks);
	buf_release(&t.page);
	return status_exit(status);
}
