/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/diff/diff.h"

#include "analyze/report/shared.h"
#include "analyze/report/report_list.h"
#include "schemas/base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const struct report_type *const diff_reports[] = { &report_summary, &report_steps, &report_idle,
						   &report_attribution, NULL };

/* ---- the series of steps ---------------------------------------------------------------- */

struct timed {
	/* occurrence: several windows may begin with the same number */
	uint64_t number, occurrence;
	uint64_t wall_ns;
};

static const struct sort_key by_time[] = { UP(struct timed, occurrence),
					   UP(struct timed, number),
					   { .type = SORT_NONE } };

static bool same_step(struct table *t, size_t i, size_t k)
{
	const union value *a = table_at(t, i), *b = table_at(t, k);

	return a[0].u64 == b[0].u64 && a[1].text == b[1].text && a[2].u64 == b[2].u64 &&
	       a[RANK_KEYS].u64 == b[RANK_KEYS].u64;
}

static size_t take_steps(struct table *t, struct timed *all)
{
	size_t wall = table_column(t, "wall_ns"), counted = table_column(t, "counted"), i, n = 0;
	size_t flags = table_column(t, "flags");
	uint64_t occurrence = 0;

	for (i = 0; i < table_count(t); i++) {
		const union value *row = table_at(t, i);

		occurrence = i && same_step(t, i - 1, i) ? occurrence + 1 : 0;
		/* In a long run every Nth step represents all; the kept longest ones would not. */
		if (row[counted].u64 == 1 && !(row[flags].text && strstr(row[flags].text, "extra")))
			all[n++] = (struct timed){ row[RANK_KEYS].u64, occurrence, row[wall].u64 };
	}
	sort_rows(all, n, sizeof(*all), by_time);
	return n;
}

/* Reads one value for each step of the job. Ranks step together, so their steps are not independent
 * observations. */
static enum status take_series(struct diff_side *s, struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "steps");
	struct timed *steps = calloc(table_count(t) + 1, sizeof(*steps));
	double *walls = calloc(table_count(t) + 1, sizeof(*walls)), sum = 0;
	s->walls = calloc(table_count(t) + 1, sizeof(*s->walls));
	size_t count = 0, n, i, of = 0;

	if (!steps || !walls || !s->walls) {
		free(steps);
		free(walls);
		return fail_memory(err);
	}
	n = take_steps(t, steps);
	for (i = 0; i < n; i++) {
		sum += (double)steps[i].wall_ns;
		of++;
		if (i + 1 < n && !sort_compare(&steps[i], &steps[i + 1], by_time))
			continue;
		walls[count] = sum / (double)of;
		s->walls[count] =
			(struct diff_wall){ steps[i].number, steps[i].occurrence, walls[count] };
		count++;
		sum = 0;
		of = 0;
	}
	s->series = diff_series(walls, count);
	free(steps);
	free(walls);
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

static const struct sort_key by_owner[] = { UP(struct diff_owner, class),
					    UP(struct diff_owner, phase),
					    UP(struct diff_owner, name),
					    { .type = SORT_NONE } };

/* Lists the owners of one side with their time over all steps. */
static size_t take_owned(struct tables *all, bool is_b, struct diff_owner *out)
{
	struct table *t = tables_find(all, "owned");
	size_t i;

	for (i = 0; i < table_count(t); i++) {
		const union value *row = table_at(t, i);
		const char *phase = row[ATTRIBUTION_PHASE].text, *name = row[ATTRIBUTION_NAME].text;

		out[i] = (struct diff_owner){ .class = row[ATTRIBUTION_CLASS].text,
					      .phase = phase ? phase : "",
					      .name = name ? name : "" };
		*(is_b ? &out[i].ns.b_ns : &out[i].ns.a_ns) = (int64_t)row[ATTRIBUTION_NS].u64;
	}
	return i;
}

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

/* Adds up the ranks of each owner, which are adjacent. */
static void owners_take(struct diff *d, const struct diff_owner *all, size_t count)
{
	uint64_t ns[2] = { 0, 0 };

	for (size_t i = 0; i < count; i++) {
		struct diff_owner o = all[i];

		ns[0] += (uint64_t)o.ns.a_ns;
		ns[1] += (uint64_t)o.ns.b_ns;
		if (i + 1 < count && !sort_compare(&all[i], &all[i + 1], by_owner))
			continue;
		o.ns.a_ns = diff_mean(&d->a, ns[0]);
		o.ns.b_ns = diff_mean(&d->b, ns[1]);
		o.ns.difference_ns = o.ns.b_ns - o.ns.a_ns;
		o.ns.size_ns = llabs(o.ns.difference_ns);
		ns[0] = ns[1] = 0;
		/* Owners are sorted, so the part is the last one, or a new one. */
		bool work = is_work(o.class);
		struct diff_part *p = d->part_count ? &d->parts[d->part_count - 1] : NULL;

		if (!p || strcmp(p->class, o.class) != 0 ||
		    (work ? strcmp(p->phase, o.phase) : strcmp(p->cause, o.name)) != 0) {
			p = &d->parts[d->part_count++];
			*p = (struct diff_part){ .class = o.class,
						 .phase = work ? o.phase : NULL,
						 .cause = work ? NULL : o.name };
		}
		diff_times_add(&p->ns, &o.ns);
		if (is_work(o.class))
			d->owners[d->owner_count++] = o;
	}
}

enum status diff_make(struct diff *d, struct tables *a, struct tables *b, double fail_over,
		      struct error *err)
{
	size_t count = table_count(tables_find(a, "owned")) + table_count(tables_find(b, "owned"));
	struct diff_owner *all;

	*d = (struct diff){ .fail_over = fail_over };
	TRY(side_take(&d->a, a, err));
	TRY(side_take(&d->b, b, err));
	d->estimate = diff_estimate(&d->a.series, &d->b.series, fail_over);
	all = calloc(count + 1, sizeof(*all));
	d->parts = calloc(count + 1, sizeof(*d->parts));
	d->owners = calloc(count + 1, sizeof(*d->owners));
	if (!all || !d->parts || !d->owners) {
		free(all);
		return fail_memory(err);
	}
	count = take_owned(a, false, all);
	count += take_owned(b, true, all + count);
	sort_rows(all, count, sizeof(*all), by_owner);
	owners_take(d, all, count);
	free(all);
	/* The closing part: windows are longer than their steps, or steps were left out. */
	struct diff_part *rest = &d->parts[d->part_count];

	for (size_t i = 0; i < d->part_count; i++)
		d->parts[i].ns.size_ns = llabs(d->parts[i].ns.difference_ns);
	SORT_BY(d->parts, d->part_count, DOWN(struct diff_part, ns.size_ns),
		UP(struct diff_part, class), UP(struct diff_part, phase),
		UP(struct diff_part, cause));
	SORT_BY(d->owners, d->owner_count, DOWN(struct diff_owner, ns.size_ns),
		UP(struct diff_owner, class), UP(struct diff_owner, phase),
		UP(struct diff_owner, name));
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
	d->places = d->model = NULL;
	d->steps = NULL;
	d->a.walls = d->b.walls = NULL;
	d->parts = NULL;
	d->owners = NULL;
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
