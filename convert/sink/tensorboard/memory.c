/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as XProf's memory_profile reads it: events MemoryAllocation and MemoryDeallocation with
 * the memory in use after them.  If the allocator recorded its own total, that is used; otherwise
 * the events are added up.
 */
#include "convert/sink/tensorboard/internal.h"

/* Updates the memory in use after this event; *amount is set to the bytes that the event took or
 * returned. */
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
		g->peak = bits; /* the peak may be from before the recording */
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
	const struct attr *a = trace_find_attr(s->trace, e->schema, "allocator_name");
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

void tb_put_memory(struct tb_space *s, const struct event *e)
{
	if (s->is_xspace && e->kind != KIND_COUNTER) {
		/* Write the stats as XProf's own tracer had them; members of struct event replace
		 * two of them. */
		tb_put_own_stats(s, e);
		tb_stat(&s->event, XEVENT_STATS, tb_key(&s->names, "allocation_bytes"), XSTAT_INT64,
			e->bytes);
		tb_stat(&s->event, XEVENT_STATS, tb_key(&s->names, "addr"), XSTAT_INT64,
			e->address);
		return;
	}
	uint32_t device = trace_get_track(s->trace, e->track)->device;
	size_t place = device < TB_DEVICES ? device : TB_DEVICES - 1;
	struct tb_gauge *g =
		&s->gauges[e->kind == KIND_COUNTER][device == NO_ID ? TB_DEVICES : place];
	uint64_t allocator = tb_key(&s->names, "allocator_name"), amount, requested, bits;
	uint64_t fragments = tb_key(&s->names, "fragmentation");
	uint64_t group = tb_key(&s->names, "group_id");
	double fragmentation = 0;

	if (tb_arg_bits(s, e, "fragmentation", &bits))
		memcpy(&fragmentation, &bits, sizeof(fragmentation));
	put_allocator(s, e, allocator);
	follow(s, e, g, &amount);
	if (!tb_arg_bits(s, e, "requested_bytes", &requested))
		requested = amount;
	const struct {
		const char *key;
		uint64_t value;
	} stats[] = {
		{ "bytes_reserved", 0 },
		{ "bytes_allocated", g->total },
		{ "bytes_available", memory_left(s, e, g->total) },
		{ "peak_bytes_in_use", g->peak },
		{ "requested_bytes", requested },
		{ "allocation_bytes", amount },
		{ "addr", e->kind == KIND_COUNTER ? 0 : e->address },
		{ "data_type", 0 },
	};

	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++)
		tb_stat(&s->event, XEVENT_STATS, tb_key(&s->names, stats[i].key), XSTAT_INT64,
			stats[i].value);
	tb_stat_f64(&s->event, XEVENT_STATS, fragments, fragmentation);
	if (e->step)
		tb_stat(&s->event, XEVENT_STATS, group, XSTAT_INT64,
			tb_steps_group(&s->steps, (e->step & ~STEP_GAP) - 1, e->begin_ns));
	if (trace_owner(s->trace, e->path))
		tb_put_op(s, e);
}
