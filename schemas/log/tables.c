/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/tables.h"

#include "schemas/base/crc32c.h"
#include "schemas/base/vec.h"
#include "schemas/log/write.h"

#include <stdlib.h>

enum status log_mark_new(struct log_mark **out, const struct trace *t, size_t ceiling,
			 struct error *err)
{
	struct log_mark *m;

	*out = NULL;
	TRY(vec_new(&m, 1, err));
	m->trace = t;
	m->ceiling = ceiling;
	arena_init(&m->arena, ceiling);
	m->layouts.row_bytes = m->lists.row_bytes = sizeof(struct keys_row);
	buf_init(&m->payload, LOG_BLOCK_BYTES);
	buf_init(&m->row, ceiling);
	*out = m;
	return ST_OK;
}

void log_mark_free(struct log_mark *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < TABLES; i++)
		free(m->written[i].crcs);
	free(m->desc_layouts);
	free(m->schema_lists);
	intern_release(&m->layouts);
	intern_release(&m->lists);
	arena_release(&m->arena);
	buf_release(&m->payload);
	buf_release(&m->row);
	free(m);
}

void log_mark_clear(struct log_mark *m)
{
	for (unsigned i = 0; i < TABLES; i++)
		m->written[i].rows = 0;
}

/* ---- layouts and lists of keys ---- */

static bool keys_same(const void *row, const void *wanted)
{
	const struct keys_row *a = row, *b = wanted;

	if (a->kind != b->kind || a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (a->keys[i].key != b->keys[i].key || a->keys[i].type != b->keys[i].type ||
		    a->keys[i].unit != b->keys[i].unit)
			return false;
	return true;
}

/* Finds or adds a list of keys; returns its id, or 0 and *err at the ceiling. */
static uint32_t keys_id(struct log_mark *m, struct intern *table, struct keys_row *row,
			struct error *err)
{
	uint64_t hash = hash_word(row->kind, row->count);
	size_t bytes = row->count * sizeof(struct attr);

	for (uint32_t i = 0; i < row->count; i++)
		hash = hash_word(hash, (uint64_t)row->keys[i].key << 16 |
					       (uint64_t)row->keys[i].type << 8 |
					       row->keys[i].unit);
	uint32_t id = intern_find(table, hash, keys_same, row);
	if (id)
		return id;
	struct attr *copy = arena_take(&m->arena, bytes, 0);
	if (!copy && bytes) {
		intern_refuse(&m->arena, bytes, err);
		return 0;
	}
	if (bytes)
		memcpy(copy, row->keys, bytes);
	row->keys = copy;
	return intern_add(table, &m->arena, hash, row, err);
}

/* Makes an array hold item `id`, of `size` bytes; returns ST_CEILING over the mark's ceiling. */
static enum status reach(const struct log_mark *m, void *items, size_t *cap, uint32_t id,
			 size_t size, struct error *err)
{
	size_t wider = id < 2 * *cap ? 2 * *cap : (size_t)id + 1;

	if (id >= *cap && wider * size > m->ceiling)
		return fail(err, ST_CEILING, NOWHERE,
			    "the tables of a log exceed their memory limit");
	return vec_grow(items, cap, (size_t)id + 1, size, err);
}

static enum status layout_find(struct log_mark *m, uint32_t desc, struct error *err)
{
	const struct event_desc *s = trace_get_desc(m->trace, desc);
	const struct arg_schema *schema = trace_get_schema(m->trace, s->schema);
	struct keys_row row = { schema->args, schema->arg_count, s->kind };

	if (schema->arg_count > LOG_LAYOUT_ARG)
		return fail(err, ST_CEILING, NOWHERE,
			    "an event has %u varying numbers; a log allows %d", schema->arg_count,
			    LOG_LAYOUT_ARG);
	uint32_t id = keys_id(m, &m->layouts, &row, err);
	if (!id)
		return err ? err->status : ST_CEILING;
	if (id > UINT16_MAX)
		return fail(err, ST_CEILING, NOWHERE, "more than %d layouts of events", UINT16_MAX);
	m->desc_layouts[desc] = (uint16_t)id;
	return ST_OK;
}

enum status log_mark_layout(struct log_mark *m, uint32_t desc, uint16_t *layout,
			    unsigned *arg_count, struct error *err)
{
	if (desc >= m->desc_cap)
		TRY(reach(m, &m->desc_layouts, &m->desc_cap, desc, sizeof(*m->desc_layouts), err));
	if (!m->desc_layouts[desc])
		TRY(layout_find(m, desc, err));
	*layout = m->desc_layouts[desc];
	*arg_count = ((const struct keys_row *)intern_row(&m->layouts, *layout))->count;
	return ST_OK;
}

/* Creates what new rows of the trace refer to: layouts of descriptors and lists of keys. */
static enum status derive(struct log_mark *m, struct error *err)
{
	uint32_t descs = trace_count(m->trace, TRACE_DESCS);
	uint32_t schemas = trace_count(m->trace, TRACE_SCHEMAS);

	for (uint32_t id = m->written[T_DESCS].rows + 1; id <= descs; id++) {
		unsigned arg_count;
		uint16_t layout;

		TRY(log_mark_layout(m, id, &layout, &arg_count, err));
	}
	TRY(reach(m, &m->schema_lists, &m->schema_cap, schemas, sizeof(*m->schema_lists), err));
	for (; m->schemas_done < schemas; m->schemas_done++) {
		uint32_t id = m->schemas_done + 1;
		const struct arg_schema *schema = trace_get_schema(m->trace, id);
		struct keys_row row = { schema->consts, schema->const_count, 0 };

		if (!schema->const_count)
			continue;
		m->schema_lists[id] = keys_id(m, &m->lists, &row, err);
		if (!m->schema_lists[id])
			return err ? err->status : ST_CEILING;
	}
	return ST_OK;
}

static uint32_t table_rows(const struct log_mark *m, unsigned table)
{
	switch (table) {
	case T_META:
		return 1;
	case T_KEYS:
		return m->lists.count;
	case T_FIELDS:
		return m->layouts.count;
	case T_LOSSES:
		return trace_count(m->trace, TRACE_PROCESSES) + 1;
	default:
		return trace_count(m->trace, log_row_writers[table].of_trace);
	}
}

/* ---- blocks of a table ---- */

void log_put_table_block(const struct buf *payload, unsigned kind, unsigned flags, uint32_t rows,
			 struct buf *out)
{
	struct log_block block = {
		.size = (uint32_t)payload->len,
		.raw_size = (uint32_t)payload->len,
		.rows = rows,
		.kind = (uint16_t)kind,
		.flags = (uint16_t)flags,
	};
	uint8_t header[LOG_HEADER_BYTES];

	log_put_block_header(&block, payload->data, header);
	buf_put(out, header, sizeof(header));
	buf_put(out, payload->data, payload->len);
}

static void end_block(struct log_mark *m, unsigned kind, struct buf *out)
{
	if (m->rows)
		log_put_table_block(&m->payload, kind, 0, m->rows, out);
	m->rows = 0;
	m->desc_before = (struct event_desc){ 0 };
	buf_clear(&m->payload);
}

/* Writes a row that is too long for a block as parts. */
static void put_parts(struct log_mark *m, unsigned kind, uint32_t id, struct buf *out)
{
	size_t at = 0, most = LOG_BLOCK_BYTES - 3 * VARINT_MAX;

	while (at < m->row.len) {
		size_t len = m->row.len - at < most ? m->row.len - at : most;

		buf_clear(&m->payload);
		buf_put_varint(&m->payload, id);
		buf_put_varint(&m->payload, m->row.len);
		buf_put_varint(&m->payload, at);
		buf_put(&m->payload, m->row.data + at, len);
		log_put_table_block(&m->payload, kind, LOG_PART, 1, out);
		at += len;
	}
	buf_clear(&m->payload);
}

/* Encodes a row into m->row.  An empty row does not count for the differences between rows. */
static void make_row(struct log_mark *m, unsigned table, uint32_t id)
{
	struct event_desc before = m->desc_before;

	buf_clear(&m->row);
	log_put_row(m, table, id);
	if (!m->row.len)
		m->desc_before = before;
}

/* Returns whether m->row has to be written, and records it as written. */
static bool is_changed(struct log_mark *m, unsigned table, uint32_t id)
{
	struct written *w = &m->written[table];

	if (!log_row_writers[table].may_change)
		return true;
	uint32_t crc = crc32c(0, m->row.data, m->row.len);
	if (id <= w->rows && w->crcs[id] == crc)
		return false;
	w->crcs[id] = crc;
	return true;
}

static enum status put_table(struct log_mark *m, unsigned table, struct buf *out, struct error *err)
{
	const struct log_row_writer *writer = &log_row_writers[table];
	struct written *w = &m->written[table];
	uint32_t rows = table_rows(m, table);

	if (writer->may_change)
		TRY(reach(m, &w->crcs, &w->crc_cap, rows, sizeof(*w->crcs), err));
	for (uint32_t id = writer->may_change ? 1 : w->rows + 1; id <= rows; id++) {
		make_row(m, table, id);
		TRY(buf_status(&m->row, err));
		if (!is_changed(m, table, id) || !m->row.len)
			continue;
		if (m->rows && (id != m->first_id + m->rows || m->rows >= LOG_BLOCK_ROWS ||
				m->payload.len + m->row.len > LOG_BLOCK_BYTES)) {
			end_block(m, writer->kind, out);
			make_row(m, table, id); /* relative to the new block */
		}
		if (m->row.len > LOG_BLOCK_BYTES - VARINT_MAX) {
			put_parts(m, writer->kind, id, out);
			continue;
		}
		if (!m->rows) {
			buf_clear(&m->payload);
			buf_put_varint(&m->payload, id);
			m->first_id = id;
		}
		buf_put(&m->payload, m->row.data, m->row.len);
		m->rows++;
	}
	end_block(m, writer->kind, out);
	w->rows = rows;
	return buf_status(out, err);
}

enum status log_put_tables(struct log_mark *m, struct buf *out, struct error *err)
{
	TRY(derive(m, err));
	for (unsigned table = 0; table < TABLES; table++)
		TRY(put_table(m, table, out, err));
	return ST_OK;
}

enum status log_put_end(struct log_mark *m, const uint64_t *events, struct buf *out,
			struct error *err)
{
	unsigned kinds = 0;

	for (unsigned kind = 0; kind < KIND_END; kind++)
		kinds += events[kind] != 0;
	buf_clear(&m->payload);
	buf_put_varint(&m->payload, kinds);
	for (unsigned kind = 0; kind < KIND_END; kind++) {
		if (!events[kind])
			continue;
		buf_put_varint(&m->payload, kind);
		buf_put_varint(&m->payload, events[kind]);
	}
	buf_put_varint(&m->payload, trace_lost_total(m->trace, 0));
	TRY(buf_status(&m->payload, err));
	log_put_table_block(&m->payload, LOG_END, 0, 1, out);
	buf_clear(&m->payload);
	return buf_status(out, err);
}
