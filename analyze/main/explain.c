/* SPDX-License-Identifier: Apache-2.0 */
/* --explain FIGURE [INPUT...]: a definition and, of inputs, values and the events behind them. */
#include "analyze/main/tool.h"

#include "analyze/explain.h"

#include <stdio.h>
#include <unistd.h>

enum { EXPLAIN_REPORTS = 40 };

static enum status put_page(struct tool *t, const struct figure *figures, size_t count,
			    struct tables *tables, struct error *err)
{
	bool is_terminal = !t->common.output && isatty(STDOUT_FILENO);
	struct format_request how = {
		.tables = tables, .reports = t->reports, .colour = colour_of(is_terminal),
		.is_utf8 = is_utf8(), .width = columns_of(is_terminal),
	};

	TRY(explain_put(figures, count, tables, &how, &t->page, err));
	return tool_write(t, t->page.data, t->page.len, err);
}

static enum status fold_all(struct tool *t, char **operands, size_t count,
			    struct engine_result *r, struct error *err)
{
	const struct report_type *asked[EXPLAIN_REPORTS + 2] = { NULL };
	struct input_paths paths = { .count = 0 };
	struct engine_request how;
	enum status status;
	size_t i;

	for (i = 0; reports()[i] && i < EXPLAIN_REPORTS; i++)
		asked[i] = reports()[i];
	asked[i] = &report_behind;
	status = tool_paths(t, operands, count, &paths, err);
	if (status == ST_OK) {
		how = tool_request(t, paths.paths, paths.count);
		how.reports = asked;
		status = tool_fold(t, &how, r, err);
	}
	input_paths_free(&paths);
	return status == ST_OK ? engine_result_finish(r, engine_is_cut(&t->cut), err) : status;
}

enum status run_explain(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct figure figures[FIGURES_MAX];
	size_t found = figures_find(t->own.explain, NULL, figures);
	struct engine_result r = { .tables = NULL };
	enum status status, inputs;

	if (!count)
		return found ? put_page(t, figures, found, NULL, err)
			     : figure_unknown(t->own.explain, err);
	status = fold_all(t, operands, count, &r, err);
	inputs = r.input_count ? tool_judge(t, &r) : ST_OK;
	if (status != ST_OK && inputs != ST_OK) {
		err->text[0] = '\0'; /* it was said */
		status = inputs;
	}
	if (status == ST_OK)
		found = figures_find(t->own.explain, r.tables, figures);
	if (status == ST_OK && !found)
		status = figure_unknown(t->own.explain, err);
	if (status == ST_OK)
		status = put_page(t, figures, found, r.tables, err);
	engine_result_release(&r);
	return status == ST_OK ? inputs : status;
}
