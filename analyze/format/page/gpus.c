/* SPDX-License-Identifier: Apache-2.0 */
/* The section GPU TIME: what a GPU did in its window, and why it was idle; one line each for
 * several GPUs. */
#include "analyze/format/page/internal.h"

enum { IDLE_CLASS = 3, CLASSES = 6, CAUSE_LINES = 8, CAUSES_AT = 40 };

static const struct gpu_class_row {
	const char *column, *label;
	enum token token;
	bool is_always; /* lead and tail are left out if they are 0 */
} classes[CLASSES] = {
	{ "compute_ns", "compute", TOKEN_COMPUTE, true },
	{ "exposed_comm_ns", "exposed comm", TOKEN_COMM, true },
	{ "exposed_copy_ns", "exposed copy", TOKEN_DATA, true },
	{ "idle_ns", "idle", TOKEN_IDLE, true },
	{ "lead_ns", "lead", TOKEN_LEAD, false },
	{ "tail_ns", "tail", TOKEN_LEAD, false },
};

struct gpu_row {
	double ns[CLASSES], window_ns;
	int tenths[CLASSES]; /* tenths of a percent of the window */
};

static struct gpu_row gpu_row_of(const struct page *p, size_t gpu)
{
	struct gpu_row g;

	for (size_t i = 0; i < CLASSES; i++)
		g.ns[i] = view_number(&p->gpus, gpu, classes[i].column);
	g.window_ns = view_number(&p->gpus, gpu, "window_ns");
	percents(g.ns, CLASSES, g.window_ns, IDLE_CLASS, g.tenths);
	return g;
}

/* Returns the token of a class. In a sampled file it is unknown whether a GPU was idle where
 * nothing was recorded. */
static enum token class_token(const struct page *p, size_t class)
{
	return p->is_sampled && class >= IDLE_CLASS ? TOKEN_UNSEEN : classes[class].token;
}

static const char *class_label(const struct page *p, size_t class)
{
	return p->is_sampled && class == IDLE_CLASS ? "nothing seen" : classes[class].label;
}

static struct stack *stack_of(const struct page *p, const struct gpu_row *g, struct blocks *b)
{
	struct stack *s = new_stack(b, CLASSES, is_text(p) ? 0 : g->window_ns);

	for (size_t i = 0; s && i < CLASSES; i++)
		s->parts[i] = (struct stack_part){ class_token(p, i), g->ns[i], class_label(p, i),
						   g->tenths[i] };
	if (s && is_text(p) && p->is_sampled) { /* one part, which is rounded once */
		s->parts[IDLE_CLASS].ns += s->parts[4].ns + s->parts[5].ns;
		s->parts[4].ns = s->parts[5].ns = 0;
	}
	return s;
}

/* Returns "rank 0", "GPU 1", or both if both differ. */
static const char *gpu_label(const struct page *p, size_t gpu, struct blocks *b)
{
	unsigned long long rank = view_u64(&p->gpus, gpu, "rank");
	unsigned long long device = view_u64(&p->gpus, gpu, "device");

	if (p->ranks.count == 1)
		return blocks_text(b, "GPU %llu", device);
	if (rank == NO_U64)
		return blocks_text(b, "pid %llu",
				   (unsigned long long)view_u64(&p->gpus, gpu, "pid"));
	if (p->gpus.count > p->ranks.count)
		return blocks_text(b, "rank %llu GPU %llu", rank, device);
	return blocks_text(b, "rank %llu", rank);
}

/* ---- one GPU ---------------------------------------------------------------------------- */

struct cause_row {
	const char *name;
	double ns;
	int tenths;
};

/* Adds up the rows of a cause over all GPUs, and sorts by descending time. Returns their number. */
static size_t merge_causes(const struct view *v, struct cause_row *all)
{
	size_t count = 0, k;

	for (size_t i = 0; i < v->count; i++) {
		const char *name = view_cell(v, i, "cause").text;

		for (k = 0; k < count && strcmp(all[k].name, name) != 0; k++)
			;
		if (k == count)
			all[count++] = (struct cause_row){ .name = name };
		all[k].ns += view_number(v, i, "ns");
	}
	SORT_BY(all, count, DOWN(struct cause_row, ns), UP(struct cause_row, name));
	return count;
}

/* Lists the longest causes by name and the rest in one line, but never a single one as the rest.
 * Their percentages add up to the whole. */
static size_t take_causes(struct cause_row *all, size_t count, size_t most, double window_ns,
			  int whole_tenths, struct blocks *b)
{
	size_t named = count <= most ? count : most - 1;
	double parts[CAUSE_LINES];
	int tenths[CAUSE_LINES], sum = 0;

	if (named < count) {
		for (size_t i = named + 1; i < count; i++)
			all[named].ns += all[i].ns;
		all[named].name = blocks_text(b, "%zu more", count - named);
		count = named + 1;
	}
	for (size_t i = 0; i < count; i++)
		parts[i] = all[i].ns;
	percents(parts, count, window_ns, CAUSE_LINES, tenths);
	for (size_t i = 0; i < count; i++) {
		all[i].tenths = tenths[i];
		sum += tenths[i] > 0 && i + 1 < count ? tenths[i] : 0;
	}
	/* the last one takes the rounding difference, unless that would make it 0 */
	if (whole_tenths - sum > 0)
		all[count - 1].tenths = whole_tenths - sum;
	return count;
}

/* Adds the causes of one GPU, or of all GPUs with mean times. */
static void add_causes(const struct page *p, double window_ns, size_t most, int whole,
		       struct blocks *b)
{
	double gpus = (double)p->gpus.count;
	struct time_unit unit = time_unit_of(window_ns / gpus, 1);
	struct view v = page_view(p, "idle_causes");
	struct cause_row *causes = blocks_take(b, v.count, sizeof(*causes));
	size_t count = 0;
	double longest = 0, sum = 0;
	const char *instead = p->is_sampled ? "not in a sample"
			      : p->trust.count && !view_u64(&p->trust, 0, "with_launch")
				      ? view_u64(&p->trust, 0, "launches")
						? "no launch can be matched with its work"
						: "need launches; this file has none"
				      : NULL;
	const struct block_column columns[] = {
		{ .text = "not busy, by cause",
		  .html = "Not busy, by cause",
		  .at = CAUSES_AT,
		  .width = 24,
		  .class = "label" },
		{ .title = unit.name, .hidden = instead ? IN(MEDIUM_TEXT) : 0, .end = 72 },
		{ .text = "%",
		  .html = "% of window",
		  .hidden = instead ? IN(MEDIUM_TEXT) : 0,
		  .end = 79 },
		{ .at = 81, .width = LINE_WIDTH - 81, .class = "one", .is_bar = true },
		{ .title = instead, .hidden = IN(MEDIUM_HTML), .at = CAUSES_AT + 20 },
	};

	if (!instead && v.count && causes && most >= 2)
		count = take_causes(causes, merge_causes(&v, causes),
				    most < CAUSE_LINES ? most : CAUSE_LINES, window_ns, whole, b);
	if (is_text(p) && !count && !instead)
		return;
	struct block_table *t = ADD_TABLE(b, columns);
	t->is_beside = p->gpus.count == 1;
	t->empty = instead;
	for (size_t i = 0; i < count; i++) {
		longest = causes[i].ns > longest ? causes[i].ns : longest;
		sum += causes[i].ns;
	}
	for (size_t i = 0; i < count; i++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		const char *name = causes[i].name;

		add_cell(r, name);
		add_time(b, r, causes[i].ns / gpus, &unit);
		add_percent(b, r, causes[i].tenths);
		add_bar(r, token_of_kind(name), longest > 0 ? causes[i].ns / longest : 0);
	}
	if (count && !is_text(p)) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, "sum");

		add_cell(r, "idle + lead + tail");
		add_time(b, r, sum / gpus, &unit);
		add_percent(b, r, whole);
	}
}

static void build_one(const struct page *p, struct blocks *b)
{
	struct gpu_row g = gpu_row_of(p, 0);
	struct time_unit unit = time_unit_of(g.window_ns, 1);
	const char *window = blocks_text(b, "%s %s", show_time(b, g.window_ns, &unit), unit.name);
	struct block *head = add_section(b, p->is_sampled ? "GPU time seen" : "GPU time", NULL);
	const struct stack *stack = stack_of(p, &g, b);
	const struct block_column columns[] = {
		{ .html = gpu_label(p, 0, b), .class = "label", .has_title_class = true },
		{ .title = unit.name, .end = 27, .has_title_class = true },
		{ .text = "%", .html = "% of window", .end = 34 },
	};
	int not_busy = is_text(p) ? 0 : 1000;
	struct block_row *r;
	size_t count = 0;

	if (is_text(p))
		head->section.right = blocks_text(b, "100 %% = window %s", window);
	else
		head->section.note = blocks_text(b, "100 %% = window, %s", window);
	if (stack)
		add_block(b, BLOCK_STACK)->stack = *stack;
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < CLASSES; i++) {
		if (!classes[i].is_always && !(g.ns[i] > 0))
			continue;
		r = add_row(b, t, TOKEN_TEXT, "");
		add_cell(r, class_label(p, i))->mark = class_token(p, i);
		add_time(b, r, g.ns[i], &unit);
		add_percent(b, r, g.tenths[i]);
		count++;
	}
	if (!is_text(p)) {
		r = add_row(b, t, TOKEN_TEXT, "sum");
		add_cell(r, "window");
		add_time(b, r, g.window_ns, &unit);
		add_cell(r, "100.0");
	}
	/* the sum of the causes: as printed, or the difference of printed figures */
	for (size_t i = 0; i < CLASSES; i++)
		if (g.tenths[i] > 0 && is_text(p) == (i >= IDLE_CLASS))
			not_busy += is_text(p) ? g.tenths[i] : -g.tenths[i];
	add_causes(p, g.window_ns, is_text(p) ? count : CAUSE_LINES, not_busy, b);
}

/* ---- several GPUs ----------------------------------------------------------------------- */

struct gpu_share {
	size_t gpu;
	double share; /* share that is not busy */
};

/* Chooses the GPUs that get a line: all of a few; otherwise those with the least, the median and
 * the most time that is not busy, and two more of the worst. */
static size_t choose_gpus(const struct page *p, size_t chosen[RANK_LINES], struct blocks *b)
{
	size_t count = p->gpus.count, n = 0;
	struct gpu_share *all = blocks_take(b, count, sizeof(*all));

	for (size_t i = 0; i < count && count <= RANK_LINES; i++)
		chosen[i] = i;
	if (!all || count <= RANK_LINES)
		return all ? count : 0;
	for (size_t i = 0; i < count; i++) {
		double window = view_number(&p->gpus, i, "window_ns");

		all[i].gpu = i;
		all[i].share = view_number(&p->gpus, i, "not_busy_ns") / (window > 0 ? window : 1);
	}
	SORT_BY(all, count, UP(struct gpu_share, share), UP(struct gpu_share, gpu));
	chosen[n++] = all[0].gpu;
	chosen[n++] = all[(count - 1) / 2].gpu;
	for (size_t i = 3; i; i--)
		chosen[n++] = all[count - i].gpu;
	return n;
}

static void add_gpu(const struct page *p, size_t gpu, struct block_table *t,
		    const struct time_unit *unit, struct blocks *b)
{
	struct gpu_row g = gpu_row_of(p, gpu);
	double four[] = { g.ns[0], g.ns[1], g.ns[2], g.ns[3] + g.ns[4] + g.ns[5] };
	double window = is_text(p) ? four[0] + four[1] + four[2] + four[3] : g.window_ns;
	struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
	int tenths[4];

	percents(four, 4, window, 3, tenths);
	add_cell(r, gpu_label(p, gpu, b));
	add_cell(r, NULL)->stack = stack_of(p, &g, b);
	for (size_t i = 0; i < 4; i++)
		add_percent(b, r, tenths[i]);
	if (p->is_sampled)
		r->cells[5].token = TOKEN_WARN;
	add_time(b, r, window, unit);
	add_time(b, r, view_number(&p->gpus, gpu, "comm_ns"), unit);
}

static void build_several(const struct page *p, struct blocks *b)
{
	size_t chosen[RANK_LINES], count = choose_gpus(p, chosen, b);
	struct block *head = add_section(b, p->is_sampled ? "GPU time seen" : "GPU time", NULL);
	const char *of = p->ranks.count == 1 ? "GPU" : "rank";
	const char *spread = count < p->gpus.count ? "least, median and worst not busy" : NULL;
	struct block_table *t;
	bool is_wide = p->width >= LINE_WIDTH;
	double most = 0;

	for (size_t i = 0; i < p->gpus.count; i++)
		if (view_number(&p->gpus, i, "window_ns") > most)
			most = view_number(&p->gpus, i, "window_ns");
	struct time_unit unit = time_unit_of(most, 1);
	head->section.note_at = 16;
	head->section.right = blocks_text(b, "100 %% = window of the %s", of);
	head->section.note = is_text(p) ? spread
					: blocks_text(b, "%s%s%s", head->section.right,
						      spread ? "; " : "", spread ? spread : "");
	if (is_text(p)) { /* bars above the figures; HTML has both in one table */
		const struct block_column bars[] = {
			{ .at = 0 },
			{ .at = 9, .width = p->width > 9 ? p->width - 9 : 0, .is_bar = true },
		};

		t = ADD_TABLE(b, bars);
		t->has_no_titles = true;
		for (size_t i = 0; i < count; i++) {
			struct gpu_row g = gpu_row_of(p, chosen[i]);
			struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

			add_cell(r, gpu_label(p, chosen[i], b));
			add_cell(r, NULL)->stack = stack_of(p, &g, b);
		}
	}
	const struct block_column columns[] = {
		{ .text = "%", .class = "label" },
		{ .hidden = IN(MEDIUM_TEXT), .class = "one", .is_bar = true },
		{ .text = "compute \xe2\x96\x88", .html = "compute", .end = 20 },
		{ .text = is_wide ? "comm, no compute \xe2\x96\x93" : "comm \xe2\x96\x93",
		  .html = "exposed comm",
		  .end = is_wide ? 41 : 30 },
		{ .text = is_wide ? "copy alone \xe2\x96\x92" : "copy \xe2\x96\x92",
		  .html = "exposed copy",
		  .end = is_wide ? 56 : 40 },
		{ .text = p->is_sampled
				  ? is_wide ? "nothing seen \xe2\x95\xb1" : "unseen \xe2\x95\xb1"
				  : "not busy \xe2\x96\x91",
		  .html = p->is_sampled ? "nothing seen" : "not busy",
		  .end = is_wide ? 73 : 54,
		  .has_title_class = true },
		{ .title = blocks_text(b, "window %s", unit.name),
		  .end = is_wide ? 85 : 66,
		  .has_title_class = true },
		{ .title = blocks_text(b, "comm %s", unit.name),
		  .end = is_wide ? 95 : 77,
		  .class = "median" },
	};
	t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < count; i++)
		add_gpu(p, chosen[i], t, &unit, b);
	if (p->medium == MEDIUM_HTML) {
		double not_busy = (double)page_sum(&p->gpus, "not_busy_ns");
		double window = (double)page_sum(&p->gpus, "window_ns");
		int tenths[2];

		percents((double[]){ not_busy, window - not_busy }, 2, window, 1, tenths);
		add_sentence(
			b, ROLE_NOTE, 0,
			"Classes are percentages of the window. Causes are the mean of all GPUs.");
		add_causes(p, window, CAUSE_LINES, tenths[0], b);
	}
}

static void build_md(const struct page *p, struct blocks *b)
{
	size_t chosen[RANK_LINES], count = choose_gpus(p, chosen, b);
	const struct time_unit unit = { 1e6, 1, "ms" };
	struct block_column columns[CLASSES + 2] = { [0] = { .md = "% of window", .is_left = true },
						     [CLASSES + 1] = { .md = "window ms" } };

	add_section(b, "GPU time", NULL);
	for (size_t i = 0; i < CLASSES; i++)
		columns[1 + i].md = class_label(p, i);
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < count; i++) {
		struct gpu_row g = gpu_row_of(p, chosen[i]);
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, gpu_label(p, chosen[i], b));
		for (size_t k = 0; k < CLASSES; k++)
			add_percent(b, r, g.tenths[k]);
		add_time(b, r, g.window_ns, &unit);
	}
}

void build_gpus(const struct page *p, struct blocks *b)
{
	if (p->gpus.count && p->medium == MEDIUM_MD)
		build_md(p, b);
	else if (p->gpus.count > 1)
		build_several(p, b);
	else if (p->gpus.count)
		build_one(p, b);
}
