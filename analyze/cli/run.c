/* SPDX-License-Identifier: Apache-2.0 */
/* Reads inputs into a result, and prints a result as a page. */
#include "analyze/cli/internal.h"

#include "analyze/format/page/page.h"
#include "analyze/engine/runs.h"
#include "analyze/report/check/check.h"
#include "analyze/report/report_list.h"
#include "analyze/report/operators/captures.h"
#include "convert/base/messages.h"
#include "convert/output/output.h"

#include <stdio.h>
#include <unistd.h>

#define TOOL "tacho-analyze"

enum { FIRST_EVENT_BYTES = 64 << 10 };

void tool_complain(const char *path, const struct error *err)
{
	say_error(TOOL, path, err);
}

/* ---- inputs ----------------------------------------------------------------------------- */

static enum status find_origin(struct tool *t, const struct input_paths *paths, struct error *err)
{
	return filter_find_origin(&t->filter, paths->paths, paths->count,
				  &(struct budget){ .opening = (size_t)t->common.memory_bytes / 4,
						    .resident = FIRST_EVENT_BYTES,
						    .scratch = scratch_folder() },
				  err);
}

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
	return find_origin(t, paths, err);
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

static enum status read_paths(struct tool *t, const struct input_paths *paths,
			      const struct report_type *const *reports, enum pictures pictures,
			      struct engine_result *out, struct error *err)
{
	struct engine_request how = tool_request(t, paths->paths, paths->count);

	how.reports = reports;
	how.pictures = pictures;
	return engine_accumulate(out, &how, err);
}

/* Adds what the traces of --capture contain about graphs. */
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
	struct engine_result tells_runs = { .tables = NULL };
	struct run_choice choice = { t->own.run, TOOL, "analysed", t->common.quiet, 0, 0 };
	struct runs runs = { .count = 0 };
	enum status status = tool_paths(t, operands, count, &paths, err);
	bool wants = status == ST_OK && runs_matter(choice.option, &paths), is_read = !wants;

	*out = (struct engine_result){ .tables = NULL };
	/* Runs can only be told apart after reading. If there are several, the chosen one is read
	 * again, alone; a filter may hide what identifies runs. */
	if (wants && filter_is_empty(&t->filter)) {
		status = read_paths(t, &paths, reports, pictures, &tells_runs, err);
	} else if (wants) {
		struct engine_request how = tool_request(t, paths.paths, paths.count);

		status = runs_read(&tells_runs, &how, err);
		is_read = true;
	}
	if (status == ST_OK && wants)
		status = runs_find(&runs, &tells_runs, err);
	if (status == ST_OK && wants)
		status = runs_choose(&choice, &runs, &paths, err);
	if (choice.left_out && status == ST_OK)
		status = find_origin(t, &paths, err);
	if (status == ST_OK && (is_read || choice.left_out)) {
		status = read_paths(t, &paths, reports, pictures, out, err);
	} else {
		*out = tells_runs;
		tells_runs = (struct engine_result){ .tables = NULL };
	}
	if (status == ST_OK && choice.left_out)
		status = runs_put(&runs, choice.number, out->tables, err);
	if (status == ST_OK && t->own.capture)
		status = read_captures(t, out, err);
	runs_release(&runs);
	engine_result_release(&tells_runs);
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

/* If nothing could be read, that is not reported again, because each input's error was. */
enum status tool_conclude(struct tool *t, struct engine_result *r, bool is_filtered,
			  struct error *err)
{
	enum status status = engine_result_finish(r, is_filtered, err), inputs = tool_judge(t, r);
	bool was_read = false;

	for (size_t i = 0; i < r->input_count; i++)
		was_read |= r->inputs[i].outcome.is_in_tables;
	if (status != ST_OK && (inputs == ST_OK || was_read))
		return status;
	err->text[0] = '\0';
	if (inputs != ST_OK &&
	    ((t->common.strict && !asks_for(t, &report_check)) || status != ST_OK))
		return inputs;
	TRY(print(t, r->tables, err));
	/* with --strict a failed check is an error, after the page has explained it */
	uint64_t bad = t->common.strict && asks_for(t, &report_check) ? check_bad(r->tables) : 0;
	if (bad)
		return fail(err, ST_FORMAT, NOWHERE, "failed checks: %llu",
			    (unsigned long long)bad);
	return inputs;
}
