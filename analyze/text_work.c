/* SPDX-License-Identifier: Apache-2.0 */
/* KERNELS of one rank, and COPIES. */
#include "analyze/text_page.h"

#include <ctype.h>
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

struct kernel_sums {
	uint64_t calls, total_ns;
};

static struct kernel_sums sums_of(const struct view *v, size_t from)
{
	struct kernel_sums sums = { 0, 0 };

	for (; from < v->count; from++) {
		sums.calls += view_cell(v, from, "count").u64;
		sums.total_ns += view_cell(v, from, "total_ns").u64;
	}
	return sums;
}

static void put_calls(struct page *p, unsigned end, enum token token, double calls)
{
	char text[NUMBER_TEXT];

	text_right(&p->text, end, token, number_text(text, calls, 0));
}

enum { NAME_BYTES = 4 * 64 };

/* The short name of row `i`; the second that reads alike ends in #2. */
static void name_of(const struct view *v, size_t i, unsigned width, char out[NAME_BYTES])
{
	char other[NAME_BYTES];
	unsigned alike = 1;
	size_t k, len;

	name_short(view_cell(v, i, "name").text, width, out, NAME_BYTES);
	for (k = 0; k < i; k++) {
		name_short(view_cell(v, k, "name").text, width, other, sizeof(other));
		alike += !strcmp(out, other);
	}
	if (alike == 1)
		return;
	len = name_short(view_cell(v, i, "name").text, width - 3, out, NAME_BYTES);
	snprintf(out + len, NAME_BYTES - len, " #%u", alike);
}

static void put_kernel(struct page *p, const struct layout *l, const struct view *v, size_t i,
		       double most_ns, int tenths, const struct time_unit *unit)
{
	double ns = (double)view_cell(v, i, "total_ns").u64 / (double)p->steps;
	bool comm = !strcmp(view_cell(v, i, "class").text, "comm");
	char text[NUMBER_TEXT], name[NAME_BYTES];

	name_of(v, i, l->name, name);
	text_cut(&p->text, 0, l->name, TOKEN_TEXT, name);
	put_calls(p, l->calls_end, TOKEN_TEXT,
		  (double)view_cell(v, i, "count").u64 / (double)p->steps);
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

static void put_titles(struct page *p, const struct layout *l, const struct view *v,
		       const struct time_unit *unit)
{
	struct kernel_sums all = sums_of(v, 0);
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

enum status page_kernels_one(struct page *p, struct error *err)
{
	struct view v = page_of_rank(p, "kernels", 0);
	struct layout l = layout_of(p);
	size_t shown = v.count <= KERNEL_LINES + 1 ? v.count : KERNEL_LINES, i;
	struct kernel_sums all = sums_of(&v, 0), rest = sums_of(&v, shown);
	double parts[KERNEL_LINES + 2], most_ns;
	int tenths[KERNEL_LINES + 2];
	struct time_unit unit;

	if (!v.count)
		return ST_OK;
	for (i = 0; i < shown; i++)
		parts[i] = (double)view_cell(&v, i, "total_ns").u64;
	parts[shown] = (double)rest.total_ns;
	most_ns = parts[0] / (double)p->steps;
	unit = time_unit_of(most_ns, 2);
	percents(parts, shown < v.count ? shown + 1 : shown, (double)all.total_ns,
		 shown < v.count ? shown : shown - 1, tenths);
	put_titles(p, &l, &v, &unit);
	for (i = 0; i < shown; i++)
		put_kernel(p, &l, &v, i, most_ns, tenths[i], &unit);
	if (shown < v.count)
		put_more(p, &l, v.count - shown, &rest, tenths[shown], &unit);
	return ST_OK;
}

/* ---- copies ----------------------------------------------------------------------------- */

struct copy_row {
	const char *direction, *from, *to;
	uint64_t count, bytes, total_ns, exposed_ns;
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Directions of all ranks together; a page shows their mean. */
static size_t copies_take(const struct view *v, struct copy_row *rows, size_t cap)
{
	size_t count = 0, i, k;

	for (i = 0; i < v->count; i++) {
		struct copy_row row = { .direction = view_cell(v, i, "direction").text,
					.from = view_cell(v, i, "from").text,
					.to = view_cell(v, i, "to").text };

		for (k = 0; k < count; k++)
			if (same_text(rows[k].direction, row.direction) &&
			    same_text(rows[k].from, row.from) && same_text(rows[k].to, row.to))
				break;
		if (k == cap)
			k = cap - 1; /* more directions than there are: the last row has them */
		else if (k == count)
			rows[count++] = row;
		rows[k].count += view_cell(v, i, "count").u64;
		rows[k].bytes += view_cell(v, i, "bytes").u64;
		rows[k].total_ns += view_cell(v, i, "total_ns").u64;
		rows[k].exposed_ns += view_cell(v, i, "exposed_ns").u64;
	}
	return count;
}

/* "HtoD pageable", "DtoD on the GPU", "memset". */
static unsigned put_direction(struct page *p, const struct copy_row *r)
{
	const char *memory = NULL;
	char word[64];
	size_t i;

	if (same_text(r->direction, "DtoD"))
		return text_at(&p->text, 14, TOKEN_TEXT, "DtoD on the GPU");
	if (r->from && r->to)
		memory = strcmp(r->from, "Device") != 0 ? r->from : r->to;
	if (!memory || same_text(memory, "Device"))
		return text_cut(&p->text, 14, 26, TOKEN_TEXT, r->direction);
	for (i = 0; memory[i] && i + 1 < sizeof(word); i++)
		word[i] = (char)tolower((unsigned char)memory[i]);
	word[i] = '\0';
	return text_atf(&p->text, 14, TOKEN_TEXT, "%.16s %.12s", r->direction, word);
}

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
	char text[NUMBER_TEXT];
	unsigned column;

	if (is_first)
		text_at(&p->text, 0, TOKEN_BOLD, "COPIES");
	column = put_direction(p, r);
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
	size_t count = copies_take(&v, rows, COPY_ROWS), i;

	/* the longest first, as in the table of one rank */
	for (i = 0; i < count && i < COPY_LINES; i++)
		put_copy(p, &rows[i], 1.0 / (double)p->steps, i == 0);
}
