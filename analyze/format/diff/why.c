/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the difference between A and B: what was run and recorded, which steps changed, and
 * where GPUs wait. */
#include "analyze/format/diff/diff.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- settings that differ --------------------------------------------------------------- */

/* Adds a value to a list such as "A100, H100", unless the list contains it. */
static void value_add(char list[DIFF_VALUES], const char *value)
{
	size_t len = strlen(list), value_len = strlen(value);
	const char *at = list;

	while ((at = strstr(at, value))) {
		const char *end = at + value_len;

		if ((at == list || at[-1] == ' ') && (!*end || *end == ','))
			return;
		at = end;
	}
	snprintf(list + len, DIFF_VALUES - len, "%s%s", len ? ", " : "", value);
}

static void values_take(struct tables *all, const char *table, const char *what,
			char list[DIFF_VALUES])
{
	struct table *t = tables_find(all, table);
	size_t value = t ? table_column(t, what ? "value" : "name") : 0;
	size_t key = t && what ? table_column(t, "what") : 0;
	const union value *row;

	list[0] = '\0';
	for (size_t i = 0; (row = table_at(t, i)); i++)
		if (row[value].text && (!what || !strcmp(row[key].text, what)))
			value_add(list, row[value].text);
}

void diff_unlikes_take(struct diff *d, struct tables *a, struct tables *b)
{
	static const struct {
		const char *table, *key, *what;
	} asked[DIFF_UNLIKES] = {
		{ "gpus", NULL, "GPUs" },
		{ "recording", "command", "command line" },
		{ "recording", "recorder", "recorder" },
		{ "recording", "recorded", "recording options" },
	};

	for (size_t i = 0; i < DIFF_UNLIKES; i++) {
		struct diff_unlike *one = &d->unlikes[d->unlike_count];

		one->what = asked[i].what;
		values_take(a, asked[i].table, asked[i].key, one->a);
		values_take(b, asked[i].table, asked[i].key, one->b);
		/* a profile has only the process's name, a log also its arguments */
		bool is_told = strcmp(one->what, "command line") != 0 ||
			       (strchr(one->a, ' ') && strchr(one->b, ' '));
		d->unlike_count += is_told && strcmp(one->a, one->b) != 0;
	}
}

/* ---- steps ------------------------------------------------------------------------------ */

/* Marks steps that changed by more than all others, and by enough to matter. */
static enum status apart_take(struct diff *d, struct error *err)
{
	RELEASED_BY(vec_release) uint64_t *sizes = NULL;
	int64_t least = 0, median;

	TRY(vec_new(&sizes, d->step_count, err));
	for (size_t i = 0; i < d->step_count; i++)
		if (!i || d->steps[i].ns.difference_ns < least)
			least = d->steps[i].ns.difference_ns;
	for (size_t i = 0; i < d->step_count; i++)
		sizes[i] = (uint64_t)(d->steps[i].ns.difference_ns - least);
	median = least + (int64_t)median_u64(sizes, d->step_count);
	for (size_t i = 0; i < d->step_count; i++) {
		d->steps[i].ns.size_ns = llabs(d->steps[i].ns.difference_ns - median);
		sizes[i] = (uint64_t)d->steps[i].ns.size_ns;
	}
	double usual = 3 * median_u64(sizes, d->step_count);
	for (size_t i = 0; i < d->step_count && d->step_count > 2; i++) {
		double size = (double)d->steps[i].ns.size_ns;

		d->steps[i].is_apart = size > usual && size > d->estimate.limit;
	}
	return ST_OK;
}

enum status diff_steps_take(struct diff *d, struct error *err)
{
	RELEASED_BY(vec_release) double *differences = NULL;
	/* Both sides' steps in one order: (occurrence, number). */
	const struct diff_wall *a = d->a.walls, *b = d->b.walls;
	const struct diff_wall *a_end = a + d->a.series.count, *b_end = b + d->b.series.count;

	TRY(vec_new(&d->steps, d->a.series.count, err));
	while (a < a_end && b < b_end) {
		bool a_first = a->occurrence != b->occurrence ? a->occurrence < b->occurrence
							      : a->number < b->number;

		if (a->occurrence == b->occurrence && a->number == b->number) {
			struct diff_step *s = &d->steps[d->step_count++];

			s->number = a->number;
			s->ns.a_ns = llround((a++)->wall_ns);
			s->ns.b_ns = llround((b++)->wall_ns);
			s->ns.difference_ns = s->ns.b_ns - s->ns.a_ns;
		} else if (a_first) {
			a++;
		} else {
			b++;
		}
	}
	TRY(vec_new(&differences, d->step_count, err));
	for (size_t i = 0; i < d->step_count; i++)
		differences[i] = (double)d->steps[i].ns.difference_ns;
	struct diff_series series = diff_series(differences, d->step_count);
	if (d->step_count == d->a.series.count && d->step_count == d->b.series.count)
		diff_pair(&d->estimate, &series);
	return d->step_count ? apart_take(d, err) : ST_OK;
}

/* ---- where GPUs wait -------------------------------------------------------------------- */

static const struct sort_key by_texts[] = { UP(struct diff_row, texts[0]),
					    UP(struct diff_row, texts[1]),
					    UP(struct diff_row, texts[2]),
					    UP(struct diff_row, texts[3]),
					    { .type = SORT_NONE } };

enum status diff_rows_take(const struct diff *d, struct tables *a, struct tables *b,
			   const char *table, const char *const texts[4], struct diff_row **out,
			   size_t *count, struct error *err)
{
	static const char prefix[] = "idle_causes.";
	struct table *const sides[] = { tables_find(a, table), tables_find(b, table) };
	const union value *row;
	size_t all = 0;

	TRY(vec_new(out, table_count(sides[0]) + table_count(sides[1]), err));
	struct diff_row *rows = *out;
	for (size_t side = 0; side < 2; side++)
		for (size_t i = 0; (row = table_at(sides[side], i)); i++) {
			struct diff_row *one = &rows[all++];
			size_t ns = table_column(sides[side], "ns");

			for (size_t k = 0; k < 4 && texts[k]; k++)
				one->texts[k] = row[table_column(sides[side], texts[k])].text;
			if (one->texts[0] && !strncmp(one->texts[0], prefix, sizeof(prefix) - 1))
				one->texts[0] += sizeof(prefix) - 1;
			*(side ? &one->ns.b_ns : &one->ns.a_ns) = (int64_t)row[ns].u64;
		}
	sort_rows(rows, all, sizeof(*rows), by_texts);
	*count = 0;
	for (size_t i = 0; i < all; i++)
		if (*count && !sort_compare(&rows[*count - 1], &rows[i], by_texts))
			diff_times_add(&rows[*count - 1].ns, &rows[i].ns);
		else
			rows[(*count)++] = rows[i];
	for (size_t i = 0; i < *count; i++) {
		struct diff_times *ns = &rows[i].ns;

		ns->a_ns = diff_mean(&d->a, (uint64_t)ns->a_ns);
		ns->b_ns = diff_mean(&d->b, (uint64_t)ns->b_ns);
		ns->difference_ns = ns->b_ns - ns->a_ns;
		ns->size_ns = llabs(ns->difference_ns);
	}
	return ST_OK;
}

void diff_rows_sort(struct diff_row *rows, size_t count)
{
	SORT_BY(rows, count, DOWN(struct diff_row, ns.size_ns), UP(struct diff_row, texts[0]),
		UP(struct diff_row, texts[1]), UP(struct diff_row, texts[2]),
		UP(struct diff_row, texts[3]));
}

enum status diff_places_take(struct diff *d, struct tables *a, struct tables *b, struct error *err)
{
	static const char *const waits[] = { "cause", "range", "python", "call" };
	static const char *const model[] = { "what", "place", NULL, NULL };

	TRY(diff_rows_take(d, a, b, "idle", waits, &d->places, &d->place_count, err));
	diff_rows_sort(d->places, d->place_count);
	TRY(diff_rows_take(d, a, b, "places", model, &d->model, &d->model_count, err));
	diff_rows_sort(d->model, d->model_count);
	return ST_OK;
}

void diff_place_text(const struct diff_row *p, char out[DIFF_PLACE])
{
	const char *range = p->range && p->range[0] ? p->range : p->call ? p->call : "";
	const char *python = p->python ? p->python : "";

	snprintf(out, DIFF_PLACE, "%s%s%s", range, range[0] && python[0] ? " at " : "", python);
}

/* ---- sentences -------------------------------------------------------------------------- */

static bool goes_along(int64_t difference_ns, const struct diff *d)
{
	return difference_ns != 0 && (difference_ns > 0) == (d->estimate.difference > 0);
}

/* Writes what has most of a part; "" if nothing in it has a name. */
static void most_of(const struct diff *d, const struct diff_part *p, char out[DIFF_PLACE])
{
	out[0] = '\0';
	for (size_t i = 0; p->phase && i < d->owner_count; i++) {
		const struct diff_row *o = &d->owners[i];

		if (strcmp(o->class, p->class) || strcmp(o->phase, p->phase) ||
		    !goes_along(o->ns.difference_ns, d))
			continue;
		snprintf(out, DIFF_PLACE, "%s", o->name);
		return;
	}
	for (size_t i = 0; p->cause && i < d->place_count; i++) {
		const struct diff_row *one = &d->places[i];

		if (strcmp(one->cause, p->cause) || !goes_along(one->ns.difference_ns, d))
			continue;
		diff_place_text(one, out);
		return;
	}
}

/* Returns the marked step that changed most; NULL: none is marked. */
static const struct diff_step *step_apart(const struct diff *d)
{
	const struct diff_step *most = NULL;

	for (size_t i = 0; i < d->step_count; i++)
		if (d->steps[i].is_apart && (!most || d->steps[i].ns.size_ns > most->ns.size_ns))
			most = &d->steps[i];
	return most;
}

void diff_reason(const struct diff *d, char out[DIFF_SENTENCE])
{
	const struct diff_step *step = step_apart(d);
	const struct diff_part *p = NULL;
	char place[DIFF_PLACE];
	size_t len = 0;

	out[0] = '\0';
	if (!d->a.series.count || !d->b.series.count)
		return;
	for (size_t i = 0; i + 1 < d->part_count && !p; i++)
		if (goes_along(d->parts[i].ns.difference_ns, d))
			p = &d->parts[i];
	if (p && !diff_is_unchanged(d, &p->ns)) {
		most_of(d, p, place);
		len += (size_t)snprintf(
			out, DIFF_SENTENCE, "Most of it: %s %s %.40s, %+.3f ms a step%s%.90s.",
			p->class, p->phase ? "in" : "by", p->phase ? p->phase : p->cause,
			(double)p->ns.difference_ns / 1e6, place[0] ? ": " : "", place);
	}
	if (step)
		snprintf(out + len, DIFF_SENTENCE - len,
			 "%sStep %llu changed unlike the others: %+.3f ms.", len ? " " : "",
			 (unsigned long long)step->number, (double)step->ns.difference_ns / 1e6);
}

bool diff_is_unchanged(const struct diff *d, const struct diff_times *ns)
{
	return (double)ns->size_ns < DIFF_UNCHANGED * (double)d->a.mean_ns;
}
