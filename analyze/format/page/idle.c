/* SPDX-License-Identifier: Apache-2.0 */
/* The report `idle` in a terminal: the owners of idle time of the GPUs. */
#include "analyze/format/page/internal.h"

#include <math.h>

enum { OWNER_LINES = 20, WHERE_AT = 49 };

struct owner {
	size_t row;
	uint64_t ns;
};

/* Returns the call, the range, the Python frame, and the thread if it fits. */
static const char *where_text(const struct view *v, size_t row, unsigned width, struct blocks *b)
{
	const char *call = view_text(v, row, "call"), *range = view_text(v, row, "range");
	const char *python = view_text(v, row, "python"), *thread = view_text(v, row, "thread");
	const char *where =
		blocks_text(b, "%s%s%s%s%s", call, call[0] && range[0] ? " in " : "", range,
			    python[0] && (call[0] || range[0]) ? DOT : "", python);

	if (!thread[0] || text_width(where) + text_width(thread) + 3 > width)
		return where;
	return blocks_text(b, "%s%s%s", where, where[0] ? DOT : "", thread);
}

void build_idle(const struct page *p, struct blocks *b)
{
	const struct time_unit tenth = { 1e6, 1, "ms" }, ms = { 1e6, 2, "ms" };
	unsigned width = name_width(p, LINE_WIDTH - WHERE_AT);
	const struct block_column head[] = { { .at = 14 }, { .at = 50 } };
	const struct block_column columns[] = {
		{ .title = "cause", .width = 22 },
		{ .title = p->steps > 1 ? "ms/step" : "ms", .end = 31 },
		{ .title = "%", .end = 38 },
		{ .title = "times", .end = 47 },
		{ .title = "call in range" DOT "Python frame" DOT "thread",
		  .at = WHERE_AT,
		  .width = LINE_WIDTH - WHERE_AT },
	};
	struct view v = page_view(p, "idle");
	struct owner *all = blocks_take(b, v.count, sizeof(*all));

	if (!all || !v.count)
		return;
	for (size_t i = 0; i < v.count; i++)
		all[i] = (struct owner){ i, view_u64(&v, i, "ns") };
	SORT_BY(all, v.count, DOWN(struct owner, ns), UP(struct owner, row));
	add_section(b, "Idle", NULL);
	struct block_table *t = ADD_TABLE(b, head);
	t->has_no_titles = t->is_in_line = true;
	struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
	add_cellf(b, r, "not busy %s ms%s%s", show_time(b, per_step(p, page_sum(&v, "ns")), &tenth),
		  p->steps > 1 ? " per step" : "", p->ranks.count > 1 ? ", all ranks" : "");
	add_cell(r, p->is_sampled ? "! a sample: not reliable" : NULL)->token = TOKEN_WARN;
	t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < v.count && i < OWNER_LINES; i++) {
		/* a damaged partial file may have NaN here */
		double percent = fmin(fmax(view_cell(&v, all[i].row, "pct").f64, 0), 1e6);
		int tenths = (int)(percent * 10 + 0.5);

		r = add_row(b, t, TOKEN_TEXT, NULL);
		add_cell(r, view_cell(&v, all[i].row, "cause").text);
		add_time(b, r, per_step(p, all[i].ns), &ms);
		r->cells[1].token = TOKEN_BOLD;
		add_percent(b, r, tenths ? tenths : -1);
		add_count(b, r, view_u64(&v, all[i].row, "count"));
		add_cell(r, where_text(&v, all[i].row, width, b))->token = TOKEN_DIM;
	}
	if (v.count > OWNER_LINES)
		add_sentencef(b, ROLE_NOTE, 0, "%zu more", v.count - OWNER_LINES);
}
