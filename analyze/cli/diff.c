/* SPDX-License-Identifier: Apache-2.0 */
/* --diff A B compares two runs; exit code 3 if B is slower by --fail-over. */
#include "analyze/cli/internal.h"

#include "analyze/format/diff/diff.h"

#include <stdlib.h>

enum { KEPT_SETTINGS = 1 << 20 };

/* Reads a file of --partial or --baseline. It must have been made with the same filters and
 * rules. */
static enum status read_kept(struct tool *t, const char *path, struct engine_result *r,
			     struct error *err)
{
	const char *settings = NULL;
	enum status status;
	struct buf own;

	TRY(engine_result_init(r, diff_reports, (size_t)t->common.memory_bytes, err));
	TRY(partial_read(t, path, r, &settings, err));
	buf_init(&own, KEPT_SETTINGS);
	partial_settings(t, &own);
	status = settings && strcmp(settings, buf_text(&own)) != 0
			 ? fail(err, ST_USAGE, NOWHERE,
				"%.120s was stored with different options (%.200s) than these "
				"(%.200s)",
				path, settings, buf_text(&own))
			 : ST_OK;
	buf_release(&own);
	return status;
}

static enum status read_side(struct tool *t, char **operand, struct engine_result *r,
			     enum status *inputs, struct error *err)
{
	enum status status = partial_is(*operand) ? read_kept(t, *operand, r, err)
						  : tool_read(t, operand, 1, diff_reports,
							      PICTURES_NONE, r, err);
	if (status != ST_OK)
		return status;
	status = engine_result_finish(r, engine_is_filtered(&t->filter), err);
	enum status bad = tool_judge(t, r);
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
	if (t->own.annotate)
		diff_put_annotation(d, &t->page);
	TRY(buf_status(&t->page, err));
	return tool_write(t, t->page.data, t->page.len, err);
}

static enum status put_junit(struct tool *t, const struct diff *d, struct error *err)
{
	struct tool file = { .common.output = t->own.junit };

	if (!t->own.junit)
		return ST_OK;
	buf_init(&file.page, KEPT_SETTINGS);
	diff_put_junit(d, &file.page);
	enum status status = buf_status(&file.page, err);
	if (status == ST_OK)
		status = tool_write(&file, file.page.data, file.page.len, err);
	buf_release(&file.page);
	return status;
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
	if (status == ST_OK)
		status = put_junit(t, &d, err);
	if (status == ST_OK && d.estimate.verdict == DIFF_SLOWER)
		status =
			fail(err, ST_OVER, NOWHERE,
			     "%.80s is slower by %.2f %%; --fail-over is %.3g %%", operands[1],
			     100 * d.estimate.difference / d.a.series.mean, 100 * t->own.fail_over);
	diff_release(&d);
	return status;
}

enum status run_diff(struct tool *t, char **operands, size_t count, struct error *err)
{
	struct engine_result a = { .tables = NULL }, b = { .tables = NULL };
	char *kept = t->own.baseline ? baseline_path(t->own.baseline) : NULL;
	char *sides[2] = { kept, NULL };
	enum status status = ST_OK, inputs = ST_OK;

	if (t->own.baseline && !kept)
		return fail_memory(err);
	if (count + (t->own.baseline != NULL) != 2)
		status = fail(err, ST_USAGE, NOWHERE,
			      kept ? "--diff with --baseline needs exactly one input"
				   : "--diff needs two inputs, A and B");
	else if (t->format->part)
		status = fail(err, ST_USAGE, NOWHERE, "--diff cannot be printed as --format %.20s",
			      t->format->name);
	else if (t->own.annotate && t->format != &format_text)
		status = fail(err, ST_USAGE, NOWHERE, "--annotate needs --format text");
	for (size_t i = 0; status == ST_OK && i < count; i++)
		sides[i + (kept != NULL)] = operands[i];
	if (status == ST_OK)
		status = read_side(t, sides, &a, &inputs, err);
	if (status == ST_OK)
		status = read_side(t, sides + 1, &b, &inputs, err);
	if (status == ST_OK && inputs != ST_OK && t->common.strict)
		status = inputs;
	else if (status == ST_OK)
		status = compare(t, a.tables, b.tables, sides, err);
	engine_result_release(&a);
	engine_result_release(&b);
	free(kept);
	if (inputs != ST_OK && (status == ST_OK || status == ST_OVER)) {
		err->text[0] = '\0';
		return inputs;
	}
	return status;
}
