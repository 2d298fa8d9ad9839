/* SPDX-License-Identifier: Apache-2.0 */
/* The section SLOWDOWN of a job against its ideal: sentences, tables and pictures. */
#include "analyze/format/page/internal.h"

#include "schemas/base/vec.h"

#include <math.h>

enum { ROWS_MOST = 128, COLUMNS_MOST = 64 /* of a picture; more values share one */ };

struct axis {             /* one axis of a picture */
	uint64_t *values; /* the first value of each row or column */
	const char **names;
	size_t count;
};

/* Lists the different values of a column in order, joined so that there are at most `most`; none if
 * a value is unknown. */
static struct axis axis_of(const struct view *v, const char *column, const char *word, size_t most,
			   struct blocks *b)
{
	struct axis a = { .values = blocks_take(b, v->count, sizeof(*a.values)),
			  .names = blocks_take(b, v->count, sizeof(*a.names)) };
	size_t count = 0;

	for (size_t i = 0; !b->is_full && i < v->count; i++)
		a.values[i] = view_cell(v, i, column).u64;
	if (b->is_full)
		return a;
	qsort(a.values, v->count, sizeof(*a.values), compare_u64);
	for (size_t i = 0; i < v->count; i++)
		if (!count || a.values[i] != a.values[count - 1])
			a.values[count++] = a.values[i];
	count = count && a.values[count - 1] == NO_U64 ? 0 : count;
	size_t together = (count + most - 1) / most;
	for (size_t i = 0; i < count; i += together, a.count++) {
		a.values[a.count] = a.values[i];
		a.names[a.count] =
			blocks_text(b, "%s %llu%s", word, (unsigned long long)a.values[i],
				    together > 1 ? "+" : "");
	}
	return a;
}

static size_t place_in(const struct axis *a, uint64_t value)
{
	size_t at;

	SEARCH(at, 0, a->count, a->values[at] <= value);
	return at - 1; /* each value is at or after the first one of some group */
}

/* Draws the slowdowns in a table over two of its columns, the greatest one in each cell. */
static void add_heat(const struct view *v, const char *row, const char *row_word,
		     const char *column, const char *word, struct blocks *b)
{
	struct axis rows = axis_of(v, row, row_word, ROWS_MOST, b);
	struct axis columns = axis_of(v, column, word, COLUMNS_MOST, b);

	if (b->is_full || !rows.count || !columns.count)
		return;
	struct block *block = add_block(b, BLOCK_HEAT);
	double *values = blocks_take(b, rows.count * columns.count, sizeof(*values));
	if (b->is_full)
		return;
	for (size_t i = 0; i < rows.count * columns.count; i++)
		values[i] = NAN;
	for (size_t i = 0; i < v->count; i++) {
		size_t y = place_in(&rows, view_cell(v, i, row).u64);
		size_t x = place_in(&columns, view_cell(v, i, column).u64);
		double value = view_cell(v, i, "slowdown").f64;
		double *cell = &values[y * columns.count + x];

		*cell = isnan(*cell) || value > *cell ? value : *cell;
	}
	block->heat = (struct heat){ .rows = row_word,
				     .columns = word,
				     .row_names = rows.names,
				     .names = columns.names,
				     .values = values,
				     .row_count = rows.count,
				     .count = columns.count };
}

/* Adds how much of a step no dependency explains, if it is at least 5 %, for the rank with the
 * greatest share. */
static void add_unexplained(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "rank_what_if");
	double most = 0, of_ns = 0, share = 0.05;

	for (size_t i = 0; i < v.count; i++) {
		double ns = view_number(&v, i, "unexplained_ns");
		double step_ns = view_number(&v, i, "baseline_step_ns");

		if (step_ns <= 0 || ns < share * step_ns)
			continue;
		share = ns / step_ns;
		most = ns;
		of_ns = step_ns;
	}
	if (most <= 0)
		return;
	struct time_unit unit = time_unit_of(of_ns, 2);
	add_section(b, "Unexplained", NULL);
	add_sentencef(
		b, ROLE_TEXT, 14,
		"In a step of %s %s, no dependency in the file explains %s %s (%.0f %%) before GPU "
		"work or in waits for it. Changes there may save more or less than predicted.",
		show_time(b, of_ns, &unit), unit.name, show_time(b, most, &unit), unit.name,
		100 * share);
}

/* Adds what would bound a step after the edits of --what-if. */
static void add_next(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "what_if");
	struct time_unit unit;
	bool is_first = true;

	if (!v.count) {
		add_section(b, "Replay", NULL);
		add_sentence(
			b, ROLE_TEXT, 14,
			"No step is replayed: a process needs two complete marked steps, and the "
			"first one is not replayed (--phases can name other marks).");
	}
	for (size_t i = 0; i < v.count; i++) {
		double before_ns = view_number(&v, i, "baseline_step_ns");
		double after_ns = view_number(&v, i, "step_ns");

		if (!view_text(&v, i, "next")[0])
			continue;
		if (is_first)
			add_section(b, "What then", NULL);
		is_first = false;
		unit = time_unit_of(before_ns, 2);
		bool is_compute = !strcmp(view_text(&v, i, "next"), "COMPUTE");
		add_sentencef(b, ROLE_TEXT, 14,
			      "With %s a step takes %s instead of %s %s (%.2f x); then %s bounds "
			      "it, with %s %s to save%s.",
			      view_text(&v, i, "edits"), show_time(b, after_ns, &unit),
			      show_time(b, before_ns, &unit), unit.name,
			      after_ns > 0 ? before_ns / after_ns : 0, view_text(&v, i, "next"),
			      show_time(b, view_number(&v, i, "next_saves_ns"), &unit), unit.name,
			      is_compute ? " if kernels were 1.5 times as fast" : "");
	}
}

void build_replay(const struct page *p, struct blocks *b)
{
	struct view job = page_view(p, "replay"), ranks = page_view(p, "replay_rank");
	struct view steps = page_view(p, "replay_rank_step");
	double mw, ms;

	add_next(p, b);
	add_unexplained(p, b);
	if (!job.count)
		return;
	struct time_unit unit = time_unit_of(view_number(&job, 0, "baseline_ns"), 2);
	mw = view_cell(&job, 0, "mw").f64;
	ms = view_cell(&job, 0, "ms").f64;
	add_section(b, "Slowdown", is_text(p) ? NULL : "if all ranks were alike");
	add_sentencef(b, ROLE_TEXT, 14,
		      "A step takes %s %s in the replay and would take %s %s if each operation "
		      "took as long as its peers: S = %.3f, over %s step%s of %s GPUs.",
		      show_time(b, view_number(&job, 0, "baseline_ns"), &unit), unit.name,
		      show_time(b, view_number(&job, 0, "ideal_ns"), &unit), unit.name,
		      view_cell(&job, 0, "slowdown").f64, show_count(b, view_u64(&job, 0, "steps")),
		      plural(view_u64(&job, 0, "steps")),
		      show_count(b, view_u64(&job, 0, "ranks")));
	if (isfinite(mw))
		add_sentencef(
			b, ROLE_TEXT, 14,
			"If the slowest 3 %% of the ranks were like the others, %.0f %% of the "
			"slowdown would disappear%s.",
			100 * mw,
			isfinite(ms) ? blocks_text(b, "; with the last pipeline stage, %.0f %%",
						   rint(100 * ms) + 0.) /* avoids -0 */
				     : "");
	if (p->medium != MEDIUM_HTML)
		return;
	add_heat(&ranks, "dp", "dp", "stage", "stage", b);
	add_heat(&steps, "rank", "rank", "step", "step", b);
}
