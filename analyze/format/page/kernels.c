/* SPDX-License-Identifier: Apache-2.0 */
/* The sections KERNELS (OPERATORS for jobs without a GPU) and COPIES, over all ranks. */
#include "analyze/format/page/internal.h"

#include "analyze/engine/hist.h"

#include <ctype.h>

struct kernel {
	const char *name, *class;
	uint64_t calls, total_ns, max_ns;
	uint64_t median_ns; /* NO_U64: not computed yet, for several ranks */
};

/* Adds up the rows of a name, and sorts by descending time. Returns their number. */
static size_t take_kernels(const struct view *v, bool is_host, struct kernel *all)
{
	size_t count = 0;

	for (size_t i = 0; i < v->count; i++)
		all[i] = is_host ? (struct kernel){
			.name = view_cell(v, i, "name").text,
			.class = "",
			.calls = view_u64(v, i, "count"),
			.total_ns = view_u64(v, i, "ns"),
		} : (struct kernel){
			.name = view_cell(v, i, "name").text,
			.class = view_text(v, i, "class"),
			.calls = view_u64(v, i, "count"),
			.total_ns = view_u64(v, i, "total_ns"),
			.max_ns = view_u64(v, i, "max_ns"),
			.median_ns = view_u64(v, i, "median_ns"),
		};
	SORT_BY(all, v->count, UP(struct kernel, name));
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
	SORT_BY(all, count, DOWN(struct kernel, total_ns), UP(struct kernel, name));
	return count;
}

/* Returns the median over all ranks; NO_U64: out of memory. */
static uint64_t median_of(const struct view *v, const char *name)
{
	uint64_t median_ns = NO_U64;
	struct hist *all;

	enum status status = hist_new(&all, NULL);
	for (size_t i = 0; i < v->count && status == ST_OK; i++) {
		const struct hist *own = view_cell(v, i, "lengths").hist;

		/* A damaged partial file may have a kernel without lengths. */
		if (own && !strcmp(view_cell(v, i, "name").text, name))
			status = hist_merge(all, own, NULL);
	}
	if (status == ST_OK)
		median_ns = hist_median(all);
	hist_free(all);
	return median_ns;
}

static struct kernel sum_of(const struct kernel *all, size_t count)
{
	struct kernel sum = { .name = NULL };

	for (size_t i = 0; i < count; i++) {
		sum.calls += all[i].calls;
		sum.total_ns += all[i].total_ns;
	}
	return sum;
}

const char *show_nth_name(struct blocks *b, const char *const *first, size_t size, size_t i,
			  unsigned width)
{
	const char *nth = *(const char *const *)((const char *)first + i * size);
	const char *name = show_name(b, nth, width);
	unsigned alike = 1;

	for (size_t k = 0; k < i; k++)
		alike += !strcmp(
			name, show_name(b, *(const char *const *)((const char *)first + k * size),
					width));
	return alike == 1 ? name : blocks_text(b, "%s #%u", show_name(b, nth, width - 3), alike);
}

/* Columns in a terminal. Bars shrink first, then names. */
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

/* The file's kernels by name, as many as the medium shows, and the sum of all others. Without a
 * GPU: the outermost operators of the step threads. */
struct kernels {
	struct kernel *all, sum, rest;
	size_t count, shown;
	bool is_host;
	uint64_t whole_ns; /* all kernel time; for operators the steps */
	int tenths[13];    /* tenths of a percent: those shown, the rest, none of them */
};

static void take_shown(const struct page *p, struct kernels *k, struct blocks *b)
{
	bool is_host = !p->gpus.count;
	struct view v = page_view(p, is_host ? "host_operators" : "kernels");
	size_t most = is_text(p) ? 5 : 10, rest;
	double parts[13];

	*k = (struct kernels){ .all = blocks_take(b, v.count, sizeof(*k->all)),
			       .is_host = is_host };
	k->count = k->all ? take_kernels(&v, is_host, k->all) : 0;
	/* never a single one as the rest */
	k->shown = k->count <= most + (p->medium != MEDIUM_MD) ? k->count : most;
	k->sum = sum_of(k->all, k->count);
	k->whole_ns = is_host ? page_sum(&p->ranks, "complete_wall_ns") : k->sum.total_ns;
	k->rest = sum_of(k->all + k->shown, k->count - k->shown);
	for (size_t i = 0; i < k->shown; i++) {
		parts[i] = (double)k->all[i].total_ns;
		if (p->medium == MEDIUM_HTML && !is_host && k->all[i].median_ns == NO_U64)
			k->all[i].median_ns = median_of(&v, k->all[i].name);
	}
	parts[k->shown] = (double)k->rest.total_ns;
	parts[k->shown + 1] = (double)k->whole_ns - (double)k->sum.total_ns;
	rest = is_host ? k->shown + 1 : k->shown < k->count ? k->shown : k->shown - 1;
	percents(parts, rest + 1, (double)k->whole_ns, rest, k->tenths);
}

static void add_microseconds(struct blocks *b, struct block_row *r, uint64_t ns)
{
	add_cell(r, ns == NO_U64 ? "" : show_number(b, (double)ns / 1e3, 0));
}

static void add_kernel(const struct page *p, struct blocks *b, struct block_row *r,
		       const struct kernels *of, size_t i, const struct time_unit *unit)
{
	unsigned width = p->medium == MEDIUM_HTML ? 58 : 70;
	const struct kernel *k = &of->all[i];
	double ns = (double)k->total_ns;

	if (is_text(p))
		width = name_width(p, layout_of(p).name);
	/* operators have short names */
	add_cell(r, of->is_host ? k->name
				: show_nth_name(b, &of->all->name, sizeof(*of->all), i, width))
		->whole = k->name;
	add_figures(p, b, r, k, unit);
	if (p->medium == MEDIUM_MD) /* rounded separately, because some rows are missing */
		add_number(b, r, 100 * ns / (double)of->whole_ns, 1);
	else
		add_percent(b, r, of->tenths[i]);
	add_bar(r,
		of->is_host                 ? TOKEN_OTHER
		: !strcmp(k->class, "comm") ? TOKEN_COMM
					    : TOKEN_COMPUTE,
		of->all[0].total_ns ? ns / (double)of->all[0].total_ns : 0);
	if (of->is_host)
		return;
	add_microseconds(b, r, k->median_ns);
	add_microseconds(b, r, k->max_ns);
}

/* Adds a row for several kernels: the rest or the sum. */
static void add_together(const struct page *p, struct blocks *b, struct block_table *t,
			 const char *class, const char *label, const struct kernel *k,
			 const char *percent, const struct time_unit *unit)
{
	struct block_row *r = add_row(b, t, TOKEN_DIM, class);

	add_cell(r, label)->class = "label";
	add_figures(p, b, r, k, unit);
	add_cell(r, percent);
	r->is_filled = true;
}

/* Returns the unit for the longest kernel; ms in Markdown, and in a terminal that compares ranks.
 */
static struct time_unit kernel_unit(const struct page *p, const struct kernels *k)
{
	if (p->medium == MEDIUM_MD || !k->count || (is_text(p) && p->ranks.count != 1))
		return (struct time_unit){ 1e6, 2, "ms" };
	return time_unit_of(per_step(p, k->all[0].total_ns), 2);
}

void build_kernels(const struct page *p, struct blocks *b)
{
	struct layout l = layout_of(p);
	struct kernels k;
	const char *names, *calls, *of;

	take_shown(p, &k, b);
	if (!k.count)
		return;
	struct time_unit unit = kernel_unit(p, &k);
	names = show_count(b, k.count);
	calls = show_count(b, k.sum.calls);
	of = k.is_host ? blocks_text(b, "%% of %s", step_word(p)) : "% of kernel time";
	add_section(b, k.is_host ? "Operators" : "Kernels",
		    is_text(p) && p->has_steps && l.name < 55
			    ? blocks_text(b, "%s name%s; rows per step", names, plural(k.count))
		    : is_text(p)
			    ? blocks_text(b, "%s name%s, %s call%s%s", names, plural(k.count),
					  calls, plural(k.sum.calls),
					  l.name < 55    ? ""
					  : p->has_steps ? "; rows per step"
							 : "; in the window")
			    : blocks_text(b, "%s names, %s calls%s. Calls and time are per %s%s.",
					  names, calls, k.is_host ? " in no other operator" : "",
					  step_word(p),
					  p->ranks.count > 1 ? ", mean of the ranks" : ""));
	const struct block_column columns[] = {
		{ .md = k.is_host ? "operator" : "kernel",
		  .width = l.name,
		  .class = "name",
		  .is_left = true },
		{ .title = "calls",
		  .md = blocks_text(b, "calls per %s", step_word(p)),
		  .end = l.calls_end },
		{ .title = unit.name, .end = l.time_end },
		{ .text = l.share + 16 <= p->width ? of : "    %",
		  .html = k.is_host ? of : "% of kernel\ntime",
		  .md = of,
		  .end = l.share + 5,
		  .title_at = l.share },
		{ .hidden = IN(MEDIUM_MD),
		  .at = l.bar_at,
		  .width = l.bar,
		  .class = "one",
		  .is_bar = true },
		{ .title = "median \xc2\xb5s", .hidden = IN(MEDIUM_TEXT), .class = "median" },
		{ .title = "max \xc2\xb5s", .hidden = IN(MEDIUM_TEXT), .class = "median" },
	};
	struct block_table *t = ADD_TABLE(b, columns);
	t->count -= k.is_host ? 2 : 0; /* durations of single operators are not kept */
	t->class = "kernels";
	for (size_t i = 0; i < k.shown; i++)
		add_kernel(p, b, add_row(b, t, TOKEN_TEXT, NULL), &k, i, &unit);
	if (k.shown < k.count && p->medium == MEDIUM_MD)
		add_sentencef(b, ROLE_NOTE, 0, "%s more names", show_count(b, k.count - k.shown));
	else if (k.shown < k.count)
		add_together(p, b, t, "rest",
			     blocks_text(b, "%s more", show_count(b, k.count - k.shown)), &k.rest,
			     show_percent(b, k.tenths[k.shown]), &unit);
	if (p->medium == MEDIUM_HTML)
		add_together(
			p, b, t, "sum", "sum", &k.sum,
			k.is_host ? show_number(
					    b, 100 * (double)k.sum.total_ns / (double)k.whole_ns, 1)
				  : "100.0",
			&unit);
}

/* ---- copies ----------------------------------------------------------------------------- */

struct copy { /* copies of one direction */
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
		all[k].count += view_u64(v, i, "count");
		all[k].bytes += view_u64(v, i, "bytes");
		all[k].total_ns += view_u64(v, i, "total_ns");
		all[k].exposed_ns += view_u64(v, i, "exposed_ns");
	}
	return count;
}

/* Returns "HtoD pageable", "DtoD on the GPU" or "memset". */
static const char *copy_label(struct blocks *b, const struct copy *c)
{
	const char *memory = NULL;
	char word[32];
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
	return blocks_text(b, "%s %s", c->direction, word);
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

/* Adds copies below KERNELS in a terminal, in its columns and unit, the longest first. */
static void build_copy_lines(const struct page *p, const struct copy *all, size_t count,
			     struct blocks *b)
{
	const struct block_table *above =
		b->last && b->last->kind == BLOCK_TABLE ? &b->last->table : NULL;
	struct layout l = layout_of(p);
	struct kernels k;
	const struct block_column columns[] = { { .at = 0 },
						{ .at = 14, .width = 30 },
						{ .end = l.calls_end },
						{ .end = l.time_end },
						{ .at = l.share } };
	struct block_table *t = ADD_TABLE(b, columns);

	take_shown(p, &k, b);
	struct time_unit unit = kernel_unit(p, &k);
	t->has_no_titles = true;
	t->below = above;
	for (size_t i = 0; i < count && i < 4; i++) {
		const struct copy *c = &all[i];
		bool has_rate = l.name >= 55 && c->bytes && c->total_ns &&
				!same_text(c->direction, "memset");
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		const char *rate = "";

		if (has_rate)
			rate = blocks_text(
				b, " at %s GB/s",
				show_number(b, (double)c->bytes / (double)c->total_ns, 1));
		add_cell(r, i ? NULL : "COPIES")->token = TOKEN_BOLD;
		add_cell(r, copy_label(b, c))->more =
			c->bytes ? blocks_text(b, ", %s%s", show_bytes(b, per_step(p, c->bytes)),
					       rate)
				 : NULL;
		add_number(b, r, per_step(p, c->count), 0);
		add_time(b, r, per_step(p, c->total_ns), &unit);
		add_cell(r, exposed_text(b, c))->token = TOKEN_DIM;
	}
}

void build_copies(const struct page *p, struct blocks *b)
{
	const struct time_unit ms = { 1e6, 2, "ms" };
	struct view v = page_view(p, "copies");
	struct copy *all = blocks_take(b, v.count, sizeof(*all));
	size_t count = all ? take_copies(&v, all) : 0;

	if (!count)
		return;
	if (is_text(p)) {
		build_copy_lines(p, all, count, b);
		return;
	}
	add_section(b, "Copies",
		    blocks_text(b, "Mean per %s. Exposed: the GPU does nothing else meanwhile.",
				step_word(p)));
	const struct block_column columns[] = {
		{ .md = blocks_text(b, "per %s", step_word(p)), .class = "label", .is_left = true },
		{ .title = "calls" },
		{ .title = "ms" },
		{ .title = "exposed ms" },
		{ .title = "MiB" },
		{ .title = "GB/s", .hidden = IN(MEDIUM_MD) },
	};
	struct block_table *t = ADD_TABLE(b, columns);
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
}
