/* SPDX-License-Identifier: Apache-2.0 */
/* The section PHASES: host and GPU time on one scale, mean per step over the ranks, in the order of
 * a step, with small annotations together. */
#include "analyze/format/page/internal.h"

static const char *const order_of_phases[] = {
	"data",          "forward",       "backward",     "optimizer",
	"communication", "checkpoint",    "validation",   "", /* all other phases */
	"other",         "before_window", "unattributed",
};
enum { ORDER_OTHER = PHASE_OF_USER + 1, ORDER_COUNT = 11, BAR_WIDE = 20 };

/* GPU time launched in a phase by class, and idle time of the GPUs during it. */
enum { COMPUTE, COMM, COPY, DURING, PARTS };

struct phase_row {
	const char *name, *label;
	double wall_ns, gpu_ns[PARTS]; /* per step; the GPU's also per GPU */
	bool is_inferred;
	uint32_t order;
	unsigned count; /* number of annotations in this row */
};
struct phases {
	struct phase_row *rows;
	size_t count;
	struct phase_row sum;
};

unsigned page_phase_order(const char *name)
{
	for (unsigned i = 0; i < ORDER_COUNT; i++)
		if (i != PHASE_OF_USER && !strcmp(order_of_phases[i], name))
			return i;
	return PHASE_OF_USER;
}

static double busy_ns(const struct phase_row *r)
{
	return r->gpu_ns[COMPUTE] + r->gpu_ns[COMM] + r->gpu_ns[COPY];
}

static void add_phase(struct phase_row *into, const struct phase_row *from)
{
	into->wall_ns += from->wall_ns;
	into->is_inferred |= from->is_inferred;
	into->count += from->count;
	for (size_t i = 0; i < PARTS; i++)
		into->gpu_ns[i] += from->gpu_ns[i];
}

/* Returns the row of a phase, which ranks share. NULL: there is none and `may_add` is false. */
static struct phase_row *find_phase(struct phases *all, const char *name, bool may_add)
{
	struct phase_row *r = all->rows;

	while (r < all->rows + all->count && strcmp(r->name, name) != 0)
		r++;
	if (r < all->rows + all->count)
		return r;
	if (!may_add)
		return NULL;
	all->count++;
	*r = (struct phase_row){ .name = name, .order = page_phase_order(name), .count = 1 };
	return r;
}

/* Drops rows without time, and joins annotations below 2 % of a step. */
static void settle_phases(const struct page *p, struct phases *all, struct blocks *b)
{
	/* for GPU work whose launch is not in the window */
	const char *unlaunched =
		page_sum(&p->trust, "launches") ? "before window" : "launch unknown";
	struct phase_row *small = NULL;
	size_t to = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct phase_row *r = &all->rows[i];

		if (!(r->wall_ns + busy_ns(r) + r->gpu_ns[DURING] > 0))
			continue;
		r->label = blocks_text(b, "%s%s",
				       !strcmp(r->name, "before_window") ? unlaunched : r->name,
				       !r->is_inferred            ? ""
				       : p->medium == MEDIUM_HTML ? "\xc2\xa0~"
								  : " ~");
		add_phase(&all->sum, r);
		all->rows[to++] = *r;
	}
	SORT_BY(all->rows, to, UP(struct phase_row, order), DOWN(struct phase_row, wall_ns),
		UP(struct phase_row, name));
	all->count = to;
	to = 0;
	for (size_t i = 0; i < all->count; i++) {
		struct phase_row row = all->rows[i];

		if (row.order != PHASE_OF_USER || row.wall_ns * 50 >= all->sum.wall_ns) {
			all->rows[to++] = row;
			continue;
		}
		if (!small)
			small = &all->rows[to++];
		else
			add_phase(&row, small);
		*small = row;
	}
	all->count = to;
	if (small && small->count > 1) /* a single one keeps its name */
		small->label = blocks_text(b, "%u more", small->count);
}

static void take_phases(const struct page *p, struct phases *all, struct blocks *b)
{
	struct view phases = page_view(p, "phases"), cells = page_view(p, "cells");
	double gpus = p->gpus.count ? (double)p->gpus.count / (double)p->ranks.count : 1;
	double share = 1.0 / (double)p->window_steps;

	*all = (struct phases){ .rows = blocks_take(b, phases.count + 1, sizeof(*all->rows)) };
	if (!all->rows)
		return;
	for (size_t i = 0; i < phases.count; i++) {
		struct phase_row *r = find_phase(all, view_cell(&phases, i, "name").text, true);

		r->wall_ns += view_number(&phases, i, "wall_ns") / (double)p->steps;
		r->is_inferred |= view_u64(&phases, i, "inferred") == 1;
		r->gpu_ns[DURING] += view_number(&phases, i, "gpu_idle_during_ns") * share / gpus;
	}
	share = share / gpus;
	for (size_t i = 0; i < cells.count; i++) {
		struct phase_row *r = find_phase(all, view_cell(&cells, i, "phase").text, false);

		if (!r)
			continue;
		r->gpu_ns[COMPUTE] += view_number(&cells, i, "compute_ns") * share;
		r->gpu_ns[COMM] += view_number(&cells, i, "exposed_comm_ns") * share;
		r->gpu_ns[COPY] += view_number(&cells, i, "exposed_copy_ns") * share;
	}
	settle_phases(p, all, b);
}

static const struct stack *stack_of(const struct page *p, const struct phase_row *r, double most_ns,
				    struct blocks *b)
{
	const enum token tokens[PARTS] = { TOKEN_COMPUTE, TOKEN_COMM, TOKEN_DATA,
					   p->is_sampled ? TOKEN_UNSEEN : TOKEN_IDLE };
	struct stack *stack = new_stack(b, PARTS, most_ns);

	for (size_t i = 0; stack && i < PARTS; i++)
		stack->parts[i] = (struct stack_part){ .token = tokens[i], .ns = r->gpu_ns[i] };
	return stack;
}

/* Adds the sum of all rows, and its GPU time. */
static void add_sum(const struct page *p, const struct phase_row *sum, struct block_table *t,
		    const struct time_unit *unit, bool has_place, struct blocks *b)
{
	struct block_row *r = add_row(b, t, TOKEN_DIM, "sum");
	const char *window = show_time(b, busy_ns(sum) + sum->gpu_ns[DURING], unit);

	add_cell(r, is_text(p) ? NULL : "sum")->has_class = true;
	add_time(b, r, sum->wall_ns, unit);
	add_cell(r, "100.0")->has_class = true;
	add_cell(r, ""); /* no bar */
	add_time(b, r, busy_ns(sum), unit);
	add_time(b, r, sum->gpu_ns[DURING], unit);
	if (has_place && is_text(p))
		add_cellf(b, r, "%s = window / %s", window, show_count(b, p->window_steps));
	else if (has_place)
		add_cellf(b, r, "= %s %s: the window%s / %s step%s", window, unit->name,
			  plural(p->ranks.count), show_count(b, p->window_steps),
			  plural(p->window_steps));
}

/* Adds the columns; in a terminal the bars fill the line. */
static struct block_table *add_columns(const struct page *p, const struct time_unit *unit,
				       unsigned bar, struct blocks *b)
{
	unsigned shift = 22 - bar + (bar ? 0 : 2);
	unsigned all = IN(MEDIUM_TEXT) | IN(MEDIUM_HTML) | IN(MEDIUM_MD);
	unsigned without_gpu = p->gpus.count ? 0 : all;
	const struct block_column columns[] = {
		{ .md = "phase", .width = 15, .class = "label", .is_left = true },
		{ .title = blocks_text(b, "host %s", unit->name), .end = 21 },
		{ .title = blocks_text(b, "%% of %s", step_word(p)), .end = 32, .title_at = 23 },
		{ .hidden = IN(MEDIUM_MD), .at = 34, .width = bar, .class = "one", .is_bar = true },
		{ .text = "GPU busy",
		  .html = blocks_text(b, "GPU work\nlaunched, %s", unit->name),
		  .md = "GPU work launched, ms",
		  .hidden = without_gpu,
		  .end = 67 - shift },
		{ .text = p->is_sampled ? "unseen" : "idle",
		  .html = blocks_text(b, "%s\nmeanwhile, %s",
				      p->is_sampled ? "nothing seen" : "GPU idle", unit->name),
		  .md = "GPU idle meanwhile, ms",
		  .hidden = without_gpu,
		  .end = 76 - shift },
		{ .text = bar < BAR_WIDE  ? ""
			  : p->is_sampled ? "\xe2\x96\x88 GPU work \xe2\x95\xb1 unseen"
					  : "\xe2\x96\x88 GPU work \xe2\x96\x91 GPU idle",
		  .hidden = without_gpu | IN(MEDIUM_MD),
		  .html = "",
		  .at = 78 - shift,
		  .width = bar,
		  .class = "two",
		  .is_bar = true },
	};

	return ADD_TABLE(b, columns);
}

/* Adds time outside of steps, such as validation and checkpoints, for a single rank. */
static void add_outside(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "outside_steps");
	struct time_unit unit = time_unit_of((double)page_sum(&v, "wall_ns"), 1);
	const char *words = "";

	if (p->ranks.count != 1 || !v.count)
		return;
	for (size_t i = 0; i < v.count && i < 3; i++)
		words = blocks_text(b, "%s%s %s %s", words, i ? "," : "",
				    view_cell(&v, i, "name").text,
				    show_time(b, (double)view_u64(&v, i, "wall_ns"), &unit));
	add_sentence(b, ROLE_NOTE, 0,
		     blocks_text(b, "Outside of all steps, %s:%s%s; in all %s.", unit.name, words,
				 v.count > 3 ? ", ..." : "",
				 show_time(b, (double)page_sum(&v, "wall_ns"), &unit)));
}

void build_phases(const struct page *p, struct blocks *b)
{
	unsigned bar = p->width >= LINE_WIDTH ? 22 : p->width >= 72 ? 8 : 0;
	struct phases all;
	double *walls, most_ns = 0;
	int *tenths;
	size_t rest = 0;
	bool is_inferred = false;
	struct time_unit unit = { 1e6, 1, "ms" };

	take_phases(p, &all, b);
	walls = blocks_take(b, all.count, sizeof(*walls));
	tenths = blocks_take(b, all.count, sizeof(*tenths));
	if (!walls || !tenths || !all.count)
		return;
	/* a host without phases has only `other`, which is not worth a section */
	if (!p->gpus.count && all.count == 1 && all.rows[0].order == ORDER_OTHER)
		return;
	for (size_t i = 0; i < all.count; i++) {
		const struct phase_row *r = &all.rows[i];
		double gpu_ns = busy_ns(r) + r->gpu_ns[DURING];

		most_ns = r->wall_ns > most_ns ? r->wall_ns : most_ns;
		most_ns = p->gpus.count && gpu_ns > most_ns ? gpu_ns : most_ns;
		walls[i] = r->wall_ns;
		rest = r->order == ORDER_OTHER ? i : rest;
		is_inferred |= r->is_inferred;
	}
	percents(walls, all.count, all.sum.wall_ns, rest, tenths);
	if (p->medium != MEDIUM_MD)
		unit = time_unit_of(all.sum.wall_ns, 1);
	add_section(b, "Phases",
		    is_text(p) ? NULL
			       : blocks_text(b, "%s, %s%s.%s",
					     p->gpus.count ? "Host and GPU side by side" : "Host",
					     p->has_steps ? "mean per step" : "in the window",
					     p->ranks.count > 1 ? ", mean of the ranks" : "",
					     !is_inferred ? ""
							  : " ~ marks a phase that is inferred, "
							    "not annotated."));
	struct block_table *t = add_columns(p, &unit, bar, b);
	for (size_t i = 0; i < all.count; i++) {
		const struct phase_row *r = &all.rows[i];
		struct block_row *row = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(row, r->label)->mark = is_text(p) ? TOKEN_TEXT : token_of_phase(r->name);
		add_time(b, row, r->wall_ns, &unit);
		add_percent(b, row, tenths[i]);
		add_bar(row, token_of_phase(r->name), most_ns > 0 ? r->wall_ns / most_ns : 0);
		add_time(b, row, busy_ns(r), &unit);
		add_time(b, row, r->gpu_ns[DURING], &unit);
		add_cell(row, NULL)->stack = most_ns > 0 ? stack_of(p, r, most_ns, b) : NULL;
	}
	if (p->medium != MEDIUM_MD)
		add_sum(p, &all.sum, t, &unit, !is_text(p) || bar >= BAR_WIDE, b);
	add_outside(p, b);
}
