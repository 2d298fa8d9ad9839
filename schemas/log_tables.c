/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_tables.h"

#include "schemas/crc32c.h"
#include "schemas/hash.h"
#include "schemas/log_write.h"

#include <stdlib.h>

enum status log_mark_new(struct log_mark **out, const struct trace *t, size_t ceiling,
			 struct error *err)
{
	struct log_mark *m = calloc(1, sizeof(*m));

	*out = NULL;
	if (!m)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a log's tables");
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
	free(m->site_layouts);
	free(m->shape_lists);
	table_release(&m->layouts);
	table_release(&m->lists);
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

/* Layouts and lists of keys */

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

/* The id of the list, found or added; 0 and *err. */
static uint32_t keys_id(struct log_mark *m, struct table *table, struct keys_row *row,
			struct error *err)
{
	uint64_t hash = hash_word(row->kind, row->count);
	size_t bytes = row->count * sizeof(struct attr);
	struct attr *copy;
	uint32_t id;

	for (uint32_t i = 0; i < row->count; i++)
		hash = hash_word(hash, (uint64_t)row->keys[i].key << 16 |
					       (uint64_t)row->keys[i].type << 8 |
					       row->keys[i].unit);
	id = table_find(table, hash, keys_same, row);
	if (id)
		return id;
	copy = arena_take(&m->arena, bytes, 0);
	if (!copy && bytes) {
		table_refuse(&m->arena, bytes, err);
		return 0;
	}
	if (bytes)
		memcpy(copy, row->keys, bytes);
	row->keys = copy;
	return table_add(table, &m->arena, hash, row, err);
}

/* Words of `size` bytes for ids up to `id`; new ones are 0. */
static enum status words_grow(const struct log_mark *m, void **words, uint32_t *room, uint32_t id,
			      size_t size, struct error *err)
{
	uint64_t bigger = *room ? *room : 64;
	void *again;

	if (id < *room)
		return ST_OK;
	while (bigger <= id)
		bigger *= 2;
	if (bigger > UINT32_MAX || bigger * size > m->ceiling)
		return fail(err, ST_CEILING, NOWHERE,
			    "a log's tables need more memory than their ceiling");
	again = realloc(*words, bigger * size);
	if (!again)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a log's tables");
	memset((char *)again + *room * size, 0, (bigger - *room) * size);
	*words = again;
	*room = (uint32_t)bigger;
	return ST_OK;
}

static enum status layout_find(struct log_mark *m, uint32_t site, struct error *err)
{
	const struct site *s = trace_get_site(m->trace, site);
	const struct shape *shape = trace_get_shape(m->trace, s->shape);
	struct keys_row row = { shape->vary, shape->vary_count, s->kind };
	uint32_t id;

	if (shape->vary_count > LOG_LAYOUT_VARY)
		return fail(err, ST_CEILING, NOWHERE,
			    "an event has %u varying numbers, a log holds %d", shape->vary_count,
			    LOG_LAYOUT_VARY);
	id = keys_id(m, &m->layouts, &row, err);
	if (!id)
		return err ? err->status : ST_CEILING;
	if (id > UINT16_MAX)
		return fail(err, ST_CEILING, NOWHERE, "more than %d layouts of events", UINT16_MAX);
	m->site_layouts[site] = (uint16_t)id;
	return ST_OK;
}

enum status log_mark_layout(struct log_mark *m, uint32_t site, uint16_t *layout,
			    unsigned *vary_count, struct error *err)
{
	void *words = m->site_layouts;
	enum status st;

	if (site >= m->site_room) {
		st = words_grow(m, &words, &m->site_room, site, sizeof(uint16_t), err);
		m->site_layouts = words;
		TRY(st);
	}
	if (!m->site_layouts[site])
		TRY(layout_find(m, site, err));
	*layout = m->site_layouts[site];
	*vary_count = ((const struct keys_row *)table_row(&m->layouts, *layout))->count;
	return ST_OK;
}

static enum status shape_list_find(struct log_mark *m, uint32_t id, struct error *err)
{
	const struct shape *shape = trace_get_shape(m->trace, id);
	struct keys_row row = { shape->fixed, shape->fixed_count, 0 };
	void *words = m->shape_lists;
	enum status st = words_grow(m, &words, &m->shape_room, id, sizeof(uint32_t), err);

	m->shape_lists = words;
	TRY(st);
	m->shape_lists[id] = 0;
	if (!shape->fixed_count)
		return ST_OK;
	m->shape_lists[id] = keys_id(m, &m->lists, &row, err);
	return m->shape_lists[id] ? ST_OK : err ? err->status : ST_CEILING;
}

/* What new rows of the trace need first: layouts of sites, lists of shapes. */
static enum status derive(struct log_mark *m, struct error *err)
{
	uint32_t sites = trace_count(m->trace, TRACE_SITES);
	uint32_t shapes = trace_count(m->trace, TRACE_SHAPES);

	for (uint32_t id = m->written[T_SITES].rows + 1; id <= sites; id++) {
		unsigned vary_count;
		uint16_t layout;

		TRY(log_mark_layout(m, id, &layout, &vary_count, err));
	}
	while (m->shapes_seen < shapes) {
		TRY(shape_list_find(m, m->shapes_seen + 1, err));
		m->shapes_seen++;
	}
	return ST_OK;
}

static uint32_t table_rows(const struct log_mark *m, unsigned table)
{
	switch (table) {
	case T_NAMES: return trace_count(m->trace, TRACE_NAMES);
	case T_META: return 1;
	case T_KEYS: return m->lists.count;
	case T_SHAPES: return trace_count(m->trace, TRACE_SHAPES);
	case T_PROCESSES: return trace_count(m->trace, TRACE_PROCESSES);
	case T_DEVICES: return trace_count(m->trace, TRACE_DEVICES);
	case T_TRACKS: return trace_count(m->trace, TRACE_TRACKS);
	case T_FIELDS: return m->layouts.count;
	case T_SITES: return trace_count(m->trace, TRACE_SITES);
	case T_WINDOWS: return trace_count(m->trace, TRACE_WINDOWS);
	case T_ANCHORS: return trace_count(m->trace, TRACE_ANCHORS);
	default: return trace_count(m->trace, TRACE_PROCESSES) + 1;
	}
}

/* Blocks of a table */

static void put_block(const struct buf *payload, unsigned kind, unsigned flags, uint32_t rows,
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
		put_block(&m->payload, kind, 0, m->rows, out);
	m->rows = 0;
	m->site_before = (struct site){ 0 };
	buf_clear(&m->payload);
}

/* A row that is too long for a block, in pieces. */
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
		put_block(&m->payload, kind, LOG_PART, 1, out);
		at += len;
	}
	buf_clear(&m->payload);
}

static void put_row(struct log_mark *m, unsigned kind, uint32_t id, struct buf *out)
{
	if (!m->rows) {
		buf_clear(&m->payload);
		buf_put_varint(&m->payload, id);
		m->first_id = id;
	}
	buf_put(&m->payload, m->row.data, m->row.len);
	m->rows++;
}

/* Whether m->row may go behind what the block has. */
static bool row_fits(const struct log_mark *m, uint32_t id)
{
	return !m->rows || (id == m->first_id + m->rows && m->rows < LOG_BLOCK_ROWS &&
			    m->payload.len + m->row.len <= LOG_BLOCK_BYTES);
}

static void make_row(struct log_mark *m, unsigned table, uint32_t id)
{
	struct site before = m->site_before;

	buf_clear(&m->row);
	log_row_writers[table].put(m, id);
	if (!m->row.len)
		m->site_before = before;
}

static bool is_changed(struct log_mark *m, unsigned table, uint32_t id)
{
	struct written *w = &m->written[table];
	uint32_t crc;

	if (!log_row_writers[table].may_change)
		return true;
	crc = crc32c(0, m->row.data, m->row.len);
	if (id <= w->rows && w->crcs[id] == crc)
		return false;
	w->crcs[id] = crc;
	return true;
}

static enum status put_table(struct log_mark *m, unsigned table, struct buf *out,
			     struct error *err)
{
	struct written *w = &m->written[table];
	uint32_t rows = table_rows(m, table);
	unsigned kind = log_row_writers[table].kind;
	void *crcs = w->crcs;
	enum status st = ST_OK;

	if (log_row_writers[table].may_change)
		st = words_grow(m, &crcs, &w->room, rows, sizeof(uint32_t), err);
	w->crcs = crcs;
	TRY(st);
	for (uint32_t id = log_row_writers[table].may_change ? 1 : w->rows + 1; id <= rows; id++) {
		make_row(m, table, id);
		TRY(buf_status(&m->row, err));
		if (!is_changed(m, table, id) || !m->row.len)
			continue;
		if (!row_fits(m, id)) {
			end_block(m, kind, out);
			make_row(m, table, id); /* sites count from the block's first */
		}
		if (m->row.len > LOG_BLOCK_BYTES - VARINT_MAX)
			put_parts(m, kind, id, out);
		else
			put_row(m, kind, id, out);
	}
	end_block(m, kind, out);
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
	put_block(&m->payload, LOG_END, 0, 1, out);
	buf_clear(&m->payload);
	return buf_status(out, err);
}
