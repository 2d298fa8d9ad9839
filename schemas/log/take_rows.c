/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/read.h"

#include "schemas/base/json_text.h"
#include "schemas/model/records.h"

static enum status take_name(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	uint64_t len = take_varint(in);
	const char *text = take_text(in, len);
	uint32_t *to = log_rows_get(&x->names, id);

	if (!text || *to)
		return ST_OK;
	*to = trace_name(x->trace, text, len, err);
	return *to ? ST_OK : err->status;
}

static enum status take_keys(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	struct file_keys *row = log_rows_get(&x->keys, id);
	uint64_t count = take_varint(in);
	struct attr *keys;

	if (count > bytes_left(in) / 3) {
		in->is_truncated = true;
		return ST_OK;
	}
	if (row->keys) {
		for (uint64_t i = 0; i < count; i++) {
			take_varint(in);
			take_u16(in);
		}
		return ST_OK;
	}
	keys = log_arena_take(x, (count + 1) * sizeof(*keys), err);
	if (!keys)
		return err->status;
	for (uint64_t i = 0; i < count; i++) {
		keys[i].key = log_name_of(x, take_varint(in));
		keys[i].type = take_u8(in);
		keys[i].unit = take_u8(in);
	}
	if (!in->is_truncated && !x->missing)
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
		return log_name_of(x, take_varint(in));
	return take_varint(in);
}

/* Returns the type of an attribute in the trace.  A value that claims to be JSON is checked,
 * because writers copy it to their output verbatim. */
static uint8_t type_of(const struct log_translation *x, uint8_t type, uint64_t bits)
{
	size_t len;

	if (type > ATTR_JSON)
		return ATTR_U64;
	if (type != ATTR_JSON)
		return type;
	const char *text = trace_text(x->trace, (uint32_t)bits, &len);
	return json_is_value(text, len) ? ATTR_JSON : ATTR_TEXT;
}

static enum status take_schema(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct file_schema *row = log_rows_get(&x->schemas, id);
	uint64_t list = take_varint(in);
	const struct file_keys *k = log_rows_get(&x->keys, list);
	uint32_t count = list && k ? k->count : 0;
	struct attr *attrs = NULL;

	if (list && (!k || !k->keys)) {
		x->missing = "a list of keys";
		return ST_OK;
	}
	if (count > bytes_left(in)) {
		in->is_truncated = true;
		return ST_OK;
	}
	if (!row->came && count) {
		attrs = log_arena_take(x, count * sizeof(*attrs), err);
		if (!attrs)
			return err->status;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bits = take_value(x, k->keys[i].type, in);

		if (!attrs)
			continue;
		attrs[i] = k->keys[i];
		attrs[i].bits = bits;
		attrs[i].type = type_of(x, attrs[i].type, bits);
	}
	if (!row->came && !in->is_truncated && !x->missing)
		*row = (struct file_schema){ attrs, count, true };
	return ST_OK;
}

static enum status take_meta(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	x->meta = take_varint(in);
	return ST_OK;
}

/* Reads the members of a row that is a struct of the trace.  Members that are missing at its end
 * are 0. */
static enum status take_members(struct log_translation *x, const struct row_member *list,
				struct bytes *in, void *row, struct error *err)
{
	for (; list->size; list++) {
		uint64_t value = bytes_left(in) ? take_varint(in) : 0;
		uint32_t schema;

		if (list->type == ROW_NAME) {
			value = log_name_of(x, value);
		} else if (list->type == ROW_PROCESS) {
			value = log_process_of(x, value);
		} else if (list->type == ROW_SCHEMA) {
			TRY(log_schema_of(x, value, NULL, &schema, err));
			value = schema;
		}
		row_member_set(list, row, value);
	}
	return ST_OK;
}

/* A track keeps its launches until log_translation_finish() adds those of the last row. */
static enum status take_track(struct log_translation *x, struct file_track *to,
			      const struct track_row *row, struct error *err)
{
	to->launches = row->launches;
	if (to->to && row->track.name && row->track.type != TRACK_COUNTER)
		trace_set_track_name(x->trace, to->to, row->track.name);
	if (!to->to)
		to->to = trace_track(x->trace, &row->track, err);
	return to->to ? ST_OK : err->status;
}

enum status log_take_struct(struct log_translation *x, unsigned kind, uint32_t id, struct bytes *in,
			    struct error *err)
{
	const struct log_row_reader *reader = &log_row_readers[kind];
	union {
		struct process process;
		struct device device;
		struct track_row track;
		struct window window;
		struct anchor anchor;
	} row;
	uint32_t device = 0, *to = &device;

	memset(&row, 0, sizeof(row));
	TRY(take_members(x, reader->members, in, &row, err));
	if (in->is_truncated || x->missing)
		return ST_OK;
	if (reader->rows)
		to = log_rows_get((const struct rows *)((const char *)x + reader->rows), id);
	switch (kind) {
	case LOG_PROCESSES:
		if (*to)
			trace_set_process(x->trace, *to, &row.process);
		else
			*to = trace_process(x->trace, &row.process, err);
		break;
	case LOG_DEVICES:
		device = trace_device(x->trace, &row.device, err);
		break;
	case LOG_TRACKS:
		return take_track(x, (struct file_track *)(void *)to, &row.track, err);
	case LOG_WINDOWS:
		if (*to)
			trace_set_window(x->trace, *to, &row.window);
		else
			*to = trace_window(x->trace, &row.window, err);
		break;
	default: /* LOG_ANCHORS */
		if (!*to)
			*to = trace_anchor(x->trace, &row.anchor, err);
	}
	return *to ? ST_OK : err->status;
}

/* A row has totals so far and the last one is valid, so they are added to the trace only at the
 * end, by log_translation_finish(). */
static enum status take_losses(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct file_losses *row = log_rows_get(&x->losses, id), losses = { { 0 } };

	while (bytes_left(in)) {
		uint64_t why = take_varint(in), count = take_varint(in);

		losses.counts[why < LOSS_END ? why : 0] += count;
	}
	if (!in->is_truncated)
		*row = losses;
	return ST_OK;
}

/* ---- layouts and event descriptors ---- */

enum { COLUMNS_MAX = 255 };

/* A column of a layout as the file has it. */
struct file_column {
	const char *name;
	size_t len;
	uint8_t role, type, unit;
};

static bool is_named(const struct file_column *c, const char *name)
{
	return c->len == strlen(name) && memcmp(c->name, name, c->len) == 0;
}

/* Returns whether a column is this member of events of the kind, by its name and type. */
static bool is_member(const struct file_column *c, unsigned kind, enum log_role role)
{
	const struct field *f = log_member(kind, role);
	bool is_f64 = f && f->type == FIELD_F64;

	if (c->role == role &&
	    is_named(c, role == LOG_CORRELATION ? LOG_NO_CORRELATION : LOG_NO_VALUE))
		return true;
	return f && is_named(c, f->name) && is_f64 == (c->type == ATTR_F64);
}

/* Returns the role of a column for this reader; `taken` has a bit for each role that is already
 * assigned. */
static enum log_role role_of(const struct file_column *c, unsigned kind, unsigned *taken)
{
	enum log_role role = LOG_ARG;

	if (c->role == LOG_BEGIN || c->role == LOG_LENGTH || c->role == LOG_DESC ||
	    c->role == LOG_FLAGS || c->role == LOG_ORDER)
		role = c->role;
	else if (is_member(c, kind, LOG_CORRELATION))
		role = LOG_CORRELATION;
	else if (is_member(c, kind, LOG_VALUE))
		role = LOG_VALUE;
	if (*taken & 1u << role)
		return LOG_ARG;
	if (role != LOG_ARG)
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

static enum status take_columns(struct log_translation *x, struct file_layout *l, struct bytes *in,
				uint64_t count, struct error *err)
{
	struct log_column *columns = log_arena_take(x, (count + 1) * sizeof(*columns), err);
	struct attr *args = log_arena_take(x, (count + 1) * sizeof(*args), err);
	uint16_t arg_count = 0;
	unsigned taken = 0;

	if (!columns || !args)
		return err->status;
	/* Assign members first, so that an argument with the name of a member does not get its
	 * role. */
	for (unsigned pass = 0; pass < 2; pass++) {
		struct bytes again = *in;

		for (uint64_t i = 0; i < count; i++) {
			struct file_column c = take_column(&again);

			if ((c.role < LOG_ARG) == (pass == 0))
				columns[i].role = (uint8_t)role_of(&c, l->layout.kind, &taken);
			columns[i].type = c.type;
			columns[i].unit = c.unit;
		}
	}
	for (uint64_t i = 0; i < count; i++) {
		struct file_column c = take_column(in);
		struct attr *key = &args[arg_count];

		if (columns[i].role != LOG_ARG)
			continue;
		if (in->is_truncated)
			return ST_OK;
		key->key = trace_name(x->trace, c.name, c.len, err);
		key->type = c.type <= ATTR_F64 ? c.type : ATTR_U64;
		key->unit = c.unit;
		if (!key->key)
			return err->status;
		columns[i].args = (uint8_t)arg_count++;
	}
	l->layout.columns = columns;
	l->layout.column_count = (uint16_t)count;
	l->layout.arg_count = arg_count;
	l->args = args;
	return ST_OK;
}

static enum status take_layout(struct log_translation *x, uint32_t id, struct bytes *in,
			       struct error *err)
{
	struct file_layout *row = log_rows_get(&x->layouts, id), l = { .came = true };
	uint64_t number = take_varint(in), len = take_varint(in), count;
	const char *word = take_text(in, len);

	count = take_varint(in);
	if (in->is_truncated || row->came)
		return ST_OK;
	if (count > COLUMNS_MAX)
		return fail(err, ST_FORMAT, NOWHERE, "layout %u has %llu columns", id,
			    (unsigned long long)count);
	if (number && number < KIND_END && kind_of_word(word, len) == number) {
		l.layout.kind = (uint8_t)number;
	} else if (number) { /* store an unknown kind as an attribute */
		l.kind_attr.key = trace_name(x->trace, ".kind", 5, err);
		l.kind_attr.type = len ? ATTR_TEXT : ATTR_U64;
		l.kind_attr.bits = len ? trace_name(x->trace, word, len, err) : number;
		if (!l.kind_attr.key || !l.kind_attr.bits)
			return err->status;
	}
	TRY(take_columns(x, &l, in, count, err));
	if (!in->is_truncated)
		*row = l;
	return ST_OK;
}

static enum status take_desc(struct log_translation *x, uint32_t id, struct bytes *in,
			     struct error *err)
{
	struct log_desc_sums *at = &x->desc;
	struct log_desc *row = log_rows_get(&x->descs, id);
	uint64_t layout = take_varint(in), subkind = take_varint(in);
	const struct file_layout *l = log_rows_get(&x->layouts, layout);
	struct event_desc desc;

	at->track += (uint64_t)take_zigzag(in);
	at->name += (uint64_t)take_zigzag(in);
	at->schema += (uint64_t)take_zigzag(in);
	const struct file_track *track = log_rows_get(&x->tracks, at->track);
	if (in->is_truncated || row->layout)
		return ST_OK;
	if (!l || !l->came || !layout)
		x->missing = "a layout";
	else if (at->track && (!track || !track->to))
		x->missing = "a track";
	if (x->missing)
		return ST_OK;
	desc.track = at->track ? track->to : 0;
	desc.name = log_name_of(x, at->name);
	desc.kind = l->layout.kind;
	desc.subkind = (uint8_t)subkind;
	TRY(log_schema_of(x, at->schema, l, &desc.schema, err));
	if (x->missing)
		return ST_OK;
	if (x->change)
		x->change(x->change_arg, x->trace, &desc);
	if (!trace_desc(x->trace, &desc, err))
		return err->status;
	*row = (struct log_desc){
		.track = desc.track,
		.name = desc.name,
		.schema = desc.schema,
		.layout = (uint16_t)layout,
		.kind = desc.kind,
		.subkind = desc.subkind,
		.slot = log_slot((uint32_t)at->track),
	};
	return ST_OK;
}

#define TABLE(member) offsetof(struct log_translation, member)
const struct log_row_reader log_row_readers[LOG_BLOCK_KIND_END] = {
	[LOG_NAMES] = { take_name, NULL, TABLE(names), false },
	[LOG_KEYS] = { take_keys, NULL, TABLE(keys), false },
	[LOG_SCHEMAS] = { take_schema, NULL, TABLE(schemas), false },
	[LOG_PROCESSES] = { NULL, log_process_row, TABLE(processes), true },
	[LOG_DEVICES] = { NULL, log_device_row, 0, true },
	[LOG_TRACKS] = { NULL, log_track_row, TABLE(tracks), true },
	[LOG_FIELDS] = { take_layout, NULL, TABLE(layouts), true },
	[LOG_DESCS] = { take_desc, NULL, TABLE(descs), false },
	[LOG_WINDOWS] = { NULL, log_window_row, TABLE(windows), true },
	[LOG_ANCHORS] = { NULL, log_anchor_row, TABLE(anchors), true },
	[LOG_LOSSES] = { take_losses, NULL, TABLE(losses), true },
	[LOG_META] = { take_meta, NULL, 0, true },
	[LOG_SAVED] = { log_take_saved, NULL, 0, true },
};
