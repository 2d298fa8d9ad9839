/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/xplane/internal.h"

#include "schemas/model/records.h"

enum { SHOWN_BYTES = 32 /* most bytes of a value that are kept */ };

static const struct xplane_stat_name *find_stat(const struct xplane_import *x, int64_t id)
{
	const uint64_t *at = map_find(&x->stat_ids, (uint64_t)id);

	return at ? (const struct xplane_stat_name *)(const void *)x->stats.data + *at : NULL;
}

uint32_t xplane_stat_name(const struct xplane_import *x, int64_t id)
{
	const struct xplane_stat_name *row = find_stat(x, id);

	return row ? row->name : 0;
}

const struct xplane_event_name *xplane_event_name(const struct xplane_import *x, int64_t id)
{
	const uint64_t *at = map_find(&x->event_ids, (uint64_t)id);

	return at ? (const struct xplane_event_name *)(const void *)x->events.data + *at : NULL;
}

/* Adds a row for an id; the first one with a given id wins. */
static enum status keep_row(struct buf *rows, struct map *ids, int64_t id, const void *row,
			    size_t size, struct error *err)
{
	bool is_new;
	uint64_t *at = map_put(ids, (uint64_t)id, &is_new);

	if (!at)
		return fail_memory(err);
	if (is_new) {
		*at = rows->len / size;
		buf_put(rows, row, size);
	}
	return buf_status(rows, err);
}

/* ---- stats ---- */

/* Converts a short value of bytes to a hexadecimal text; a long one is not kept. */
static enum status keep_blob(struct xplane_import *x, struct bytes blob, struct xplane_value *v,
			     struct error *err)
{
	uint32_t name;

	if (bytes_left(&blob) > SHOWN_BYTES) {
		x->left_out++;
		v->key = 0;
		return ST_OK;
	}
	buf_clear(&x->text);
	while (bytes_left(&blob))
		buf_putf(&x->text, "%02x", take_u8(&blob));
	v->type = ATTR_TEXT;
	TRY(import_name(&x->to, buf_text(&x->text), x->text.len, &name, err));
	v->bits = name;
	return ST_OK;
}

/* Reads the value of a stat; *is_value is false if number and wire type are not those of a value.
 * */
static enum status take_value(struct xplane_import *x, const struct pb_field *f,
			      struct xplane_value *v, bool *is_value, struct error *err)
{
	static const enum pb_wire wires[] = {
		[XSTAT_DOUBLE] = PB_FIXED64, [XSTAT_UINT64] = PB_VARINT, [XSTAT_INT64] = PB_VARINT,
		[XSTAT_TEXT] = PB_BYTES,     [XSTAT_BYTES] = PB_BYTES,   [XSTAT_REF] = PB_VARINT,
	};

	const struct xplane_stat_name *ref;
	uint32_t text;

	*is_value =
		f->number >= XSTAT_DOUBLE && f->number <= XSTAT_REF && f->wire == wires[f->number];
	if (!*is_value)
		return ST_OK;
	v->bits = f->u64;
	v->type = ATTR_TEXT;
	switch (f->number) {
	case XSTAT_DOUBLE:
		v->type = ATTR_F64;
		return ST_OK;
	case XSTAT_UINT64:
		v->type = ATTR_U64;
		return ST_OK;
	case XSTAT_INT64:
		v->type = ATTR_I64;
		return ST_OK;
	case XSTAT_TEXT:
		TRY(import_name(&x->to, (const char *)f->bytes.at, bytes_left(&f->bytes), &text,
				err));
		v->bits = text;
		return ST_OK;
	case XSTAT_BYTES:
		return keep_blob(x, f->bytes, v, err);
	}
	ref = find_stat(x, (int64_t)f->u64);
	*is_value = ref != NULL;
	v->bits = ref ? ref->name : 0;
	return ST_OK;
}

enum status xplane_value_take(struct xplane_import *x, struct bytes stat, struct xplane_value *out,
			      struct error *err)
{
	const struct xplane_stat_name *name = NULL;
	bool is_value = false, any = false;
	struct pb_field f;
	int64_t id = 0;

	*out = (struct xplane_value){ 0 };
	out->key = 1; /* keep_blob() may set it to 0 */
	while (pb_next(&stat, &f)) {
		if (f.number == XSTAT_METADATA_ID && f.wire == PB_VARINT)
			id = (int64_t)f.u64;
		else
			TRY(take_value(x, &f, out, &is_value, err));
		any = any || is_value;
	}
	name = find_stat(x, id);
	if (!out->key)
		return ST_OK; /* already counted in left_out */
	if (stat.is_truncated || !any || !name) {
		x->damaged++;
		out->key = 0;
		return ST_OK;
	}
	out->key = name->key;
	out->role = name->role;
	return ST_OK;
}

enum status xplane_value_read(struct xplane_import *x, const struct xplane_span *stat,
			      struct xplane_value *out, struct error *err)
{
	struct bytes bytes = xplane_bytes(&x->file, stat);

	*out = (struct xplane_value){ 0 };
	if (!bytes.is_truncated)
		return xplane_value_take(x, bytes, out, err);
	x->left_out++;
	return ST_OK;
}

bool xplane_value_u64(const struct xplane_import *x, const struct xplane_value *v, uint64_t *out)
{
	const char *text;
	uint64_t number = 0;
	double real;
	size_t len;

	switch (v->type) {
	case ATTR_U64:
		*out = v->bits;
		return true;
	case ATTR_I64:
		*out = v->bits;
		return (int64_t)v->bits >= 0;
	case ATTR_F64:
		memcpy(&real, &v->bits, sizeof(real));
		if (!(real >= 0 && real < 0x1p63) || real != (double)(uint64_t)real)
			return false;
		*out = (uint64_t)real;
		return true;
	}
	text = trace_text(x->to.trace, (uint32_t)v->bits, &len);
	if (!len || len > 19)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	*out = number;
	return true;
}

/* ---- the tables of a plane ---- */

enum status xplane_text(struct xplane_import *x, const struct xplane_span *text, uint32_t *name,
			struct error *err)
{
	struct xplane_span begin = *text;
	struct bytes bytes;

	if (begin.end - begin.at > XPLANE_WINDOW / 4) {
		begin.end = begin.at + XPLANE_WINDOW / 4;
		x->left_out++;
	}
	bytes = xplane_bytes(&x->file, &begin);
	return import_name(&x->to, (const char *)bytes.at, bytes_left(&bytes), name, err);
}

static enum status read_stat_name(struct xplane_import *x, struct xplane_span *value,
				  struct xplane_stat_name *row, struct error *err)
{
	struct xplane_field f;

	while (xplane_next(&x->file, value, &f))
		if (f.number == STAT_META_ID && f.wire == PB_VARINT)
			row->id = (int64_t)f.u64;
		else if (f.number == STAT_META_NAME && f.wire == PB_BYTES)
			TRY(xplane_text(x, &f.span, &row->name, err));
	return ST_OK;
}

static enum status read_event_name(struct xplane_import *x, struct xplane_span *value,
				   struct xplane_event_name *row, struct error *err)
{
	struct xplane_value v;
	struct xplane_field f;
	uint32_t shown = 0;

	if (!row->count) /* else this is a further part of the value, which protobuf merges */
		row->first = (uint32_t)(x->values.len / sizeof(v));
	while (xplane_next(&x->file, value, &f)) {
		if (f.number == EVENT_META_ID && f.wire == PB_VARINT)
			row->id = (int64_t)f.u64;
		else if (f.number == EVENT_META_NAME && f.wire == PB_BYTES)
			TRY(xplane_text(x, &f.span, &row->name, err));
		else if (f.number == EVENT_META_DISPLAY_NAME && f.wire == PB_BYTES)
			TRY(xplane_text(x, &f.span, &shown, err));
		if (f.number != EVENT_META_STATS || f.wire != PB_BYTES)
			continue;
		TRY(xplane_value_read(x, &f.span, &v, err));
		if (!v.key)
			continue;
		v.is_constant = true;
		buf_put(&x->values, &v, sizeof(v));
		row->count++;
	}
	if (!row->name)
		row->name = shown;
	return buf_status(&x->values, err);
}

/* Sets the role and the attribute key of a stat. */
static enum status settle_stat(struct xplane_import *x, struct xplane_stat_name *row,
			       struct error *err)
{
	static const char *const roles[XROLE_END] = {
#define X(name, word) [XROLE_##name] = word,
		XPLANE_ROLE_LIST(X)
#undef X
	};
	size_t len, count;
	const char *text = trace_text(x->to.trace, row->name, &len);
	const struct record *all = records(&count);
	bool is_member = false;

	for (unsigned i = 1; i < XROLE_END; i++)
		if (strlen(roles[i]) == len && memcmp(roles[i], text, len) == 0)
			row->role = (uint8_t)i;
	row->key = row->name;
	/* An attribute of this name would be mistaken for a member of our events, so it gets a
	 * suffix. */
	for (size_t i = 0; i < count && !is_member; i++) {
		const struct field *f = record_field(&all[i], text, len);

		is_member = f && f->place != PLACE_CONST && f->place != PLACE_ARG;
	}
	if (!row->key || !is_member)
		return ST_OK;
	buf_clear(&x->text);
	buf_put(&x->text, text, len);
	buf_put_text(&x->text, XSPACE_KEY_SUFFIX);
	TRY(buf_status(&x->text, err));
	return import_name(&x->to, buf_text(&x->text), x->text.len, &row->key, err);
}

/* Reads an entry of either map.  The entry's key is the id; without a key it is the id in the
 * value. */
static enum status read_entry(struct xplane_import *x, struct xplane_span entry, bool of_stats,
			      struct error *err)
{
	struct xplane_event_name event = { 0 };
	struct xplane_stat_name stat = { 0 };
	struct xplane_field f;
	bool has_key = false;
	int64_t key = 0;

	while (xplane_next(&x->file, &entry, &f)) {
		if (f.number == ENTRY_KEY && f.wire == PB_VARINT) {
			key = (int64_t)f.u64;
			has_key = true;
		} else if (f.number == ENTRY_VALUE && f.wire == PB_BYTES) {
			TRY(of_stats ? read_stat_name(x, &f.span, &stat, err)
				     : read_event_name(x, &f.span, &event, err));
			x->damaged += f.span.is_truncated;
		}
	}
	x->damaged += entry.is_truncated;
	if (has_key)
		stat.id = event.id = key;
	if (!of_stats)
		return keep_row(&x->events, &x->event_ids, event.id, &event, sizeof(event), err);
	TRY(settle_stat(x, &stat, err));
	return keep_row(&x->stats, &x->stat_ids, stat.id, &stat, sizeof(stat), err);
}

static enum status read_entries(struct xplane_import *x, struct xplane_span plane, uint32_t field,
				struct error *err)
{
	struct xplane_field f;

	while (xplane_find(&x->file, &plane, field, &f))
		TRY(read_entry(x, f.span, field == PLANE_STAT_METADATA, err));
	return ST_OK;
}

enum status xplane_stats_read(struct xplane_import *x, struct xplane_span plane, struct error *err)
{
	buf_clear(&x->stats);
	map_clear(&x->stat_ids);
	return read_entries(x, plane, PLANE_STAT_METADATA, err);
}

enum status xplane_names_read(struct xplane_import *x, struct xplane_span plane, struct error *err)
{
	buf_clear(&x->events);
	buf_clear(&x->values);
	map_clear(&x->event_ids);
	TRY(xplane_stats_read(x, plane, err));
	return read_entries(x, plane, PLANE_EVENT_METADATA, err);
}
