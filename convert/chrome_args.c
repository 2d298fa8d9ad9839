/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/chrome_args.h"

#include "schemas/arena.h"
#include "schemas/json_text.h"
#include "schemas/records.h"

#include <stdlib.h>
#include <string.h>

enum { PLANS_CEILING = 24 << 20 };

enum slot {
	SLOT_TEXT, /* nothing varies: `text` is all */
	SLOT_VARY,
	SLOT_JOIN,
	SLOT_BYTES,
	SLOT_DEVICE,
	SLOT_CONTEXT,
	SLOT_STREAM,
	SLOT_SIGNED_BYTES,
	SLOT_ADDRESS,
	SLOT_VALUE,
	SLOT_BANDWIDTH,
	SLOT_POOL_TYPE,
	SLOT_POOL_DEVICE,
};

struct piece { /* `"key": ` and then the value of the slot; texts hold whole pairs */
	const char *text;
	uint32_t len;
	uint8_t slot, type; /* type: enum attr_type of a vary word */
	uint16_t vary;
};
struct plan { /* of one shape when it is used by events of one kind and subkind */
	struct plan *next; /* of the same shape */
	uint8_t kind, subkind;
	bool is_native;
	struct chrome_members members;
	struct piece *pieces;
	size_t count;
};

struct chrome_args {
	const struct trace *trace;
	struct arena arena;
	struct plan **by_shape; /* index: shape id */
	size_t shapes;
	struct buf text; /* scratch */
};

enum status chrome_args_new(struct chrome_args **out, const struct trace *trace, struct error *err)
{
	struct chrome_args *a = calloc(1, sizeof(*a));

	*out = NULL;
	if (!a)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the texts of arguments");
	a->trace = trace;
	a->shapes = trace_count(trace, TRACE_SHAPES) + 1;
	a->by_shape = calloc(a->shapes, sizeof(*a->by_shape));
	arena_init(&a->arena, PLANS_CEILING);
	buf_init(&a->text, PLANS_CEILING);
	if (!a->by_shape) {
		chrome_args_free(a);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the texts of arguments");
	}
	*out = a;
	return ST_OK;
}

void chrome_args_free(struct chrome_args *a)
{
	if (!a)
		return;
	arena_release(&a->arena);
	buf_release(&a->text);
	free(a->by_shape);
	free(a);
}

static void put_value(struct buf *b, const struct trace *t, uint8_t type, uint64_t bits)
{
	const char *text;
	double f64;
	size_t len;

	switch (type) {
	case ATTR_I64:
		buf_put_i64_text(b, (int64_t)bits);
		break;
	case ATTR_F64:
		memcpy(&f64, &bits, sizeof(f64));
		json_put_f64(b, f64);
		break;
	case ATTR_TEXT:
		text = trace_text(t, (uint32_t)bits, &len);
		json_put_text(b, text, len);
		break;
	case ATTR_JSON:
		text = trace_text(t, (uint32_t)bits, &len);
		buf_put(b, text, len);
		break;
	default:
		buf_put_u64_text(b, bits);
	}
}

void chrome_put_attr(struct buf *b, const struct trace *trace, const struct attr *attr)
{
	put_value(b, trace, attr->type, attr->bits);
}

static void put_key(struct buf *b, const char *key, size_t len)
{
	json_put_text(b, key, len);
	buf_put_text(b, ": ");
}

/* ---- a plan is made ---- */

struct draft { /* pieces of the plan being made */
	struct chrome_args *a;
	const struct record *record;
	const struct shape *shape;
	struct plan *plan;
	size_t room;
};

/* The scratch text becomes a piece. */
static void add_piece(struct draft *d, enum slot slot, uint8_t type, size_t vary)
{
	struct buf *b = &d->a->text;
	struct plan *p = d->plan;

	if (p->count == d->room || !p->pieces)
		return;
	p->pieces[p->count++] = (struct piece){
		.text = arena_text(&d->a->arena, buf_text(b), b->len),
		.len = (uint32_t)b->len,
		.slot = slot,
		.type = type,
		.vary = (uint16_t)vary,
	};
	buf_clear(b);
}

/* How a key is spelled: Kineto's word for a field of ours, else as it is.  NULL: not written. */
static const char *spelling(const struct draft *d, const struct attr *attr, size_t *len)
{
	const char *key = trace_text(d->a->trace, attr->key, len);
	const struct field *f = d->record ? record_field(d->record, key, *len) : NULL;

	if (!f)
		return key;
	if (f->arg)
		*len = strlen(f->arg);
	return f->arg;
}

/* "grid[0]" and its like: the word before the bracket, and the place; -1: no array. */
static int array_place(const char *arg, size_t len)
{
	return len > 3 && arg[len - 1] == ']' && arg[len - 3] == '[' ? arg[len - 2] - '0' : -1;
}

/* `"grid": [1, 2, 3]` from three attributes, when `first` is the one of place 0. */
static void add_array(struct draft *d, size_t first, const char *arg, size_t len)
{
	struct buf *b = &d->a->text;
	const struct shape *s = d->shape;

	put_key(b, arg, len - 3);
	for (int place = 0; place < 3; place++) {
		for (size_t i = first; i < s->fixed_count; i++) {
			size_t other_len;
			const char *other = spelling(d, &s->fixed[i], &other_len);

			if (!other || other_len != len || memcmp(other, arg, len - 3) != 0 ||
			    array_place(other, other_len) != place)
				continue;
			buf_put_text(b, place ? ", " : "[");
			put_value(b, d->a->trace, s->fixed[i].type, s->fixed[i].bits);
		}
	}
	buf_put_byte(b, ']');
	add_piece(d, SLOT_TEXT, 0, 0);
}

/* `"shared memory": static + dynamic`, at the first of the fields that are summed. */
static void add_sum(struct draft *d, size_t first, const char *arg, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < d->shape->fixed_count; i++) {
		size_t other_len;
		const char *other = spelling(d, &d->shape->fixed[i], &other_len);

		if (!other || other_len != len || memcmp(other, arg, len) != 0)
			continue;
		if (i < first)
			return;
		sum += d->shape->fixed[i].bits;
	}
	put_key(&d->a->text, arg + 1, len - 1);
	buf_put_u64_text(&d->a->text, sum);
	add_piece(d, SLOT_TEXT, 0, 0);
}

static const char *member_text(struct draft *d, const struct attr *attr)
{
	struct buf *b = &d->a->text;
	const char *text;

	chrome_put_attr(b, d->a->trace, attr);
	text = arena_text(&d->a->arena, buf_text(b), b->len);
	buf_clear(b);
	return text;
}

/* ".cat" and its like: members of the event itself. */
static void add_member(struct draft *d, const char *key, size_t len, const struct attr *attr,
		       struct buf *rest)
{
	struct chrome_members *m = &d->plan->members;
	const struct {
		const char *key;
		const char **into;
	} known[] = {{".cat", &m->cat}, {".ph", &m->ph}, {".pid", &m->pid}, {".tid", &m->tid}};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strlen(known[i].key) == len && memcmp(known[i].key, key, len) == 0) {
			*known[i].into = member_text(d, attr);
			return;
		}
	}
	buf_put_text(rest, ", ");
	put_key(rest, key + 1, len - 1);
	chrome_put_attr(rest, d->a->trace, attr);
}

static void add_fixed(struct draft *d, struct buf *rest)
{
	for (size_t i = 0; i < d->shape->fixed_count; i++) {
		const struct attr *attr = &d->shape->fixed[i];
		size_t len;
		const char *arg = spelling(d, attr, &len);

		if (!arg)
			continue;
		if (len && arg[0] == '.') {
			add_member(d, arg, len, attr, rest);
		} else if (array_place(arg, len) >= 0) {
			if (array_place(arg, len) == 0)
				add_array(d, i, arg, len);
		} else if (len && arg[0] == '+') {
			add_sum(d, i, arg, len);
		} else {
			put_key(&d->a->text, arg, len);
			chrome_put_attr(&d->a->text, d->a->trace, attr);
			add_piece(d, SLOT_TEXT, 0, 0);
		}
	}
}

static void add_vary(struct draft *d)
{
	for (size_t i = 0; i < d->shape->vary_count; i++) {
		size_t len;
		const char *arg = spelling(d, &d->shape->vary[i], &len);

		if (!arg)
			continue;
		put_key(&d->a->text, arg, len);
		add_piece(d, SLOT_VARY, d->shape->vary[i].type, i);
	}
}

/* Which slot holds a field that is a member of the event or of its track. */
static enum slot slot_of(const struct field *f, unsigned kind)
{
	static const struct {
		const char *name;
		enum slot slot;
	} tracks[] = {{"device", SLOT_DEVICE}, {"context", SLOT_CONTEXT}, {"stream", SLOT_STREAM}};

	if (f->place == PLACE_JOIN)
		return SLOT_JOIN;
	if (f->place == PLACE_AMOUNT && (kind == KIND_MEMCPY || kind == KIND_MEMSET))
		return SLOT_BYTES;
	for (size_t i = 0; i < sizeof(tracks) / sizeof(*tracks); i++)
		if (f->place == PLACE_TRACK && strcmp(f->name, tracks[i].name) == 0)
			return tracks[i].slot;
	return SLOT_TEXT;
}

static void add_members(struct draft *d, unsigned kind)
{
	static const struct {
		const char *key;
		enum slot slot;
	} memory[] = {{"Device Type", SLOT_POOL_TYPE},
		      {"Device Id", SLOT_POOL_DEVICE},
		      {"Addr", SLOT_ADDRESS},
		      {"Bytes", SLOT_SIGNED_BYTES}};

	if (kind == KIND_ALLOC || kind == KIND_FREE) {
		for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++) {
			put_key(&d->a->text, memory[i].key, strlen(memory[i].key));
			add_piece(d, memory[i].slot, 0, 0);
		}
		return;
	}
	for (size_t i = 0; d->record && i < d->record->field_count; i++) {
		const struct field *f = &d->record->fields[i];
		enum slot slot = f->arg ? slot_of(f, kind) : SLOT_TEXT;

		if (slot == SLOT_TEXT)
			continue;
		put_key(&d->a->text, f->arg, strlen(f->arg));
		add_piece(d, slot, 0, 0);
	}
}

/* What Kineto adds to what CUPTI recorded, so that its readers find it. */
static void add_native(struct draft *d, unsigned kind)
{
	struct buf *b = &d->a->text;

	if (kind == KIND_MEMCPY || kind == KIND_MEMSET) {
		put_key(b, "memory bandwidth (GB/s)", 23);
		add_piece(d, SLOT_BANDWIDTH, 0, 0);
	}
	if (kind <= KIND_API && kind != KIND_SYNC) {
		put_key(b, "External id", 11); /* 0: not tied to an operator */
		buf_put_byte(b, '0');
		add_piece(d, SLOT_TEXT, 0, 0);
	}
	if (kind == KIND_COUNTER) {
		put_key(b, "value", 5);
		add_piece(d, SLOT_VALUE, 0, 0);
	}
}

static struct plan *make_plan(struct chrome_args *a, const struct event *e, bool is_native)
{
	struct plan *p = arena_take(&a->arena, sizeof(*p), _Alignof(struct plan));
	struct buf rest;
	struct draft d = {
		.a = a,
		.record = record_of_kind(e->kind),
		.shape = trace_get_shape(a->trace, e->shape),
		.plan = p,
	};

	if (!p)
		return NULL;
	p->kind = e->kind;
	p->subkind = e->subkind;
	p->is_native = is_native;
	d.room = d.shape->fixed_count + d.shape->vary_count + 8 +
		 (d.record ? d.record->field_count : 0);
	p->pieces = arena_take(&a->arena, d.room * sizeof(*p->pieces), _Alignof(struct piece));
	buf_init(&rest, PLANS_CEILING);
	add_vary(&d);
	add_members(&d, e->kind);
	add_fixed(&d, &rest);
	if (is_native)
		add_native(&d, e->kind);
	p->members.rest = arena_text(&a->arena, buf_text(&rest), rest.len);
	bool whole = p->pieces && p->members.rest && rest.status == ST_OK &&
		     a->text.status == ST_OK;
	buf_release(&rest);
	for (size_t i = 0; i < p->count && whole; i++)
		whole = p->pieces[i].text != NULL;
	return whole ? p : NULL;
}

static struct plan *find_plan(struct chrome_args *a, const struct event *e, bool is_native)
{
	size_t at = e->shape < a->shapes ? e->shape : 0;
	struct plan *p = a->by_shape[at];

	while (p && (p->kind != e->kind || p->subkind != e->subkind || p->is_native != is_native))
		p = p->next;
	if (p)
		return p;
	p = make_plan(a, e, is_native);
	if (!p)
		return NULL;
	p->next = a->by_shape[at];
	a->by_shape[at] = p;
	return p;
}

/* ---- a plan is used ---- */

static bool is_absent(const struct piece *p, const struct event *e, const struct track *k)
{
	switch (p->slot) {
	case SLOT_JOIN:
		return e->correlation == 0;
	case SLOT_VARY:
		return !e->vary;
	case SLOT_DEVICE:
		return k->device == NO_ID;
	case SLOT_CONTEXT:
		return k->context == NO_ID;
	case SLOT_STREAM:
		return k->home != HOME_STREAM;
	case SLOT_BANDWIDTH:
		return e->end_ns == e->begin_ns;
	default:
		return false;
	}
}

static void put_slot(struct buf *b, const struct trace *t, const struct piece *p,
		     const struct event *e, const struct track *k)
{
	switch (p->slot) {
	case SLOT_TEXT:
		break;
	case SLOT_VARY:
		put_value(b, t, p->type, e->vary[p->vary]);
		break;
	case SLOT_JOIN:
		buf_put_u64_text(b, e->correlation);
		break;
	case SLOT_BYTES:
		buf_put_u64_text(b, e->bytes);
		break;
	case SLOT_DEVICE:
		buf_put_u64_text(b, k->device);
		break;
	case SLOT_CONTEXT:
		buf_put_u64_text(b, k->context);
		break;
	case SLOT_STREAM:
		buf_put_i64_text(b, (int64_t)k->id);
		break;
	case SLOT_SIGNED_BYTES:
		buf_put_i64_text(b, e->kind == KIND_FREE ? -(int64_t)e->bytes
							 : (int64_t)e->bytes);
		break;
	case SLOT_ADDRESS:
		buf_put_u64_text(b, e->address);
		break;
	case SLOT_VALUE:
		json_put_f64(b, e->value);
		break;
	case SLOT_BANDWIDTH:
		json_put_f64(b, (double)e->bytes / (double)(e->end_ns - e->begin_ns));
		break;
	case SLOT_POOL_TYPE:
		buf_put_u64_text(b, k->context == NO_ID ? k->device != NO_ID : k->context);
		break;
	case SLOT_POOL_DEVICE:
		buf_put_i64_text(b, k->device == NO_ID ? -1 : (int64_t)k->device);
		break;
	}
}

bool chrome_args_put(struct chrome_args *a, struct buf *b, const struct event *e, bool is_native,
		     struct chrome_members *members)
{
	const struct plan *p = find_plan(a, e, is_native);
	const struct track *k = trace_get_track(a->trace, e->track);
	bool first = true;

	if (!p)
		return false;
	*members = p->members;
	for (size_t i = 0; i < p->count; i++) {
		const struct piece *piece = &p->pieces[i];

		if (is_absent(piece, e, k))
			continue;
		buf_put_text(b, first ? "\"args\": {" : ", ");
		buf_put(b, piece->text, piece->len);
		put_slot(b, a->trace, piece, e, k);
		first = false;
	}
	if (!first)
		buf_put_byte(b, '}');
	return true;
}
