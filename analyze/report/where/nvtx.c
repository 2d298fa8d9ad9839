/* SPDX-License-Identifier: Apache-2.0 */
/* The report `nvtx`: annotations, phases and NVTX ranges projected to GPUs (DEFINITIONS.md 8): the
 * time from the first begin to the last end of the GPU work launched in a range. That work often
 * comes after the range has ended, so recent ranges of each thread are kept, each with the one
 * around it. */
#include "analyze/engine/report.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

#define NVTX_COLUMNS(X)                                                                            \
	X(NVTX_NAME = RANK_KEYS, "name", "range", TEXT, KEY, "name of the range, as in the file")  \
	X(NVTX_CALLS, "calls", "calls", U64, SUM, "ranges that began")                             \
	X(NVTX_HOST, "host_ns", "host", U64, SUM, "total duration of the ranges")                  \
	X(NVTX_WORKS, "works", "GPU works", U64, SUM, "GPU events launched in ranges")             \
	X(NVTX_GPU, "gpu_ns", "GPU", U64, SUM, "GPU time of ranges, overlaps counted twice")       \
	X(NVTX_PROJECTED, "projected_ns", "projected", U64, SUM,                                   \
	  "time from the begin of a range's first GPU work to the end of its last, summed")        \
	X(NVTX_LONGEST, "longest_ns", "longest", U64, MAX, "longest projected time of a range")
static RANK_TABLE(nvtx, &table_ranks, NVTX_COLUMNS, .by = "projected_ns");

enum {
	RANGES_KEPT = 1 << 16, /* per thread; GPU work may come so many ranges after its launch */
	NONE = UINT32_MAX,
};

struct nvtx_range {
	uint64_t begin_ns, end_ns, first_ns, last_ns; /* of its GPU work; last_ns 0: none yet */
	union value *row;                             /* row of its name */
	uint32_t above; /* number of the enclosing range in the thread; NONE */
};
struct nvtx_thread {
	struct nvtx_range *ranges; /* in order; ranges[0] has number `first` */
	size_t count, cap;
	uint32_t first, innermost; /* innermost: latest range that may be open; NONE */
};
struct nvtx {
	struct name_rows rows;
	struct nvtx_thread *threads; /* by track */
	size_t thread_count;
};

static struct nvtx_range *range_at(struct nvtx_thread *t, uint32_t number)
{
	return number == NONE || number < t->first ? NULL : &t->ranges[number - t->first];
}

/* Adds up and drops the oldest `count` ranges, which get no more work. */
static void ranges_close(struct nvtx_thread *t, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct nvtx_range *r = &t->ranges[i];

		if (!r->last_ns)
			continue;
		r->row[NVTX_PROJECTED].u64 += r->last_ns - r->first_ns;
		cell_raise(&r->row[NVTX_LONGEST], r->last_ns - r->first_ns);
	}
	t->count -= count;
	if (t->count)
		memmove(t->ranges, t->ranges + count, t->count * sizeof(*t->ranges));
	t->first += (uint32_t)count;
}

static enum status put_range(struct accumulator *f, const struct event *e, struct error *err)
{
	struct nvtx *s = f->state;
	union value keys[NVTX_CALLS], **row;

	if (!acc_wants(f, acc_process(f, e->track)))
		return ST_OK;
	TRY(acc_name_row(f, &s->rows, e, &row, err));
	keys[NVTX_NAME].text = trace_text(f->trace, e->name, NULL);
	if (!*row)
		TRY(acc_bounded_row(f, "nvtx", s->rows.process, keys, NVTX_NAME, row, err));
	(*row)[NVTX_CALLS].u64 += !(e->flags & EVENT_BEGAN_EARLIER);
	(*row)[NVTX_HOST].u64 += e->end_ns - e->begin_ns;
	TRY(vec_reserve(&s->threads, &s->thread_count, (size_t)e->track + 1, err));
	struct nvtx_thread *t = &s->threads[e->track];
	const struct nvtx_range *above = t->count ? range_at(t, t->innermost) : NULL;
	while (above && above->end_ns <= e->begin_ns)
		above = range_at(t, above->above);
	uint32_t outer = above ? (uint32_t)(above - t->ranges) + t->first : NONE;
	if (t->count == RANGES_KEPT)
		ranges_close(t, RANGES_KEPT / 2);
	TRY(vec_reserve(&t->ranges, &t->cap, t->count + 1, err));
	t->innermost = t->first + (uint32_t)t->count;
	t->ranges[t->count++] = (struct nvtx_range){
		.begin_ns = e->begin_ns, .end_ns = e->end_ns, .row = *row, .above = outer
	};
	return ST_OK;
}

static bool is_inside(struct nvtx_thread *t, const struct nvtx_range *r)
{
	for (const struct nvtx_range *c = range_at(t, r->above); c; c = range_at(t, c->above))
		if (c->row == r->row)
			return true;
	return false;
}

static void put_work(struct accumulator *f, const struct event *e)
{
	struct nvtx *s = f->state;
	const struct launch *l = batch_launch(f->batch, e);
	struct nvtx_thread *t = l && l->track < s->thread_count ? &s->threads[l->track] : NULL;
	size_t at;

	SEARCH(at, 0, t ? t->count : 0, t->ranges[at].begin_ns <= l->begin_ns);
	struct nvtx_range *r = at ? &t->ranges[at - 1] : NULL;
	for (; r; r = range_at(t, r->above)) {
		if (r->end_ns <= l->begin_ns)
			continue;
		if (!r->last_ns || e->begin_ns < r->first_ns)
			r->first_ns = e->begin_ns;
		if (e->end_ns > r->last_ns)
			r->last_ns = e->end_ns;
		if (is_inside(t, r)) /* counted by the outer one of that name */
			continue;
		r->row[NVTX_WORKS].u64 += !(e->flags & EVENT_BEGAN_EARLIER);
		r->row[NVTX_GPU].u64 += e->end_ns - e->begin_ns;
	}
}

static enum status nvtx_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		if (event_is_gpu_work(e))
			put_work(f, e);
		else if (e->kind == KIND_RANGE && e->end_ns > e->begin_ns &&
			 (e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX ||
			  e->subkind == RANGE_PHASE))
			TRY(put_range(f, e, err));
	}
	return ST_OK;
}

static enum status nvtx_end(struct accumulator *f, struct error *err)
{
	struct nvtx *s = f->state;

	(void)err;
	for (size_t i = 0; i < s->thread_count; i++)
		ranges_close(&s->threads[i], s->threads[i].count);
	return ST_OK;
}

static void nvtx_release(struct accumulator *f)
{
	struct nvtx *s = f->state;

	for (size_t i = 0; i < s->thread_count; i++)
		free(s->threads[i].ranges);
}

const struct report_type report_nvtx = {
	.name = "nvtx",
	.help = "annotations and NVTX ranges, and the GPU time from their first to their last work",
	.tables = TABLES(&table_nvtx),
	.state_size = sizeof(struct nvtx),
	.owned = OWNED(offsetof(struct nvtx, threads), offsetof(struct nvtx, rows.rows)),
	.put = nvtx_put,
	.end = nvtx_end,
	.release = nvtx_release,
};
