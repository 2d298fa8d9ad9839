/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/write.h"

#include "schemas/model/records.h"

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
	const struct keys_row *r = intern_row(&m->lists, id);

	buf_put_varint(&m->row, r->count);
	for (uint32_t i = 0; i < r->count; i++) {
		buf_put_varint(&m->row, r->keys[i].key);
		buf_put_byte(&m->row, r->keys[i].type);
		buf_put_byte(&m->row, r->keys[i].unit);
	}
}

static void put_schema_row(struct log_mark *m, uint32_t id)
{
	const struct arg_schema *s = trace_get_schema(m->trace, id);

	buf_put_varint(&m->row, m->schema_lists[id]);
	for (uint32_t i = 0; i < s->const_count; i++) {
		const struct attr *a = &s->consts[i];

		if (a->type == ATTR_F64)
			buf_put_u64(&m->row, a->bits);
		else
			buf_put_varint(&m->row,
				       a->type == ATTR_I64 ? zigzag((int64_t)a->bits) : a->bits);
	}
}

static void put_desc_row(struct log_mark *m, uint32_t id)
{
	const struct event_desc *s = trace_get_desc(m->trace, id), *before = &m->desc_before;

	buf_put_varint(&m->row, m->desc_layouts[id]);
	buf_put_varint(&m->row, s->subkind);
	buf_put_varint(&m->row, zigzag((int64_t)s->track - before->track));
	buf_put_varint(&m->row, zigzag((int64_t)s->name - before->name));
	buf_put_varint(&m->row, zigzag((int64_t)s->schema - before->schema));
	m->desc_before = *s;
}

/* Writes a row that begins with its length. */
static void put_members(struct log_mark *m, const uint64_t *members, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += varint_size(members[i]);
	buf_put_varint(&m->row, size);
	for (size_t i = 0; i < count; i++)
		buf_put_varint(&m->row, members[i]);
}

/* Table readers use only the numbers; the text after them is for code that looks up the log's
 * sources. */
static void put_meta_row(struct log_mark *m, uint32_t id)
{
	const struct provenance *p = trace_provenance((struct trace *)m->trace);
	uint64_t bits = p->is_synthetic ? META_SYNTHETIC : 0;

	/* A trace that was not read from a file has no facts about files. */
	if (p->format)
		bits |= META_IMPORTED | (p->epoch_known ? 0 : META_NO_EPOCH) |
			(p->is_whole ? 0 : META_FROM_PART);
	if (!bits)
		return;
	size_t len;
	const char *sources = trace_text(m->trace, p->sources, &len);
	buf_put_varint(&m->row,
		       varint_size(bits) + varint_size(p->format) + varint_size(len) + len);
	buf_put_varint(&m->row, bits);
	buf_put_varint(&m->row, p->format);
	buf_put_varint(&m->row, len);
	buf_put(&m->row, sources, len);
}

/* Row 1 is about the input as a whole, row 1 + p about process p. */
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
	const char *none = role == LOG_CORRELATION ? LOG_NO_CORRELATION : LOG_NO_VALUE;
	const char *name = f ? f->name : none;
	unsigned type = ATTR_U64;

	if (f && f->type == FIELD_F64)
		type = ATTR_F64;
	else if (f && (f->type == FIELD_I32 || f->type == FIELD_I64))
		type = ATTR_I64;
	put_column(b, role, name, strlen(name), type, f ? f->unit : 0);
}

/* The order of the columns is that of the encoder (encoder.h). */
static void put_layout_row(struct log_mark *m, uint32_t id)
{
	const struct keys_row *r = intern_row(&m->layouts, id);
	const char *word = kind_word(r->kind);
	struct buf body, *b = &body;

	buf_init(b, m->ceiling);
	buf_put_varint(b, r->kind);
	put_text(b, word, strlen(word));
	buf_put_varint(b, r->count + LOG_ARG);
	put_column(b, LOG_DESC, "site", 4, ATTR_U64, UNIT_ID);
	put_column(b, LOG_LENGTH, "end", 3, ATTR_U64, UNIT_NS);
	put_column(b, LOG_BEGIN, "begin", 5, ATTR_U64, UNIT_NS);
	put_member_column(b, r->kind, LOG_CORRELATION);
	put_member_column(b, r->kind, LOG_VALUE);
	put_column(b, LOG_FLAGS, "flags", 5, ATTR_U64, UNIT_FLAG);
	put_column(b, LOG_ORDER, "order", 5, ATTR_U64, UNIT_COUNT);
	for (uint32_t i = 0; i < r->count; i++) {
		size_t len;
		const char *name = trace_text(m->trace, r->keys[i].key, &len);

		put_column(b, LOG_ARG, name, len, r->keys[i].type, r->keys[i].unit);
	}
	put_text(&m->row, (const char *)b->data, b->len);
	if (b->status != ST_OK)
		m->row.status = b->status;
	buf_release(b);
}

void log_put_row(struct log_mark *m, unsigned table, uint32_t id)
{
	const struct log_row_writer *writer = &log_row_writers[table];
	const struct row_member *list = writer->members;
	uint64_t members[16];
	size_t count = 0;

	if (!list) {
		writer->put(m, id);
		return;
	}
	for (; list[count].size; count++)
		members[count] =
			row_member_get(&list[count], trace_row(m->trace, writer->of_trace, id));
	put_members(m, members, count);
}

const struct log_row_writer log_row_writers[TABLES] = {
	[T_NAMES] = { put_name_row, NULL, LOG_NAMES, TRACE_NAMES, false },
	[T_META] = { put_meta_row, NULL, LOG_META, 0, true },
	[T_KEYS] = { put_keys_row, NULL, LOG_KEYS, 0, false },
	[T_SCHEMAS] = { put_schema_row, NULL, LOG_SCHEMAS, TRACE_SCHEMAS, false },
	[T_PROCESSES] = { NULL, log_process_row, LOG_PROCESSES, TRACE_PROCESSES, true },
	[T_DEVICES] = { NULL, log_device_row, LOG_DEVICES, TRACE_DEVICES, true },
	[T_TRACKS] = { NULL, log_track_row, LOG_TRACKS, TRACE_TRACKS, true },
	[T_FIELDS] = { put_layout_row, NULL, LOG_FIELDS, 0, false },
	[T_DESCS] = { put_desc_row, NULL, LOG_DESCS, TRACE_DESCS, false },
	[T_WINDOWS] = { NULL, log_window_row, LOG_WINDOWS, TRACE_WINDOWS, true },
	[T_ANCHORS] = { NULL, log_anchor_row, LOG_ANCHORS, TRACE_ANCHORS, false },
	[T_LOSSES] = { put_loss_row, NULL, LOG_LOSSES, 0, true },
};
