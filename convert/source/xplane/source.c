/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads XSpace (.xplane.pb) of JAX, XLA and TensorFlow.  Names follow the events that use them, and
 * the start time is in the last plane, so the file is read in place, plane by plane, and its events
 * go through a spool.
 */
#include "convert/input/input.h"
#include "convert/source/xplane/internal.h"

#include <stdlib.h>

enum {
	PLANES_BYTES = 4 << 20,
	NAMES_BYTES = 64 << 20,
	TEXT_BYTES = 17 << 20, /* most bytes of a program or a name */
	NAME_MOST = 256,       /* name of a plane; longer ones have no meaning for us */
};

#define BASE_MOST ((uint64_t)1 << 61)

struct plane_row {
	struct xplane_span span;
	char name[NAME_MOST];
};

struct reader { /* exists while the source opens */
	struct spool_source *source;
	struct xplane_import import;
	struct buf planes; /* struct plane_row */
	uint32_t host;     /* name id */
};

/* ---- the bid ---- */

/* Bids by the first plane.  It may extend beyond the head, but its first fields do not. */
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

/* ---- fields around the planes ---- */

static void read_plane_name(struct reader *r, struct plane_row *row)
{
	struct xplane_span plane = row->span;
	struct xplane_field f;
	struct bytes text;

	while (xplane_find(&r->import.file, &plane, PLANE_NAME, &f)) {
		if (f.span.end - f.span.at >= NAME_MOST)
			continue;
		text = xplane_bytes(&r->import.file, &f.span);
		memcpy(row->name, text.at, bytes_left(&text));
		return;
	}
}

/* Lists the planes and their positions; damage outside of planes ends the input there. */
static enum status read_space(struct reader *r, struct error *err)
{
	struct xplane_file *file = &r->import.file;
	struct xplane_span all = { .end = input_size(file->in) };
	struct xplane_field f;
	struct bytes host;
	uint64_t at = 0;

	for (; xplane_next(file, &all, &f); at = all.is_truncated ? at : all.at) {
		struct plane_row row = { .span = f.span };

		if (f.number == SPACE_HOSTNAMES && f.wire == PB_BYTES && !r->host) {
			host = xplane_bytes(file, &f.span);
			if (bytes_left(&host))
				TRY(import_name(&r->import.to, (const char *)host.at,
						bytes_left(&host), &r->host, err));
		}
		if (f.number != SPACE_PLANES || f.wire != PB_BYTES)
			continue;
		read_plane_name(r, &row);
		buf_put(&r->planes, &row, sizeof(row));
		TRY(buf_status(&r->planes, err));
	}
	if (!all.is_truncated)
		return ST_OK;
	fail(&r->source->fault, ST_TRUNCATED, at,
	     r->planes.len ? "a plane of the XSpace is truncated"
			   : "the XSpace has no complete plane");
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

	TRY(xplane_names_read(x, plane, err));
	while (xplane_find(&x->file, &plane, PLANE_STATS, &f)) {
		TRY(xplane_value_read(x, &f.span, &v, err));
		if (!v.key)
			continue;
		if (strcmp(trace_text(x->to.trace, v.key, NULL), XSTAT_PROFILE_START) == 0 &&
		    xplane_value_u64(x, &v, &ns) && ns < BASE_MOST)
			x->base_ns = (int64_t)ns;
		v.is_constant = true;
		TRY(xplane_attr_value(x, &v, err));
	}
	return ST_OK;
}

/* Sets the process's host, and the attributes of the profile as its attributes. */
static enum status finish_process(struct reader *r, const char *path, struct error *err)
{
	struct spool_source *s = r->source;
	struct process p = { .rank = NO_RANK };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *end = strstr(name, ".xplane.pb");

	/* The name HOST.xplane.pb is used if the file does not contain its host. */
	if (!r->host && end && end != name)
		TRY(import_name(&r->import.to, name, (size_t)(end - name), &r->host, err));
	p.host = r->host;
	TRY(import_schema_id(&r->import.to, &p.schema, err));
	trace_set_process(s->trace, s->process, &p);
	return ST_OK;
}

/* ---- the whole ---- */

static enum status file_fault(const struct xplane_import *x, struct error *err)
{
	if (x->file.fault.status != ST_OK)
		*err = x->file.fault;
	return x->file.fault.status;
}

static enum status read_input(struct reader *r, const char *path, struct error *err)
{
	struct spool_source *s = r->source;
	struct xplane_import *x = &r->import;
	const struct plane_row *planes;
	size_t count;

	TRY(read_space(r, err));
	TRY(file_fault(x, err));
	planes = (const struct plane_row *)(const void *)r->planes.data;
	count = r->planes.len / sizeof(*planes);
	if (!count)
		return s->fault.status == ST_OK
			       ? fail(err, ST_FORMAT, 0, "an XSpace without planes")
			       : fail(err, s->fault.status, s->fault.at, "%s", s->fault.text);
	for (size_t i = 0; i < count; i++)
		if (strcmp(planes[i].name, XPLANE_ENVIRONMENT) == 0)
			TRY(take_environment(r, &planes[i], err));
	for (size_t i = 0; i < count; i++)
		if (strcmp(planes[i].name, XPLANE_METADATA) == 0)
			TRY(xplane_import_programs(x, planes[i].span, err));
	TRY(finish_process(r, path, err));
	for (size_t i = 0; i < count; i++)
		if (strcmp(planes[i].name, XPLANE_ENVIRONMENT) != 0 &&
		    strcmp(planes[i].name, XPLANE_METADATA) != 0)
			TRY(xplane_import_plane(x, planes[i].span, planes[i].name, (uint32_t)i + 1,
						err));
	TRY(file_fault(x, err));
	TRY(import_provenance(&x->to, "XSpace", &s->fault, err));
	trace_provenance(s->trace)->epoch_known = x->base_ns || x->is_absolute;
	if (x->damaged)
		import_lose(&x->to, LOSS_DAMAGED, x->damaged);
	if (x->left_out) /* unknown bytes, and texts that are too long */
		import_lose(&x->to, LOSS_UNREAD, x->left_out);
	return ST_OK;
}

static enum status xplane_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct reader r = { .source = s };
	struct xplane_import *x = &r.import;
	enum status status = ST_OK;

	(void)left;
	TRY(input_random(in, err));
	TRY(spool_source_process(s, input_path(in), err));
	import_init(&x->to, s->trace, s->spool, s->process);
	buf_init(&r.planes, PLANES_BYTES);
	buf_init(&x->stats, NAMES_BYTES);
	buf_init(&x->events, NAMES_BYTES);
	buf_init(&x->values, NAMES_BYTES);
	buf_init(&x->text, TEXT_BYTES);
	x->file = (struct xplane_file){ .in = in, .window = malloc(XPLANE_WINDOW) };
	status = x->file.window ? read_input(&r, input_path(in), err) : fail_memory(err);
	free(x->file.window);
	import_release(&x->to);
	buf_release(&r.planes);
	buf_release(&x->stats);
	buf_release(&x->events);
	map_release(&x->stat_ids);
	map_release(&x->event_ids);
	buf_release(&x->values);
	buf_release(&x->text);
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
