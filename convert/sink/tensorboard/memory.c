/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as XProf's memory_profile reads it: events MemoryAllocation and MemoryDeallocation that
 * carry what is in use after them.  What an allocator said of itself counts; else it is added up.
 */
#include "convert/sink/tensorboard/space.h"
#include "schemas/proto/xspace.h"

static struct tb_gauge *gauge_of(struct tb_space *s, const struct event *e)
{
	uint32_t device = trace_get_track(s->trace, e->track)->device;
	uint32_t place = device == NO_ID       ? TB_DEVICES
			 : device < TB_DEVICES ? device
					       : TB_DEVICES - 1;

	return &s->gauges[e->kind == KIND_COUNTER][place];
}

/* What is in use after this event; *amount: what it took or gave back. */
static void follow(struct tb_space *s, const struct event *e, struct tb_gauge *g, uint64_t *amount)
{
	uint64_t bits, before = g->total;

	*amount = e->kind == KIND_COUNTER ? 0 : e->bytes;
	if (e->kind == KIND_COUNTER)
		g->total = e->value >= 0 && e->value < 0x1p62 ? (uint64_t)e->value : 0;
	else if (tb_arg_bits(s, e, "total_allocated", &bits))
		g->total = bits;
	else if (e->kind == KIND_ALLOC)
		g->total = before + e->bytes;
	else
		g->total = before > e->bytes ? before - e->bytes : 0;
	if (g->total > g->peak)
		g->peak = g->total;
	if (tb_arg_bits(s, e, "peak_bytes_in_use", &bits) && bits > g->peak)
		g->peak = bits; /* from before the recording */
}

static uint64_t memory_left(const struct tb_space *s, const struct event *e, uint64_t total)
{
	uint32_t device = trace_get_track(s->trace, e->track)->device;
	uint32_t row = device == NO_ID ? 0 : trace_find_device(s->trace, s->process, device);
	const struct attr *a = trace_find_attr(s->trace, trace_get_device(s->trace, row)->schema,
					       "totalGlobalMem");
	uint64_t bits;

	if (tb_arg_bits(s, e, "bytes_available", &bits))
		return bits;
	if (a && a->type == ATTR_U64 && a->bits > total)
		return a->bits - total;
	if (tb_arg_bits(s, e, "total_reserved", &bits) && bits > total)
		return bits - total;
	return 0;
}

static void put_allocator(struct tb_space *s, const struct event *e, uint64_t key)
{
	uint32_t device = trace_get_track(s->trace, e->track)->device;
	const struct attr *a = tb_const_attr(s, e, "allocator_name");
	struct buf *b = &s->scratch;
	size_t len;

	buf_clear(b);
	if (a && a->type == ATTR_TEXT) {
		const char *text = trace_text(s->trace, (uint32_t)a->bits, &len);

		buf_put(b, text, len);
	} else if (device == NO_ID) {
		buf_put_text(b, "host");
	} else {
		buf_putf(b, "GPU_%u", device);
	}
	if (e->kind == KIND_COUNTER)
		buf_put_text(b, " (sampled)");
	tb_stat_text(&s->event, XEVENT_STATS, key, buf_text(b), b->len);
}

static enum status put_bytes(struct tb_space *s, const struct event *e, struct error *err)
{
	static const char *const keys[] = {
		"bytes_reserved",
		"bytes_allocated",
		"bytes_available",
		"peak_bytes_in_use",
		"requested_bytes",
		"allocation_bytes",
		"addr",
		"data_type",
	};
	struct tb_gauge *g = gauge_of(s, e);
	uint64_t amount, requested;

	follow(s, e, g, &amount);
	if (!tb_arg_bits(s, e, "requested_bytes", &requested))
		requested = amount;
	const uint64_t values[] = {
		0,
		g->total,
		memory_left(s, e, g->total),
		g->peak,
		requested,
		amount,
		e->kind == KIND_COUNTER ? 0 : e->address,
		0,
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		TB_KEY_OR_FAIL(key, keys[i]);
		tb_stat_i64(&s->event, XEVENT_STATS, key, (int64_t)values[i]);
	}
	return ST_OK;
}

enum status tb_put_memory(struct tb_space *s, const struct event *e, struct error *err)
{
	double fragmentation = 0;
	uint64_t bits;

	TB_KEY_OR_FAIL(allocator, "allocator_name");
	TB_KEY_OR_FAIL(fragments, "fragmentation");
	TB_KEY_OR_FAIL(group, "group_id");
	if (tb_arg_bits(s, e, "fragmentation", &bits))
		memcpy(&fragmentation, &bits, sizeof(fragmentation));
	put_allocator(s, e, allocator);
	TRY(put_bytes(s, e, err));
	tb_stat_f64(&s->event, XEVENT_STATS, fragments, fragmentation);
	if (e->step)
		tb_stat_i64(
			&s->event, XEVENT_STATS, group,
			(int64_t)tb_steps_group(&s->steps, (e->step & ~STEP_GAP) - 1, e->begin_ns));
	return e->owner ? tb_put_op(s, e, err) : ST_OK;
}
