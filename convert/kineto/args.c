/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/kineto/args.h"

#include "schemas/hash.h"
#include "schemas/log.h"
#include "schemas/records.h"

#include <stdlib.h>

enum {
	KEYS = 1024, /* a power of two */
	KEY_PROBES = 4,
	KEY_BYTES = 48, /* longer keys are looked up each time */
	EXPECTED = 48,
	ATTRS_BYTES = 1 << 20,
	TEXT_BYTES = 64 << 20, /* of one value; repairs make it longer than the input */
};

enum role {
	ROLE_UNKNOWN,
	ROLE_SHAPE,
	ROLE_VARY,
	ROLE_JOIN,
	ROLE_AMOUNT,
	ROLE_DEVICE,
	ROLE_CONTEXT,
	ROLE_STREAM,
	ROLE_ARRAY, /* "grid": [x, y, z] to three fields of the shape */
};

struct kineto_field { /* what a key is for events of one kind */
	uint8_t role, unit;
	uint32_t names[3]; /* of the attribute; one, but for an array */
};
struct kineto_key {
	char text[KEY_BYTES];
	uint8_t len;
	uint64_t event; /* that had it last */
	struct kineto_field fields[KIND_END];
};

/* Numbers that records.def does not know and that repeat from event to event. */
static const char *const repeating[] = {
	"Device", "Trace iteration", "Fwd thread id", "Op count", "cid", "cbid", "size",
	"num_warps", "num_stages", "stream", "shared memory", "kernel_num_gb", "kernel_flop",
	"Global rank start", "Global rank stride", "Group size", "Rank", "Process Group Size",
	"fromDevice", "inDevice", "toDevice", "fromContext", "inContext", "toContext",
	"Device Type", "Device Id", "device", "context", "In msg nelems", "Out msg nelems",
	"priority", "queue", "ring",
};

enum status kineto_args_init(struct kineto_args *a, struct trace *trace, struct error *err)
{
	*a = (struct kineto_args){ .trace = trace };
	buf_init(&a->fixed, ATTRS_BYTES);
	buf_init(&a->vary, ATTRS_BYTES);
	buf_init(&a->words, ATTRS_BYTES);
	buf_init(&a->text, TEXT_BYTES);
	a->keys = calloc(KEYS, sizeof(*a->keys));
	a->expected = calloc((size_t)KIND_END * EXPECTED, sizeof(struct kineto_key *));
	if (!a->keys || !a->expected)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the keys of arguments");
	return ST_OK;
}

void kineto_args_release(struct kineto_args *a)
{
	buf_release(&a->fixed);
	buf_release(&a->vary);
	buf_release(&a->words);
	buf_release(&a->text);
	free(a->keys);
	free(a->expected);
	a->keys = NULL;
	a->expected = NULL;
}

void kineto_args_begin(struct kineto_args *a)
{
	buf_clear(&a->fixed);
	buf_clear(&a->vary);
	buf_clear(&a->words);
	a->event++;
	a->at = 0;
	a->repairs = 0;
	a->repeated = false;
}

/* Texts and values */

uint32_t kineto_name(struct kineto_args *a, const struct json *text, struct error *err)
{
	if (!text->special)
		return trace_name(a->trace, text->text, text->len, err);
	buf_clear(&a->text);
	a->repairs += json_decode(text->text, text->len, &a->text);
	if (buf_status(&a->text, err) != ST_OK)
		return 0;
	return trace_name(a->trace, (const char *)a->text.data, a->text.len, err);
}

static bool is_whole(const struct json *number)
{
	return !memchr(number->text, '.', number->len) && !memchr(number->text, 'e', number->len) &&
	       !memchr(number->text, 'E', number->len);
}

/* False: a whole number that needs more than 64 bits. */
static bool number_attr(const struct json *number, struct attr *out)
{
	int64_t negative;
	double real;

	if (json_u64(number->text, number->len, &out->bits)) {
		out->type = ATTR_U64;
		return true;
	}
	if (json_i64(number->text, number->len, &negative)) {
		out->type = ATTR_I64;
		out->bits = (uint64_t)negative;
		return true;
	}
	if (is_whole(number))
		return false;
	real = json_f64(number->text, number->len);
	out->type = ATTR_F64;
	memcpy(&out->bits, &real, sizeof(real));
	return true;
}

enum status kineto_attr(struct kineto_args *a, const struct json *value, struct attr *out,
			struct error *err)
{
	uint32_t name;

	if (value->type == JSON_NUMBER && number_attr(value, out))
		return ST_OK;
	out->type = value->type == JSON_STRING || value->type == JSON_ODD ? ATTR_TEXT : ATTR_JSON;
	if (value->type == JSON_OBJECT || value->type == JSON_ARRAY) {
		buf_clear(&a->text);
		a->repairs += json_minify(value->text, value->len, &a->text);
		TRY(buf_status(&a->text, err));
		name = trace_name(a->trace, buf_text(&a->text), a->text.len, err);
	} else {
		name = kineto_name(a, value, err);
	}
	out->bits = name;
	return name ? ST_OK : err->status;
}

/* Keys */

static bool key_is(const struct kineto_key *k, const struct json *key)
{
	return k && k->len == key->len && memcmp(k->text, key->text, key->len) == 0;
}

static bool number_repeats(const char *key, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(repeating) / sizeof(repeating[0]); i++)
		if (strlen(repeating[i]) == len && memcmp(repeating[i], key, len) == 0)
			return true;
	return false;
}

static enum role role_of_field(const struct field *f)
{
	switch (f->place) {
	case PLACE_JOIN:
		return ROLE_JOIN;
	case PLACE_AMOUNT:
		return ROLE_AMOUNT;
	case PLACE_VARY:
		return ROLE_VARY;
	case PLACE_TRACK:
		if (strcmp(f->name, "device") == 0)
			return ROLE_DEVICE;
		if (strcmp(f->name, "context") == 0 || strcmp(f->name, "device_type") == 0)
			return ROLE_CONTEXT;
		if (strcmp(f->name, "stream") == 0)
			return ROLE_STREAM;
		return ROLE_SHAPE;
	default:
		return ROLE_SHAPE;
	}
}

/* "grid" when the record has "grid[0]", "grid[1]", "grid[2]". */
static bool resolve_array(struct kineto_args *a, const struct record *r, const char *key,
			  size_t len, struct kineto_field *out, struct error *err)
{
	char arg[KEY_BYTES + 4];
	unsigned i;

	if (!r || len > KEY_BYTES)
		return false;
	memcpy(arg, key, len);
	for (i = 0; i < 3; i++) {
		const struct field *f;

		memcpy(arg + len, (const char[]){ '[', (char)('0' + i), ']' }, 3);
		f = record_arg(r, arg, len + 3);
		if (!f)
			return false;
		out->names[i] = trace_name(a->trace, f->name, strlen(f->name), err);
		out->unit = f->unit;
	}
	out->role = ROLE_ARRAY;
	return true;
}

static enum status resolve(struct kineto_args *a, unsigned kind, const char *key, size_t len,
			   struct kineto_field *out, struct error *err)
{
	const struct record *r = record_of_kind(kind);
	const struct field *f = r ? record_arg(r, key, len) : NULL;

	*out = (struct kineto_field){ 0 };
	if (f) {
		out->role = (uint8_t)role_of_field(f);
		out->unit = f->unit;
		out->names[0] = trace_name(a->trace, f->name, strlen(f->name), err);
	} else if (!resolve_array(a, r, key, len, out, err)) {
		out->role = number_repeats(key, len) ? ROLE_SHAPE : ROLE_VARY;
		out->names[0] = trace_name(a->trace, key, len, err);
	}
	return out->names[0] ? ST_OK : err->status;
}

static struct kineto_key *find_key(struct kineto_args *a, const struct json *key)
{
	uint64_t hash = hash_text(key->text, key->len);
	struct kineto_key *k;
	unsigned i;

	for (i = 0; i < KEY_PROBES; i++) {
		k = &a->keys[(hash + i) % KEYS];
		if (!k->event)
			break;
		if (key_is(k, key))
			return k;
	}
	if (i == KEY_PROBES)
		k = &a->keys[hash % KEYS];
	memset(k, 0, sizeof(*k));
	memcpy(k->text, key->text, key->len);
	k->len = (uint8_t)key->len;
	return k;
}

/* What `key` is for events of `kind`: from the order of the last one, the table, or afresh. */
static enum status find_field(struct kineto_args *a, unsigned kind, const struct json *key,
			      struct kineto_field *fresh, const struct kineto_field **out,
			      struct error *err)
{
	unsigned at = a->at++;
	struct kineto_key **guess = at < EXPECTED ? &a->expected[kind * EXPECTED + at] : NULL;
	struct kineto_key *k = guess ? *guess : NULL;
	struct kineto_field *field;

	*out = fresh;
	if (key->special || key->len > KEY_BYTES || !key->len) {
		buf_clear(&a->text);
		a->repairs += json_decode(key->text, key->len, &a->text);
		TRY(buf_status(&a->text, err));
		return resolve(a, kind, buf_text(&a->text), a->text.len, fresh, err);
	}
	if (!key_is(k, key))
		k = find_key(a, key);
	if (guess)
		*guess = k;
	a->repeated |= k->event == a->event;
	k->event = a->event;
	field = &k->fields[kind];
	*out = field;
	return field->role ? ST_OK : resolve(a, kind, k->text, k->len, field, err);
}

/* Attributes of this event */

static void put_attr(struct buf *list, uint32_t key, uint8_t unit, uint8_t type, uint64_t bits)
{
	struct attr attr = { .key = key, .type = type, .unit = unit, .bits = bits };

	buf_put(list, &attr, sizeof(attr));
}

enum status kineto_args_put_attr(struct kineto_args *a, const char *key, size_t key_len,
				 uint8_t type, uint64_t bits, struct error *err)
{
	uint32_t name = trace_name(a->trace, key, key_len, err);

	if (!name)
		return err->status;
	put_attr(&a->fixed, name, UNIT_NONE, type, bits);
	return ST_OK;
}

enum status kineto_args_put_fixed(struct kineto_args *a, const char *key, size_t key_len,
				  const struct json *value, struct error *err)
{
	struct attr attr = { 0 };

	TRY(kineto_attr(a, value, &attr, err));
	return kineto_args_put_attr(a, key, key_len, attr.type, attr.bits, err);
}

/* Three whole numbers; false: it is kept as it stands there. */
static bool put_array(struct kineto_args *a, const struct kineto_field *f, const struct json *value)
{
	struct attr parts[3] = { 0 };
	struct json_scan s;
	struct json part;
	unsigned i;

	if (value->type != JSON_ARRAY)
		return false;
	json_open_text(&s, value->text, value->len);
	if (json_next(&s, &part, NULL) != ST_OK)
		return false;
	for (i = 0; i < 3; i++)
		if (json_next(&s, &part, NULL) != ST_OK || part.type != JSON_NUMBER ||
		    !is_whole(&part) || !number_attr(&part, &parts[i]))
			return false;
	if (json_next(&s, &part, NULL) != ST_OK || part.type != JSON_ARRAY_END)
		return false;
	for (i = 0; i < 3; i++)
		put_attr(&a->fixed, f->names[i], f->unit, parts[i].type, parts[i].bits);
	return true;
}

static bool is_pool(const struct event *e)
{
	return e->kind == KIND_ALLOC || e->kind == KIND_FREE;
}

/* Into the event or its track, when these can give the number back exactly. */
static bool put_member(unsigned role, const struct attr *v, struct event *e,
		       struct kineto_place *place)
{
	bool whole = v->type == ATTR_U64 || v->type == ATTR_I64;
	int64_t number = (int64_t)v->bits;
	bool positive = v->type == ATTR_U64 && v->bits > 0;

	switch (whole ? role : ROLE_UNKNOWN) {
	case ROLE_JOIN:
		if (positive)
			e->number = v->bits;
		return positive;
	case ROLE_AMOUNT:
		if (is_pool(e) && v->type == ATTR_I64 && number > INT64_MIN) {
			e->bytes = (uint64_t)-number;
			return true;
		}
		if (positive && number > 0)
			e->bytes = v->bits;
		return positive && number > 0;
	case ROLE_DEVICE:
		if (is_pool(e) && number == -1 && v->type == ATTR_I64) {
			place->device = NO_ID;
		} else {
			if (v->type != ATTR_U64 || v->bits >= NO_ID)
				return false;
			place->device = (uint32_t)v->bits;
		}
		return place->has_device = true;
	case ROLE_CONTEXT:
		if (v->type != ATTR_U64 || v->bits >= NO_ID)
			return false;
		place->context = (uint32_t)v->bits;
		return place->has_context = true;
	case ROLE_STREAM:
		if (v->type == ATTR_U64 && number < 0)
			return false;
		place->stream = number;
		return place->has_stream = true;
	}
	return false;
}

static enum kineto_use use_of_member(unsigned role, const struct attr *v)
{
	if (role == ROLE_JOIN)
		return KINETO_JOIN;
	if (role != ROLE_AMOUNT)
		return KINETO_KEPT;
	return v->type == ATTR_I64 ? KINETO_MINUS_BYTES : KINETO_BYTES;
}

static bool put_vary(struct kineto_args *a, const struct kineto_field *f, const struct attr *v)
{
	if (v->type > ATTR_F64 || a->words.len >= LOG_LAYOUT_VARY * sizeof(uint64_t))
		return false;
	put_attr(&a->vary, f->names[0], f->unit, v->type, 0);
	buf_put_u64(&a->words, v->bits);
	return true;
}

enum status kineto_args_put(struct kineto_args *a, const struct kineto_member *m, struct event *e,
			    struct kineto_place *place, struct error *err)
{
	const struct kineto_field *f;
	struct kineto_field fresh;
	struct attr value = { 0 };

	a->use = KINETO_KEPT;
	TRY(find_field(a, e->kind, &m->key, &fresh, &f, err));
	if (f->role == ROLE_ARRAY && put_array(a, f, &m->value))
		return ST_OK;
	TRY(kineto_attr(a, &m->value, &value, err));
	if (f->role == ROLE_VARY && put_vary(a, f, &value)) {
		a->use = KINETO_WORD;
		return ST_OK;
	}
	if (f->role >= ROLE_JOIN && f->role != ROLE_ARRAY &&
	    put_member(f->role, &value, e, place)) {
		a->use = use_of_member(f->role, &value);
		return ST_OK;
	}
	if (f->role == ROLE_ARRAY) /* under the name of the whole, not of its first part */
		return kineto_args_put_attr(a, m->key.text, m->key.len, value.type, value.bits,
					    err);
	put_attr(&a->fixed, f->names[0], f->unit, value.type, value.bits);
	return ST_OK;
}

enum status kineto_args_shape(struct kineto_args *a, uint32_t *shape, struct error *err)
{
	struct shape s = {
		.fixed = (const struct attr *)(const void *)a->fixed.data,
		.vary = (const struct attr *)(const void *)a->vary.data,
		.fixed_count = (uint32_t)(a->fixed.len / sizeof(struct attr)),
		.vary_count = (uint32_t)(a->vary.len / sizeof(struct attr)),
	};

	*shape = 0;
	TRY(buf_status(&a->fixed, err));
	TRY(buf_status(&a->vary, err));
	TRY(buf_status(&a->words, err));
	if (!s.fixed_count && !s.vary_count)
		return ST_OK;
	*shape = trace_shape(a->trace, &s, err);
	return *shape ? ST_OK : err->status;
}
