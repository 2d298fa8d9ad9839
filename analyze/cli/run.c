/* SPDX-License-Identifier: Apache-2.0 */
/* A run: inputs to a result, a result to a page. */
#include "analyze/cli/internal.h"

#include "analyze/format/page/page.h"
#include "analyze/engine/runs.h"
#include "analyze/report/check/check.h"
#include "analyze/report/report_list.h"
#include "analyze/report/operators/captures.h"
#include "convert/base/messages.h"
#include "convert/output/output.h"
#include "schemas/base/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TOOL "tacho-analyze"

enum { FIRST_EVENT_BYTES = 64 << 10 };

void tool_complain(const char *path, const struct error *err)
{
	say_error(TOOL, path, err);
}

/* ---- inputs ----------------------------------------------------------------------------- */

enum status tool_paths(struct tool *t, char **operands, size_t count, struct input_paths *paths,
		       struct error *err)
{
	struct passed_over passed;

	if (!count)
		return fail(err, ST_USAGE, NOWHERE, "no input; see --help");
	TRY(source_paths_find(paths, operands, count, scratch_folder(), &passed, err));
	if (!t->common.quiet) {
		say_passed_over(TOOL, passed.no_trace, PASSED_NO_TRACE);
		say_passed_over(TOOL, passed.own, PASSED_OWN);
		say_passed_over(TOOL, passed.twin, PASSED_TWIN);
		say_passed_over(TOOL, paths->special, PASSED_SPECIAL);
	}
	return filter_find_origin(&t->filter, paths->paths, paths->count,
				  &(struct budget){ .opening = (size_t)t->common.memory_bytes / 4,
						    .resident = FIRST_EVENT_BYTES,
						    .scratch = scratch_folder() },
				  err);
}

static void show_progress(const char *text)
{
	fputs(text, stderr);
}

struct engine_request tool_request(struct tool *t, char *const *paths, size_t count)
{
	bool show = !t->common.quiet && isatty(STDERR_FILENO);
	unsigned threads = thread_count(t->common.threads);

	return (struct engine_request){
		.paths = paths,
		.count = count,
		.reports = t->reports,
		.rules = t->rules,
		.filter = &t->filter,
		.per_step = t->own.per_step,
		.edits = t->edits,
		.peaks = t->peaks,
		.edit_count = t->edit_count,
		.pictures = t->format->pictures,
		.memory_bytes = (size_t)t->common.memory_bytes,
		.threads = threads < count ? threads
			   : count         ? (unsigned)count
					   : 1,
		.helpers = threads - 1,
		.scratch = scratch_folder(),
		.show = show ? show_progress : NULL,
	};
}

/* ---- runs ------------------------------------------------------------------------------- */

static enum status choose_run(const struct tool *t, const struct runs *runs, size_t *number,
			      struct error *err)
{
	size_t wanted = run_number(&t->own);
	char when[UNIT_TEXT];

	*number = wanted ? wanted : runs->count;
	if (wanted > runs->count)
		return fail(err, ST_USAGE, NOWHERE, "--run %s: the inputs contain %zu run%s",
			    t->own.run, runs->count, runs->count == 1 ? "" : "s");
	for (size_t i = 0; runs->count > 1 && !t->common.quiet && i < runs->count; i++) {
		const struct run_of_inputs *run = &runs->all[i];

		say(TOOL, "run %zu, begun %s: %zu file%s, %.200s%s%s", i + 1,
		    unit_format_instant(run->begin_ns / 1000000000u * 1000000000u, when),
		    run->inputs, run->inputs == 1 ? "" : "s", run->path,
		    run->inputs == 1 ? "" : " and others",
		    i + 1 == *number ? wanted ? ": analysed" : ": analysed, the latest" : "");
	}
	return ST_OK;
}

/* Leaves files of other runs than `number` out. */
static size_t leave_others(struct input_paths *paths, const struct runs *runs, size_t number,
			   bool also_named)
{
	size_t kept = 0, left_out = 0;

	for (size_t i = 0; i < paths->count; i++) {
		uint32_t run = runs->of_input[i];

		if ((paths->searched[i] || also_named) && run != NO_RUN && run != number) {
			free(paths->paths[i]);
			left_out++;
			continue;
		}
		paths->searched[kept] = paths->searched[i];
		paths->paths[kept++] = paths->paths[i];
	}
	paths->count = kept;
	return left_out;
}

static enum status read_paths(struct tool *t, const struct input_paths *paths,
			      const struct report_type *const *reports, enum pictures pictures,
			      struct engine_result *out, struct error *err)
{
	struct engine_request how = tool_request(t, paths->paths, paths->count);

	how.reports = reports;
	how.pictures = pictures;
	return engine_accumulate(out, &how, err);
}

/* What the traces of --capture know of graphs. */
static enum status read_captures(struct tool *t, struct engine_result *into, struct error *err)
{
	const struct report_type *const reports[] = { &report_operators, NULL };
	struct table *nodes = tables_find(into->tables, table_graph_nodes.name);
	char *operand = (char *)t->own.capture;
	struct engine_result of_capture = { .tables = NULL };
	struct input_paths paths = { .count = 0 };
	struct passed_over passed;

	if (!nodes)
		return ST_OK;
	enum status status = source_paths_find(&paths, &operand, 1, scratch_folder(), &passed, err);
	struct engine_request how = tool_request(t, paths.paths, paths.count);
	how.reports = reports;
	how.filter = NULL;
	if (status == ST_OK)
		status = engine_accumulate(&of_capture, &how, err);
	if (status == ST_OK && tool_judge(t, &of_capture) != ST_OK)
		status = fail(err, ST_IO, NOWHERE, "--capture %.200s: some of it could not be read",
			      operand);
	if (status == ST_OK)
		status = table_merge(nodes, tables_find(of_capture.tables, table_graph_nodes.name),
				     err);
	engine_result_release(&of_capture);
	input_paths_free(&paths);
	return status;
}

enum status tool_read(struct tool *t, char **operands, size_t count,
		      const struct report_type *const *reports, enum pictures pictures,
		      struct engine_result *out, struct error *err)
{
	struct input_paths paths = { .count = 0 };
	struct engine_result of_run = { .tables = NULL };
	struct runs runs = { .count = 0 };
	bool is_named = run_number(&t->own) > 0, wants = is_named;
	enum status status = tool_paths(t, operands, count, &paths, err);
	size_t number = 0;

	if (status == ST_OK)
		status = read_paths(t, &paths, reports, pictures, out, err);
	for (size_t i = 0; i < paths.count && !t->own.run; i++)
		wants |= paths.searched[i];
	if (status == ST_OK && wants)
		status = runs_find(&runs, out, err);
	if (status == ST_OK && wants)
		status = choose_run(t, &runs, &number, err);
	/* Only what was read tells which run it is of: the one that is wanted is read again, alone.
	 */
	if (status == ST_OK && runs.count > 1 && leave_others(&paths, &runs, number, is_named)) {
		status = read_paths(t, &paths, reports, pictures, &of_run, err);
		if (status == ST_OK)
			status = runs_put(&runs, number, of_run.tables, err);
		engine_result_release(out);
		*out = of_run;
	}
	if (status == ST_OK && t->own.capture)
		status = read_captures(t, out, err);
	runs_release(&runs);
	input_paths_free(&paths);
	return status;
}

enum status tool_judge(const struct tool *t, const struct engine_result *r)
{
	enum status first = ST_OK;
	struct error err = { .at = NOWHERE };

	for (size_t i = 0; i < r->input_count; i++) {
		const struct engine_outcome *o = &r->inputs[i].outcome;

		if (o->status != ST_OK)
			tool_complain(r->inputs[i].path, &o->error);
		if (o->status != ST_OK && first == ST_OK)
			first = o->status;
		if (!t->common.strict || o->status != ST_OK || !o->damaged)
			continue;
		fail(&err, ST_FORMAT, NOWHERE, "%llu records are damaged",
		     (unsigned long long)o->damaged);
		tool_complain(r->inputs[i].path, &err);
		first = first == ST_OK ? ST_FORMAT : first;
	}
	return first;
}

/* ---- pages ------------------------------------------------------------------------------ */

static enum status commit(struct out *out, enum status status, struct error *err)
{
	if (status == ST_OK)
		status = out_commit(out, err);
	out_free(out);
	return status;
}

enum status tool_write(const struct tool *t, const void *bytes, size_t len, struct error *err)
{
	struct out *out;

	TRY(out_open(&out, t->common.output, false, err));
	return commit(out, out_write(out, bytes, len, err), err);
}

struct format_request tool_page(const struct tool *t, struct tables *tables)
{
	bool is_terminal = !t->common.output && !t->is_far && isatty(STDOUT_FILENO);

	return (struct format_request){
		.tables = tables,
		.reports = t->reports,
		.hidden = t->hidden,
		.colour = colour_of(is_terminal),
		.is_utf8 = is_utf8(),
		.width = t->common.output ? LINE_WIDTH : columns_of(is_terminal),
		.view = options_view(&t->own),
	};
}

static enum status print(struct tool *t, struct tables *tables, struct error *err)
{
	struct format_request how = tool_page(t, tables);

	if (t->format->part && t->common.output) {
		struct out *folder;

		TRY(out_open(&folder, t->common.output, true, err));
		return commit(folder, format_parts_write(t->format, &how, folder, err), err);
	}
	TRY(t->format->write(&how, &t->page, err));
	return tool_write(t, t->page.data, t->page.len, err);
}

static bool asks_for(const struct tool *t, const struct report_type *type)
{
	for (size_t i = 0; t->reports[i]; i++)
		if (t->reports[i] == type)
			return true;
	return false;
}

/* That nothing could be read is not reported again where each input was. */
enum status tool_conclude(struct tool *t, struct engine_result *r, bool is_filtered,
			  struct error *err)
{
	enum status status = engine_result_finish(r, is_filtered, err), inputs = tool_judge(t, r);
	bool was_read = false;
	uint64_t bad;

	for (size_t i = 0; i < r->input_count; i++)
		was_read |= r->inputs[i].outcome.is_in_tables;
	if (status != ST_OK && (inputs == ST_OK || was_read))
		return status;
	err->text[0] = '\0';
	if (inputs != ST_OK &&
	    ((t->common.strict && !asks_for(t, &report_check)) || status != ST_OK))
		return inputs;
	TRY(print(t, r->tables, err));
	/* with --strict a recording that is not to be trusted is an error, after the page said why
	 */
	bad = t->common.strict && asks_for(t, &report_check) ? check_bad(r->tables) : 0;
	if (bad)
		return fail(err, ST_FORMAT, NOWHERE, "failed checks: %llu",
			    (unsigned long long)bad);
	return inputs;
}
