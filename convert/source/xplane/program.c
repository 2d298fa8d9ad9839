/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads programs that XLA compiled.  Tacho does not interpret them, but XProf computes its pages of
 * operations from them, so an XSpace that Tacho writes must contain them byte by byte.
 */
#include "convert/source/xplane/internal.h"

#include <stdio.h>

enum { PART_BYTES = 64 * 1024, PROGRAMS_BYTES = 16 << 20, KEY_MOST = 256 };

/* Reads the bytes of a span of any length into x->text. */
static enum status read_blob(struct xplane_import *x, const struct xplane_span *blob,
			     struct error *err)
{
	struct xplane_span part = { .end = blob->at };
	struct bytes bytes;

	buf_clear(&x->text);
	while (part.end < blob->end) {
		part.at = part.end;
		part.end += blob->end - part.at < PART_BYTES ? blob->end - part.at : PART_BYTES;
		bytes = xplane_bytes(&x->file, &part);
		if (!bytes_left(&bytes)) /* x->file.fault contains the error */
			break;
		buf_put(&x->text, bytes.at, bytes_left(&bytes));
	}
	return buf_status(&x->text, err);
}

/* Returns whether a stat is a program, and sets *out to its bytes. */
static bool find_program(struct xplane_import *x, struct xplane_span stat, struct xplane_span *out)
{
	struct xplane_field f;
	uint32_t name = 0;
	bool any = false;

	while (xplane_next(&x->file, &stat, &f)) {
		if (f.number == XSTAT_METADATA_ID && f.wire == PB_VARINT)
			name = xplane_stat_name(x, (int64_t)f.u64);
		if (f.number == XSTAT_BYTES && f.wire == PB_BYTES) {
			*out = f.span;
			any = true;
		}
	}
	return any && !stat.is_truncated &&
	       strcmp(trace_text(x->to.trace, name, NULL), XSTAT_PROGRAM) == 0;
}

static enum status take_program(struct xplane_import *x, const struct xplane_span *program,
				uint64_t id, uint32_t name, struct error *err)
{
	uint64_t size = program->end - program->at;
	char key[KEY_MOST];

	if (size > PROGRAMS_BYTES - x->program_bytes) {
		x->left_out++;
		return ST_OK;
	}
	x->program_bytes += size;
	TRY(read_blob(x, program, err));
	snprintf(key, sizeof(key), XSPACE_PROGRAM_KEY "%llu.%s", (unsigned long long)id,
		 trace_text(x->to.trace, name, NULL));
	return import_text(&x->to, key, buf_text(&x->text), x->text.len, err);
}

/* Reads one entry of the map of event names. */
static enum status read_entry(struct xplane_import *x, struct xplane_span entry, struct error *err)
{
	struct xplane_span value = { 0 }, rest, program;
	struct xplane_field f;
	uint64_t id = 0;
	uint32_t name = 0;

	while (xplane_next(&x->file, &entry, &f))
		if (f.number == ENTRY_KEY && f.wire == PB_VARINT)
			id = f.u64;
		else if (f.number == ENTRY_VALUE && f.wire == PB_BYTES)
			value = f.span;
	for (rest = value; xplane_find(&x->file, &rest, EVENT_META_NAME, &f);)
		TRY(xplane_text(x, &f.span, &name, err));
	while (xplane_find(&x->file, &value, EVENT_META_STATS, &f))
		if (find_program(x, f.span, &program))
			TRY(take_program(x, &program, id, name, err));
		else
			x->left_out++;
	x->damaged += entry.is_truncated || value.is_truncated;
	return ST_OK;
}

enum status xplane_import_programs(struct xplane_import *x, struct xplane_span plane,
				   struct error *err)
{
	struct xplane_field f;

	TRY(xplane_stats_read(x, plane, err));
	while (xplane_find(&x->file, &plane, PLANE_EVENT_METADATA, &f))
		TRY(read_entry(x, f.span, err));
	return ST_OK;
}
