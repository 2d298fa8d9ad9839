/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_write.h"

#include "schemas/records.h"

const struct field *log_member(unsigned kind, enum log_role role)
{
	const struct record *r = record_of_kind(kind);
	unsigned place = role == LOG_JOIN ? PLACE_JOIN : PLACE_AMOUNT;

	for (size_t i = 0; r && i < r->field_count; i++)
		if (r->fields[i].place == place)
			return &r->fields[i];
	return NULL;
}

static void put_text(struct buf *b, const char *text, size_t len)
{
	buf_put_varint(b, len);
	buf_put(b, text, len);
}

static void put_name_row(struct log_mark *m, uint32_t id)
{
	size_t len;
	const char *text = trace_text(m->trace, id, &len);

	put_text(&m->row, text, len);
}

static void put_keys_row(struct log_mark *m, uint32_t id)
{
	const struct keys_row *r = table_row(&m->lists, id);

	buf_put_varint(&m->row, r->count);
	for (uint32_t i = 0; i < r->count; i++) {
		buf_put_varint(&m->row, r->keys[i].key);
		buf_put_byte(&m->row, r->keys[i].type);
		buf_put_byte(&m->row, r->keys[i].unit);
	}
}

static void put_shape_row(struct log_mark *m, uint32_t id)
{
	const struct shape *s = trace_get_shape(m->trace, id);

	buf_put_varint(&m->row, m->shape_lists[id]);
	for (uint32_t i = 0; i < s->fixed_count; i++) {
		const struct attr *a = &s->fixed[i];

		if (a->type == ATTR_F64)
			buf_put_u64(&m->row, a->bits);
		else
			buf_put_varint(&m->row, a->type == ATTR_I64 ? zigzag((int64_t)a->bits) :
								      a->bits);
	}
}

static void put_site_row(struct log_mark *m, uint32_t id)
{
	const struct site *s = trace_get_site(m->trace, id), *before = &m->site_before;

	buf_put_varint(&m->row, m->site_layouts[id]);
	buf_put_varint(&m->row, s->subkind);
	buf_put_varint(&m->row, zigzag((int64_t)s->track - before->track));
	buf_put_varint(&m->row, zigzag((int64_t)s->name - before->name));
	buf_put_varint(&m->row, zigzag((int64_t)s->shape - before->shape));
	m->site_before = *s;
}

/* Rows that begin with their length. */
static void put_members(struct log_mark *m, const uint64_t *members, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += varint_size(members[i]);
	buf_put_varint(&m->row, size);
	for (size_t i = 0; i < count; i++)
		buf_put_varint(&m->row, members[i]);
}

#define PUT_MEMBERS(m, ...)                                                              \
	put_members(m, (const uint64_t[]){ __VA_ARGS__ },                                \
		    sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void put_meta_row(struct log_mark *m, uint32_t id)
{
	struct provenance *p = trace_provenance((struct trace *)m->trace);
	uint64_t bits = p->is_synthetic ? META_SYNTHETIC : 0;

	/* A trace that came from no file says nothing of files. */
	if (p->format)
		bits |= META_IMPORTED | (p->epoch_known ? 0 : META_NO_EPOCH) |
			(p->is_whole ? 0 : META_FROM_PART);
	if (bits)
		PUT_MEMBERS(m, bits, p->format);
}

static void put_process_row(struct log_mark *m, uint32_t id)
{
	const struct process *p = trace_get_process(m->trace, id);

	PUT_MEMBERS(m, p->host, p->command, p->pid, log_put_id(p->rank), p->world_size, p->shape);
}

static void put_device_row(struct log_mark *m, uint32_t id)
{
	const struct device *d = trace_get_device(m->trace, id);

	PUT_MEMBERS(m, d->process, log_put_id(d->id), d->name, d->shape);
}

static void put_track_row(struct log_mark *m, uint32_t id)
{
	const struct track *k = trace_get_track(m->trace, id);

	PUT_MEMBERS(m, k->home, k->process, k->name, log_put_id(k->device), log_put_id(k->context),
		    k->id, k->unit, trace_launches(m->trace, id));
}

static void put_window_row(struct log_mark *m, uint32_t id)
{
	const struct window *w = trace_get_window(m->trace, id);

	PUT_MEMBERS(m, w->process, w->spec, w->begin_ns, w->end_ns, w->own_ns, w->cut_short);
}

static void put_anchor_row(struct log_mark *m, uint32_t id)
{
	const struct anchor *a = trace_get_anchor(m->trace, id);

	PUT_MEMBERS(m, a->process, a->realtime_ns, a->monotonic_ns, a->cupti_ns);
}

/* Row 1 is of the input as a whole, row 1 + p of process p. */
static void put_loss_row(struct log_mark *m, uint32_t id)
{
	uint64_t members[2 * LOSS_END];
	uint32_t processes = trace_count(m->trace, TRACE_PROCESSES);
	size_t count = 0;

	for (unsigned why = 0; why < LOSS_END; why++) {
		uint64_t lost = trace_lost(m->trace, id - 1, why);

		for (uint32_t p = 1; id == 1 && p <= processes; p++)
			lost -= trace_lost(m->trace, p, why);
		if (!lost)
			continue;
		members[count++] = why;
		members[count++] = lost;
	}
	if (count)
		put_members(m, members, count);
}

static void put_column(struct buf *b, enum log_role role, const char *name, size_t len,
		       unsigned type, unsigned unit)
{
	put_text(b, name, len);
	buf_put_byte(b, (uint8_t)role);
	buf_put_byte(b, (uint8_t)type);
	buf_put_byte(b, (uint8_t)unit);
}

static void put_member_column(struct buf *b, unsigned kind, enum log_role role)
{
	const struct field *f = log_member(kind, role);
	const char *none = role == LOG_JOIN ? LOG_NO_JOIN : LOG_NO_AMOUNT;
	const char *name = f ? f->name : none;
	unsigned type = ATTR_U64;

	if (f && f->type == FIELD_F64)
		type = ATTR_F64;
	else if (f && (f->type == FIELD_I32 || f->type == FIELD_I64))
		type = ATTR_I64;
	put_column(b, role, name, strlen(name), type, f ? f->unit : 0);
}

/* The order of columns is that of log_encode.c. */
static void put_layout_body(const struct log_mark *m, const struct keys_row *r, struct buf *b)
{
	const char *word = kind_word(r->kind);

	buf_put_varint(b, r->kind);
	put_text(b, word, strlen(word));
	buf_put_varint(b, r->count + LOG_VARY);
	put_column(b, LOG_SITE, "site", 4, ATTR_U64, UNIT_ID);
	put_column(b, LOG_LENGTH, "end", 3, ATTR_U64, UNIT_NS);
	put_column(b, LOG_BEGIN, "begin", 5, ATTR_U64, UNIT_NS);
	put_member_column(b, r->kind, LOG_JOIN);
	put_member_column(b, r->kind, LOG_AMOUNT);
	put_column(b, LOG_FLAGS, "flags", 5, ATTR_U64, UNIT_FLAG);
	put_column(b, LOG_ORDER, "order", 5, ATTR_U64, UNIT_COUNT);
	for (uint32_t i = 0; i < r->count; i++) {
		size_t len;
		const char *name = trace_text(m->trace, r->keys[i].key, &len);

		put_column(b, LOG_VARY, name, len, r->keys[i].type, r->keys[i].unit);
	}
}

static void put_layout_row(struct log_mark *m, uint32_t id)
{
	struct buf body;

	buf_init(&body, m->ceiling);
	put_layout_body(m, table_row(&m->layouts, id), &body);
	put_text(&m->row, (const char *)body.data, body.len);
	if (body.status != ST_OK)
		m->row.status = body.status;
	buf_release(&body);
}

const struct log_row_writer log_row_writers[TABLES] = {
	[T_NAMES] = { put_name_row, LOG_NAMES, false },
	[T_META] = { put_meta_row, LOG_META, true },
	[T_KEYS] = { put_keys_row, LOG_KEYS, false },
	[T_SHAPES] = { put_shape_row, LOG_SHAPES, false },
	[T_PROCESSES] = { put_process_row, LOG_PROCESSES, true },
	[T_DEVICES] = { put_device_row, LOG_DEVICES, true },
	[T_TRACKS] = { put_track_row, LOG_TRACKS, true },
	[T_FIELDS] = { put_layout_row, LOG_FIELDS, false },
	[T_SITES] = { put_site_row, LOG_SITES, false },
	[T_WINDOWS] = { put_window_row, LOG_WINDOWS, true },
	[T_ANCHORS] = { put_anchor_row, LOG_ANCHORS, false },
	[T_LOSSES] = { put_loss_row, LOG_LOSSES, true },
};
