/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_tables.h"

#include "schemas/buf.h"
#include "schemas/log_row.h"
#include "schemas/records.h"
#include "schemas/trace_table.h"

#include <stdlib.h>

enum {
	ROWS_MISSING = 8 * LOG_BLOCK_ROWS, /* ids that damaged blocks may leave out in a row */
	COLUMNS_MAX = 255,
};

/* Rows by the file's id, [0] unused; rows that did not come are zero. */
struct rows {
	void *at;
	uint32_t count, room;
	uint32_t row_bytes;
};
struct file_shape {
	const struct attr *attrs; /* keys and texts are the run's */
	uint32_t count;
	bool came;
};
struct file_keys {
	const struct attr *keys;
	uint32_t count;
};
struct file_track {
	uint32_t to;
	uint64_t launches;
};
struct file_losses {
	uint64_t counts[LOSS_END];
};
struct file_layout {
	struct log_layout layout;
	const struct attr *vary; /* layout.vary_count */
	struct attr kind_attr;   /* key 0: the kind is known */
	bool came;
};
struct log_translation {
	struct trace *trace;
	struct arena arena; /* rows are taken off its ceiling */
	struct rows names, keys, shapes, processes, tracks, layouts, sites, windows, anchors, losses;
	const char *missing; /* what a row names that did not come */
	/* A row that comes in pieces. */
	struct buf part;
	uint64_t part_total;
	uint32_t part_id;
	uint16_t part_kind;
	/* META, END */
	uint64_t meta, end_events;
	bool ended;
};

enum status log_translation_new(struct log_translation **out, struct trace *t, size_t ceiling,
				struct error *err)
{
	struct log_translation *x = calloc(1, sizeof(*x));

	*out = NULL;
	if (!x)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the tables of a log");
	x->trace = t;
	arena_init(&x->arena, ceiling);
	buf_init(&x->part, ceiling / 4);
	x->names.row_bytes = x->processes.row_bytes = sizeof(uint32_t);
	x->windows.row_bytes = x->anchors.row_bytes = sizeof(uint32_t);
	x->keys.row_bytes = sizeof(struct file_keys);
	x->shapes.row_bytes = sizeof(struct file_shape);
	x->tracks.row_bytes = sizeof(struct file_track);
	x->layouts.row_bytes = sizeof(struct file_layout);
	x->sites.row_bytes = sizeof(struct log_site);
	x->losses.row_bytes = sizeof(struct file_losses);
	*out = x;
	return ST_OK;
}

void log_translation_free(struct log_translation *x)
{
	if (!x)
		return;
	free(x->names.at);
	free(x->keys.at);
	free(x->shapes.at);
	free(x->processes.at);
	free(x->tracks.at);
	free(x->layouts.at);
	free(x->sites.at);
	free(x->windows.at);
	free(x->anchors.at);
	free(x->losses.at);
	buf_release(&x->part);
	arena_release(&x->arena);
	free(x);
}

/* Rows */

/* Room for row `id`; a file may leave some out, but not say any number. */
static enum status rows_reach(struct log_translation *x, struct rows *r, uint32_t id,
			      uint64_t offset, struct error *err)
{
	uint64_t room = r->room ? r->room : 64;
	void *again;

	if (id && id < r->count)
		return ST_OK;
	if (!id || id - r->count > ROWS_MISSING)
		return fail(err, ST_FORMAT, offset, "table row %u comes after row %u", id,
			    r->count ? r->count - 1 : 0);
	while (room <= id)
		room *= 2;
	if (room > r->room) {
		size_t more = (room - r->room) * r->row_bytes;

		if (arena_is_full(&x->arena, more))
			return fail(err, ST_CEILING, offset,
				    "tables of the log need more memory than their ceiling");
		again = realloc(r->at, room * r->row_bytes);
		if (!again)
			return fail(err, ST_MEMORY, offset, "no memory for the tables of the log");
		memset((char *)again + (size_t)r->room * r->row_bytes, 0, more);
		x->arena.ceiling -= more;
		r->at = again;
		r->room = (uint32_t)room;
	}
	r->count = id + 1;
	return ST_OK;
}

static void *rows_get(const struct rows *r, uint64_t id)
{
	return id < r->count ? (char *)r->at + id * r->row_bytes : NULL;
}

/* The run's name of a file's; one that a damaged block took along is 0. */
static uint32_t name_of(struct log_translation *x, uint64_t id)
{
	const uint32_t *to = rows_get(&x->names, id);

	if (!id)
		return 0;
	if (!to)
		x->missing = "a name";
	return to ? *to : 0;
}

static uint32_t process_of(struct log_translation *x, uint64_t id)
{
	const uint32_t *to = rows_get(&x->processes, id);

	if (!id)
		return 0;
	if (!to || !*to)
		x->missing = "a process";
	return to ? *to : 0;
}

static void *arena_room(struct log_translation *x, size_t bytes, struct error *err)
{
	void *p = arena_take(&x->arena, bytes, 0);

	if (!p)
		table_refuse(&x->arena, bytes, err);
	return p;
}

/* The run's id of a shape with these varying keys, and of a kind that may be unknown. */
static enum status shape_of(struct log_translation *x, uint64_t id, const struct file_layout *l,
			    uint32_t *to, struct error *err)
{
	const struct file_shape *f = rows_get(&x->shapes, id);
	struct shape shape = { 0 };
	struct attr *more = NULL;

	*to = 0;
	if (id && (!f || !f->came)) {
		x->missing = "a shape";
		return ST_OK;
	}
	if (id) {
		shape.fixed = f->attrs;
		shape.fixed_count = f->count;
	}
	if (l) {
		shape.vary = l->vary;
		shape.vary_count = l->layout.vary_count;
	}
	if (l && l->kind_attr.key) {
		more = malloc((shape.fixed_count + 1) * sizeof(*more));
		if (!more)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for a shape");
		if (shape.fixed_count)
			memcpy(more, shape.fixed, shape.fixed_count * sizeof(*more));
		more[shape.fixed_count++] = l->kind_attr;
		shape.fixed = more;
	}
	if (shape.fixed_count || shape.vary_count)
		*to = trace_shape(x->trace, &shape, err);
	free(more);
	return *to || !(shape.fixed_count || shape.vary_count) ? ST_OK : err->status;
}

static enum status take_name(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	uint64_t len = take_varint(in);
	const char *text = take_text(in, len);
	uint32_t *to = rows_get(&x->names, id);

	if (!text || *to)
		return ST_OK;
	*to = trace_name(x->trace, text, len, err);
	return *to ? ST_OK : err->status;
}

static enum status take_keys(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	struct file_keys *row = rows_get(&x->keys, id);
	uint64_t count = take_varint(in);
	struct attr *keys;

	if (count > bytes_left(in) / 3) {
		in->cut = true;
		return ST_OK;
	}
	if (row->keys) {
		for (uint64_t i = 0; i < count; i++) {
			take_varint(in);
			take_u16(in);
		}
		return ST_OK;
	}
	keys = arena_room(x, (count + 1) * sizeof(*keys), err);
	if (!keys)
		return err->status;
	for (uint64_t i = 0; i < count; i++) {
		keys[i].key = name_of(x, take_varint(in));
		keys[i].type = take_u8(in);
		keys[i].unit = take_u8(in);
	}
	if (!in->cut && !x->missing)
		*row = (struct file_keys){ keys, (uint32_t)count };
	return ST_OK;
}

static uint64_t take_value(struct log_translation *x, unsigned type, struct bytes *in)
{
	if (type == ATTR_F64)
		return take_u64(in);
	if (type == ATTR_I64)
		return (uint64_t)take_zigzag(in);
	if (type == ATTR_TEXT || type == ATTR_JSON)
		return name_of(x, take_varint(in));
	return take_varint(in);
}

static enum status take_shape(struct log_translation *x, uint32_t id, struct bytes *in,
			      struct error *err)
{
	struct file_shape *row = rows_get(&x->shapes, id);
	uint64_t list = take_varint(in);
	const struct file_keys *k = rows_get(&x->keys, list);
	uint32_t count = list && k ? k->count : 0;
	struct attr *attrs = NULL;

	if (list && (!k || !k->keys)) {
		x->missing = "a list of keys";
		return ST_OK;
	}
	if (count > bytes_left(in)) {
		in->cut = true;
		return ST_OK;
	}
	if (!row->came && count) {
		attrs = arena_room(x, count * sizeof(*attrs), err);
		if (!attrs)
			return err->status;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bits = take_value(x, k->keys[i].type, in);

		if (!attrs)
			continue;
		attrs[i] = k->keys[i];
		attrs[i].bits = bits;
		if (attrs[i].type > ATTR_JSON)
			attrs[i].type = ATTR_U64;
	}
	if (!row->came && !in->cut && !x->missing)
		*row = (struct file_shape){ attrs, count, true };
	return ST_OK;
}

static enum status take_meta(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	x->meta = take_varint(in);
	return ST_OK;
}

/* Rows that begin with their length: what they lack at their end reads as 0. */

static uint64_t member(struct bytes *in)
{
	return bytes_left(in) ? take_varint(in) : 0;
}

static enum status take_process(struct log_translation *x, uint32_t id, struct bytes *in,
				struct error *err)
{
	uint32_t *to = rows_get(&x->processes, id);
	struct process p = { 0 };

	p.host = name_of(x, member(in));
	p.command = name_of(x, member(in));
	p.pid = (uint32_t)member(in);
	p.rank = log_take_id(member(in));
	p.world_size = (uint32_t)member(in);
	TRY(shape_of(x, member(in), NULL, &p.shape, err));
	if (in->cut || x->missing)
		return ST_OK;
	if (*to) {
		trace_set_process(x->trace, *to, &p);
		return ST_OK;
	}
	*to = trace_process(x->trace, &p, err);
	return *to ? ST_OK : err->status;
}

static enum status take_device(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct device d = { 0 };

	d.process = process_of(x, member(in));
	d.id = log_take_id(member(in));
	d.name = name_of(x, member(in));
	TRY(shape_of(x, member(in), NULL, &d.shape, err));
	if (in->cut || x->missing)
		return ST_OK;
	return trace_device(x->trace, &d, err) ? ST_OK : err->status;
}

static enum status take_track(struct log_translation *x, uint32_t id, struct bytes *in,
			      struct error *err)
{
	struct file_track *row = rows_get(&x->tracks, id);
	struct track k = { 0 };
	uint64_t home = member(in), launches;

	k.process = process_of(x, member(in));
	k.name = name_of(x, member(in));
	k.device = log_take_id(member(in));
	k.context = log_take_id(member(in));
	k.id = member(in);
	k.unit = (uint8_t)member(in);
	launches = member(in);
	if (in->cut || x->missing)
		return ST_OK;
	k.home = home > HOME_COUNTER ? HOME_THREAD : (enum home)home;
	row->launches = launches;
	if (row->to && k.name && k.home != HOME_COUNTER)
		trace_set_track_name(x->trace, row->to, k.name);
	if (row->to)
		return ST_OK;
	row->to = trace_track(x->trace, &k, err);
	return row->to ? ST_OK : err->status;
}

static enum status take_window(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	uint32_t *to = rows_get(&x->windows, id);
	struct window w = { 0 };

	w.process = process_of(x, member(in));
	w.spec = name_of(x, member(in));
	w.begin_ns = member(in);
	w.end_ns = member(in);
	w.own_ns = member(in);
	w.cut_short = member(in) != 0;
	if (in->cut || x->missing)
		return ST_OK;
	if (*to) {
		trace_set_window(x->trace, *to, &w);
		return ST_OK;
	}
	*to = trace_window(x->trace, &w, err);
	return *to ? ST_OK : err->status;
}

static enum status take_anchor(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	uint32_t *to = rows_get(&x->anchors, id);
	struct anchor a = { 0 };

	a.process = process_of(x, member(in));
	a.realtime_ns = member(in);
	a.monotonic_ns = member(in);
	a.cupti_ns = member(in);
	if (in->cut || x->missing || *to)
		return ST_OK;
	*to = trace_anchor(x->trace, &a, err);
	return *to ? ST_OK : err->status;
}

/* Totals so far; the last row holds, so they are added only in the end. */
static enum status take_losses(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct file_losses *row = rows_get(&x->losses, id), losses = { { 0 } };

	while (bytes_left(in)) {
		uint64_t why = take_varint(in), count = take_varint(in);

		losses.counts[why < LOSS_END ? why : 0] += count;
	}
	if (!in->cut)
		*row = losses;
	return ST_OK;
}

/* FIELDS */

/* As the file has it. */
struct file_column {
	const char *name;
	size_t len;
	uint8_t role, type, unit;
};

static bool named(const struct file_column *c, const char *name)
{
	return c->len == strlen(name) && memcmp(c->name, name, c->len) == 0;
}

/* Whether a column holds this member of events of the kind: by its name, in a type that fits. */
static bool is_member(const struct file_column *c, unsigned kind, enum log_role role)
{
	const struct field *f = log_member(kind, role);
	bool is_f64 = f && f->type == FIELD_F64;

	if (c->role == role && named(c, role == LOG_JOIN ? LOG_NO_JOIN : LOG_NO_AMOUNT))
		return true;
	return f && named(c, f->name) && is_f64 == (c->type == ATTR_F64);
}

/* What a column is here; `taken` has a bit for each role that is given away. */
static enum log_role role_of(const struct file_column *c, unsigned kind, unsigned *taken)
{
	enum log_role role = LOG_VARY;

	if (c->role == LOG_BEGIN || c->role == LOG_LENGTH || c->role == LOG_SITE ||
	    c->role == LOG_FLAGS || c->role == LOG_ORDER)
		role = c->role;
	else if (is_member(c, kind, LOG_JOIN))
		role = LOG_JOIN;
	else if (is_member(c, kind, LOG_AMOUNT))
		role = LOG_AMOUNT;
	if (*taken & 1u << role)
		return LOG_VARY;
	if (role != LOG_VARY)
		*taken |= 1u << role;
	return role;
}

static struct file_column take_column(struct bytes *in)
{
	struct file_column c = { .len = 0 };
	uint64_t len = take_varint(in);

	c.name = take_text(in, len);
	c.len = c.name ? len : 0;
	c.role = take_u8(in);
	c.type = take_u8(in);
	c.unit = take_u8(in);
	return c;
}

static enum status make_vary(struct log_translation *x, const struct file_column *c,
			     struct attr *key, struct error *err)
{
	key->key = trace_name(x->trace, c->name, c->len, err);
	key->type = c->type <= ATTR_F64 ? c->type : ATTR_U64;
	key->unit = c->unit;
	return key->key ? ST_OK : err->status;
}

/* Members first, so that an attribute of a member's name does not take its place. */
static void find_members(struct bytes in, uint64_t count, unsigned kind,
			 struct log_column *columns)
{
	unsigned taken = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		struct bytes again = in;

		for (uint64_t i = 0; i < count; i++) {
			struct file_column c = take_column(&again);

			if ((c.role < LOG_VARY) == (pass == 0))
				columns[i].role = (uint8_t)role_of(&c, kind, &taken);
			columns[i].type = c.type;
			columns[i].unit = c.unit;
		}
	}
}

static enum status take_columns(struct log_translation *x, struct file_layout *l,
				struct bytes *in, uint64_t count, struct error *err)
{
	struct log_column *columns = arena_room(x, (count + 1) * sizeof(*columns), err);
	struct attr *vary = arena_room(x, (count + 1) * sizeof(*vary), err);
	uint16_t vary_count = 0;

	if (!columns || !vary)
		return err->status;
	find_members(*in, count, l->layout.kind, columns);
	for (uint64_t i = 0; i < count; i++) {
		struct file_column c = take_column(in);

		if (columns[i].role != LOG_VARY)
			continue;
		if (in->cut)
			return ST_OK;
		columns[i].vary = (uint8_t)vary_count;
		TRY(make_vary(x, &c, &vary[vary_count++], err));
	}
	l->layout.columns = columns;
	l->layout.column_count = (uint16_t)count;
	l->layout.vary_count = vary_count;
	l->vary = vary;
	return ST_OK;
}

/* What stands for a kind that is unknown here: its word, or its number. */
static enum status make_kind_attr(struct log_translation *x, uint64_t number, const char *word,
				  size_t len, struct attr *attr, struct error *err)
{
	attr->key = trace_name(x->trace, ".kind", 5, err);
	attr->type = len ? ATTR_TEXT : ATTR_U64;
	attr->bits = len ? trace_name(x->trace, word, len, err) : number;
	return attr->key && attr->bits ? ST_OK : err->status;
}

static enum status take_layout(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct file_layout *row = rows_get(&x->layouts, id), l = { .came = true };
	uint64_t number = take_varint(in), len = take_varint(in), count;
	const char *word = take_text(in, len);

	count = take_varint(in);
	if (in->cut || row->came)
		return ST_OK;
	if (count > COLUMNS_MAX)
		return fail(err, ST_FORMAT, NOWHERE, "layout %u has %llu columns", id,
			    (unsigned long long)count);
	if (number && number < KIND_END && kind_of_word(word, len) == number)
		l.layout.kind = (uint8_t)number;
	else if (number)
		TRY(make_kind_attr(x, number, word, len, &l.kind_attr, err));
	TRY(take_columns(x, &l, in, count, err));
	if (!in->cut)
		*row = l;
	return ST_OK;
}

/* SITES */

struct site_deltas {
	uint64_t track, name, shape;
};

static enum status take_site(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct site_deltas *at, struct error *err)
{
	struct log_site *row = rows_get(&x->sites, id);
	uint64_t layout = take_varint(in), subkind = take_varint(in);
	const struct file_layout *l = rows_get(&x->layouts, layout);
	const struct file_track *track;
	struct site site;

	at->track += (uint64_t)take_zigzag(in);
	at->name += (uint64_t)take_zigzag(in);
	at->shape += (uint64_t)take_zigzag(in);
	track = rows_get(&x->tracks, at->track);
	if (in->cut || row->layout)
		return ST_OK;
	if (!l || !l->came || !layout)
		x->missing = "a layout";
	else if (at->track && (!track || !track->to))
		x->missing = "a track";
	if (x->missing)
		return ST_OK;
	site.track = at->track ? track->to : 0;
	site.name = name_of(x, at->name);
	site.kind = l->layout.kind;
	site.subkind = (uint8_t)subkind;
	TRY(shape_of(x, at->shape, l, &site.shape, err));
	if (x->missing)
		return ST_OK;
	if (!trace_site(x->trace, &site, err))
		return err->status;
	*row = (struct log_site){
		.track = site.track, .name = site.name, .shape = site.shape,
		.layout = (uint16_t)layout, .kind = site.kind, .subkind = site.subkind,
		.slot = log_slot((uint32_t)at->track),
	};
	return ST_OK;
}

/* A block */

typedef enum status (*take_row)(struct log_translation *x, uint32_t id, struct bytes *in,
				struct error *err);
struct table_type {
	take_row take;
	size_t rows; /* offset of its struct rows; 0: has none */
	bool has_length;
};
#define TABLE(take, member, has_length)                                                  	{ take, offsetof(struct log_translation, member), has_length }
static const struct table_type types[LOG_BLOCK_KIND_END] = {
	[LOG_NAMES] = TABLE(take_name, names, false),
	[LOG_KEYS] = TABLE(take_keys, keys, false),
	[LOG_SHAPES] = TABLE(take_shape, shapes, false),
	[LOG_PROCESSES] = TABLE(take_process, processes, true),
	[LOG_DEVICES] = { take_device, 0, true },
	[LOG_TRACKS] = TABLE(take_track, tracks, true),
	[LOG_FIELDS] = TABLE(take_layout, layouts, true),
	[LOG_SITES] = { NULL, offsetof(struct log_translation, sites), false },
	[LOG_WINDOWS] = TABLE(take_window, windows, true),
	[LOG_ANCHORS] = TABLE(take_anchor, anchors, true),
	[LOG_LOSSES] = TABLE(take_losses, losses, true),
	[LOG_META] = { take_meta, 0, true },
};

static enum status take_one(struct log_translation *x, const struct log_block *block,
			    uint32_t id, struct bytes *in, struct site_deltas *at,
			    struct error *err)
{
	const struct table_type *type = &types[block->kind];
	struct bytes row, *from = in;

	if (type->rows)
		TRY(rows_reach(x, (struct rows *)((char *)x + type->rows), id, block->offset,
			       err));
	if (type->has_length) {
		row = take_part(in, take_varint(in));
		from = &row;
	}
	x->missing = NULL;
	if (type->take)
		TRY(type->take(x, id, from, err));
	else
		TRY(take_site(x, id, from, at, err));
	if (from->cut)
		return fail(err, ST_FORMAT, block->offset, "table row %u is cut off", id);
	if (x->missing)
		return fail(err, ST_FORMAT, block->offset,
			    "table row %u needs %s that did not come", id, x->missing);
	return ST_OK;
}

static enum status take_rows(struct log_translation *x, const struct log_block *block,
			     const uint8_t *payload, struct error *err)
{
	struct bytes in = bytes_init(payload, block->raw_size);
	struct site_deltas at = { 0 };
	uint64_t first = take_varint(&in);
	struct error row_err, first_err = { .status = ST_OK };

	for (uint32_t i = 0; i < block->rows; i++) {
		enum status st;

		if (first + i > UINT32_MAX - 1 || in.cut)
			return fail(err, ST_FORMAT, block->offset,
				    "table block has not the rows it says");
		st = take_one(x, block, (uint32_t)(first + i), &in, &at, &row_err);
		if (st == ST_OK)
			continue;
		if (first_err.status == ST_OK)
			first_err = row_err;
		if (st != ST_FORMAT || in.cut || !x->missing)
			break;
	}
	if (first_err.status == ST_OK && bytes_left(&in))
		return fail(err, ST_FORMAT, block->offset,
			    "table block has %zu bytes after its rows", bytes_left(&in));
	if (first_err.status != ST_OK)
		*err = first_err;
	return first_err.status;
}

/* One piece of a long row; when all have come, the row. */
static enum status take_piece(struct log_translation *x, const struct log_block *block,
			      const uint8_t *payload, struct error *err)
{
	struct bytes in = bytes_init(payload, block->raw_size), row;
	struct site_deltas at = { 0 };
	uint64_t id = take_varint(&in), total = take_varint(&in), offset = take_varint(&in);

	if (!offset) {
		buf_clear(&x->part);
		x->part_kind = block->kind;
		x->part_id = (uint32_t)id;
		x->part_total = total;
	}
	if (in.cut || id > UINT32_MAX - 1 || block->kind != x->part_kind || id != x->part_id ||
	    total != x->part_total || offset != x->part.len ||
	    bytes_left(&in) > total - offset)
		return fail(err, ST_FORMAT, block->offset,
			    "piece of a table row does not fit the one before");
	buf_put(&x->part, in.at, bytes_left(&in));
	TRY(buf_status(&x->part, err));
	if (x->part.len < total)
		return ST_OK;
	row = bytes_init(x->part.data, x->part.len);
	TRY(take_one(x, block, (uint32_t)id, &row, &at, err));
	buf_clear(&x->part);
	return ST_OK;
}

static enum status take_end(struct log_translation *x, const struct log_block *block,
			    const uint8_t *payload, struct error *err)
{
	struct bytes in = bytes_init(payload, block->raw_size);
	uint64_t kinds = take_varint(&in), events = 0;

	for (uint64_t i = 0; i < kinds && !in.cut; i++) {
		take_varint(&in);
		events += take_varint(&in);
	}
	if (in.cut)
		return fail(err, ST_FORMAT, block->offset, "END block is cut off");
	x->ended = true;
	x->end_events = events;
	return ST_OK;
}

enum status log_take_table(struct log_translation *x, const struct log_block *block,
			   const uint8_t *payload, struct error *err)
{
	struct error own;

	if (!err)
		err = &own;
	if (block->kind == LOG_END)
		return take_end(x, block, payload, err);
	x->ended = false;
	if (block->kind >= LOG_BLOCK_KIND_END ||
	    (!types[block->kind].take && block->kind != LOG_SITES))
		return fail(err, ST_FORMAT, block->offset, "block of kind %u is not a table",
			    block->kind);
	if (block->flags & LOG_PART)
		return take_piece(x, block, payload, err);
	return take_rows(x, block, payload, err);
}

void log_translation_finish(struct log_translation *x)
{
	struct provenance *p = trace_provenance(x->trace);

	for (uint32_t id = 1; id < x->tracks.count; id++) {
		const struct file_track *k = rows_get(&x->tracks, id);

		if (k->to)
			trace_add_launches(x->trace, k->to, k->launches);
	}
	for (uint32_t id = 1; id < x->losses.count; id++) {
		const struct file_losses *row = rows_get(&x->losses, id);
		const uint32_t *process = rows_get(&x->processes, id - 1);

		for (unsigned why = 0; why < LOSS_END; why++)
			if (row->counts[why])
				trace_lose(x->trace, process && id > 1 ? *process : 0, why,
					   row->counts[why]);
	}
	p->is_synthetic |= (x->meta & META_SYNTHETIC) != 0;
	p->epoch_known = !(x->meta & META_NO_EPOCH);
}

const struct log_site *log_sites(const struct log_translation *x, size_t *count)
{
	*count = x->sites.count;
	return x->sites.at;
}

const struct log_layout *log_layout(const struct log_translation *x, uint16_t layout)
{
	const struct file_layout *l = rows_get(&x->layouts, layout);

	return l && l->came ? &l->layout : NULL;
}

bool log_translation_ended(const struct log_translation *x, uint64_t *events)
{
	*events = x->end_events;
	return x->ended && !(x->meta & META_FROM_PART);
}
