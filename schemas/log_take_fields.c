/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_read.h"

#include "schemas/records.h"

enum { COLUMNS_MAX = 255 };

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
	struct log_column *columns = log_arena_room(x, (count + 1) * sizeof(*columns), err);
	struct attr *vary = log_arena_room(x, (count + 1) * sizeof(*vary), err);
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

enum status log_take_layout(struct log_translation *x, uint32_t id, struct bytes *in,
			    struct error *err)
{
	struct file_layout *row = log_rows_get(&x->layouts, id), l = { .came = true };
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

enum status log_take_site(struct log_translation *x, uint32_t id, struct bytes *in,
			  struct error *err)
{
	struct log_site_deltas *at = &x->site;
	struct log_site *row = log_rows_get(&x->sites, id);
	uint64_t layout = take_varint(in), subkind = take_varint(in);
	const struct file_layout *l = log_rows_get(&x->layouts, layout);
	const struct file_track *track;
	struct site site;

	at->track += (uint64_t)take_zigzag(in);
	at->name += (uint64_t)take_zigzag(in);
	at->shape += (uint64_t)take_zigzag(in);
	track = log_rows_get(&x->tracks, at->track);
	if (in->cut || row->layout)
		return ST_OK;
	if (!l || !l->came || !layout)
		x->missing = "a layout";
	else if (at->track && (!track || !track->to))
		x->missing = "a track";
	if (x->missing)
		return ST_OK;
	site.track = at->track ? track->to : 0;
	site.name = log_name_of(x, at->name);
	site.kind = l->layout.kind;
	site.subkind = (uint8_t)subkind;
	TRY(log_shape_of(x, at->shape, l, &site.shape, err));
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
