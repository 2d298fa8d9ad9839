/* SPDX-License-Identifier: Apache-2.0 */
/* --explain FIGURE [INPUT...] prints a definition and, with inputs, values and the events that
 * explain them. */
#include "analyze/cli/internal.h"

#include "analyze/explain/explain.h"
#include "analyze/report/report_list.h"

enum { EXPLAIN_REPORTS = 40 };

static enum status put_page(struct tool *t, const struct figure *figures, size_t count,
			    struct tables *tables, struct error *err)
{
	struct format_request how = tool_page(t, tables);

	TRY(explain_put(figures, count, tables, &how, &t->page, err));
	return tool_write(t, t->page.data, t->page.len, err);
}

static enum status read_all(struct tool *t, char **operands, size_t count, struct engine_result *r,
			    struct error *err)
{
	const struct report_type *asked[EXPLAIN_REPORTS + 2] = { NULL };
	size_t i;

	for (i = 0; i < EXPLAIN_REPORTS && report_types[i]; i++)
		asked[i] = report_types[i];
	asked[i] = &report_evidence;
	TRY(tool_read(t, operands, count, asked, t->format->pictures, r, err));
	return engine_result_finish(r, engine_is_filtered(&t->filter), err);
}

enum status run_explain(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct figure figures[FIGURES_MAX];
	size_t found = figures_find(t->own.explain, NULL, figures);
	struct engine_result r = { .tables = NULL };

	if (!count)
		return found ? put_page(t, figures, found, NULL, err)
			     : figure_unknown(t->own.explain, err);
	enum status status = read_all(t, operands, count, &r, err);
	enum status inputs = r.input_count ? tool_judge(t, &r) : ST_OK;
	if (status != ST_OK && inputs != ST_OK) {
		err->text[0] = '\0'; /* tool_judge() reported it */
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
