/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around the events of an XSpace, through protobuf-c: heads, devices, the run. */
#include "convert/tensorboard/space.h"
#include "schemas/proto/xspace.pb-c.h"
#include "schemas/xspace.h"

#include <stdlib.h>

enum { CUSTOM_FIRST = 1, RANKS_FIRST = 1 << 16, ROWS_BITS = 20 /* of a rank */ };

static void pack(const ProtobufCMessage *m, struct buf *out)
{
	uint8_t *room = buf_reserve(out, protobuf_c_message_get_packed_size(m));

	if (room)
		out->len += protobuf_c_message_pack(m, room);
}

static ProtobufCBinaryData text_data(const char *text, size_t len)
{
	return (ProtobufCBinaryData){ .len = len, .data = (uint8_t *)(uintptr_t)text };
}

/* ---- lines ---- */

static void line_name(struct tb_space *s, const struct tb_line *line)
{
	const struct track *k = trace_get_track(s->trace, line->track);
	struct buf *b = &s->scratch;
	size_t len;
	const char *text = trace_text(s->trace, k->name, &len);

	buf_clear(b);
	if (line->kind == TB_LINE_COUNTERS) {
		buf_put_text(b, XLINE_COUNTERS);
		return;
	}
	if (s->is_part && line->device == NO_ID) {
		tb_put_rank(s, b);
		buf_put_text(b, ": ");
	}
	if (line->kind == TB_LINE_MEMORY)
		buf_put_text(b, "Memory");
	else if (len)
		tb_put_utf8(b, text, len);
	else if (k->home == HOME_STREAM)
		buf_putf(b, "Stream #%llu", (unsigned long long)k->id);
	else
		buf_putf(b, "Thread %llu", (unsigned long long)k->id);
}

void tb_put_line_head(struct tb_space *s, const struct tb_line *line, struct buf *out)
{
	Tacho__Xspace__Line m = TACHO__XSPACE__LINE__INIT;
	size_t place = (size_t)(line - (const struct tb_line *)(const void *)s->lines.data);

	line_name(s, line);
	m.has_id = m.has_name = m.has_timestamp_ns = true;
	m.id = line->track ? (int64_t)trace_get_track(s->trace, line->track)->id
			   : (int64_t)INT32_MAX - (int64_t)place;
	m.name = text_data(buf_text(&s->scratch), s->scratch.len);
	if (line->plane == TB_PLANE_HOST && s->rank_at)
		m.id = (int64_t)((uint64_t)m.id + ((uint64_t)s->rank_at << 32));
	if (line->plane != TB_PLANE_GPU) { /* rows of a viewer stay apart whatever their ids */
		m.has_display_id = true;
		m.display_id = (int64_t)((uint64_t)s->rank_at << ROWS_BITS) + (int64_t)place + 1;
	}
	pack(&m.base, out);
}

void tb_put_steps_head(struct buf *out)
{
	static const char name[] = "Steps";
	Tacho__Xspace__Line m = TACHO__XSPACE__LINE__INIT;

	m.has_id = m.has_name = m.has_timestamp_ns = true;
	m.id = XLINE_DERIVED_FIRST;
	m.name = text_data(name, sizeof(name) - 1);
	pack(&m.base, out);
}

/* ---- planes ---- */

void tb_put_rank(const struct tb_space *s, struct buf *out)
{
	const struct process *p = trace_get_process(s->trace, s->process);

	if (p->rank != NO_RANK)
		buf_putf(out, "rank %u", p->rank);
	else if (p->pid)
		buf_putf(out, "pid %u", p->pid);
	else
		buf_putf(out, "process %u", s->rank_at + 1);
}

/* XProf's tools read one host's plane: those of a file's ranks are put together. */
static void plane_name(const struct tb_space *s, const struct tb_line *line, struct buf *b)
{
	buf_clear(b);
	if (line->plane == TB_PLANE_HOST)
		buf_put_text(b, XPLANE_HOST);
	else if (line->plane == TB_PLANE_GPU)
		buf_putf(b, XPLANE_GPU "%u", tb_device_number(s, line->device));
	else if (line->device == NO_ID)
		buf_put_text(b, XPLANE_WAITS);
	else
		buf_putf(b, XPLANE_WAITS " of GPU %u", tb_device_number(s, line->device));
	if (!s->rank_at || line->plane == TB_PLANE_HOST || line->device != NO_ID)
		return;
	buf_put_text(b, " [");
	tb_put_rank(s, b);
	buf_put_byte(b, ']');
}

static int64_t plane_id(const struct tb_space *s, const struct tb_line *line)
{
	uint32_t number = line->device == NO_ID ? 0 : tb_device_number(s, line->device);

	if (line->plane == TB_PLANE_GPU)
		return (int64_t)number;
	if (line->plane == TB_PLANE_HOST)
		return 0;
	if (s->rank_at && line->device == NO_ID)
		return RANKS_FIRST + (int64_t)s->rank_at;
	return line->device == NO_ID ? CUSTOM_FIRST : CUSTOM_FIRST + 1 + (int64_t)number;
}

enum status tb_put_plane_head(struct tb_space *s, const struct tb_line *line, struct buf *out,
			      struct error *err)
{
	Tacho__Xspace__Plane m = TACHO__XSPACE__PLANE__INIT;

	plane_name(s, line, &s->scratch);
	m.has_id = m.has_name = true;
	m.id = plane_id(s, line);
	m.name = text_data(buf_text(&s->scratch), s->scratch.len);
	pack(&m.base, out);
	return buf_status(out, err);
}

static enum status put_stat_u64(struct tb_space *s, const char *name, uint64_t v, struct buf *out,
				struct error *err)
{
	uint64_t key = tb_key(&s->names, name, err);

	if (!key)
		return err->status;
	tb_stat_u64(out, PLANE_STATS, key, v);
	return ST_OK;
}

static enum status put_stat_text(struct tb_space *s, const char *name, const char *text,
				 size_t len, struct buf *out, struct error *err)
{
	uint64_t key = tb_key(&s->names, name, err);

	if (!key)
		return err->status;
	tb_stat_text(out, PLANE_STATS, key, text, len);
	return ST_OK;
}

static const char *stat_of(const char *key)
{
	static const char *const keys[][2] = {
#define X(ours, theirs) { ours, theirs },
		XSPACE_DEVICE_LIST(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i][0]) == 0)
			return keys[i][1];
	return NULL;
}

/* The vendor decides what XProf calls the card. */
static const char *vendor_of(const char *name)
{
	return strstr(name, "AMD") || strstr(name, "Radeon") || strstr(name, "Instinct") ? "AMD"
											 : "Nvidia";
}

static enum status put_device_attr(struct tb_space *s, const struct attr *a, struct buf *out,
				   struct error *err)
{
	const char *key = trace_text(s->trace, a->key, NULL), *stat = stat_of(key);

	if (strcmp(key, "memoryBandwidthKBs") == 0 && a->type <= ATTR_I64)
		return put_stat_u64(s, "memory_bandwidth", a->bits * 1000, out, err);
	if (strcmp(key, "memory_bandwidth") == 0 && a->type <= ATTR_I64)
		return put_stat_u64(s, "memory_bandwidth", a->bits, out, err);
	return stat && a->type <= ATTR_I64 ? put_stat_u64(s, stat, a->bits, out, err) : ST_OK;
}

static enum status put_device(struct tb_space *s, uint32_t device, struct buf *out,
			      struct error *err)
{
	const struct device *d =
		trace_get_device(s->trace, trace_find_device(s->trace, s->process, device));
	const struct shape *shape = trace_get_shape(s->trace, d->shape);
	const struct attr *vendor = trace_find_attr(s->trace, d->shape, "device_vendor");
	size_t len;
	const char *name = trace_text(s->trace, d->name, &len), *text = vendor_of(name);

	if (len)
		TRY(put_stat_text(s, "gpu_device_name", name, len, out, err));
	if (vendor && vendor->type == ATTR_TEXT)
		text = trace_text(s->trace, (uint32_t)vendor->bits, NULL);
	TRY(put_stat_text(s, "device_vendor", text, strlen(text), out, err));
	for (uint32_t i = 0; i < shape->fixed_count; i++)
		TRY(put_device_attr(s, &shape->fixed[i], out, err));
	return ST_OK;
}

enum status tb_put_plane_stats(struct tb_space *s, const struct tb_line *line, struct buf *out,
			       struct error *err)
{
	const struct process *p = trace_get_process(s->trace, s->process);

	/* Named in every plane: XProf takes steps and groups as they are. */
	if (!tb_key(&s->names, "group_id", err))
		return err->status;
	if (line->plane == TB_PLANE_GPU)
		TRY(put_device(s, line->device, out, err));
	if (line->plane == TB_PLANE_HOST && p->pid && !s->rank_at)
		TRY(put_stat_u64(s, "process_id", p->pid, out, err));
	return buf_status(out, err);
}

/* ---- the run ---- */

static enum status put_run(struct tb_space *s, struct buf *out, struct error *err)
{
	static const char name[] = XPLANE_ENVIRONMENT;
	Tacho__Xspace__Plane m = TACHO__XSPACE__PLANE__INIT;
	uint64_t last_ns = s->steps.last_ns > s->origin_ns ? s->steps.last_ns : s->origin_ns;

	tb_names_clear(&s->names);
	m.has_name = true;
	m.name = text_data(name, sizeof(name) - 1);
	pack(&m.base, out);
	TRY(put_stat_u64(s, "profile_start_time", s->origin_ns, out, err));
	TRY(put_stat_u64(s, "profile_stop_time", last_ns, out, err));
	buf_put(out, s->names.entries.data, s->names.entries.len);
	return buf_status(out, err);
}

/* Why records are missing, where people look: on the overview page. */
static void put_warnings(struct tb_space *s, struct buf *out)
{
	for (enum loss why = 0; why < LOSS_END; why++) {
		uint64_t lost = trace_lost(s->trace, s->process, why);

		if (!lost || why == LOSS_DERIVED || why == LOSS_CUT_OUT || why == LOSS_ORDER)
			continue;
		buf_clear(&s->scratch);
		buf_putf(&s->scratch, "%llu events are missing: %s", (unsigned long long)lost,
			 loss_text(why));
		pb_put_bytes(out, SPACE_WARNINGS, s->scratch.data, s->scratch.len);
	}
}

enum status tb_put_environment(struct tb_space *s, struct buf *out, struct error *err)
{
	size_t plane;

	put_warnings(s, out);
	plane = pb_begin(out, SPACE_PLANES);
	TRY(put_run(s, out, err));
	pb_end(out, plane);
	pb_put_text(out, SPACE_HOSTNAMES, s->host);
	return buf_status(out, err);
}
