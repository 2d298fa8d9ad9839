/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around the events of an XSpace, through protobuf-c: heads, devices, the run. */
#include "convert/sink/tensorboard/space.h"
#include "schemas/proto/xspace.pb-c.h"
#include "schemas/proto/xspace.h"

#include <stdlib.h>

enum { CUSTOM_FIRST = 1 };

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
	if (line->kind == TB_LINE_MEMORY)
		buf_put_text(b, "Memory");
	else if (len)
		sink_put_utf8(text, len, true, b);
	else if (k->type == TRACK_STREAM)
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
	if (line->plane != TB_PLANE_GPU) { /* rows of a viewer stay apart whatever their ids */
		m.has_display_id = true;
		m.display_id = (int64_t)place + 1;
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

enum status tb_put_plane_head(struct tb_space *s, const struct tb_line *line, struct buf *out,
			      struct error *err)
{
	Tacho__Xspace__Plane m = TACHO__XSPACE__PLANE__INIT;
	struct buf *b = &s->scratch;

	buf_clear(b);
	if (line->plane == TB_PLANE_HOST) {
		buf_put_text(b, XPLANE_HOST);
	} else if (line->plane == TB_PLANE_GPU) {
		m.id = line->device == NO_ID ? 0 : (int64_t)line->device;
		buf_putf(b, XPLANE_GPU "%u", line->device);
	} else if (line->device == NO_ID) {
		m.id = CUSTOM_FIRST;
		buf_put_text(b, XPLANE_WAITS);
	} else {
		m.id = CUSTOM_FIRST + 1 + (int64_t)line->device;
		buf_putf(b, XPLANE_WAITS " of GPU %u", line->device);
	}
	m.has_id = m.has_name = true;
	m.name = text_data(buf_text(b), b->len);
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

static enum status put_stat_text(struct tb_space *s, const char *name, const char *text, size_t len,
				 struct buf *out, struct error *err)
{
	uint64_t key = tb_key(&s->names, name, err);

	if (!key)
		return err->status;
	tb_stat_text(out, PLANE_STATS, key, text, len);
	return ST_OK;
}

/* XProf's name of a device's attribute, and the factor to its unit; NULL: XProf has none. */
static const char *device_stat(const char *key, uint64_t *factor)
{
	static const struct {
		const char *ours, *theirs;
		uint64_t factor;
	} stats[] = { { "memoryBandwidthKBs", "memory_bandwidth", 1000 },
		      { "memory_bandwidth", "memory_bandwidth", 1 },
#define X(ours, theirs) { ours, theirs, 1 },
		      XSPACE_DEVICE_LIST(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
		*factor = stats[i].factor;
		if (strcmp(key, stats[i].ours) == 0)
			return stats[i].theirs;
	}
	return NULL;
}

static enum status put_device(struct tb_space *s, uint32_t device, struct buf *out,
			      struct error *err)
{
	const struct device *d =
		trace_get_device(s->trace, trace_find_device(s->trace, s->process, device));
	const struct arg_schema *schema = trace_get_schema(s->trace, d->schema);
	const struct attr *own = trace_find_attr(s->trace, d->schema, "device_vendor");
	size_t len;
	const char *name = trace_text(s->trace, d->name, &len), *vendor = "Nvidia";

	if (len)
		TRY(put_stat_text(s, "gpu_device_name", name, len, out, err));
	if (strstr(name, "AMD") || strstr(name, "Radeon") || strstr(name, "Instinct"))
		vendor = "AMD"; /* the vendor decides what XProf calls the card */
	if (own && own->type == ATTR_TEXT)
		vendor = trace_text(s->trace, (uint32_t)own->bits, NULL);
	TRY(put_stat_text(s, "device_vendor", vendor, strlen(vendor), out, err));
	for (uint32_t i = 0; i < schema->const_count; i++) {
		const struct attr *a = &schema->consts[i];
		uint64_t factor;
		const char *stat = device_stat(trace_text(s->trace, a->key, NULL), &factor);

		if (stat && a->type <= ATTR_I64)
			TRY(put_stat_u64(s, stat, a->bits * factor, out, err));
	}
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
	if (line->plane == TB_PLANE_HOST && p->pid)
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

enum status tb_put_environment(struct tb_space *s, struct buf *out, struct error *err)
{
	size_t plane;

	/* XProf shows warnings on its overview page. */
	for (enum loss why = 0; why < LOSS_END; why++) {
		uint64_t lost = trace_lost(s->trace, s->process, why);

		if (!lost || why == LOSS_DERIVED || why == LOSS_CUT_OUT || why == LOSS_ORDER)
			continue;
		buf_clear(&s->scratch);
		buf_putf(&s->scratch, "%llu events are missing: %s", (unsigned long long)lost,
			 loss_text(why));
		pb_put_bytes(out, SPACE_WARNINGS, s->scratch.data, s->scratch.len);
	}
	plane = pb_begin(out, SPACE_PLANES);
	TRY(put_run(s, out, err));
	pb_end(out, plane);
	pb_put_text(out, SPACE_HOSTNAMES, s->host);
	return buf_status(out, err);
}
