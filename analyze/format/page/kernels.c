/* SPDX-License-Identifier: Apache-2.0 */
/* KERNELS and COPIES, of all ranks together. */
#include "analyze/format/page/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct kernel {
	const char *name, *class;
	uint64_t calls, total_ns, max_ns;
	uint64_t median_ns; /* NO_U64: of several ranks; medians do not add up */
};

static int compare_names(const void *pa, const void *pb)
{
	const struct kernel *a = pa, *b = pb;

	return strcmp(a->name, b->name);
}

static int compare_time(const void *pa, const void *pb)
{
	const struct kernel *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Rows of one name become one; the most time first.  Returns how many there are. */
static size_t take_kernels(const struct view *v, struct kernel *all)
{
	size_t count = 0;

	for (size_t i = 0; i < v->count; i++)
		all[i] = (struct kernel){
			.name = view_cell(v, i, "name").text,
			.class = view_text(v, i, "class"),
			.calls = view_cell(v, i, "count").u64,
			.total_ns = view_cell(v, i, "total_ns").u64,
			.max_ns = view_cell(v, i, "max_ns").u64,
			.median_ns = view_cell(v, i, "median_ns").u64,
		};
	qsort(all, v->count, sizeof(*all), compare_names);
	for (size_t i = 0; i < v->count; i++) {
		struct kernel *last = count ? &all[count - 1] : NULL;

		if (!last || strcmp(last->name, all[i].name) != 0) {
			all[count++] = all[i];
			continue;
		}
		last->calls += all[i].calls;
		last->total_ns += all[i].total_ns;
		last->max_ns = all[i].max_ns > last->max_ns ? all[i].max_ns : last->max_ns;
		last->median_ns = NO_U64;
	}
	qsort(all, count, sizeof(*all), compare_time);
	return count;
}

static struct kernel sum_of(const struct kernel *all, size_t count)
{
	struct kernel sum = { .median_ns = NO_U64, .max_ns = NO_U64 };

	for (size_t i = 0; i < count; i++) {
		sum.calls += all[i].calls;
		sum.total_ns += all[i].total_ns;
	}
	return sum;
}

/* The short name of row `i`; the second that reads alike ends in #2. */
static const char *kernel_name(struct blocks *b, const struct kernel *rows, size_t i,
			       unsigned width)
{
	char name[4 * 80], other[4 * 80];
	unsigned alike = 1;

	name_short(rows[i].name, width, name, sizeof(name));
	for (size_t k = 0; k < i; k++) {
		name_short(rows[k].name, width, other, sizeof(other));
		alike += !strcmp(name, other);
	}
	if (alike == 1)
		return blocks_text(b, "%s", name);
	name_short(rows[i].name, width - 3, name, sizeof(name));
	return blocks_text(b, "%s #%u", name, alike);
}

/* Where columns stand in a terminal: bars shrink first, then names. */
struct layout {
	unsigned name, calls_end, time_end, share, bar_at, bar;
};

static struct layout layout_of(const struct page *p)
{
	unsigned width = p->width, name = 59, bar = 17;

	if (width < LINE_WIDTH) {
		bar = width >= 56 ? 8 : 0;
		name = width < 91 ? (width > 56 ? width - 32 : 24) : 59;
	}
	return (struct layout){ name, name + 7, name + 15, name + 17, name + 24, bar };
}

static void add_figures(const struct page *p, struct blocks *b, struct block_row *r,
			const struct kernel *k, const struct time_unit *unit)
{
	add_number(b, r, per_step(p, k->calls), 0);
	add_time(b, r, per_step(p, k->total_ns), unit);
}

static void add_microseconds(struct blocks *b, struct block_row *r, uint64_t ns)
{
	if (ns == NO_U64)
		add_cell(r, "");
	else
		add_number(b, r, (double)ns / 1e3, 0);
}

enum status build_kernels(const struct page *p, struct blocks *b, struct error *err)
{
	static const struct {
		size_t rows;
		unsigned name;
	} limits[] = {
		[MEDIUM_TEXT] = { 5, 0 }, [MEDIUM_HTML] = { 10, 58 }, [MEDIUM_MD] = { 10, 70 }
	};
	struct view v = page_view(p, "kernels");
	struct kernel *all = blocks_take(b, v.count, sizeof(*all));
	size_t count = all ? take_kernels(&v, all) : 0, shown = limits[p->medium].rows;
	struct layout l = layout_of(p);
	const bool is_md = p->medium == MEDIUM_MD;
	unsigned width = is_text(p) ? l.name : limits[p->medium].name;
	struct kernel sum, rest;
	char names[NUMBER_TEXT], calls[NUMBER_TEXT];
	double parts[16];
	int tenths[16];
	struct time_unit unit;
	struct block_table *t;
	struct block_row *r;

	if (!count)
		return ST_OK;
	shown = count <= shown + !is_md ? count : shown;
	sum = sum_of(all, count);
	rest = sum_of(all + shown, count - shown);
	for (size_t i = 0; i < shown; i++)
		parts[i] = (double)all[i].total_ns;
	parts[shown] = (double)rest.total_ns;
	percents(parts, shown < count ? shown + 1 : shown, (double)sum.total_ns,
		 shown < count ? shown : shown - 1, tenths);
	unit = is_md ? (struct time_unit){ 1e6, 2, "ms" }
		     : time_unit_of(per_step(p, all[0].total_ns), 2);
	count_text(names, count);
	count_text(calls, sum.calls);
	add_section(b, "Kernels",
		    is_text(p) ? blocks_text(b, "%s name%s, %s call%s%s", names, plural(count),
					     calls, plural(sum.calls),
					     l.name < 55    ? ""
					     : p->has_steps ? "; rows per step"
							    : "; in the window")
			       : blocks_text(b, "%s names, %s calls. Calls and time are per %s%s.",
					     names, calls, step_word(p),
					     p->ranks.count > 1 ? ", mean of the ranks" : ""));
	const struct block_column columns[] = {
		{ .text = "",
		  .html = "",
		  .md = "kernel",
		  .width = l.name,
		  .class = "name",
		  .is_left = true },
		{ .text = "calls",
		  .html = "calls",
		  .md = blocks_text(b, "calls per %s", step_word(p)),
		  .end = l.calls_end,
		  .class = "" },
		{ .text = unit.name,
		  .html = unit.name,
		  .md = unit.name,
		  .end = l.time_end,
		  .class = "" },
		{ .text = l.share + 16 <= p->width ? "% of kernel time" : "    %",
		  .html = "% of kernel\ntime",
		  .md = "% of kernel time",
		  .end = l.share + 5,
		  .title_at = l.share,
		  .class = "" },
		{ .text = "",
		  .html = "",
		  .at = l.bar_at,
		  .width = l.bar,
		  .class = "one",
		  .is_bar = true },
		{ .html = "median \xc2\xb5s", .md = "median \xc2\xb5s", .class = "median" },
		{ .html = "max \xc2\xb5s", .md = "max \xc2\xb5s", .class = "median" },
	};
	t = ADD_TABLE(b, columns);
	t->class = "kernels";
	for (size_t i = 0; i < shown; i++) {
		const struct kernel *k = &all[i];

		r = add_row(b, t, TOKEN_TEXT, NULL);
		add_cell(r, kernel_name(b, all, i, width))->whole = k->name;
		add_figures(p, b, r, k, &unit);
		if (is_md) /* each by itself, as not all rows are here */
			add_number(b, r, 100 * parts[i] / (double)sum.total_ns, 1);
		else
			add_percent(b, r, tenths[i]);
		add_bar(r, !strcmp(k->class, "comm") ? TOKEN_COMM : TOKEN_COMPUTE,
			parts[0] > 0 ? parts[i] / parts[0] : 0);
		add_microseconds(b, r, k->median_ns);
		add_microseconds(b, r, k->max_ns);
	}
	if (shown < count && is_md)
		add_sentence(b, ROLE_NOTE, 0, blocks_text(b, "%zu more names", count - shown));
	else if (shown < count) {
		r = add_row(b, t, TOKEN_DIM, "rest");
		add_cell(r, blocks_text(b, "%s more", count_text(names, count - shown)))->class =
			"label";
		add_figures(p, b, r, &rest, &unit);
		add_percent(b, r, tenths[shown]);
		r->is_filled = true;
	}
	if (p->medium == MEDIUM_HTML) {
		r = add_row(b, t, TOKEN_DIM, "sum");
		add_cell(r, "sum")->class = "label";
		add_figures(p, b, r, &sum, &unit);
		add_cell(r, "100.0");
		r->is_filled = true;
	}
	return ST_OK;
}

/* ---- copies ----------------------------------------------------------------------------- */

struct copy { /* one direction */
	const char *direction, *from, *to;
	uint64_t count, bytes, total_ns, exposed_ns;
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static size_t take_copies(const struct view *v, struct copy *all)
{
	size_t count = 0, k;

	for (size_t i = 0; i < v->count; i++) {
		struct copy c = { .direction = view_cell(v, i, "direction").text,
				  .from = view_cell(v, i, "from").text,
				  .to = view_cell(v, i, "to").text };

		for (k = 0; k < count; k++)
			if (same_text(all[k].direction, c.direction) &&
			    same_text(all[k].from, c.from) && same_text(all[k].to, c.to))
				break;
		if (k == count)
			all[count++] = c;
		all[k].count += view_cell(v, i, "count").u64;
		all[k].bytes += view_cell(v, i, "bytes").u64;
		all[k].total_ns += view_cell(v, i, "total_ns").u64;
		all[k].exposed_ns += view_cell(v, i, "exposed_ns").u64;
	}
	return count;
}

/* "HtoD pageable", "DtoD on the GPU", "memset" */
static const char *copy_label(struct blocks *b, const struct copy *c)
{
	const char *memory = NULL;
	char word[16];
	size_t i;

	if (same_text(c->direction, "DtoD"))
		return "DtoD on the GPU";
	if (c->from && c->to)
		memory = strcmp(c->from, "Device") != 0 ? c->from : c->to;
	if (!memory || same_text(memory, "Device"))
		return c->direction ? c->direction : "?";
	for (i = 0; memory[i] && i + 1 < sizeof(word); i++)
		word[i] = (char)tolower((unsigned char)memory[i]);
	word[i] = '\0';
	return blocks_text(b, "%.16s %.12s", c->direction, word);
}

static const char *exposed_text(struct blocks *b, const struct copy *c)
{
	double share = c->total_ns ? 100.0 * (double)c->exposed_ns / (double)c->total_ns : 0;

	if (!c->total_ns)
		return "";
	if (c->exposed_ns >= c->total_ns)
		return "all exposed";
	return !c->exposed_ns ? "none exposed"
			      : blocks_text(b, "%.1f %% exposed", share < 0.1 ? 0.1 : share);
}

/* In a terminal copies stand below KERNELS, in its columns; the longest first. */
static void build_copy_lines(const struct page *p, const struct copy *all, size_t count,
			     struct blocks *b)
{
	struct layout l = layout_of(p);
	const struct time_unit ms = { 1e6, 2, "ms" };
	const struct block_column columns[] = {
		{ .text = "" },
		{ .text = "", .at = 14, .width = 30 },
		{ .text = "", .end = l.calls_end },
		{ .text = "", .end = l.time_end },
		{ .text = "", .at = l.share },
	};
	struct block_table *t = ADD_TABLE(b, columns);

	t->has_no_titles = true;
	for (size_t i = 0; i < count && i < 4; i++) {
		const struct copy *c = &all[i];
		bool has_rate = l.name >= 55 && c->bytes && c->total_ns &&
				!same_text(c->direction, "memset");
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		char size[NUMBER_TEXT], rate[NUMBER_TEXT];

		add_cell(r, i ? NULL : "COPIES")->token = TOKEN_BOLD;
		add_cell(r, copy_label(b, c))->more =
			!c->bytes ? NULL
				  : blocks_text(b, ", %s%s%s%s",
						bytes_text(size, per_step(p, c->bytes)),
						has_rate ? " at " : "",
						has_rate ? number_text(rate,
								       (double)c->bytes /
									       (double)c->total_ns,
								       1)
							 : "",
						has_rate ? " GB/s" : "");
		add_number(b, r, per_step(p, c->count), 0);
		add_time(b, r, per_step(p, c->total_ns), &ms);
		add_cell(r, exposed_text(b, c))->token = TOKEN_DIM;
	}
}

enum status build_copies(const struct page *p, struct blocks *b, struct error *err)
{
	const struct time_unit ms = { 1e6, 2, "ms" };
	struct view v = page_view(p, "copies");
	struct copy *all = blocks_take(b, v.count, sizeof(*all));
	size_t count = all ? take_copies(&v, all) : 0;
	struct block_table *t;

	if (!count)
		return ST_OK;
	if (is_text(p)) {
		build_copy_lines(p, all, count, b);
		return ST_OK;
	}
	add_section(b, "Copies",
		    blocks_text(b, "Mean per %s. Exposed: the GPU does nothing else meanwhile.",
				step_word(p)));
	const struct block_column columns[] = {
		{ .html = "",
		  .md = blocks_text(b, "per %s", step_word(p)),
		  .class = "label",
		  .is_left = true },
		{ .html = "calls", .md = "calls", .class = "" },
		{ .html = "ms", .md = "ms", .class = "" },
		{ .html = "exposed ms", .md = "exposed ms", .class = "" },
		{ .html = "MiB", .md = "MiB", .class = "" },
		{ .html = "GB/s", .class = "" },
	};
	t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < count; i++) {
		const struct copy *c = &all[i];
		bool has_rate = c->total_ns && !same_text(c->direction, "memset");
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, copy_label(b, c));
		add_number(b, r, per_step(p, c->count), 0);
		add_time(b, r, per_step(p, c->total_ns), &ms);
		add_time(b, r, per_step(p, c->exposed_ns), &ms);
		add_number(b, r, per_step(p, c->bytes) / 1048576, 1);
		add_number(b, r, has_rate ? (double)c->bytes / (double)c->total_ns : 0, 1);
	}
	return ST_OK;
}
