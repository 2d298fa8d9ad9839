/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/diff/diff.h"

#include "analyze/report/shared.h"
#include "analyze/report/report_list.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const struct report_type *const diff_reports[] = { &report_summary, &report_steps, &report_idle,
						   &report_attribution, NULL };

/* ---- the series of steps ---------------------------------------------------------------- */

static const struct sort_key by_time[] = { UP(struct diff_wall, occurrence),
					   UP(struct diff_wall, number),
					   { .type = SORT_NONE } };

static bool same_step(struct table *t, size_t i, size_t k)
{
	const union value *a = table_at(t, i), *b = table_at(t, k);

	return a[0].u64 == b[0].u64 && a[1].text == b[1].text && a[2].u64 == b[2].u64 &&
	       a[RANK_KEYS].u64 == b[RANK_KEYS].u64;
}

static size_t take_steps(struct table *t, struct diff_wall *all)
{
	size_t wall = table_column(t, "wall_ns"), counted = table_column(t, "counted"), i, n = 0;
	size_t flags = table_column(t, "flags");
	uint64_t occurrence = 0;

	for (i = 0; i < table_count(t); i++) {
		const union value *row = table_at(t, i);

		occurrence = i && same_step(t, i - 1, i) ? occurrence + 1 : 0;
		/* In a long run every Nth step represents all; the kept longest ones would not. */
		if (row[counted].u64 == 1 && !(row[flags].text && strstr(row[flags].text, "extra")))
			all[n++] = (struct diff_wall){ row[RANK_KEYS].u64, occurrence,
						       (double)row[wall].u64 };
	}
	sort_rows(all, n, sizeof(*all), by_time);
	return n;
}

/* Reads one value for each step of the job. Ranks step together, so their steps are not independent
 * observations. */
static enum status take_series(struct diff_side *s, struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "steps");
	RELEASED_BY(vec_release) double *walls = NULL;
	double sum = 0;
	size_t count = 0, of = 0;

	TRY(vec_new(&walls, table_count(t), err));
	TRY(vec_new(&s->walls, table_count(t), err));
	size_t n = take_steps(t, s->walls);
	for (size_t i = 0; i < n; i++) {
		struct diff_wall step = s->walls[i];

		sum += step.wall_ns;
		of++;
		if (i + 1 < n && !sort_compare(&step, &s->walls[i + 1], by_time))
			continue;
		step.wall_ns = walls[count] = sum / (double)of;
		s->walls[count++] = step;
		sum = 0;
		of = 0;
	}
	s->series = diff_series(walls, count);
	return ST_OK;
}

static enum status side_take(struct diff_side *s, struct tables *all, struct error *err)
{
	struct table *inputs = tables_find(all, "inputs");

	TRY(take_series(s, all, err));
	s->path = table_count(inputs) ? table_at(inputs, 0)[0].text : "";
	s->inputs = table_count(inputs);
	s->ranks = table_count(tables_find(all, "ranks"));
	s->gpus = table_count(tables_find(all, "gpus"));
	s->steps = tables_sum(all, "ranks", "complete_steps");
	s->window_steps = tables_sum(all, "ranks", "window_steps");
	s->mean_ns = s->series.count ? (int64_t)llround(s->series.mean) : 0;
	uint64_t summed = tables_sum(all, "steps_summed", "counted");
	if (summed) { /* the mean is over all steps, its error only over those with rows */
		s->mean_ns = (int64_t)(tables_sum(all, "step_stats", "sum_ns") /
				       tables_sum(all, "step_stats", "counted"));
		s->series.mean = (double)s->mean_ns;
	}
	s->deviation_ns = s->series.deviation;
	s->correlation = s->series.correlation;
	s->effective_steps = s->series.effective;
	s->sampled = tables_any(all, "trust", "sampled");
	s->damaged = tables_sum(all, "inputs", "unread_bytes") > 0;
	return ST_OK;
}

int64_t diff_mean(const struct diff_side *s, uint64_t ns)
{
	uint64_t steps = s->window_steps ? s->window_steps : s->ranks ? s->ranks : 1;
	__extension__ unsigned __int128 whole = (unsigned __int128)ns * s->ranks;
	__extension__ unsigned __int128 of = (unsigned __int128)steps * s->gpus;

	return of ? (int64_t)((whole + of / 2) / of) : 0;
}

/* ---- parts ------------------------------------------------------------------------------ */

static bool is_work(const char *class)
{
	return !strcmp(class, "compute") || !strncmp(class, "exposed_", 8);
}

void diff_times_add(struct diff_times *to, const struct diff_times *more)
{
	to->a_ns += more->a_ns;
	to->b_ns += more->b_ns;
	to->difference_ns += more->difference_ns;
}

/* Makes the parts of the sorted owners, and keeps only owners that are work. */
static void parts_take(struct diff *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->owner_count; i++) {
		const struct diff_row o = d->owners[i];
		struct diff_part *p = d->part_count ? &d->parts[d->part_count - 1] : NULL;
		bool work = is_work(o.class);

		if (!p || strcmp(p->class, o.class) != 0 ||
		    (work ? strcmp(p->phase, o.phase) : strcmp(p->cause, o.name)) != 0) {
			p = &d->parts[d->part_count++];
			*p = (struct diff_part){ .class = o.class,
						 .phase = work ? o.phase : NULL,
						 .cause = work ? NULL : o.name };
		}
		diff_times_add(&p->ns, &o.ns);
		if (work)
			d->owners[kept++] = o;
	}
	d->owner_count = kept;
}

enum status diff_make(struct diff *d, struct tables *a, struct tables *b, double fail_over,
		      struct error *err)
{
	static const char *const owned[] = { "class", "phase", "name", NULL };

	*d = (struct diff){ .fail_over = fail_over };
	TRY(side_take(&d->a, a, err));
	TRY(side_take(&d->b, b, err));
	d->estimate = diff_estimate(&d->a.series, &d->b.series, fail_over);
	TRY(diff_rows_take(d, a, b, "owned", owned, &d->owners, &d->owner_count, err));
	TRY(vec_new(&d->parts, d->owner_count + 1, err));
	parts_take(d);
	/* The closing part: windows are longer than their steps, or steps were left out. */
	struct diff_part *rest = &d->parts[d->part_count];

	for (size_t i = 0; i < d->part_count; i++)
		d->parts[i].ns.size_ns = llabs(d->parts[i].ns.difference_ns);
	SORT_BY(d->parts, d->part_count, DOWN(struct diff_part, ns.size_ns),
		UP(struct diff_part, class), UP(struct diff_part, phase),
		UP(struct diff_part, cause));
	diff_rows_sort(d->owners, d->owner_count);
	for (size_t i = 0; i < d->part_count; i++) {
		d->a.window_ns += d->parts[i].ns.a_ns;
		d->b.window_ns += d->parts[i].ns.b_ns;
	}
	*rest = (struct diff_part){ .class = "outside_steps" };
	rest->ns.a_ns = d->a.mean_ns - d->a.window_ns;
	rest->ns.b_ns = d->b.mean_ns - d->b.window_ns;
	rest->ns.difference_ns = rest->ns.b_ns - rest->ns.a_ns;
	d->part_count++;
	diff_unlikes_take(d, a, b);
	TRY(diff_places_take(d, a, b, err));
	TRY(diff_edits_take(d, a, b, err));
	return diff_steps_take(d, err);
}

void diff_release(struct diff *d)
{
	free(d->parts);
	free(d->owners);
	free(d->places);
	free(d->model);
	free(d->steps);
	free(d->a.walls);
	free(d->b.walls);
}

/* ---- words ------------------------------------------------------------------------------ */

const char *diff_verdict_word(enum diff_verdict verdict)
{
	static const char *const words[] = {
		[DIFF_SLOWER] = "slower",           [DIFF_LITTLE_SLOWER] = "slower_below_fail_over",
		[DIFF_SAME] = "no_difference",      [DIFF_FASTER] = "faster",
		[DIFF_CANNOT_TELL] = "cannot_tell",
	};

	return words[verdict];
}

static void cannot_tell(const struct diff *d, char out[DIFF_SENTENCE])
{
	const struct diff_estimate *e = &d->estimate;
	char count[NUMBER_TEXT];

	if (!d->a.series.count || !d->b.series.count)
		snprintf(out, DIFF_SENTENCE, "Cannot tell: %s has no complete step.",
			 d->a.series.count ? "B" : "A");
	else if (!isfinite(e->half))
		snprintf(out, DIFF_SENTENCE,
			 "Cannot tell: %zu and %zu steps are too few to know how much steps vary.",
			 d->a.series.count, d->b.series.count);
	else if (!(e->needed > 0) || e->needed > 1e12)
		snprintf(out, DIFF_SENTENCE, "Cannot tell: steps vary too much.");
	else
		snprintf(out, DIFF_SENTENCE,
			 "Cannot tell: steps vary too much for a difference of %.3g %%; it needs "
			 "about %s steps of each.",
			 100 * d->fail_over, count_text(count, (uint64_t)e->needed));
}

void diff_sentence(const struct diff *d, char out[DIFF_SENTENCE])
{
	const struct diff_estimate *e = &d->estimate;
	double whole = d->a.series.mean / 100;
	bool slower = e->difference > 0;

	if (e->verdict == DIFF_CANNOT_TELL) {
		cannot_tell(d, out);
		return;
	}
	if (e->verdict == DIFF_SAME) {
		snprintf(out, DIFF_SENTENCE,
			 "No difference: %+.2f %% of A's step time, within the interval of "
			 "\xc2\xb1%.2f %%.",
			 e->difference / whole, e->half / whole);
		return;
	}
	snprintf(out, DIFF_SENTENCE, "B is %s by %.2f %% of A's step time, \xc2\xb1%.2f %%%s%s.",
		 slower ? "slower" : "faster", fabs(e->difference) / whole, e->half / whole,
		 e->is_paired ? ", step by step" : "",
		 !slower                     ? ""
		 : e->verdict == DIFF_SLOWER ? ": at or over --fail-over"
					     : ": below --fail-over");
}
