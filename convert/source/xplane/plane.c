/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/xplane/import.h"

#include "schemas/proto/xspace.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

void xplane_import_init(struct xplane_import *x, struct trace *trace, struct spool *spool,
			struct xplane_file *file, uint32_t process)
{
	*x = (struct xplane_import){ .file = file };
	import_init(&x->to, trace, spool, process);
	xplane_names_init(&x->names, trace, file);
}

void xplane_import_release(struct xplane_import *x)
{
	import_release(&x->to);
	xplane_names_release(&x->names);
}

/* ---- lines ---- */

static enum status read_text(struct xplane_import *x, const struct xplane_span *span,
			     uint32_t *name, struct error *err)
{
	struct xplane_span begin = *span;
	struct bytes text;
	bool fits;

	if (begin.end - begin.at > XPLANE_WINDOW / 4)
		begin.end = begin.at + XPLANE_WINDOW / 4;
	TRY(xplane_file_bytes(x->file, &begin, &text, &fits, err));
	*name = trace_name(x->to.trace, (const char *)text.at, bytes_left(&text), err);
	return *name ? ST_OK : err->status;
}

/* All fields of a line but its events, which may stand before them. */
static enum status read_line_head(struct xplane_import *x, struct xplane_span line,
				  struct xplane_place *p, uint64_t *events, struct error *err)
{
	struct xplane_field f;
	uint32_t name = 0, shown = 0;
	bool more;

	*events = 0;
	for (;;) {
		TRY(xplane_file_next(x->file, &line, &f, &more, err));
		if (!more)
			break;
		if (f.number == LINE_ID && f.wire == PB_VARINT)
			p->track.id = f.u64;
		else if (f.number == LINE_TIMESTAMP_NS && f.wire == PB_VARINT)
			p->timestamp_ns = (int64_t)f.u64;
		else if (f.number == LINE_NAME && f.wire == PB_BYTES)
			TRY(read_text(x, &f.span, &name, err));
		else if (f.number == LINE_DISPLAY_NAME && f.wire == PB_BYTES)
			TRY(read_text(x, &f.span, &shown, err));
		*events += f.number == LINE_EVENTS && f.wire == PB_BYTES;
	}
	x->names.damaged += line.is_truncated;
	p->is_counters = strcmp(trace_text(x->to.trace, name, NULL), XLINE_COUNTERS) == 0;
	p->track.name = shown && trace_text(x->to.trace, shown, NULL)[0] ? shown : name;
	return ST_OK;
}

static enum status read_events(struct xplane_import *x, struct xplane_span line,
			       struct xplane_place *p, struct error *err)
{
	struct xplane_field f;
	struct bytes event;
	bool more, fits;

	for (;;) {
		TRY(xplane_file_find(x->file, &line, LINE_EVENTS, &f, &more, err));
		if (!more)
			return ST_OK;
		TRY(xplane_file_bytes(x->file, &f.span, &event, &fits, err));
		if (!fits)
			import_lose(&x->to, LOSS_CEILING, 1);
		else if (line.is_truncated) /* its end is missing */
			import_lose(&x->to, LOSS_DAMAGED, 1);
		else
			TRY(xplane_import_event(x, event, p, err));
	}
}

static enum status read_line(struct xplane_import *x, struct xplane_span line,
			     const struct xplane_place *plane, struct error *err)
{
	struct xplane_place p = *plane;
	uint64_t events;
	int64_t line_id;

	TRY(read_line_head(x, line, &p, &events, err));
	line_id = (int64_t)p.track.id;
	p.is_derived = p.is_gpu && line_id >= XLINE_DERIVED_FIRST &&
		       line_id < XLINE_DERIVED_FIRST + XLINE_DERIVED_COUNT;
	p.track.process = x->to.process;
	p.track.device = p.device;
	p.track.context = p.is_gpu || p.is_host || p.is_waits ? NO_ID : p.plane;
	p.track.type = p.is_gpu || p.is_waits ? TRACK_STREAM : TRACK_THREAD;
	return events ? read_events(x, line, &p, err) : ST_OK;
}

/* ---- planes ---- */

/* The number at the end of "/device:GPU:0", also of other accelerators. */
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

	if (strcmp(key, "gpu_device_name") == 0 && v->type == ATTR_TEXT) {
		d->name = (uint32_t)v->bits;
		return ST_OK;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i][1]) == 0 && xplane_value_u64(&x->names, v, &number))
			return xplane_attr(x, keys[i][0], ATTR_U64, number, false, err);
	return xplane_attr(x, key, v->type, v->bits, false, err);
}

static enum status read_device(struct xplane_import *x, struct xplane_span plane, uint32_t id,
			       struct error *err)
{
	struct device d = { .process = x->to.process, .id = id };
	struct xplane_value v;
	struct xplane_field f;
	bool more;

	import_begin(&x->to);
	for (;;) {
		TRY(xplane_file_find(x->file, &plane, PLANE_STATS, &f, &more, err));
		if (!more)
			break;
		TRY(xplane_value_read(&x->names, &f.span, &v, err));
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
	bool more;

	p.is_gpu = p.device != NO_ID && strncmp(name, XPLANE_CUSTOM, strlen(XPLANE_CUSTOM)) != 0;
	p.is_host = strcmp(name, XPLANE_HOST) == 0;
	p.is_waits = strncmp(name, XPLANE_WAITS, strlen(XPLANE_WAITS)) == 0;
	if (p.is_waits && sscanf(name, XPLANE_WAITS " of GPU %9u", &device) == 1)
		p.device = device;
	else if (!p.is_gpu)
		p.device = NO_ID;
	TRY(xplane_names_read(&x->names, plane, err));
	if (p.is_gpu)
		TRY(read_device(x, plane, p.device, err));
	for (;;) {
		TRY(xplane_file_find(x->file, &plane, PLANE_LINES, &f, &more, err));
		if (!more)
			return ST_OK;
		TRY(read_line(x, f.span, &p, err));
	}
}
