/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/perfetto/derive.h"

#include <stdlib.h>

enum {
	BIN_NS = 1000000,
	IDLE_LEAST_NS = 100000,
	WINDOW_GAP_NS = 10000000, /* shorter gaps are never between windows */
	WINDOWS_MOST = 4096,
	CALLS = 1024,
	WORKS = 2 * CALLS,
	RING_FIRST = 16,
	GPU_MEMORY_GPU = 1, /* fields of GpuMemTotalEvent */
	GPU_MEMORY_PID = 2,
	GPU_MEMORY_SIZE = 3,
};

static const struct perfetto_row time_row = {
	.form = FORM_FLAT, .on_top = true, .rank = TOP_GPU, .name = "GPU time"
};
static const struct perfetto_row busy_row = {
	.form = FORM_COUNTER, .rank = 1, .name = "GPU busy", .unit = "%"
};
static const struct perfetto_row queue_row = {
	.form = FORM_COUNTER, .rank = 2, .name = "Queue length", .unit = "count"
};
/* The rows of the host and of a GPU. */
static const struct perfetto_row allocated_rows[] = { { .form = FORM_COUNTER,
							.rank = 3,
							.is_memory = true,
							.name = "Host memory allocated",
							.unit = "bytes" },
						      { .form = FORM_COUNTER,
							.rank = 3,
							.is_memory = true,
							.name = "Memory allocated",
							.unit = "bytes" } };
static const struct perfetto_row reserved_rows[] = { { .form = FORM_COUNTER,
						       .rank = 4,
						       .is_memory = true,
						       .name = "Host memory reserved",
						       .unit = "bytes" },
						     { .form = FORM_COUNTER,
						       .rank = 4,
						       .is_memory = true,
						       .name = "Memory reserved",
						       .unit = "bytes" } };

/*
 * The amount of work that waits for a GPU: a call counts from its begin until its first work
 * begins.
 *
 * Only that begin shows that a call has work, so up to CALLS calls wait in a ring; a call that is
 * pushed out does not count.  Begins of work wait as well, and both are counted in order of time.
 * The stage `context` finds the call of all work, but not this order, and costs more.
 */
struct queued {
	uint64_t correlation, at_ns;
	uint32_t gpu; /* in a call: 0 until work of it began */
};
/* A ring whose capacity is a power of two.  Numbers of items only grow. */
struct ring {
	struct queued *items;
	uint64_t first, end;
	size_t cap;
};
struct perfetto_queue {     /* queue of a process */
	struct ring calls;  /* calls whose work has not begun */
	struct ring works;  /* begins of work that are not counted yet */
	struct map call_of; /* number of the last call in the ring, by correlation */
};

/* Names of classes, and categories by which viewers choose their colours. */
static const struct {
	const char *name, *category;
} classes[CLASS_COUNT] = {
	[CLASS_COMPUTE] = { "compute", "compute" },
	[CLASS_COMM] = { "exposed comm", "comm" },
	[CLASS_COPY] = { "exposed copy", "data" },
	[CLASS_IDLE] = { "idle", "idle" },
};

enum status perfetto_derive_init(struct perfetto_derive *d, struct perfetto_rows *rows,
				 struct error *err)
{
	const struct trace *t = rows->file->trace;

	*d = (struct perfetto_derive){ .rows = rows };
	TRY(vec_new(&d->states, rows->gpu_count + 1, err));
	TRY(vec_new(&d->memory, rows->gpu_count + rows->process_count + 2, err));
	TRY(vec_new(&d->queues, rows->process_count + 1, err));
	for (size_t i = 0; i <= rows->gpu_count; i++)
		d->states[i].class = CLASS_COUNT;
	d->total = trace_find_name(t, "total_allocated", 15);
	d->total_reserved = trace_find_name(t, "total_reserved", 14);
	return ST_OK;
}

void perfetto_derive_release(struct perfetto_derive *d)
{
	for (size_t i = 0; d->queues && i <= d->rows->process_count; i++) {
		free(d->queues[i].calls.items);
		free(d->queues[i].works.items);
		map_release(&d->queues[i].call_of);
	}
	free(d->states);
	free(d->memory);
	free(d->queues);
	*d = (struct perfetto_derive){ 0 };
}

/* ---- gauges ---- */

static enum status gauge_write(struct perfetto_derive *d, struct perfetto_gauge *g, uint64_t at_ns,
			       uint64_t value, struct error *err)
{
	if (g->any && g->last == value)
		return ST_OK;
	g->any = true;
	g->last = value;
	return perfetto_put_sample(d->rows, g->row, at_ns, (double)value, NULL, err);
}

/* Sets the count of a gauge to a new value. */
static enum status gauge_set(struct perfetto_derive *d, struct perfetto_gauge *g, uint64_t at_ns,
			     uint64_t count, struct error *err)
{
	uint64_t bin_ns = at_ns - at_ns % BIN_NS;

	if (bin_ns > g->bin_ns) {
		if (g->bin_ns)
			TRY(gauge_write(d, g, g->bin_ns, g->sum, err));
		if (g->bin_ns && bin_ns - g->bin_ns > BIN_NS)
			TRY(gauge_write(d, g, g->bin_ns + BIN_NS, g->now, err));
		g->bin_ns = bin_ns;
		g->sum = g->now;
	}
	g->now = count;
	if (count > g->sum)
		g->sum = count;
	return ST_OK;
}

static uint64_t busy_percent(const struct perfetto_gauge *g)
{
	return (g->sum + BIN_NS / 200) / (BIN_NS / 100);
}

/* Adds an interval [begin, end) in which the GPU was busy or not.  Intervals come in order and
 * without gaps. */
static enum status gauge_fill(struct perfetto_derive *d, struct perfetto_gauge *g,
			      uint64_t begin_ns, uint64_t end_ns, bool is_busy, struct error *err)
{
	if (!g->bin_ns)
		g->bin_ns = begin_ns - begin_ns % BIN_NS;
	while (begin_ns < end_ns) {
		uint64_t bin_end = g->bin_ns + BIN_NS;
		uint64_t to = end_ns < bin_end ? end_ns : bin_end;

		if (begin_ns == g->bin_ns && end_ns - begin_ns >= 2 * BIN_NS) {
			/* many equal values are written as one sample */
			TRY(gauge_write(d, g, g->bin_ns, is_busy ? 100 : 0, err));
			begin_ns = g->bin_ns += (end_ns - begin_ns) / BIN_NS * BIN_NS;
			continue;
		}
		g->sum += is_busy ? to - begin_ns : 0;
		begin_ns = to;
		if (to < bin_end)
			break;
		TRY(gauge_write(d, g, g->bin_ns, busy_percent(g), err));
		g->bin_ns = bin_end;
		g->sum = 0;
	}
	return ST_OK;
}

/* ---- the queue ---- */

static struct queued *ring_at(const struct ring *r, uint64_t number)
{
	return &r->items[number & (r->cap - 1)];
}

static enum status ring_put(struct ring *r, struct queued one, struct error *err)
{
	if (r->end - r->first == r->cap) { /* items keep their numbers, but not their places */
		struct ring grown = { .first = r->first, .end = r->end };

		grown.cap = r->cap ? r->cap * 2 : RING_FIRST;
		grown.items = malloc(grown.cap * sizeof(*grown.items));
		if (!grown.items)
			return fail_memory(err);
		for (uint64_t i = r->first; i < r->end; i++)
			*ring_at(&grown, i) = *ring_at(r, i);
		free(r->items);
		*r = grown;
	}
	*ring_at(r, r->end++) = one;
	return ST_OK;
}

static enum status count_work(struct perfetto_derive *d, struct perfetto_queue *q,
			      struct error *err)
{
	const struct queued *w = ring_at(&q->works, q->works.first++);
	struct perfetto_gauge *g = &d->states[w->gpu - 1].queue;

	return gauge_set(d, g, w->at_ns, g->now ? g->now - 1 : 0, err);
}

/* Removes the oldest call from the ring.  Work that began before it is counted first. */
static enum status leave(struct perfetto_derive *d, struct perfetto_queue *q, struct error *err)
{
	uint64_t number = q->calls.first++;
	const struct queued *c = ring_at(&q->calls, number);
	const uint64_t *last = map_find(&q->call_of, c->correlation);

	if (last && *last == number)
		map_remove(&q->call_of, c->correlation);
	if (!c->gpu)
		return ST_OK;
	while (q->works.first < q->works.end &&
	       ring_at(&q->works, q->works.first)->at_ns < c->at_ns)
		TRY(count_work(d, q, err));
	struct perfetto_gauge *g = &d->states[c->gpu - 1].queue;
	return gauge_set(d, g, c->at_ns, g->now + 1, err);
}

enum status perfetto_derive_call(struct perfetto_derive *d, uint32_t process, const struct event *e,
				 struct error *err)
{
	struct perfetto_queue *q = &d->queues[process];
	uint64_t *last;

	if (q->calls.end - q->calls.first == CALLS)
		TRY(leave(d, q, err));
	last = map_put(&q->call_of, e->correlation, NULL);
	if (!last)
		return fail_memory(err);
	*last = q->calls.end;
	return ring_put(&q->calls, (struct queued){ e->correlation, e->begin_ns, 0 }, err);
}

static enum status queue_work(struct perfetto_derive *d, struct perfetto_queue *q, uint32_t gpu,
			      const struct event *e, struct error *err)
{
	const uint64_t *last = map_find(&q->call_of, e->correlation);
	struct queued *c = last ? ring_at(&q->calls, *last) : NULL;

	if (!c || c->gpu)
		return ST_OK;
	c->gpu = gpu;
	if (q->works.end - q->works.first == WORKS)
		TRY(count_work(d, q, err));
	TRY(ring_put(&q->works, (struct queued){ e->correlation, e->begin_ns, gpu }, err));
	while (q->calls.first < q->calls.end && ring_at(&q->calls, q->calls.first)->gpu)
		TRY(leave(d, q, err));
	return ST_OK;
}

/* ---- what a GPU did ---- */

/* Returns whether an interval was recorded.  A gap between two windows of a recording is not idle
 * time. */
static bool is_recorded(const struct trace *t, uint32_t process, uint64_t begin_ns, uint64_t end_ns)
{
	uint32_t count = trace_count(t, TRACE_WINDOWS);
	bool any = false;

	if (end_ns - begin_ns < WINDOW_GAP_NS || count > WINDOWS_MOST)
		return true;
	for (uint32_t id = 1; id <= count; id++) {
		const struct window *w = trace_get_window(t, id);

		if (w->process != process)
			continue;
		if (w->begin_ns <= begin_ns && (!w->end_ns || w->end_ns >= end_ns))
			return true;
		any = true;
	}
	return !any;
}

static enum status end_interval(struct perfetto_derive *d, struct perfetto_state *s, uint32_t gpu,
				struct error *err)
{
	uint32_t process = d->rows->gpus[gpu - 1].process;

	if (s->class == CLASS_COUNT || s->begin_ns == s->at_ns)
		return ST_OK;
	TRY(gauge_fill(d, &s->busy, s->begin_ns, s->at_ns, s->class != CLASS_IDLE, err));
	if (s->class == CLASS_IDLE &&
	    (s->at_ns - s->begin_ns < IDLE_LEAST_NS ||
	     !is_recorded(d->rows->file->trace, process, s->begin_ns, s->at_ns)))
		return ST_OK;
	if (!d->names[s->class]) {
		TRY(perfetto_word(d->rows->file, SPACE_NAME, classes[s->class].name,
				  &d->names[s->class], err));
		TRY(perfetto_word(d->rows->file, SPACE_CATEGORY, classes[s->class].category,
				  &d->categories[s->class], err));
	}
	return perfetto_put_span(d->rows, s->time, d->names[s->class], 0, d->categories[s->class],
				 s->begin_ns, s->at_ns, err);
}

/* Advances to `to_ns`.  No later work may begin before it. */
static enum status advance(struct perfetto_derive *d, uint32_t gpu, uint64_t to_ns,
			   struct error *err)
{
	struct perfetto_state *s = &d->states[gpu - 1];

	while (s->at_ns < to_ns) {
		unsigned class = 0; /* the class that runs at s->at_ns */

		while (class < CLASS_IDLE && s->until_ns[class] <= s->at_ns)
			class ++;
		uint64_t until_ns = class < CLASS_IDLE ? s->until_ns[class] : UINT64_MAX;
		if (until_ns > to_ns)
			until_ns = to_ns;
		if (class != s->class) {
			TRY(end_interval(d, s, gpu, err));
			s->class = (uint8_t) class;
			s->begin_ns = s->at_ns;
		}
		s->at_ns = until_ns;
	}
	return ST_OK;
}

enum status perfetto_derive_work(struct perfetto_derive *d, uint32_t gpu, enum gpu_class class,
				 const struct event *e, struct error *err)
{
	struct perfetto_state *s = &d->states[gpu - 1];
	uint32_t process = d->rows->gpus[gpu - 1].process;

	if (!s->time) {
		TRY(perfetto_row_need(d->rows, &s->time, &time_row, process, gpu, err));
		TRY(perfetto_row_need(d->rows, &s->busy.row, &busy_row, process, gpu, err));
		TRY(perfetto_row_need(d->rows, &s->queue.row, &queue_row, process, gpu, err));
		s->at_ns = e->begin_ns;
	}
	if (s->class == CLASS_COMPUTE && s->until_ns[CLASS_COMPUTE] >= e->begin_ns)
		s->at_ns = e->begin_ns; /* the fast path: most events continue computing */
	else
		TRY(advance(d, gpu, e->begin_ns, err));
	if (e->end_ns > s->until_ns[class])
		s->until_ns[class] = e->end_ns;
	if (!e->correlation)
		return ST_OK;
	return queue_work(d, &d->queues[process], gpu, e, err);
}

enum status perfetto_derive_end(struct perfetto_derive *d, struct error *err)
{
	for (size_t i = 0; i <= d->rows->process_count; i++) {
		struct perfetto_queue *q = &d->queues[i];

		while (q->calls.first < q->calls.end)
			TRY(leave(d, q, err));
		while (q->works.first < q->works.end)
			TRY(count_work(d, q, err));
	}
	for (uint32_t gpu = 1; gpu <= d->rows->gpu_count; gpu++) {
		struct perfetto_state *s = &d->states[gpu - 1];
		struct perfetto_gauge *busy = &s->busy, *queue = &s->queue;
		uint64_t end_ns = 0;

		if (!s->time)
			continue;
		for (unsigned i = 0; i < CLASS_IDLE; i++)
			if (s->until_ns[i] > end_ns)
				end_ns = s->until_ns[i];
		TRY(advance(d, gpu, end_ns, err));
		TRY(end_interval(d, s, gpu, err));
		TRY(gauge_write(d, busy, busy->bin_ns, busy_percent(busy), err));
		TRY(gauge_write(d, busy, busy->bin_ns + BIN_NS, 0, err));
		if (!queue->bin_ns)
			continue;
		TRY(gauge_write(d, queue, queue->bin_ns, queue->sum, err));
		TRY(gauge_write(d, queue, queue->bin_ns + BIN_NS, queue->now, err));
	}
	return ST_OK;
}

/* ---- memory ---- */

static bool arg_as_number(const struct trace *t, const struct event *e, uint32_t key, double *out)
{
	uint64_t bits;
	const struct attr *a = event_arg(t, e, key, &bits);

	if (!a || a->type > ATTR_F64)
		return false;
	*out = (double)bits;
	if (a->type == ATTR_F64)
		memcpy(out, &bits, sizeof(*out));
	return true;
}

/* Writes the process's counter "GPU Memory", because queries of others search for it. */
static enum status put_gpu_memory(struct perfetto_derive *d, const struct event *e,
				  uint32_t process, uint32_t gpu, double bytes, struct error *err)
{
	uint32_t device = d->rows->gpus[gpu - 1].device;
	struct buf *b = perfetto_begin_packet(d->rows->file);
	size_t at;

	pb_put_u64(b, PACKET_TIME, e->begin_ns);
	pb_put_u64(b, PACKET_SEQUENCE, d->rows->file->sequence - 1);
	at = pb_begin(b, PACKET_GPU_MEMORY);
	pb_put_u64(b, GPU_MEMORY_GPU, device == NO_ID ? 0 : device);
	pb_put_u64(b, GPU_MEMORY_PID, (uint64_t)d->rows->processes[process].pid);
	pb_put_u64(b, GPU_MEMORY_SIZE, bytes > 0 && bytes < 0x1p63 ? (uint64_t)bytes : 0);
	pb_end(b, at);
	return perfetto_end_packet(d->rows->file, err);
}

enum status perfetto_derive_memory(struct perfetto_derive *d, const struct event *e,
				   bool *has_place, struct error *err)
{
	const struct trace *t = d->rows->file->trace;
	uint32_t process = trace_get_track(t, e->track)->process, gpu = d->rows->gpu_of[e->track];
	struct perfetto_memory *m =
		gpu ? &d->memory[gpu - 1] : &d->memory[d->rows->gpu_count + process];
	double value;

	if (e->kind == KIND_ALLOC)
		m->bytes += e->bytes;
	else /* memory taken before the recording may be freed, too */
		m->bytes -= e->bytes < m->bytes ? e->bytes : m->bytes;
	TRY(perfetto_row_need(d->rows, &m->allocated, &allocated_rows[gpu > 0], process, gpu, err));
	if (!arg_as_number(t, e, d->total, &value))
		value = (double)m->bytes;
	TRY(perfetto_put_sample(d->rows, m->allocated, e->begin_ns, value, has_place, err));
	if (gpu)
		TRY(put_gpu_memory(d, e, process, gpu, value, err));
	if (!arg_as_number(t, e, d->total_reserved, &value))
		return ST_OK;
	TRY(perfetto_row_need(d->rows, &m->reserved, &reserved_rows[gpu > 0], process, gpu, err));
	return perfetto_put_sample(d->rows, m->reserved, e->begin_ns, value, NULL, err);
}
