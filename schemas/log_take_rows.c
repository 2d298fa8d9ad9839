/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_read.h"

#include "schemas/json_check.h"

static enum status take_name(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	uint64_t len = take_varint(in);
	const char *text = take_text(in, len);
	uint32_t *to = log_rows_get(&x->names, id);

	if (!text || *to)
		return ST_OK;
	*to = trace_name(x->trace, text, len, err);
	return *to ? ST_OK : err->status;
}

static enum status take_keys(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	struct file_keys *row = log_rows_get(&x->keys, id);
	uint64_t count = take_varint(in);
	struct attr *keys;

	if (count > bytes_left(in) / 3) {
		in->cut = true;
		return ST_OK;
	}
	if (row->keys) {
		for (uint64_t i = 0; i < count; i++) {
			take_varint(in);
			take_u16(in);
		}
		return ST_OK;
	}
	keys = log_arena_room(x, (count + 1) * sizeof(*keys), err);
	if (!keys)
		return err->status;
	for (uint64_t i = 0; i < count; i++) {
		keys[i].key = log_name_of(x, take_varint(in));
		keys[i].type = take_u8(in);
		keys[i].unit = take_u8(in);
	}
	if (!in->cut && !x->missing)
		*row = (struct file_keys){ keys, (uint32_t)count };
	return ST_OK;
}

static uint64_t take_value(struct log_translation *x, unsigned type, struct bytes *in)
{
	if (type == ATTR_F64)
		return take_u64(in);
	if (type == ATTR_I64)
		return (uint64_t)take_zigzag(in);
	if (type == ATTR_TEXT || type == ATTR_JSON)
		return log_name_of(x, take_varint(in));
	return take_varint(in);
}

/* What is said to be JSON is written verbatim one day, so it has to be. */
static uint8_t type_of(const struct log_translation *x, uint8_t type, uint64_t bits)
{
	size_t len;
	const char *text;

	if (type > ATTR_JSON)
		return ATTR_U64;
	if (type != ATTR_JSON)
		return type;
	text = trace_text(x->trace, (uint32_t)bits, &len);
	return json_is_value(text, len) ? ATTR_JSON : ATTR_TEXT;
}

static enum status take_shape(struct log_translation *x, uint32_t id, struct bytes *in,
			      struct error *err)
{
	struct file_shape *row = log_rows_get(&x->shapes, id);
	uint64_t list = take_varint(in);
	const struct file_keys *k = log_rows_get(&x->keys, list);
	uint32_t count = list && k ? k->count : 0;
	struct attr *attrs = NULL;

	if (list && (!k || !k->keys)) {
		x->missing = "a list of keys";
		return ST_OK;
	}
	if (count > bytes_left(in)) {
		in->cut = true;
		return ST_OK;
	}
	if (!row->came && count) {
		attrs = log_arena_room(x, count * sizeof(*attrs), err);
		if (!attrs)
			return err->status;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bits = take_value(x, k->keys[i].type, in);

		if (!attrs)
			continue;
		attrs[i] = k->keys[i];
		attrs[i].bits = bits;
		attrs[i].type = type_of(x, attrs[i].type, bits);
	}
	if (!row->came && !in->cut && !x->missing)
		*row = (struct file_shape){ attrs, count, true };
	return ST_OK;
}

static enum status take_meta(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	x->meta = take_varint(in);
	return ST_OK;
}

/* Rows that begin with their length: what they lack at their end reads as 0. */

static uint64_t member(struct bytes *in)
{
	return bytes_left(in) ? take_varint(in) : 0;
}

static enum status take_process(struct log_translation *x, uint32_t id, struct bytes *in,
				struct error *err)
{
	uint32_t *to = log_rows_get(&x->processes, id);
	struct process p = { 0 };

	p.host = log_name_of(x, member(in));
	p.command = log_name_of(x, member(in));
	p.pid = (uint32_t)member(in);
	p.rank = log_take_id(member(in));
	p.world_size = (uint32_t)member(in);
	TRY(log_shape_of(x, member(in), NULL, &p.shape, err));
	if (in->cut || x->missing)
		return ST_OK;
	if (*to) {
		trace_set_process(x->trace, *to, &p);
		return ST_OK;
	}
	*to = trace_process(x->trace, &p, err);
	return *to ? ST_OK : err->status;
}

static enum status take_device(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct device d = { 0 };

	d.process = log_process_of(x, member(in));
	d.id = log_take_id(member(in));
	d.name = log_name_of(x, member(in));
	TRY(log_shape_of(x, member(in), NULL, &d.shape, err));
	if (in->cut || x->missing)
		return ST_OK;
	return trace_device(x->trace, &d, err) ? ST_OK : err->status;
}

static enum status take_track(struct log_translation *x, uint32_t id, struct bytes *in,
			      struct error *err)
{
	struct file_track *row = log_rows_get(&x->tracks, id);
	struct track k = { 0 };
	uint64_t home = member(in), launches;

	k.process = log_process_of(x, member(in));
	k.name = log_name_of(x, member(in));
	k.device = log_take_id(member(in));
	k.context = log_take_id(member(in));
	k.id = member(in);
	k.unit = (uint8_t)member(in);
	launches = member(in);
	if (in->cut || x->missing)
		return ST_OK;
	k.home = home > HOME_COUNTER ? HOME_THREAD : (enum home)home;
	row->launches = launches;
	if (row->to && k.name && k.home != HOME_COUNTER)
		trace_set_track_name(x->trace, row->to, k.name);
	if (row->to)
		return ST_OK;
	row->to = trace_track(x->trace, &k, err);
	return row->to ? ST_OK : err->status;
}

static enum status take_window(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	uint32_t *to = log_rows_get(&x->windows, id);
	struct window w = { 0 };

	w.process = log_process_of(x, member(in));
	w.spec = log_name_of(x, member(in));
	w.begin_ns = member(in);
	w.end_ns = member(in);
	w.own_ns = member(in);
	w.cut_short = member(in) != 0;
	if (in->cut || x->missing)
		return ST_OK;
	if (*to) {
		trace_set_window(x->trace, *to, &w);
		return ST_OK;
	}
	*to = trace_window(x->trace, &w, err);
	return *to ? ST_OK : err->status;
}

static enum status take_anchor(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	uint32_t *to = log_rows_get(&x->anchors, id);
	struct anchor a = { 0 };

	a.process = log_process_of(x, member(in));
	a.realtime_ns = member(in);
	a.monotonic_ns = member(in);
	a.cupti_ns = member(in);
	if (in->cut || x->missing || *to)
		return ST_OK;
	*to = trace_anchor(x->trace, &a, err);
	return *to ? ST_OK : err->status;
}

/* Totals so far; the last row holds, so they are added only in the end. */
static enum status take_losses(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct file_losses *row = log_rows_get(&x->losses, id), losses = { { 0 } };

	while (bytes_left(in)) {
		uint64_t why = take_varint(in), count = take_varint(in);

		losses.counts[why < LOSS_END ? why : 0] += count;
	}
	if (!in->cut)
		*row = losses;
	return ST_OK;
}

#define TABLE(take, member, has_length)                                                  \
	{ take, offsetof(struct log_translation, member), has_length }
const struct log_row_reader log_row_readers[LOG_BLOCK_KIND_END] = {
	[LOG_NAMES] = TABLE(take_name, names, false),
	[LOG_KEYS] = TABLE(take_keys, keys, false),
	[LOG_SHAPES] = TABLE(take_shape, shapes, false),
	[LOG_PROCESSES] = TABLE(take_process, processes, true),
	[LOG_DEVICES] = { take_device, 0, true },
	[LOG_TRACKS] = TABLE(take_track, tracks, true),
	[LOG_FIELDS] = TABLE(log_take_layout, layouts, true),
	[LOG_SITES] = TABLE(log_take_site, sites, false),
	[LOG_WINDOWS] = TABLE(take_window, windows, true),
	[LOG_ANCHORS] = TABLE(take_anchor, anchors, true),
	[LOG_LOSSES] = TABLE(take_losses, losses, true),
	[LOG_META] = { take_meta, 0, true },
	[LOG_SAVED] = { log_take_saved, 0, true },
};
