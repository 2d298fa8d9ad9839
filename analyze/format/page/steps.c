/* SPDX-License-Identifier: Apache-2.0 */
/* The section STEPS of one rank: lengths, and some steps over time. A terminal draws the step
 * nearest to the median. A browser draws all of a few; otherwise the first, the fastest, the
 * median, the slowest and some that are much slower than the median. */
#include "analyze/format/page/internal.h"

#include "schemas/base/vec.h"

#include <math.h>

enum {
	P90_FROM = 20, /* least number of steps for this quantile */
	P99_FROM = 200,
	DRAWN_ALL = 12, /* up to this many steps all are drawn */
	DRAWN_SLOW = 8,
	DRAWN_MAX = DRAWN_ALL + 4,
};

/* Returns the least value that a share `q` of all values does not exceed. */
static double quantile(const struct step_times *t, double q)
{
	size_t rank = (size_t)ceil(q * (double)t->count);

	return t->sorted[rank ? rank - 1 : 0];
}

void step_times_take(const struct page *p, size_t rank, const struct view *steps,
		     struct step_times *t, struct blocks *b)
{
	*t = (struct step_times){ .all = steps->count };
	t->in_order = blocks_take(b, steps->count, sizeof(*t->in_order));
	t->sorted = blocks_take(b, steps->count, sizeof(*t->sorted));
	t->rows = blocks_take(b, steps->count, sizeof(*t->rows));
	for (size_t i = 0; i < steps->count && !b->is_full; i++) {
		if (view_u64(steps, i, "counted") != 1) {
			t->settling += !strcmp(view_text(steps, i, "flags"), "settling");
			continue;
		}
		t->rows[t->count] = i;
		t->in_order[t->count] = view_number(steps, i, "wall_ns");
		t->sorted[t->count] = t->in_order[t->count];
		t->count++;
	}
	t->counted = t->count;
	if (b->is_full || !t->count)
		return;
	t->median = median_double(t->sorted, t->count); /* sorts t->sorted */
	t->min = t->sorted[0];
	t->p90 = quantile(t, 0.90);
	t->p99 = quantile(t, 0.99);
	t->max = t->sorted[t->count - 1];
	for (size_t i = 0; i < t->count; i++)
		t->mean += t->in_order[i];
	t->mean /= (double)t->count;
	/* In a long run most steps have no row. */
	struct view summed = page_of_rank(p, "steps_summed", rank);
	struct view stats = page_of_rank(p, "step_stats", rank);

	if (!summed.count || !stats.count)
		return;
	t->summed = view_u64(&summed, 0, "steps");
	t->all += t->summed;
	t->counted = view_u64(&stats, 0, "counted");
	t->settling = view_u64(&stats, 0, "settling");
	t->min = view_number(&stats, 0, "min_ns");
	t->median = view_number(&stats, 0, "median_ns");
	t->p90 = view_number(&stats, 0, "p90_ns");
	t->p99 = view_number(&stats, 0, "p99_ns");
	t->max = view_number(&stats, 0, "max_ns");
	t->mean = view_number(&stats, 0, "mean_ns");
}

/* ---- figures ---------------------------------------------------------------------------- */

/* Returns "min 12.5, median 13.0, ...". */
static const char *times_text(const struct step_times *t, const char *between,
			      const struct time_unit *unit, struct blocks *b)
{
	const struct {
		const char *name;
		double ns;
		size_t from; /* least number of steps */
	} figures[] = { { "min", t->min, 1 },
			{ "median", t->median, 1 },
			{ "p90", t->p90, P90_FROM },
			{ "p99", t->p99, P99_FROM },
			{ "max", t->max, 1 } };
	const char *all = "";

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (t->count >= figures[i].from)
			all = blocks_text(b, "%s%s%s %s", all, i ? between : "", figures[i].name,
					  show_time(b, figures[i].ns, unit));
	return all;
}

/* Returns a note for a long run. */
static const char *summed_text(const struct step_times *t, struct blocks *b)
{
	return blocks_text(b, "%s of %s steps are only summed", show_count(b, t->summed),
			   show_count(b, t->all));
}

/* Adds one value for each step from `first` to `last` at the end of the previous line. */
static void add_spark(struct blocks *b, const double *values, size_t count, double median,
		      uint64_t first, uint64_t last)
{
	struct block *new = add_block(b, BLOCK_SPARK);

	new->spark.values = values;
	new->spark.count = count;
	new->spark.median = median;
	new->spark.first = first;
	new->spark.last = last;
}

static void add_times(const struct page *p, const struct step_times *t, const struct view *steps,
		      struct blocks *b)
{
	struct time_unit unit = time_unit_of(t->max, 1);
	const char *count = blocks_text(b, "%s complete, ", show_count(b, t->counted));
	const char *wall;

	if (t->counted != t->all && t->settling)
		count = blocks_text(b, "%s of %s counted, %s settling, ", show_count(b, t->counted),
				    show_count(b, t->all), show_count(b, t->settling));
	else if (t->counted != t->all)
		count = blocks_text(b, "%s of %s complete, ", show_count(b, t->counted),
				    show_count(b, t->all));
	if (t->count == 1)
		wall = blocks_text(b, "wall %s %s", show_time(b, t->in_order[0], &unit), unit.name);
	else
		wall = blocks_text(b, "wall %s: %s", unit.name, times_text(t, DOT, &unit, b));
	add_sentencef(b, ROLE_TEXT, 14, "%s%s", count, wall);
	if (t->count < 2)
		return;
	add_spark(b, t->in_order, t->count, t->median, view_u64(steps, t->rows[0], "step"),
		  view_u64(steps, t->rows[t->count - 1], "step"));
	if (t->summed)
		add_sentence(b, ROLE_NOTE, 14, summed_text(t, b));
}

/* Adds the most memory in use in each step, for files that contain nothing else about steps. */
static void add_levels(const struct page *p, struct blocks *b)
{
	struct view memory = page_of_rank(p, "memory", 0), all = page_view(p, "memory_steps"), v;
	double *sorted, *most;

	if (!memory.count)
		return;
	v = view_below(&all, memory.rows[0], table_keys(memory.type));
	sorted = blocks_take(b, v.count, sizeof(*sorted));
	most = blocks_take(b, v.count, sizeof(*most));
	if (!v.count || !sorted || !most)
		return;
	for (size_t i = 0; i < v.count; i++)
		sorted[i] = most[i] = view_number(&v, i, "max_bytes");
	double median = median_double(sorted, v.count); /* sorts `sorted` */
	add_sentencef(b, ROLE_TEXT, 14, "memory at most: min %s%smedian %s%smax %s",
		      show_bytes(b, sorted[0]), DOT, show_bytes(b, median), DOT,
		      show_bytes(b, sorted[v.count - 1]));
	if (v.count > 1 && is_text(p))
		add_spark(b, most, v.count, median, view_u64(&v, 0, "step"),
			  view_u64(&v, v.count - 1, "step"));
}

static const char *note_text(const struct step_times *t, struct blocks *b)
{
	struct time_unit unit = time_unit_of(t->max, 1);
	const char *count =
		t->counted == t->all
			? blocks_text(b, "%s complete: ", show_count(b, t->counted))
			: blocks_text(b, "%s of %s counted: ", show_count(b, t->counted),
				      show_count(b, t->all));

	return blocks_text(b, "%s%s %s%s%s", count,
			   t->count == 1
				   ? blocks_text(b, "wall %s", show_time(b, t->in_order[0], &unit))
				   : times_text(t, ", ", &unit, b),
			   unit.name, t->summed ? "; " : "", t->summed ? summed_text(t, b) : "");
}

/* ---- pictures --------------------------------------------------------------------------- */

/* Returns the counted step whose length is nearest; of several the last. */
static size_t find_nearest(const struct step_times *t, double wall_ns)
{
	size_t best = 0;

	for (size_t i = 0; i < t->count; i++)
		if (fabs(t->in_order[i] - wall_ns) <= fabs(t->in_order[best] - wall_ns))
			best = i;
	return best;
}

static void choose(size_t *chosen, size_t *count, size_t step)
{
	for (size_t i = 0; i < *count; i++)
		if (chosen[i] == step)
			return;
	if (*count < DRAWN_MAX)
		chosen[(*count)++] = step;
}

/* Chooses the counted steps that a browser draws, in time order. */
static size_t choose_steps(const struct step_times *t, size_t chosen[DRAWN_MAX])
{
	size_t count = 0, slow = 0;

	for (size_t i = 0; i < t->count && t->count <= DRAWN_ALL; i++)
		chosen[count++] = i;
	if (t->count <= DRAWN_ALL)
		return count;
	choose(chosen, &count, 0);
	choose(chosen, &count, find_nearest(t, t->sorted[0]));
	choose(chosen, &count, find_nearest(t, t->median));
	for (size_t i = t->count; i && slow < DRAWN_SLOW; i--, slow++)
		if (i == t->count || t->sorted[i - 1] > 1.5 * t->median)
			choose(chosen, &count, find_nearest(t, t->sorted[i - 1]));
	qsort(chosen, count, sizeof(*chosen), compare_u64); /* size_t has 64 bits */
	return count;
}

/* Returns the picture of a counted step; no rows if there is none. */
static struct view picture_of(const struct page *p, const struct view *steps,
			      const struct step_times *t, size_t step)
{
	struct view all = page_view(p, "strips");

	return view_below(&all, steps->rows[t->rows[step]], table_keys(steps->type));
}

/* Chooses the step with a picture that is nearest to the median. */
static size_t choose_one(const struct page *p, const struct view *steps, const struct step_times *t,
			 size_t chosen[DRAWN_MAX])
{
	double least = INFINITY;
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++) {
		double off = fabs(t->in_order[i] - t->median);

		if (off > least || !picture_of(p, steps, t, i).count)
			continue;
		least = off;
		chosen[0] = i;
		count = 1;
	}
	return count;
}

static void add_timelines(const struct page *p, const struct view *steps,
			  const struct step_times *t, struct blocks *b)
{
	size_t chosen[DRAWN_MAX], count, used = 0;
	struct step_timeline *rows = blocks_take(b, DRAWN_MAX, sizeof(*rows));

	if (!rows || (is_text(p) && (p->gpus.count > 1 || p->width < LINE_WIDTH)))
		return;
	count = is_text(p) ? choose_one(p, steps, t, chosen) : choose_steps(t, chosen);
	for (size_t i = 0; i < count; i++) {
		struct view v = picture_of(p, steps, t, chosen[i]);
		const char *host = NULL, *gpu = NULL;

		if (v.count) {
			host = view_cell(&v, 0, is_text(p) ? "host_cells" : "host_bins").text;
			gpu = view_cell(&v, 0, is_text(p) ? "gpu_cells" : "gpu_bins").text;
		}
		/* A file with only memory has neither phases nor a GPU to draw. */
		if (!p->gpus.count && host && host[strspn(host, ".")] == '\0')
			continue;
		if (v.count && (host || is_text(p)))
			rows[used++] = (struct step_timeline){
				.step = view_u64(&v, 0, "step"),
				.host = host ? host : "",
				.gpu = is_text(p) && !p->gpus.count ? NULL : gpu,
				.wall_ns = t->in_order[chosen[i]],
			};
	}
	if (!used) {
		add_levels(p, b);
		return;
	}
	struct block *new = add_block(b, BLOCK_TIMELINES);
	new->timelines.rows = rows;
	new->timelines.count = used;
	new->timelines.most_ns = t->sorted[t->count - 1];
	new->timelines.unit = time_unit_of(new->timelines.most_ns, 1);
	new->timelines.is_sampled = p->is_sampled;
	if (!is_text(p))
		add_sentence(b, ROLE_NOTE, 0,
			     p->gpus.count
				     ? "Upper strip: the host, by phase. Lower strip: the GPU, in "
				       "the colours of GPU time; height is the share of each bin. "
				       "Work queued in one step may run in the next."
				     : "The host, by phase.");
}

/* ---- the section ------------------------------------------------------------------------ */

struct rank_row {
	size_t rank;
	struct step_times times;
};

/* Builds the HTML rows of the ranks, the slowest first, up to a limit. */
static void build_ranks(const struct page *p, struct blocks *b)
{
	static const struct block_column columns[] = {
		{ .class = "label" }, { .title = "steps", .has_no_class = true },
		{ .title = "min" },   { .title = "median" },
		{ .title = "max" },
	};
	const struct time_unit ms = { 1e6, 1, "ms" };
	size_t count = p->ranks.count;
	struct rank_row *all = blocks_take(b, count, sizeof(*all));

	for (size_t i = 0; all && i < count; i++) {
		struct view steps = page_of_rank(p, "steps", i);

		all[i].rank = i;
		step_times_take(p, i, &steps, &all[i].times, b);
	}
	if (b->is_full || !all)
		return;
	SORT_BY(all, count, DOWN(struct rank_row, times.median), UP(struct rank_row, rank));
	if (!count || !p->has_steps || !(all[0].times.median > 0))
		return; /* some reports have no steps */
	add_section(b, "Steps", "Wall time of counted steps, ms; the slowest rank first");
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < count && i < RANK_LINES; i++) {
		const struct step_times *times = &all[i].times;
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, rank_text(p, all[i].rank, b));
		add_cell(r, show_count(b, times->counted));
		r->is_filled = true;
		if (!times->counted)
			continue;
		add_time(b, r, times->min, &ms);
		add_time(b, r, times->median, &ms);
		add_time(b, r, times->max, &ms);
	}
	if (count > RANK_LINES)
		add_sentencef(b, ROLE_NOTE, 0, "%s more ranks, none of them slower",
			      show_count(b, count - RANK_LINES));
}

/* Returns what marks steps for the program that recorded the first input. */
static const char *mark_of(const struct page *p)
{
	static const struct {
		const char *format, *call;
	} marks[] = {
		{ "Kineto", "prof.step()" },
		{ "Nsight", "an NVTX range ProfilerStep#N" },
		{ "XSpace", "jax.profiler.StepTraceAnnotation()" },
	};
	const char *format = p->inputs.count ? view_cell(&p->inputs, 0, "format").text : NULL;

	for (size_t i = 0; format && i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strstr(format, marks[i].format))
			return marks[i].call;
	return "tacho_step()";
}

void build_steps(const struct page *p, struct blocks *b)
{
	struct view steps = page_of_rank(p, "steps", 0);
	struct step_times t;
	struct block_words *w;

	if (p->medium == MEDIUM_HTML && p->ranks.count > 1) {
		build_ranks(p, b);
		return;
	}
	step_times_take(p, 0, &steps, &t, b);
	if (b->is_full || !page_has_table(p, "steps"))
		return;
	if (p->medium == MEDIUM_MD) {
		const struct time_unit ms = { 1e6, 1, "ms" };

		if (!p->has_steps || !t.count)
			return;
		add_section(b, "Steps", NULL);
		add_sentencef(b, ROLE_TEXT, 0,
			      "%s of %s counted%s, wall ms: min %s, median %s, max %s%s%s",
			      show_count(b, t.counted), show_count(b, t.all),
			      p->ranks.count > 1 ? ", first rank" : "", show_time(b, t.min, &ms),
			      show_time(b, t.median, &ms), show_time(b, t.max, &ms),
			      t.summed ? "; " : "", t.summed ? summed_text(&t, b) : "");
		return;
	}
	add_section(b, "Steps", !is_text(p) && p->has_steps && t.count ? note_text(&t, b) : NULL);
	if (!p->has_steps || !t.count) {
		w = add_words(b, ROLE_ALONE, 14);
		add_span(b, w, TOKEN_TEXT,
			 "none marked; the window counts as one step \xe2\x86\x92 ");
		add_span(b, w, TOKEN_CODE, mark_of(p));
		return;
	}
	if (is_text(p))
		add_times(p, &t, &steps, b);
	add_timelines(p, &steps, &t, b);
}
