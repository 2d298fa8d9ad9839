/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_profile.json: memory in use and its peak, per step and device.
 *
 *	[{"step": 0, "memory": {"cuda:0": {"bytes_in_use": 10, "peak_bytes_in_use": 20}}}, ...]
 *
 * Samples are the counters bytes_in_use and peak_bytes_in_use, and the allocator's total ("Total
 * Allocated" of Kineto).  The host is not a device.  A step lasts from its mark to the next one and
 * has an entry if a sample is in it; the value is the last sample, the peak is that of all samples
 * so far.  Consecutive steps with the same number share an entry, because the marks between them
 * may have been filtered out.  If all samples are outside of steps, their entry is step 0.
 */
#include "convert/sink/sink.h"
#include "schemas/model/args.h"

#include <string.h>

enum { DEVICES = 256 };

struct gauge {
	bool sampled; /* has a sample in this step */
	uint64_t in_use, peak;
};
struct memory {
	struct sink base;
	const struct context *context; /* NULL: only step records are marks */
	uint32_t names[2], total; /* interned: bytes_in_use, peak_bytes_in_use; total_allocated */
	uint32_t step;            /* step of the samples in the gauges, as event.step; 0: none */
	bool any_entry, any_sample;
	struct gauge gauges[DEVICES];
};

enum sample { SAMPLE_NONE, SAMPLE_IN_USE, SAMPLE_PEAK };

static enum sample sample_of(const struct memory *m, const struct event *e, const struct track *k,
			     uint64_t *bytes)
{
	double value = e->value;

	if (e->kind == KIND_ALLOC || e->kind == KIND_FREE) {
		const struct attr *a = event_arg(m->base.trace, e, m->total, bytes);

		if (!a || (a->type != ATTR_U64 && a->type != ATTR_F64))
			return SAMPLE_NONE;
		if (a->type == ATTR_U64)
			return SAMPLE_IN_USE;
		memcpy(&value, bytes, sizeof(value));
	} else if (e->kind != KIND_COUNTER || !k->name) {
		return SAMPLE_NONE;
	}
	*bytes = value >= 0 && value < 0x1p63 ? (uint64_t)value : 0;
	if (e->kind != KIND_COUNTER || k->name == m->names[0])
		return SAMPLE_IN_USE;
	return k->name == m->names[1] ? SAMPLE_PEAK : SAMPLE_NONE;
}

/* Writes the entry of m->step.  The gauges keep only their peaks. */
static enum status put_entry(struct memory *m, struct error *err)
{
	struct buf *b = &m->base.lines;
	bool is_first = true;

	if (!m->any_sample)
		return ST_OK;
	buf_put_text(b, m->any_entry ? ",\n " : "[");
	buf_putf(b, "{\"step\": %u, \"memory\": {", m->step ? m->step - 1 : 0);
	for (size_t i = 0; i < DEVICES; i++) {
		struct gauge *g = &m->gauges[i];

		if (!g->sampled)
			continue;
		buf_put_text(b, is_first ? "" : ", ");
		buf_putf(b, "\"cuda:%zu\": {\"bytes_in_use\": %llu, \"peak_bytes_in_use\": %llu}",
			 i, (unsigned long long)g->in_use, (unsigned long long)g->peak);
		is_first = g->sampled = false;
	}
	buf_put_text(b, "}}");
	m->any_entry = true;
	m->any_sample = false;
	return sink_flush(&m->base, SINK_LINES_BYTES, err);
}

/* Writes the entry of the current step and begins another step. */
static enum status turn_step(struct memory *m, uint32_t step, struct error *err)
{
	if (m->step)
		TRY(put_entry(m, err));
	m->any_sample = false; /* samples before the first step get no entry */
	for (size_t i = 0; i < DEVICES; i++)
		m->gauges[i].sampled = false;
	m->step = step;
	return ST_OK;
}

static enum status put_sample(struct sink *s, const struct event *e, struct error *err)
{
	struct memory *m = (struct memory *)s;
	const struct track *k = trace_get_track(s->trace, e->track);
	uint32_t step = e->step & ~STEP_GAP;
	struct gauge *g;
	uint64_t bytes = 0;
	enum sample what = sample_of(m, e, k, &bytes);

	if (what == SAMPLE_NONE) {
		bool is_mark = m->context ? context_is_mark(m->context, e) : e->kind == KIND_STEP;

		s->left_out++;
		return step == m->step && is_mark ? turn_step(m, step, err) : ST_OK;
	}
	if (k->device != NO_ID && k->device >= DEVICES) {
		trace_lose(s->trace, s->process, LOSS_NO_PLACE, 1);
		return ST_OK;
	}
	if (step != m->step)
		TRY(turn_step(m, step, err));
	m->any_sample = true;
	if (k->device == NO_ID) {
		s->left_out++;
		return ST_OK;
	}
	g = &m->gauges[k->device];
	if (what == SAMPLE_IN_USE)
		g->in_use = bytes;
	if (bytes > g->peak)
		g->peak = bytes;
	g->sampled = true;
	s->written++;
	return ST_OK;
}

static enum status memory_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	struct memory *m = (struct memory *)s;

	m->context = req->context;
	m->names[0] = trace_find_name(s->trace, "bytes_in_use", 12);
	m->names[1] = trace_find_name(s->trace, "peak_bytes_in_use", 17);
	m->total = trace_find_name(s->trace, "total_allocated", 15);
	return ST_OK;
}

static enum status memory_close(struct sink *s, struct error *err)
{
	struct memory *m = (struct memory *)s;

	TRY(put_entry(m, err));
	buf_put_text(&s->lines, m->any_entry ? "]\n" : "[]\n");
	return sink_flush(s, 0, err);
}

const struct sink_type sink_memory = {
	.name = "memory",
	.help = "memory_profile.json: bytes in use and their peak, per step and device",
	.scope = SINK_PER_PROCESS,
	.file_name = "{n.}memory_profile.{rank}.json",
	.needs = NEED_STEP,
	.size = sizeof(struct memory),
	.open = memory_open,
	.put_event = put_sample,
	.close = memory_close,
};
