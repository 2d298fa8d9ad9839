/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the parts of an XSpace other than events: heads of lines and planes, devices, the run. */
#include "convert/sink/tensorboard/internal.h"

#include <stdio.h>

enum { CUSTOM_FIRST = 1 };

/* ---- lines ---- */

void tb_put_line_head(struct tb_space *s, const struct tb_line *line, struct buf *out)
{
	const struct track *k = trace_get_track(s->trace, line ? line->track : 0);
	const struct tb_line *lines = (const struct tb_line *)(const void *)s->lines.data;
	uint64_t place = line ? (uint64_t)(line - lines) : 0, id = INT32_MAX - place;
	struct buf *b = &s->scratch;
	size_t len;
	const char *text = trace_text(s->trace, k->name, &len);

	buf_clear(b);
	if (!line)
		buf_put_text(b, "Steps");
	else if (line->kind == TB_LINE_COUNTERS)
		buf_put_text(b, XLINE_COUNTERS);
	else if (line->kind == TB_LINE_INPUT)
		buf_put_text(b, XLINE_INPUT);
	else if (line->kind == TB_LINE_MEMORY)
		buf_put_text(b, "Memory");
	else if (len)
		sink_put_utf8(text, len, true, b);
	else
		buf_putf(b, k->type == TRACK_STREAM ? "Stream #%llu" : "Thread %llu",
			 (unsigned long long)k->id);
	if (!line)
		id = (uint64_t)XLINE_DERIVED_FIRST;
	else if (line->track)
		id = k->id;
	pb_put_u64(out, LINE_ID, id);
	pb_put_bytes(out, LINE_NAME, b->data, b->len);
	pb_put_u64(out, LINE_TIMESTAMP_NS, 0);
	if (line && line->plane != TB_PLANE_GPU) /* rows in a viewer differ even if ids are equal */
		pb_put_u64(out, LINE_DISPLAY_ID, place + 1);
}

/* ---- planes ---- */

enum status tb_put_plane_head(struct tb_space *s, const struct tb_line *line, struct buf *out,
			      struct error *err)
{
	bool has_device = line->device != NO_ID;
	uint64_t id = 0;

	buf_clear(&s->scratch);
	if (line->plane == TB_PLANE_HOST) {
		buf_put_text(&s->scratch, XPLANE_HOST);
	} else if (line->plane == TB_PLANE_GPU) {
		id = has_device ? line->device : 0;
		buf_putf(&s->scratch, XPLANE_GPU "%u", line->device);
	} else {
		id = CUSTOM_FIRST + (has_device ? 1 + (uint64_t)line->device : 0);
		buf_put_text(&s->scratch, XPLANE_WAITS);
		if (has_device)
			buf_putf(&s->scratch, " of GPU %u", line->device);
	}
	pb_put_u64(out, PLANE_ID, id);
	pb_put_bytes(out, PLANE_NAME, s->scratch.data, s->scratch.len);
	return buf_status(out, err);
}

static void put_stat_u64(struct tb_space *s, const char *name, uint64_t v, struct buf *out)
{
	tb_stat(out, PLANE_STATS, tb_key(&s->names, name), XSTAT_UINT64, v);
}

static void put_stat_text(struct tb_space *s, const char *name, const char *text, size_t len,
			  struct buf *out)
{
	tb_stat_text(out, PLANE_STATS, tb_key(&s->names, name), text, len);
}

/* Returns XProf's name of a device's attribute and the factor to its unit, or NULL if XProf has
 * none. */
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

static void put_device(struct tb_space *s, uint32_t device, struct buf *out)
{
	const struct device *d =
		trace_get_device(s->trace, trace_find_device(s->trace, s->process, device));
	const struct arg_schema *schema = trace_get_schema(s->trace, d->schema);
	const char *own = trace_attr_text(s->trace, d->schema, "device_vendor");
	size_t len;
	const char *name = trace_text(s->trace, d->name, &len), *vendor = "Nvidia";

	if (len)
		put_stat_text(s, "gpu_device_name", name, len, out);
	if (strstr(name, "AMD") || strstr(name, "Radeon") || strstr(name, "Instinct"))
		vendor = "AMD"; /* XProf names the GPU by its vendor */
	vendor = own ? own : vendor;
	put_stat_text(s, "device_vendor", vendor, strlen(vendor), out);
	for (uint32_t i = 0; i < schema->const_count; i++) {
		const struct attr *a = &schema->consts[i];
		uint64_t factor;
		const char *stat = device_stat(trace_text(s->trace, a->key, NULL), &factor);

		if (stat && a->type <= ATTR_I64)
			put_stat_u64(s, stat, a->bits * factor, out);
	}
}

enum status tb_put_plane_stats(struct tb_space *s, const struct tb_line *line, struct buf *out,
			       struct error *err)
{
	const struct process *p = trace_get_process(s->trace, s->process);

	if (!s->is_xspace) /* in every plane, so that XProf derives no groups */
		tb_key(&s->names, "group_id");
	if (line->plane == TB_PLANE_GPU)
		put_device(s, line->device, out);
	if (line->plane == TB_PLANE_HOST && p->pid)
		put_stat_u64(s, "process_id", p->pid, out);
	TRY(tb_names_status(&s->names, err));
	return buf_status(out, err);
}

/* ---- the run ---- */

/* Appends the programs of the compiler as they were in the original XSpace. */
static void put_programs(struct tb_space *s, struct buf *out)
{
	static const char stat[] = XSTAT_PROGRAM;
	const struct arg_schema *schema =
		trace_get_schema(s->trace, trace_get_process(s->trace, s->process)->schema);
	size_t begin = out->len, plane = pb_begin(out, SPACE_PLANES), entry, value, program;
	bool any = false;

	pb_put_text(out, PLANE_NAME, XPLANE_METADATA);
	entry = pb_begin(out, PLANE_STAT_METADATA);
	pb_put_u64(out, ENTRY_KEY, 1);
	value = pb_begin(out, ENTRY_VALUE);
	pb_put_u64(out, STAT_META_ID, 1);
	pb_put_bytes(out, STAT_META_NAME, stat, sizeof(stat) - 1);
	pb_end(out, value);
	pb_end(out, entry);
	for (uint32_t i = 0; i < schema->const_count; i++) {
		const struct attr *a = &schema->consts[i];
		const char *key = trace_text(s->trace, a->key, NULL), *bytes;
		unsigned long long id;
		size_t len;
		int at = 0;

		if (a->type != ATTR_TEXT ||
		    sscanf(key, XSPACE_PROGRAM_KEY "%llu.%n", &id, &at) < 1 || !at)
			continue;
		any = true;
		bytes = trace_text(s->trace, (uint32_t)a->bits, &len);
		entry = pb_begin(out, PLANE_EVENT_METADATA);
		pb_put_u64(out, ENTRY_KEY, id);
		value = pb_begin(out, ENTRY_VALUE);
		pb_put_u64(out, EVENT_META_ID, id);
		pb_put_bytes(out, EVENT_META_NAME, key + at, strlen(key + at));
		program = pb_begin(out, EVENT_META_STATS);
		pb_put_u64(out, XSTAT_METADATA_ID, 1);
		pb_put_bytes(out, XSTAT_BYTES, bytes, len);
		pb_end(out, program);
		pb_end(out, value);
		pb_end(out, entry);
	}
	pb_end(out, plane);
	if (!any)
		out->len = begin;
}

enum status tb_put_environment(struct tb_space *s, struct buf *out, struct error *err)
{
	size_t plane;

	plane = pb_begin(out, SPACE_PLANES);
	tb_names_clear(&s->names);
	pb_put_text(out, PLANE_NAME, XPLANE_ENVIRONMENT);
	put_stat_text(s, XSTAT_CONVERTED_BY, "Tacho", 5, out);
	put_stat_u64(s, XSTAT_PROFILE_START, s->origin_ns, out);
	put_stat_u64(s, "profile_stop_time",
		     s->steps.last_ns > s->origin_ns ? s->steps.last_ns : s->origin_ns, out);
	TRY(tb_names_status(&s->names, err));
	buf_put(out, s->names.entries.data, s->names.entries.len);
	pb_end(out, plane);
	pb_put_text(out, SPACE_HOSTNAMES, s->host);
	/* XProf shows warnings on its overview page.  It knows no wait on a GPU's plane except that
	 * for input, and calls each program input-bound whose GPU is idle for other reasons. */
	static const char all_others[] = "'All Others' is time in which the GPU was idle, but not "
					 "for input: waits for input "
					 "are 'Input'. The causes are in the report under 'Text'.";

	if (s->has_gpu && !s->is_xspace && s->steps.list.count)
		pb_put_bytes(out, SPACE_WARNINGS, all_others, sizeof(all_others) - 1);
	for (enum loss why = 0; why < LOSS_END; why++) {
		uint64_t lost = trace_lost(s->trace, s->process, why);

		if (!lost || why == LOSS_DERIVED || why == LOSS_CUT_OUT || why == LOSS_ORDER)
			continue;
		buf_clear(&s->scratch);
		buf_putf(&s->scratch, "%llu events are missing: %s", (unsigned long long)lost,
			 loss_text(why));
		pb_put_bytes(out, SPACE_WARNINGS, s->scratch.data, s->scratch.len);
	}
	put_programs(s, out);
	return buf_status(out, err);
}
