/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_profile.json: for each step what each device had in use, and the most it ever had.
 *
 *	[{"step": 0, "memory": {"cuda:0": {"bytes_in_use": 10, "peak_bytes_in_use": 20}}}, ...]
 *
 * Samples are counters named bytes_in_use and peak_bytes_in_use, and what an allocator said it had
 * given out in all when it gave or took memory ("Total Allocated" of Kineto).  The device is that
 * of the track: cuda:N, or cpu where there is none.
 *
 * A step has an entry when there is a sample in it, that is between the begin of its mark and the
 * begin of the next; a device is in it when one of these samples is its own.  The value is the
 * last sample, the peak the maximum of all samples so far, those before the first step included.
 * A number that comes again has an entry each time; where marks are cut out (--kinds), steps of one
 * number that follow each other have one.
 * Samples before the first step are in no entry, unless there are no others: then, as where there
 * are no step marks at all, they are step 0.
 */
#include "convert/out.h"
#include "convert/sink.h"
#include "schemas/buf.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 256, CPU = DEVICES, GAUGES, LINES_CEILING = 1 << 20, LINES_BYTES = 32 * 1024 };

struct gauge {
	bool sampled; /* in this step */
	uint64_t in_use, peak;
};
struct memory {
	struct sink base;
	struct trace *trace;
	struct out *out;
	const struct source *stage; /* `step`; NULL: only records of steps are marks */
	uint32_t process, names[2], total; /* bytes_in_use, peak_bytes_in_use, total_allocated */
	uint32_t step;                     /* of the samples in the gauges, as event.step; 0 none */
	bool any_entry, any_sample;
	struct gauge gauges[GAUGES];
	struct buf lines;
};

enum sample { SAMPLE_NONE, SAMPLE_IN_USE, SAMPLE_PEAK };

/* The word of a shape's varying key; false: it has none. */
static bool vary_number(const struct memory *m, const struct event *e, uint32_t key,
			uint64_t *number)
{
	const struct shape *s = trace_get_shape(m->trace, e->shape);
	double real;

	for (uint32_t i = 0; key && e->vary && i < s->vary_count; i++) {
		if (s->vary[i].key != key)
			continue;
		*number = e->vary[i];
		if (s->vary[i].type != ATTR_F64)
			return s->vary[i].type == ATTR_U64;
		memcpy(&real, number, sizeof(real));
		*number = real >= 0 && real < 0x1p63 ? (uint64_t)real : 0;
		return true;
	}
	return false;
}

static enum sample sample_of(const struct memory *m, const struct event *e,
			     const struct track *k, uint64_t *bytes)
{
	if (e->kind == KIND_ALLOC || e->kind == KIND_FREE)
		return vary_number(m, e, m->total, bytes) ? SAMPLE_IN_USE : SAMPLE_NONE;
	if (e->kind != KIND_COUNTER || !k->name)
		return SAMPLE_NONE;
	*bytes = e->value >= 0 && e->value < 0x1p63 ? (uint64_t)e->value : 0;
	if (k->name == m->names[0])
		return SAMPLE_IN_USE;
	return k->name == m->names[1] ? SAMPLE_PEAK : SAMPLE_NONE;
}

static void put_gauge(struct buf *b, size_t i, const struct gauge *g, bool is_first)
{
	buf_put_text(b, is_first ? "" : ", ");
	if (i == CPU)
		buf_put_text(b, "\"cpu\"");
	else
		buf_putf(b, "\"cuda:%zu\"", i);
	buf_putf(b, ": {\"bytes_in_use\": %llu, \"peak_bytes_in_use\": %llu}",
		 (unsigned long long)g->in_use, (unsigned long long)g->peak);
}

/* The entry of m->step; the gauges are empty again but for their peaks. */
static enum status put_entry(struct memory *m, struct error *err)
{
	struct buf *b = &m->lines;
	bool is_first = true;

	if (!m->any_sample)
		return ST_OK;
	buf_put_text(b, m->any_entry ? ",\n " : "[");
	buf_putf(b, "{\"step\": %u, \"memory\": {", m->step ? m->step - 1 : 0);
	for (size_t i = 0; i < GAUGES; i++) {
		struct gauge *g = &m->gauges[i];

		if (!g->sampled)
			continue;
		put_gauge(b, i, g, is_first);
		is_first = g->sampled = false;
	}
	buf_put_text(b, "}}");
	m->any_entry = true;
	m->any_sample = false;
	if (b->len < LINES_BYTES)
		return buf_status(b, err);
	TRY(out_write(m->out, b->data, b->len, err));
	buf_clear(b);
	return ST_OK;
}

/* Samples of another step begin. */
static enum status turn_step(struct memory *m, uint32_t step, struct error *err)
{
	if (m->step)
		TRY(put_entry(m, err));
	m->any_sample = false; /* of before the first step */
	for (size_t i = 0; i < GAUGES; i++)
		m->gauges[i].sampled = false;
	m->step = step;
	return ST_OK;
}

static bool is_mark(const struct memory *m, const struct event *e)
{
	return m->stage ? step_is_mark(m->stage, e) : e->kind == KIND_STEP;
}

static enum status put_sample(struct memory *m, const struct event *e, struct error *err)
{
	const struct track *k = trace_get_track(m->trace, e->track);
	uint32_t step = e->step & ~STEP_GAP;
	struct gauge *g;
	uint64_t bytes;
	enum sample what;

	if (k->process != m->process)
		return ST_OK;
	what = sample_of(m, e, k, &bytes);
	if (what == SAMPLE_NONE) {
		m->base.left_out++;
		return step == m->step && is_mark(m, e) ? turn_step(m, step, err) : ST_OK;
	}
	if (k->device != NO_ID && k->device >= DEVICES) {
		trace_lose(m->trace, m->process, LOSS_NO_PLACE, 1);
		return ST_OK;
	}
	if (step != m->step)
		TRY(turn_step(m, step, err));
	g = &m->gauges[k->device == NO_ID ? CPU : k->device];
	if (what == SAMPLE_IN_USE)
		g->in_use = bytes;
	if (bytes > g->peak)
		g->peak = bytes;
	g->sampled = m->any_sample = true;
	m->base.written++;
	return ST_OK;
}

/* ---- the sink ---- */

static void memory_free(struct sink *s)
{
	struct memory *m = (struct memory *)s;

	if (!m)
		return;
	buf_release(&m->lines);
	free(m);
}

static enum status memory_open(struct sink **out, const struct sink_request *req,
			       struct error *err)
{
	struct memory *m = calloc(1, sizeof(*m));

	*out = NULL;
	if (!m)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the memory profile");
	m->base.type = &sink_memory;
	m->trace = req->trace;
	m->out = req->out;
	m->process = req->process;
	m->stage = req->step;
	m->names[0] = trace_find_name(req->trace, "bytes_in_use", 12);
	m->names[1] = trace_find_name(req->trace, "peak_bytes_in_use", 17);
	m->total = trace_find_name(req->trace, "total_allocated", 15);
	buf_init(&m->lines, LINES_CEILING);
	*out = &m->base;
	return ST_OK;
}

static enum status memory_put(struct sink *s, const struct event *events, size_t count,
			      struct error *err)
{
	struct memory *m = (struct memory *)s;

	for (size_t i = 0; i < count; i++)
		TRY(put_sample(m, &events[i], err));
	return ST_OK;
}

static enum status memory_close(struct sink *s, struct error *err)
{
	struct memory *m = (struct memory *)s;

	TRY(put_entry(m, err));
	buf_put_text(&m->lines, m->any_entry ? "]\n" : "[]\n");
	TRY(buf_status(&m->lines, err));
	return out_write(m->out, m->lines.data, m->lines.len, err);
}

const struct sink_type sink_memory = {
	.name = "memory",
	.help = "memory_profile.json: bytes in use and their peak, per step and device",
	.scope = SINK_PER_PROCESS,
	.file_name = "memory_profile.{rank}.json",
	.needs = NEED_STEP,
	.open = memory_open,
	.put = memory_put,
	.close = memory_close,
	.free = memory_free,
};
