/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XSpace (.xplane.pb) of JAX, XLA and TensorFlow.  Names stand behind the events that use them and
 * the time of the whole in the last plane, so the file is read where it lies, plane by plane, and
 * its events go through a spool.
 */
#include "convert/input.h"
#include "convert/spool/source.h"
#include "convert/xplane/import.h"
#include "schemas/xspace.h"

#include <stdlib.h>

enum {
	PLANES_BYTES = 4 << 20,
	NAME_MOST = 256, /* of a plane; a longer one is none that means something */
};

#define BASE_MOST ((uint64_t)1 << 61)

struct plane_row {
	struct xplane_span span;
	char name[NAME_MOST];
};

struct reader { /* while the source opens */
	struct spool_source *source;
	struct xplane_file file;
	struct xplane_import import;
	struct buf planes; /* struct plane_row */
	uint32_t host;     /* name */
};

/* ---- the bid ---- */

static bool is_plane_name(const char *text, size_t len)
{
	static const char *const begins[] = { "/host:", "/device:", "Task Environment", "#Chip" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (len >= strlen(begins[i]) && memcmp(text, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* The first plane may reach beyond the head: its first fields do not. */
static int plane_bid(struct bytes b)
{
	struct pb_field f;

	while (pb_next(&b, &f)) {
		if (f.number == PLANE_NAME && f.wire == PB_BYTES)
			return is_plane_name((const char *)f.bytes.at, bytes_left(&f.bytes)) ? 95
											     : 0;
		if (f.number != PLANE_ID || f.wire != PB_VARINT)
			return 0;
	}
	return 0;
}

static int xplane_bid(const uint8_t *head, size_t len)
{
	struct bytes b = bytes_init(head, len);
	uint64_t key, size;

	while (bytes_left(&b) && !b.cut) {
		key = take_varint(&b);
		size = take_varint(&b);
		if (b.cut || (key & 7) != PB_BYTES || key >> 3 < SPACE_PLANES ||
		    key >> 3 > SPACE_HOSTNAMES)
			return 0;
		if (key >> 3 == SPACE_PLANES)
			return plane_bid(bytes_init(b.at, size < bytes_left(&b)
								  ? (size_t)size
								  : bytes_left(&b)));
		take_bytes(&b, size);
	}
	return 0;
}

/* ---- what stands around the planes ---- */

static enum status read_plane_name(struct reader *r, struct plane_row *row, struct error *err)
{
	struct xplane_span plane = row->span;
	struct xplane_field f;
	struct bytes text;
	bool more, fits;

	for (;;) {
		TRY(xplane_file_next(&r->file, &plane, &f, &more, err));
		if (!more)
			return ST_OK;
		if (f.number != PLANE_NAME || f.wire != PB_BYTES ||
		    f.span.end - f.span.at >= NAME_MOST)
			continue;
		TRY(xplane_file_bytes(&r->file, &f.span, &text, &fits, err));
		memcpy(row->name, text.at, bytes_left(&text));
		row->name[bytes_left(&text)] = '\0';
		return ST_OK;
	}
}

static enum status read_host(struct reader *r, const struct xplane_span *span, struct error *err)
{
	struct bytes text;
	bool fits;

	TRY(xplane_file_bytes(&r->file, span, &text, &fits, err));
	if (r->host || !fits || !bytes_left(&text))
		return ST_OK;
	r->host = trace_name(r->source->trace, (const char *)text.at, bytes_left(&text), err);
	return r->host ? ST_OK : err->status;
}

/* The planes and where they are; damage around them ends the input there. */
static enum status read_space(struct reader *r, struct error *err)
{
	struct xplane_span all = xplane_file_all(&r->file);
	struct xplane_field f;
	uint64_t at = 0;
	bool more;

	for (;;) {
		if (!all.cut)
			at = all.at;
		TRY(xplane_file_next(&r->file, &all, &f, &more, err));
		if (!more)
			break;
		if (f.number == SPACE_HOSTNAMES && f.wire == PB_BYTES)
			TRY(read_host(r, &f.span, err));
		if (f.number != SPACE_PLANES || f.wire != PB_BYTES)
			continue;
		struct plane_row row = { .span = f.span };

		TRY(read_plane_name(r, &row, err));
		buf_put(&r->planes, &row, sizeof(row));
		TRY(buf_status(&r->planes, err));
	}
	if (!all.cut)
		return ST_OK;
	fail(&r->source->fault, ST_CUT, at, r->planes.len ? "a plane of the XSpace is cut off"
							  : "no plane of an XSpace is whole");
	return ST_OK;
}

static enum status take_environment(struct reader *r, const struct plane_row *row,
				    struct error *err)
{
	struct xplane_import *x = &r->import;
	struct xplane_span plane = row->span;
	struct xplane_value v;
	struct xplane_field f;
	uint64_t ns;
	bool more;

	TRY(xplane_names_read(&x->names, plane, err));
	for (;;) {
		TRY(xplane_file_next(&r->file, &plane, &f, &more, err));
		if (!more)
			return ST_OK;
		if (f.number != PLANE_STATS || f.wire != PB_BYTES)
			continue;
		TRY(xplane_value_read(&x->names, &f.span, &v, err));
		if (!v.key)
			continue;
		if (strcmp(trace_text(x->trace, v.key, NULL), "profile_start_time") == 0 &&
		    xplane_value_u64(&x->names, &v, &ns) && ns < BASE_MOST)
			x->base_ns = (int64_t)ns;
		TRY(xplane_attr_value(x, &v, err));
	}
}

/* HOST.xplane.pb, when the file does not say it. */
static enum status host_of_path(struct reader *r, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *end = strstr(name, ".xplane.pb");

	if (r->host || !end || end == name)
		return ST_OK;
	r->host = trace_name(r->source->trace, name, (size_t)(end - name), err);
	return r->host ? ST_OK : err->status;
}

/* Attributes of the profile become the process's. */
static enum status finish_process(struct reader *r, const char *path, struct error *err)
{
	struct spool_source *s = r->source;
	struct process p = { .rank = NO_RANK };

	TRY(host_of_path(r, path, err));
	p.host = r->host;
	TRY(xplane_attrs_shape(&r->import, &p.shape, err));
	trace_set_process(s->trace, s->process, &p);
	return ST_OK;
}

/* ---- the whole ---- */

static const struct plane_row *plane_at(const struct reader *r, size_t i)
{
	return (const struct plane_row *)(const void *)r->planes.data + i;
}

static enum status read_planes(struct reader *r, const char *path, struct error *err)
{
	size_t count = r->planes.len / sizeof(struct plane_row);

	for (size_t i = 0; i < count; i++)
		if (strcmp(plane_at(r, i)->name, XPLANE_ENVIRONMENT) == 0)
			TRY(take_environment(r, plane_at(r, i), err));
	TRY(finish_process(r, path, err));
	for (size_t i = 0; i < count; i++)
		if (strcmp(plane_at(r, i)->name, XPLANE_ENVIRONMENT) != 0)
			TRY(xplane_import_plane(&r->import, plane_at(r, i)->span,
						plane_at(r, i)->name, (uint32_t)i + 1, err));
	return ST_OK;
}

static enum status fill_provenance(struct reader *r, struct error *err)
{
	struct spool_source *s = r->source;
	struct provenance *p = trace_provenance(s->trace);

	p->format = trace_name(s->trace, "XSpace", 6, err);
	if (!p->format)
		return err->status;
	p->is_whole = s->fault.status == ST_OK;
	p->epoch_known = r->import.base_ns || r->import.is_absolute;
	p->events += r->import.events;
	if (r->import.names.damaged)
		trace_lose(s->trace, s->process, LOSS_DAMAGED, r->import.names.damaged);
	if (r->import.names.left_out) /* programs of the compiler, and texts as long */
		trace_lose(s->trace, s->process, LOSS_UNREAD, r->import.names.left_out);
	return ST_OK;
}

static enum status read_input(struct reader *r, const char *path, struct error *err)
{
	TRY(read_space(r, err));
	if (!r->planes.len)
		return r->source->fault.status == ST_OK
			       ? fail(err, ST_FORMAT, 0, "an XSpace without planes")
			       : fail(err, r->source->fault.status, r->source->fault.at, "%s",
				      r->source->fault.text);
	TRY(read_planes(r, path, err));
	return fill_provenance(r, err);
}

static enum status xplane_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct reader r = { .source = s };
	enum status status = input_random(in, err);

	(void)left;
	buf_init(&r.planes, PLANES_BYTES);
	if (status == ST_OK)
		status = spool_source_process(s, input_path(in), err);
	if (status == ST_OK)
		status = xplane_file_init(&r.file, in, err);
	xplane_import_init(&r.import, s->trace, s->spool, &r.file, s->process);
	if (status == ST_OK)
		status = read_input(&r, input_path(in), err);
	xplane_import_release(&r.import);
	xplane_file_release(&r.file);
	buf_release(&r.planes);
	return status;
}

static enum status xplane_open(struct source **out, struct input *in, struct trace *trace,
			       const struct budget *budget, const struct cut *wanted,
			       struct error *err)
{
	static const struct spool_plan plan = {
		.type = &source_xplane, .what = "an XSpace source", .own_bytes = 2 << 20,
		.spools = 1, .read = xplane_read,
	};

	(void)wanted; /* launches outside a cut are needed to place work inside */
	return spool_source_open(out, &plan, in, trace, budget, err);
}

const struct source_type source_xplane = {
	.name = "xplane",
	.help = "XSpace of JAX, XLA, TensorFlow (.xplane.pb)",
	.bid = xplane_bid,
	.open = xplane_open,
	.next = spool_source_next,
	.close = spool_source_close,
};
