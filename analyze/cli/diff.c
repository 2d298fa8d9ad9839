/* SPDX-License-Identifier: Apache-2.0 */
/* --diff A B: two runs side by side; exit 3 when B is slower by --fail-over. */
#include "analyze/cli/internal.h"

#include "analyze/format/diff/diff.h"
#include "analyze/format/format_list.h"

static enum status read_side(struct tool *t, char **operand, struct engine_result *r,
			     enum status *inputs, struct error *err)
{
	enum status status, bad;

	status = tool_read(t, operand, 1, diff_reports, PICTURES_NONE, r, err);
	if (status != ST_OK)
		return status;
	status = engine_result_finish(r, engine_is_filtered(&t->filter), err);
	bad = tool_judge(t, r);
	*inputs = *inputs == ST_OK ? bad : *inputs;
	if (status != ST_OK && bad != ST_OK) {
		err->text[0] = '\0'; /* tool_judge() reported it */
		return bad;
	}
	return status;
}

static enum status put_page(struct tool *t, const struct diff *d, struct error *err)
{
	struct format_request how = tool_page(t, NULL);

	if (t->format == &format_json)
		diff_put_json(d, &t->page);
	else if (t->format == &format_csv)
		diff_put_csv(d, &t->page);
	else
		TRY(diff_put_page(d,
				  t->format == &format_md     ? MEDIUM_MD
				  : t->format == &format_html ? MEDIUM_HTML
							      : MEDIUM_TEXT,
				  &how, &t->page, err));
	TRY(buf_status(&t->page, err));
	return tool_write(t, t->page.data, t->page.len, err);
}

static enum status compare(struct tool *t, struct tables *a, struct tables *b, char **operands,
			   struct error *err)
{
	struct diff d;
	enum status status = diff_make(&d, a, b, t->own.fail_over, err);

	d.a.path = operands[0];
	d.b.path = operands[1];
	if (status == ST_OK)
		status = put_page(t, &d, err);
	if (status == ST_OK && d.estimate.verdict == DIFF_SLOWER)
		status = fail(err, ST_OVER, NOWHERE,
			      "%.80s is slower by %.2f %%, --fail-over is "
			      "%.3g %%",
			      operands[1], 100 * d.estimate.difference / d.a.series.mean,
			      100 * t->own.fail_over);
	diff_release(&d);
	return status;
}

enum status run_diff(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct engine_result a = { .tables = NULL }, b = { .tables = NULL };
	enum status status, inputs = ST_OK;

	if (count != 2)
		return fail(err, ST_USAGE, NOWHERE, "--diff compares two inputs, A and B");
	if (t->format->part)
		return fail(err, ST_USAGE, NOWHERE, "--diff: not as --format %.20s",
			    t->format->name);
	status = read_side(t, operands, &a, &inputs, err);
	if (status == ST_OK)
		status = read_side(t, operands + 1, &b, &inputs, err);
	if (status == ST_OK && inputs != ST_OK && t->common.strict)
		status = inputs;
	else if (status == ST_OK)
		status = compare(t, a.tables, b.tables, operands, err);
	engine_result_release(&a);
	engine_result_release(&b);
	if (inputs != ST_OK && (status == ST_OK || status == ST_OVER)) {
		err->text[0] = '\0';
		return inputs;
	}
	return status;
}
