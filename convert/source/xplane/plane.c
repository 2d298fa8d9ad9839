/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/xplane/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- lines ---- */

/* Reads all fields of a line but its events, because some may follow the events. */
static enum status read_line_head(struct xplane_import *x, struct xplane_span line,
				  struct xplane_place *p, uint64_t *events, struct error *err)
{
	struct xplane_field f;
	uint32_t name = 0, shown = 0;

	*events = 0;
	while (xplane_next(&x->file, &line, &f)) {
		if (f.number == LINE_ID && f.wire == PB_VARINT)
			p->track.id = f.u64;
		else if (f.number == LINE_TIMESTAMP_NS && f.wire == PB_VARINT)
			p->timestamp_ns = (int64_t)f.u64;
		else if (f.number == LINE_NAME && f.wire == PB_BYTES)
			TRY(xplane_text(x, &f.span, &name, err));
		else if (f.number == LINE_DISPLAY_NAME && f.wire == PB_BYTES)
			TRY(xplane_text(x, &f.span, &shown, err));
		*events += f.number == LINE_EVENTS && f.wire == PB_BYTES;
	}
	x->damaged += line.is_truncated;
	p->is_counters = strcmp(trace_text(x->to.trace, name, NULL), XLINE_COUNTERS) == 0;
	p->track.name = shown && trace_text(x->to.trace, shown, NULL)[0] ? shown : name;
	return ST_OK;
}

static enum status read_events(struct xplane_import *x, struct xplane_span line,
			       struct xplane_place *p, struct error *err)
{
	struct xplane_field f;
	struct bytes event;

	while (xplane_find(&x->file, &line, LINE_EVENTS, &f)) {
		event = xplane_bytes(&x->file, &f.span);
		if (event.is_truncated)
			import_lose(&x->to, LOSS_CEILING, 1);
		else if (line.is_truncated) /* the event is cut off */
			import_lose(&x->to, LOSS_DAMAGED, 1);
		else
			TRY(xplane_import_event(x, event, p, err));
	}
	return ST_OK;
}

static enum status read_line(struct xplane_import *x, struct xplane_span line,
			     const struct xplane_place *plane, struct error *err)
{
	struct xplane_place p = *plane;
	uint64_t events;
	int64_t line_id;

	TRY(read_line_head(x, line, &p, &events, err));
	if (p.is_gpu && strcmp(trace_text(x->to.trace, p.track.name, NULL), XLINE_INPUT) == 0)
		return ST_OK;
	line_id = (int64_t)p.track.id;
	/* On a TPU only operations are work; modules, steps, scopes and sources are derived from
	 * them. */
	p.is_derived = p.is_tpu &&
		       strcmp(trace_text(x->to.trace, p.track.name, NULL), XLINE_OPS) != 0 &&
		       strcmp(trace_text(x->to.trace, p.track.name, NULL), XLINE_ASYNC_OPS) != 0;
	p.is_derived |= p.is_gpu && !p.is_tpu && line_id >= XLINE_DERIVED_FIRST &&
			line_id < XLINE_DERIVED_FIRST + XLINE_DERIVED_COUNT;
	p.track.process = x->to.process;
	p.track.device = p.device;
	p.track.context = p.is_gpu || p.is_host || p.is_waits ? NO_ID : p.plane;
	p.track.type = p.is_gpu || p.is_waits ? TRACK_STREAM : TRACK_THREAD;
	return events ? read_events(x, line, &p, err) : ST_OK;
}

/* ---- planes ---- */

/* Returns the number at the end of "/device:GPU:0", also for other accelerators. */
static uint32_t device_of(const char *name)
{
	const char *colon = strrchr(name, ':');
	char *end;
	unsigned long number;

	if (strncmp(name, "/device:", 8) != 0 || !colon || !isdigit((unsigned char)colon[1]))
		return NO_ID;
	number = strtoul(colon + 1, &end, 10);
	return *end || number >= NO_ID ? NO_ID : (uint32_t)number;
}

static enum status take_device_stat(struct xplane_import *x, const struct xplane_value *v,
				    struct device *d, struct error *err)
{
	static const char *const keys[][2] = {
#define X(ours, theirs) { ours, theirs },
		XSPACE_DEVICE_LIST(X)
#undef X
	};
	const char *key = trace_text(x->to.trace, v->key, NULL);
	uint64_t number;

	bool is_name =
		strcmp(key, "gpu_device_name") == 0 || strcmp(key, "device_type_string") == 0;

	if (is_name && v->type == ATTR_TEXT) {
		d->name = (uint32_t)v->bits;
		return ST_OK;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i][1]) == 0 && xplane_value_u64(x, v, &number))
			return xplane_attr(x, keys[i][0], ATTR_U64, number, false, err);
	return xplane_attr(x, key, v->type, v->bits, false, err);
}

static enum status read_device(struct xplane_import *x, struct xplane_span plane, uint32_t id,
			       struct error *err)
{
	struct device d = { .process = x->to.process, .id = id };
	struct xplane_value v;
	struct xplane_field f;

	import_begin(&x->to);
	while (xplane_find(&x->file, &plane, PLANE_STATS, &f)) {
		TRY(xplane_value_read(x, &f.span, &v, err));
		if (v.key)
			TRY(take_device_stat(x, &v, &d, err));
	}
	TRY(import_schema_id(&x->to, &d.schema, err));
	return trace_device(x->to.trace, &d, err) ? ST_OK : err->status;
}

enum status xplane_import_plane(struct xplane_import *x, struct xplane_span plane, const char *name,
				uint32_t number, struct error *err)
{
	struct xplane_place p = { .plane = number, .device = device_of(name) };
	struct xplane_field f;
	unsigned device;

	p.is_gpu = p.device != NO_ID && strncmp(name, XPLANE_CUSTOM, strlen(XPLANE_CUSTOM)) != 0;
	p.is_tpu = p.is_gpu && strncmp(name, XPLANE_GPU, strlen(XPLANE_GPU)) != 0;
	p.is_host = strcmp(name, XPLANE_HOST) == 0;
	p.is_waits = strncmp(name, XPLANE_WAITS, strlen(XPLANE_WAITS)) == 0;
	if (p.is_waits && sscanf(name, XPLANE_WAITS " of GPU %9u", &device) == 1)
		p.device = device;
	else if (!p.is_gpu)
		p.device = NO_ID;
	TRY(xplane_names_read(x, plane, err));
	if (p.is_gpu)
		TRY(read_device(x, plane, p.device, err));
	while (xplane_find(&x->file, &plane, PLANE_LINES, &f))
		TRY(read_line(x, f.span, &p, err));
	return ST_OK;
}
