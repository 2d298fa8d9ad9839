/* SPDX-License-Identifier: Apache-2.0 */
/* KERNELS of one rank, and COPIES. */
#include "analyze/page/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the columns stand: bars shrink first, then names. */
struct layout {
	unsigned name, calls_end, time_end, share, bar_at, bar;
};

static struct layout layout_of(const struct page *p)
{
	unsigned width = p->text.width, name = 59, bar = 17;

	if (width < LINE_WIDTH) {
		bar = width >= 56 ? 8 : 0;
		name = width < 91 ? (width > 56 ? width - 32 : 24) : 59;
	}
	return (struct layout){ name, name + 7, name + 15, name + 17, name + 24, bar };
}

static void put_calls(struct page *p, unsigned end, enum token token, double calls)
{
	char text[NUMBER_TEXT];

	text_right(&p->text, end, token, number_text(text, calls, 0));
}

static void put_kernel(struct page *p, const struct layout *l, const struct kernel_rows *all,
		       size_t i, double most_ns, int tenths, const struct time_unit *unit)
{
	const struct kernel_row *r = &all->rows[i];
	double ns = (double)r->total_ns / (double)p->steps;
	bool comm = !strcmp(r->class, "comm");
	char text[NUMBER_TEXT], name[KERNEL_NAME];

	kernel_name(all->rows, i, l->name, name);
	text_cut(&p->text, 0, l->name, TOKEN_TEXT, name);
	put_calls(p, l->calls_end, TOKEN_TEXT, (double)r->calls / (double)p->steps);
	text_right(&p->text, l->time_end, TOKEN_TEXT, time_text(text, ns, unit));
	text_right(&p->text, l->share + 5, TOKEN_TEXT, percent_text(text, tenths));
	if (l->bar && most_ns > 0)
		text_bar(&p->text, l->bar_at, comm ? TOKEN_COMM : TOKEN_COMPUTE,
			 ns / most_ns * l->bar);
	text_end(&p->text);
}

static void put_more(struct page *p, const struct layout *l, size_t names,
		     const struct kernel_sums *rest, int tenths, const struct time_unit *unit)
{
	char text[NUMBER_TEXT];

	text_atf(&p->text, 0, TOKEN_DIM, "%s more", count_text(text, names));
	put_calls(p, l->calls_end, TOKEN_DIM, (double)rest->calls / (double)p->steps);
	text_right(&p->text, l->time_end, TOKEN_DIM,
		   time_text(text, (double)rest->total_ns / (double)p->steps, unit));
	text_right(&p->text, l->share + 5, TOKEN_DIM, percent_text(text, tenths));
	text_end(&p->text);
}

static void put_titles(struct page *p, const struct layout *l, const struct kernel_rows *v,
		       const struct time_unit *unit)
{
	struct kernel_sums all = kernel_sums_of(v, 0);
	char names[NUMBER_TEXT], calls[NUMBER_TEXT];

	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "KERNELS");
	text_atf(&p->text, 14, TOKEN_DIM, "%s name%s, %s call%s%s", count_text(names, v->count),
		 v->count == 1 ? "" : "s", count_text(calls, all.calls), all.calls == 1 ? "" : "s",
		 l->name < 55 ? "" : p->has_steps ? "; rows per step" : "; in the window");
	text_right(&p->text, l->calls_end, TOKEN_DIM, "calls");
	text_right(&p->text, l->time_end, TOKEN_DIM, unit->name);
	text_at(&p->text, l->share, TOKEN_DIM,
		l->share + 16 <= p->text.width ? "% of kernel time" : "    %");
	text_end(&p->text);
}

static void put_kernels(struct page *p, const struct kernel_rows *v)
{
	struct layout l = layout_of(p);
	size_t shown = v->count <= KERNEL_LINES + 1 ? v->count : KERNEL_LINES, i;
	struct kernel_sums all = kernel_sums_of(v, 0), rest = kernel_sums_of(v, shown);
	double parts[KERNEL_LINES + 2], most_ns;
	int tenths[KERNEL_LINES + 2];
	struct time_unit unit;

	for (i = 0; i < shown; i++)
		parts[i] = (double)v->rows[i].total_ns;
	parts[shown] = (double)rest.total_ns;
	most_ns = parts[0] / (double)p->steps;
	unit = time_unit_of(most_ns, 2);
	percents(parts, shown < v->count ? shown + 1 : shown, (double)all.total_ns,
		 shown < v->count ? shown : shown - 1, tenths);
	put_titles(p, &l, v, &unit);
	for (i = 0; i < shown; i++)
		put_kernel(p, &l, v, i, most_ns, tenths[i], &unit);
	if (shown < v->count)
		put_more(p, &l, v->count - shown, &rest, tenths[shown], &unit);
}

enum status page_kernels_one(struct page *p, struct error *err)
{
	struct kernel_rows rows;
	enum status status = kernel_rows_take(p, &rows, err);

	if (status == ST_OK && rows.count)
		put_kernels(p, &rows);
	kernel_rows_release(&rows);
	return status;
}

/* ---- copies ----------------------------------------------------------------------------- */

static void put_exposed(struct page *p, unsigned column, const struct copy_row *r)
{
	double share = r->total_ns ? 100.0 * (double)r->exposed_ns / (double)r->total_ns : 0;

	if (!r->total_ns)
		return;
	if (r->exposed_ns >= r->total_ns)
		text_at(&p->text, column, TOKEN_DIM, "all exposed");
	else if (!r->exposed_ns)
		text_at(&p->text, column, TOKEN_DIM, "none exposed");
	else
		text_atf(&p->text, column, TOKEN_DIM, "%.1f %% exposed", share < 0.1 ? 0.1 : share);
}

static void put_copy(struct page *p, const struct copy_row *r, double share, bool is_first)
{
	struct layout l = layout_of(p);
	struct time_unit unit = { 1e6, 2, "ms" };
	char text[NUMBER_TEXT], label[COPY_LABEL];
	unsigned column;

	if (is_first)
		text_at(&p->text, 0, TOKEN_BOLD, "COPIES");
	column = text_cut(&p->text, 14, 30, TOKEN_TEXT, copy_row_label(r, label));
	if (r->bytes)
		column = text_atf(&p->text, column, TOKEN_DIM, ", %s",
				  bytes_text(text, (double)r->bytes * share));
	if (l.name >= 55 && r->bytes && r->total_ns && strcmp(r->direction, "memset") != 0)
		text_atf(&p->text, column, TOKEN_DIM, " at %s GB/s",
			 number_text(text, (double)r->bytes / (double)r->total_ns, 1));
	put_calls(p, l.calls_end, TOKEN_TEXT, (double)r->count * share);
	text_right(&p->text, l.time_end, TOKEN_TEXT,
		   time_text(text, (double)r->total_ns * share, &unit));
	put_exposed(p, l.share, r);
	text_end(&p->text);
}

void page_copies(struct page *p)
{
	enum { COPY_ROWS = 16, COPY_LINES = 4 };
	struct copy_row rows[COPY_ROWS];
	struct view v = page_view(p, "copies");
	size_t count = copy_rows_take(&v, rows, COPY_ROWS), i;

	/* the longest first, as in the table of one rank */
	for (i = 0; i < count && i < COPY_LINES; i++)
		put_copy(p, &rows[i], 1.0 / (double)p->steps, i == 0);
}
