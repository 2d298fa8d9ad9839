/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/chrome/plan.h"

#include "schemas/json_text.h"
#include "schemas/records.h"

#include <string.h>

enum { NATIVE_PIECES = 8, REST_CEILING = 64 << 20 };

static void put_key(struct buf *b, const char *key, size_t len)
{
	json_put_text(b, key, len);
	buf_put_text(b, ": ");
}

struct draft { /* pieces of the plan being made */
	struct chrome_args *a;
	unsigned kind;
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

/*
 * How a key is spelled: Kineto's word for a field of ours, else as it is.  NULL: not written.  An
 * import is spelled back by what the reader asked too: the first record of the kind.
 */
static const char *spelling(const struct draft *d, const struct attr *attr, size_t *len)
{
	const char *key = trace_text(d->a->trace, attr->key, len);
	const struct field *f;

	if (!d->a->is_native)
		f = d->record ? record_field(d->record, key, *len) : NULL;
	else
		f = kind_field(d->kind, key, *len);
	if (!f || (!f->arg && (d->a->all_args || !d->a->is_native)))
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

/* The attribute of a place of an array `arg`; of several the first; NULL: none. */
static const struct attr *in_place(struct draft *d, const char *arg, size_t len, int place)
{
	for (size_t i = 0; i < d->shape->fixed_count; i++) {
		size_t other_len;
		const char *other = spelling(d, &d->shape->fixed[i], &other_len);

		if (other && other_len == len && memcmp(other, arg, len - 3) == 0 &&
		    array_place(other, other_len) == place)
			return &d->shape->fixed[i];
	}
	return NULL;
}

/* `"grid": [1, 2, 3]` from three attributes, when `first` is the one of place 0. */
static void add_array(struct draft *d, const struct attr *first, const char *arg, size_t len)
{
	struct buf *b = &d->a->text;

	if (first != in_place(d, arg, len, 0))
		return;
	put_key(b, arg, len - 3);
	buf_put_byte(b, '[');
	json_put_value(b, d->a->trace, first->type, first->bits);
	for (int place = 1; place < 3; place++) {
		const struct attr *next = in_place(d, arg, len, place);

		if (!next)
			continue;
		buf_put_text(b, ", ");
		json_put_value(b, d->a->trace, next->type, next->bits);
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

	json_put_value(b, d->a->trace, attr->type, attr->bits);
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
	json_put_value(rest, d->a->trace, attr->type, attr->bits);
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
			add_array(d, attr, arg, len);
		} else if (len && arg[0] == '+') {
			add_sum(d, i, arg, len);
		} else {
			put_key(&d->a->text, arg, len);
			json_put_value(&d->a->text, d->a->trace, attr->type, attr->bits);
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

static void add_members(struct draft *d)
{
	static const struct {
		const char *key;
		enum slot slot;
	} memory[] = {{"Device Type", SLOT_POOL_TYPE},
		      {"Device Id", SLOT_POOL_DEVICE},
		      {"Addr", SLOT_ADDRESS},
		      {"Bytes", SLOT_SIGNED_BYTES}};

	if (d->kind == KIND_ALLOC || d->kind == KIND_FREE) {
		for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++) {
			put_key(&d->a->text, memory[i].key, strlen(memory[i].key));
			add_piece(d, memory[i].slot, 0, 0);
		}
		return;
	}
	for (size_t i = 0; d->record && i < d->record->field_count; i++) {
		const struct field *f = &d->record->fields[i];
		enum slot slot = f->arg ? slot_of(f, d->kind) : SLOT_TEXT;

		if (slot == SLOT_TEXT)
			continue;
		put_key(&d->a->text, f->arg, strlen(f->arg));
		add_piece(d, slot, 0, 0);
	}
}

static bool shape_has(const struct draft *d, const char *field)
{
	const struct shape *s = d->shape;

	for (size_t i = 0; i < s->vary_count; i++)
		if (strcmp(trace_text(d->a->trace, s->vary[i].key, NULL), field) == 0)
			return true;
	for (size_t i = 0; i < s->fixed_count; i++)
		if (strcmp(trace_text(d->a->trace, s->fixed[i].key, NULL), field) == 0)
			return true;
	return false;
}

/* The product of three whole numbers of the shape; 0: not all are known. */
static double product_of(const struct draft *d, const char *const fields[3])
{
	double product = 1;

	for (size_t n = 0; n < 3; n++) {
		double factor = 0;

		for (size_t i = 0; i < d->shape->fixed_count; i++) {
			const struct attr *attr = &d->shape->fixed[i];

			if (attr->type <= ATTR_I64 &&
			    strcmp(trace_text(d->a->trace, attr->key, NULL), fields[n]) == 0)
				factor = (double)attr->bits;
		}
		product *= factor;
	}
	return product;
}

static void add_per_sm(struct draft *d)
{
	static const char *const grid[3] = {"grid_x", "grid_y", "grid_z"};
	static const char *const block[3] = {"block_x", "block_y", "block_z"};
	double blocks = product_of(d, grid), threads = product_of(d, block);
	const struct {
		const char *field, *arg;
		double amount;
	} rows[] = {{"blocks_per_sm", "blocks per SM", blocks},
		    {"warps_per_sm", "warps per SM", blocks * threads / 32}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].amount <= 0 || shape_has(d, rows[i].field))
			continue;
		put_key(&d->a->text, rows[i].arg, strlen(rows[i].arg));
		add_piece(d, SLOT_PER_SM, 0, 0);
		d->plan->pieces[d->plan->count - 1].amount = rows[i].amount;
	}
}

/* What Kineto adds to what CUPTI recorded, so that its readers find it. */
static void add_native(struct draft *d, const struct event *e)
{
	struct buf *b = &d->a->text;
	const char *sync = chrome_sync_name(e->subkind);

	if (e->kind == KIND_KERNEL)
		add_per_sm(d);
	if ((e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET) && !shape_has(d, "bandwidth")) {
		put_key(b, "memory bandwidth (GB/s)", 23);
		add_piece(d, SLOT_BANDWIDTH, 0, 0);
	}
	if ((event_is_gpu_work(e) || e->kind == KIND_API) && !shape_has(d, "external_id")) {
		put_key(b, "External id", 11); /* 0: not tied to an operator */
		buf_put_byte(b, '0');
		add_piece(d, SLOT_TEXT, 0, 0);
	}
	if (e->kind == KIND_SYNC && sync && !shape_has(d, "kind_text")) {
		put_key(b, "cuda_sync_kind", 14);
		json_put_text(b, sync, strlen(sync));
		add_piece(d, SLOT_TEXT, 0, 0);
	}
	if (e->kind == KIND_COUNTER) {
		put_key(b, "value", 5);
		add_piece(d, SLOT_VALUE, 0, 0);
	}
}

/* By CUPTI's number of what was waited for. */
const char *chrome_sync_name(unsigned type)
{
	static const char *const names[] = {NULL, "Event Sync", "Stream Wait Event",
					    "Stream Sync", "Context Sync"};

	return type < sizeof(names) / sizeof(*names) ? names[type] : NULL;
}

static bool plan_is_whole(const struct plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (!p->pieces[i].text)
			return false;
	return p->pieces && p->members.rest;
}

struct plan *chrome_plan_make(struct chrome_args *a, const struct event *e)
{
	struct plan *p = arena_take(&a->arena, sizeof(*p), _Alignof(struct plan));
	struct buf rest;
	struct draft d = {
		.a = a,
		.kind = e->kind,
		.record = record_of_kind(e->kind),
		.shape = trace_get_shape(a->trace, e->shape),
		.plan = p,
	};

	if (!p)
		return NULL;
	p->kind = e->kind;
	p->subkind = e->subkind;
	d.room = d.shape->fixed_count + d.shape->vary_count + NATIVE_PIECES +
		 (d.record ? d.record->field_count : 0);
	p->pieces = arena_take(&a->arena, d.room * sizeof(*p->pieces), _Alignof(struct piece));
	if (!p->pieces)
		return NULL;
	buf_clear(&a->text);
	buf_init(&rest, REST_CEILING);
	add_vary(&d);
	add_members(&d);
	add_fixed(&d, &rest);
	if (a->is_native)
		add_native(&d, e);
	p->members.rest = arena_text(&a->arena, buf_text(&rest), rest.len);
	bool fits = rest.status == ST_OK && a->text.status == ST_OK;
	buf_release(&rest);
	return fits && plan_is_whole(p) ? p : NULL;
}
