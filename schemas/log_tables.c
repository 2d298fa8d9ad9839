/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_tables.h"

#include "schemas/buf.h"
#include "schemas/crc32c.h"
#include "schemas/hash.h"
#include "schemas/log_row.h"
#include "schemas/records.h"
#include "schemas/trace_table.h"

#include <stdlib.h>

/* Tables of a file in the order in which a reader needs them. */
enum {
	T_NAMES, T_META, T_KEYS, T_SHAPES, T_PROCESSES, T_DEVICES, T_TRACKS, T_FIELDS, T_SITES,
	T_WINDOWS, T_ANCHORS, T_LOSSES, TABLES,
};

/* A row of FIELDS (a kind and its varying keys) or of KEYS (the fixed keys of a shape). */
struct keys_row {
	const struct attr *keys; /* bits unused */
	uint32_t count;
	uint8_t kind; /* KEYS: 0 */
};
struct written {
	uint32_t rows;
	uint32_t *crcs; /* of rows that may change; NULL: none may */
	uint32_t room;
};
struct log_mark {
	const struct trace *trace;
	struct arena arena;
	struct table layouts, lists;
	struct written written[TABLES];
	uint16_t *site_layouts; /* by site, 0: not asked yet */
	uint32_t *shape_lists;  /* by shape, 0: none, UINT32_MAX: not asked yet */
	uint32_t site_room, shape_room, shapes_seen;
	size_t ceiling;
	/* The block being filled. */
	struct buf payload, row;
	uint32_t first_id, rows;
	struct site site_before;
};

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

const struct field *log_member(unsigned kind, enum log_role role)
{
	const struct record *r = record_of_kind(kind);
	unsigned place = role == LOG_JOIN ? PLACE_JOIN : PLACE_AMOUNT;

	for (size_t i = 0; r && i < r->field_count; i++)
		if (r->fields[i].place == place)
			return &r->fields[i];
	return NULL;
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

/* One row of each table, to m->row; nothing at all where there is nothing to say. */

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

/* All tables, in the order in which a reader needs them. */
static const struct table_type {
	void (*put)(struct log_mark *m, uint32_t id);
	uint16_t kind;
	bool may_change;
} types[TABLES] = {
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
	types[table].put(m, id);
	if (!m->row.len)
		m->site_before = before;
}

static bool is_changed(struct log_mark *m, unsigned table, uint32_t id)
{
	struct written *w = &m->written[table];
	uint32_t crc;

	if (!types[table].may_change)
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
	unsigned kind = types[table].kind;
	void *crcs = w->crcs;
	enum status st = ST_OK;

	if (types[table].may_change)
		st = words_grow(m, &crcs, &w->room, rows, sizeof(uint32_t), err);
	w->crcs = crcs;
	TRY(st);
	for (uint32_t id = types[table].may_change ? 1 : w->rows + 1; id <= rows; id++) {
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
