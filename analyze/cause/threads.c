/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/cause/threads.h"

#include "schemas/base/vec.h"

#include <string.h>

/* Up to these, vec_reserve() doubles; the mask of the ring of frames needs a power of two. */
enum { FRAMES_MAX = 1 << 16, CALLS_MAX = 1 << 16 };

/* ---- spans ------------------------------------------------------------------------------ */

static void spans_reach(struct spans *s, size_t from)
{
	uint64_t reach_ns = from ? s->items[from - 1].reach_ns : 0;

	for (size_t i = from; i < s->count; i++) {
		if (s->items[i].end_ns > reach_ns)
			reach_ns = s->items[i].end_ns;
		s->items[i].reach_ns = reach_ns;
	}
}

static void spans_drop(struct spans *s, uint64_t ended_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].end_ns > ended_ns)
			s->items[kept++] = s->items[i];
	s->count = kept;
	spans_reach(s, 0);
}

/* Makes space for one more: first drops spans that are not needed, then grows up to k->most, then
 * drops the older half. */
static enum status spans_reserve(struct spans *s, struct keep *k, struct error *err)
{
	if (s->count < s->cap)
		return ST_OK;
	spans_drop(s, k->unsettled_ns);
	if (s->count < s->cap / 2)
		return ST_OK;
	if (s->cap < k->most)
		return vec_reserve(&s->items, &s->cap, s->cap + 1, err);
	if (s->count < s->cap)
		return ST_OK;
	uint64_t cut_ns = s->items[s->count / 2].begin_ns;
	spans_drop(s, cut_ns);
	if (s->count == s->cap) { /* none has ended: drop those that end first */
		cut_ns = s->items[s->count / 2].reach_ns;
		spans_drop(s, cut_ns);
	}
	if (cut_ns > k->forgotten_ns)
		k->forgotten_ns = cut_ns;
	return ST_OK;
}

/* Orders by begin; then the longer one; then the one that counts for all gaps. */
static bool span_before(const struct span *a, const struct span *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns;
	return a->end_ns != b->end_ns ? a->end_ns > b->end_ns : a->since_ns < b->since_ns;
}

enum status spans_put(struct spans *s, const struct span *one, struct keep *k, struct error *err)
{
	size_t at = s->count;

	if (one->begin_ns >= one->end_ns || one->end_ns <= k->unsettled_ns)
		return ST_OK;
	if (!one->since_ns && at && one->end_ns <= s->items[at - 1].reach_ns &&
	    s->items[at - 1].begin_ns <= one->begin_ns && !s->items[at - 1].since_ns &&
	    s->items[at - 1].end_ns >= one->end_ns)
		return ST_OK;
	TRY(spans_reserve(s, k, err));
	at = s->count;
	while (at && span_before(one, &s->items[at - 1]))
		at--;
	memmove(s->items + at + 1, s->items + at, (s->count - at) * sizeof(*s->items));
	s->items[at] = *one;
	s->count++;
	spans_reach(s, at);
	return ST_OK;
}

/* ---- ranges ----------------------------------------------------------------------------- */

static inline void ranges_append(struct ranges *r, struct range one)
{
	uint32_t outer = (uint32_t)r->count;

	while (outer && r->items[outer - 1].end_ns <= one.end_ns)
		outer = r->items[outer - 1].outer;
	one.outer = outer;
	r->items[r->count++] = one;
}

static void ranges_drop(struct ranges *r, uint64_t ended_ns)
{
	size_t count = r->count;

	r->count = 0;
	for (size_t i = 0; i < count; i++)
		if (r->items[i].end_ns > ended_ns)
			ranges_append(r, r->items[i]);
}

static enum status ranges_reserve(struct ranges *r, struct keep *k, struct error *err)
{
	if (r->count < r->cap)
		return ST_OK;
	ranges_drop(r, k->unsettled_ns);
	if (r->count < r->cap / 2)
		return ST_OK;
	if (r->cap < k->most)
		return vec_reserve(&r->items, &r->cap, r->cap + 1, err);
	if (r->count < r->cap)
		return ST_OK;
	uint64_t cut_ns = r->items[r->count / 2].begin_ns;
	ranges_drop(r, cut_ns);
	if (r->count == r->cap)
		r->count = 0;
	return ST_OK;
}

enum status ranges_put(struct ranges *r, struct range one, struct keep *k, struct error *err)
{
	if (one.begin_ns >= one.end_ns || one.end_ns <= k->unsettled_ns)
		return ST_OK;
	TRY(ranges_reserve(r, k, err));
	ranges_append(r, one);
	return ST_OK;
}

const struct range *ranges_find(const struct ranges *r, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t half_ns = (end_ns - begin_ns) / 2, middle_ns = begin_ns + half_ns;
	size_t end; /* after the last range that begins by the middle */

	SEARCH(end, 0, r->count, r->items[end].begin_ns <= middle_ns);
	while (end) {
		const struct range *one = &r->items[end - 1];
		uint64_t from_ns = one->begin_ns > begin_ns ? one->begin_ns : begin_ns;
		uint64_t to_ns = one->end_ns < end_ns ? one->end_ns : end_ns;

		if (to_ns > from_ns && to_ns - from_ns > half_ns)
			return one;
		/* A range that ends by the middle hides only ranges that also end by then. */
		end = one->end_ns <= middle_ns ? one->outer : end - 1;
	}
	return NULL;
}

/* ---- calls whose work may be missing ----------------------------------------------------- */

enum status kernel_calls_put(struct kernel_calls *a, const struct kernel_call *call,
			     struct error *err)
{
	if (a->count == a->cap && a->cap >= CALLS_MAX && a->head < a->cap / 2)
		a->head = a->cap / 2;
	if (a->count == a->cap && a->head) {
		a->count -= a->head;
		memmove(a->items, a->items + a->head, a->count * sizeof(*a->items));
		a->head = 0;
	}
	TRY(vec_reserve(&a->items, &a->cap, a->count + 1, err));
	a->items[a->count++] = *call;
	return ST_OK;
}

void kernel_calls_note_work(struct kernel_calls *a, uint64_t begin_ns, uint32_t track,
			    uint64_t correlation)
{
	size_t at;

	SEARCH(at, a->head, a->count, a->items[at].begin_ns < begin_ns);
	for (; at < a->count && a->items[at].begin_ns == begin_ns; at++)
		a->items[at].has_work |=
			a->items[at].track == track && a->items[at].correlation == correlation;
}

const struct kernel_call *kernel_calls_find(struct kernel_calls *a, uint64_t after_ns,
					    uint64_t before_ns, const struct kernel_call **lost)
{
	const struct kernel_call *first = NULL, *one;

	*lost = NULL;
	while (a->head < a->count && a->items[a->head].begin_ns <= after_ns)
		a->head++;
	for (size_t i = a->head; i < a->count && a->items[i].begin_ns < before_ns; i++) {
		one = &a->items[i];
		if (!first || one->end_ns < first->end_ns)
			first = one;
		if (!one->has_work && (!*lost || one->end_ns < (*lost)->end_ns))
			*lost = one;
	}
	return first;
}

/* ---- frames of launches ----------------------------------------------------------------- */

enum status frames_put(struct frames *f, const struct call_frame *one, struct error *err)
{
	if (f->count == f->cap && f->cap < FRAMES_MAX)
		TRY(vec_reserve(&f->items, &f->cap, f->count + 1, err));
	if (f->count == f->cap)
		f->first = (f->first + 1) & (f->cap - 1);
	else
		f->count++;
	f->items[(f->first + f->count - 1) & (f->cap - 1)] = *one;
	return ST_OK;
}

static const struct call_frame *frame_at(const struct frames *f, size_t at)
{
	return &f->items[(f->first + at) & (f->cap - 1)];
}

uint32_t frames_find(const struct frames *f, uint64_t begin_ns, uint64_t correlation)
{
	size_t at;

	SEARCH(at, 0, f->count, frame_at(f, at)->begin_ns < begin_ns);
	for (; at < f->count && frame_at(f, at)->begin_ns == begin_ns; at++)
		if (frame_at(f, at)->correlation == correlation)
			return frame_at(f, at)->python;
	return 0;
}
