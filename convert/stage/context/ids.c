/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids.c - measures the range of the correlation ids of a process, in bounded memory.
 *
 * Ids that differ only in their lowest `shift` bits form a run, of which the lowest and the highest
 * id are kept.  If there are too many runs, `shift` grows by one.  So the final runs depend only on
 * the ids, not on their order.
 */
#include "convert/stage/context/internal.h"

#include "schemas/base/vec.h"
#include "schemas/base/sort.h"

#include <stdlib.h>
#include <string.h>

enum {
	RUNS_MAX = 512,
	STRAYS_LEAST = 4,    /* the range excludes at least this many of the largest gaps, ... */
	IDS_PER_STRAY = 256, /* ... and one more for this many ids */
};

/* Ignores one more bit and joins the runs that have become equal. */
static void runs_join(struct id_set *s)
{
	size_t kept = 0;

	s->shift++;
	for (size_t i = 1; i < s->count; i++) {
		if (s->runs[i].low >> s->shift == s->runs[kept].low >> s->shift)
			s->runs[kept].high = s->runs[i].high;
		else
			s->runs[++kept] = s->runs[i];
	}
	s->count = kept + 1;
}

enum status id_set_add(struct id_set *s, uint64_t id, struct error *err)
{
	size_t at = s->near;
	struct id_run *run;

	if (at >= s->count || s->runs[at].low >> s->shift != id >> s->shift) {
		SEARCH(at, 0, s->count, s->runs[at].low >> s->shift < id >> s->shift);
	}
	if (at == s->count || s->runs[at].low >> s->shift != id >> s->shift) {
		TRY(vec_reserve(&s->runs, &s->cap, s->count + 1, err));
		memmove(s->runs + at + 1, s->runs + at, (s->count - at) * sizeof(*s->runs));
		s->runs[at] = (struct id_run){ id, id };
		s->count++;
		while (s->count > RUNS_MAX)
			runs_join(s);
		return ST_OK;
	}
	run = &s->runs[s->near = at];
	run->low = id < run->low ? id : run->low;
	run->high = id > run->high ? id : run->high;
	return ST_OK;
}

uint64_t id_set_range(const struct id_set *s, uint64_t ids)
{
	uint64_t gaps[RUNS_MAX], range = s->count ? 1 : 0;
	uint64_t strays = STRAYS_LEAST + ids / IDS_PER_STRAY;
	size_t count = s->count ? s->count - 1 : 0;

	for (size_t i = 0; i < s->count; i++)
		range += s->runs[i].high - s->runs[i].low;
	for (size_t i = 0; i < count; i++)
		gaps[i] = s->runs[i + 1].low - s->runs[i].high;
	qsort(gaps, count, sizeof(*gaps), compare_u64);
	for (size_t i = 0; i < count; i++)
		range += count - i <= strays ? 1 : gaps[i];
	return range;
}
