/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XSpace (.xplane.pb) of JAX, XLA and TensorFlow.  Names stand behind the events that use them and
 * the time of the whole in the last plane, so the file is read where it lies, plane by plane, and
 * its events go through a spool.
 */
#include "convert/input/input.h"
#include "convert/source/source_list.h"
#include "convert/source/spooled.h"
#include "convert/source/xplane/import.h"
#include "schemas/proto/xspace.h"

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

/* The first plane may reach beyond the head: its first fields do not. */
static int plane_bid(struct bytes b)
{
	static const char *const begins[] = { "/host:", "/device:", "Task Environment", "#Chip" };
	struct pb_field f;

	while (pb_next(&b, &f)) {
		for (size_t i = 0; f.number == PLANE_NAME && f.wire == PB_BYTES && i < 4; i++)
			if (bytes_left(&f.bytes) >= strlen(begins[i]) &&
			    memcmp(f.bytes.at, begins[i], strlen(begins[i])) == 0)
				return 95;
		if (f.number != PLANE_ID || f.wire != PB_VARINT)
			return 0;
	}
	return 0;
}

static int xplane_bid(const uint8_t *head, size_t len)
{
	struct bytes b = bytes_init(head, len);
	uint64_t key, size;

	while (bytes_left(&b) && !b.is_truncated) {
		key = take_varint(&b);
		size = take_varint(&b);
		if (b.is_truncated || (key & 7) != PB_BYTES || key >> 3 < SPACE_PLANES ||
		    key >> 3 > SPACE_HOSTNAMES)
			return 0;
		if (key >> 3 == SPACE_PLANES)
			return plane_bid(bytes_init(b.at, size < bytes_left(&b) ? (size_t)size
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

	do {
		TRY(xplane_file_find(&r->file, &plane, PLANE_NAME, &f, &more, err));
		if (!more)
			return ST_OK;
	} while (f.span.end - f.span.at >= NAME_MOST);
	TRY(xplane_file_bytes(&r->file, &f.span, &text, &fits, err));
	memcpy(row->name, text.at, bytes_left(&text));
	row->name[bytes_left(&text)] = '\0';
	return ST_OK;
}

/* The planes and where they are; damage around them ends the input there. */
static enum status read_space(struct reader *r, struct error *err)
{
	struct xplane_span all = xplane_file_all(&r->file);
	struct xplane_field f;
	struct bytes host;
	uint64_t at = 0;
	bool more, fits;

	for (;;) {
		if (!all.is_truncated)
			at = all.at;
		TRY(xplane_file_next(&r->file, &all, &f, &more, err));
		if (!more)
			break;
		if (f.number == SPACE_HOSTNAMES && f.wire == PB_BYTES && !r->host) {
			TRY(xplane_file_bytes(&r->file, &f.span, &host, &fits, err));
			if (fits && bytes_left(&host))
				r->host = trace_name(r->source->trace, (const char *)host.at,
						     bytes_left(&host), err);
			if (fits && bytes_left(&host) && !r->host)
				return err->status;
		}
		if (f.number != SPACE_PLANES || f.wire != PB_BYTES)
			continue;
		struct plane_row row = { .span = f.span };

		TRY(read_plane_name(r, &row, err));
		buf_put(&r->planes, &row, sizeof(row));
		TRY(buf_status(&r->planes, err));
	}
	if (!all.is_truncated)
		return ST_OK;
	fail(&r->source->fault, ST_TRUNCATED, at,
	     r->planes.len ? "a plane of the XSpace is cut off" : "no plane of an XSpace is whole");
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
		TRY(xplane_file_find(&r->file, &plane, PLANE_STATS, &f, &more, err));
		if (!more)
			return ST_OK;
		TRY(xplane_value_read(&x->names, &f.span, &v, err));
		if (!v.key)
			continue;
		if (strcmp(trace_text(x->to.trace, v.key, NULL), "profile_start_time") == 0 &&
		    xplane_value_u64(&x->names, &v, &ns) && ns < BASE_MOST)
			x->base_ns = (int64_t)ns;
		xplane_attr_value(x, &v);
	}
}

/* Attributes of the profile become the process's. */
static enum status finish_process(struct reader *r, const char *path, struct error *err)
{
	struct spool_source *s = r->source;
	struct process p = { .rank = NO_RANK };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *end = strstr(name, ".xplane.pb");

	/* HOST.xplane.pb, when the file does not name its host */
	if (!r->host && end && end != name) {
		r->host = trace_name(s->trace, name, (size_t)(end - name), err);
		if (!r->host)
			return err->status;
	}
	p.host = r->host;
	TRY(import_schema_id(&r->import.to, &p.schema, err));
	trace_set_process(s->trace, s->process, &p);
	return ST_OK;
}

/* ---- the whole ---- */

static enum status read_input(struct reader *r, const char *path, struct error *err)
{
	struct spool_source *s = r->source;
	struct xplane_import *x = &r->import;
	const struct plane_row *planes;
	size_t count;

	TRY(read_space(r, err));
	planes = (const struct plane_row *)(const void *)r->planes.data;
	count = r->planes.len / sizeof(*planes);
	if (!count)
		return s->fault.status == ST_OK
			       ? fail(err, ST_FORMAT, 0, "an XSpace without planes")
			       : fail(err, s->fault.status, s->fault.at, "%s", s->fault.text);
	for (size_t i = 0; i < count; i++)
		if (strcmp(planes[i].name, XPLANE_ENVIRONMENT) == 0)
			TRY(take_environment(r, &planes[i], err));
	TRY(finish_process(r, path, err));
	for (size_t i = 0; i < count; i++)
		if (strcmp(planes[i].name, XPLANE_ENVIRONMENT) != 0)
			TRY(xplane_import_plane(x, planes[i].span, planes[i].name, (uint32_t)i + 1,
						err));
	TRY(import_provenance(&x->to, "XSpace", &s->fault, err));
	trace_provenance(s->trace)->epoch_known = x->base_ns || x->is_absolute;
	if (x->names.damaged)
		import_lose(&x->to, LOSS_DAMAGED, x->names.damaged);
	if (x->names.left_out) /* programs of the compiler, and texts as long */
		import_lose(&x->to, LOSS_UNREAD, x->names.left_out);
	return ST_OK;
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

static const struct spool_reader reader = { .own_bytes = 2 << 20,
					    .spools = 1,
					    .read = xplane_read };

const struct source_type source_xplane = {
	.name = "xplane",
	.help = "XSpace of JAX, XLA, TensorFlow (.xplane.pb)",
	.bid = xplane_bid,
	.spooled = &reader,
	.next = spool_source_next,
	.close = spool_source_close,
};
