/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/kineto/args.h"

#include "convert/source/kineto/import_fast.h"
#include "schemas/base/hash.h"
#include "schemas/model/records.h"

#include <stdlib.h>

enum {
	KEYS = 1024, /* a power of two */
	KEY_PROBES = 4,
	KEY_BYTES = 48,        /* longer keys are not cached */
	SEEN_BITS = 1024,      /* size of the bit set of a key's values */
	SEEN_MOST = 1000,      /* bits set in it by about 3,800 different values */
	TEXT_BYTES = 64 << 20, /* most bytes of a decoded value; repairs lengthen it */
};

enum role {
	ROLE_UNKNOWN,
	ROLE_CONST,
	ROLE_REPEATING,
	ROLE_ARG,
	ROLE_CORRELATION,
	ROLE_VALUE,
	ROLE_DEVICE,
	ROLE_CONTEXT,
	ROLE_STREAM,
	ROLE_ARRAY, /* "grid": [x, y, z] becomes three constants */
	ROLE_PATH,  /* PATH_KEY, which Tacho wrote and derives again */
};

struct kineto_field { /* meaning of a key for events of one kind */
	uint8_t role, unit;
	uint32_t names[3]; /* names of the attribute; an array has three */
};
struct kineto_key {
	char text[KEY_BYTES];
	uint8_t len;
	uint64_t event;                /* number of the latest event with this key */
	uint64_t seen[SEEN_BITS / 64]; /* a bit per value of this repeating number, by hash */
	uint32_t seen_count;
	struct kineto_field fields[KIND_END];
};

/* Keys whose numbers repeat from event to event, though records.def does not list them. */
static const char *const repeating[] = { "Device",
					 "Trace iteration",
					 "Fwd thread id",
					 "Op count",
					 "cid",
					 "cbid",
					 "size",
					 "num_warps",
					 "num_stages",
					 "stream",
					 "shared memory",
					 "kernel_num_gb",
					 "kernel_flop",
					 "Global rank start",
					 "Global rank stride",
					 "Group size",
					 "Rank",
					 "Process Group Size",
					 "fromDevice",
					 "inDevice",
					 "toDevice",
					 "fromContext",
					 "inContext",
					 "toContext",
					 "Device Type",
					 "Device Id",
					 "device",
					 "context",
					 "In msg nelems",
					 "Out msg nelems",
					 "priority",
					 "queue",
					 "ring" };

enum status kineto_args_init(struct kineto_args *a, struct import *to, struct error *err)
{
	*a = (struct kineto_args){ .to = to };
	buf_init(&a->text, TEXT_BYTES);
	a->keys = calloc(KEYS, sizeof(*a->keys));
	return a->keys ? ST_OK : fail_memory(err);
}

void kineto_args_release(struct kineto_args *a)
{
	buf_release(&a->text);
	free(a->keys);
	a->keys = NULL;
}

/* ---- texts and values --------------------------------------------------------------------- */

enum status kineto_name(struct kineto_args *a, const struct json *text, uint32_t *name,
			struct error *err)
{
	if (!text->special)
		return import_name(a->to, text->text, text->len, name, err);
	buf_clear(&a->text);
	a->repairs += json_decode(text->text, text->len, &a->text);
	TRY(buf_status(&a->text, err));
	return import_name(a->to, (const char *)a->text.data, a->text.len, name, err);
}

static bool is_whole(const struct json *number)
{
	return !memchr(number->text, '.', number->len) && !memchr(number->text, 'e', number->len) &&
	       !memchr(number->text, 'E', number->len);
}

/* Converts a number to an attribute.  Returns false for a whole number that needs more than 64
 * bits. */
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

/* Converts a value to an attribute, without out->key. */
static enum status read_value(struct kineto_args *a, const struct json *value, struct attr *out,
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
		TRY(import_name(a->to, buf_text(&a->text), a->text.len, &name, err));
	} else {
		TRY(kineto_name(a, value, &name, err));
	}
	out->bits = name;
	return ST_OK;
}

enum status kineto_put_member(struct kineto_args *a, struct import *to,
			      const struct kineto_member *m, struct error *err)
{
	struct attr attr = { .unit = UNIT_NONE };

	TRY(kineto_name(a, &m->key, &attr.key, err));
	TRY(read_value(a, &m->value, &attr, err));
	import_attr(to, &attr, false);
	return buf_status(&to->consts, err);
}

/* ---- keys --------------------------------------------------------------------------------- */

static bool key_is(const struct kineto_key *k, const struct json *key)
{
	return k->len == key->len && memcmp(k->text, key->text, key->len) == 0;
}

static enum role role_of_field(const struct field *f)
{
	switch (f->place) {
	case PLACE_CORRELATION:
		return ROLE_CORRELATION;
	case PLACE_VALUE:
		return ROLE_VALUE;
	case PLACE_ARG:
		return ROLE_ARG;
	case PLACE_TRACK:
		if (strcmp(f->name, "device") == 0)
			return ROLE_DEVICE;
		if (strcmp(f->name, "context") == 0 || strcmp(f->name, "device_type") == 0)
			return ROLE_CONTEXT;
		if (strcmp(f->name, "stream") == 0)
			return ROLE_STREAM;
		return ROLE_CONST;
	default:
		return ROLE_CONST;
	}
}

/* Resolves a key such as "grid" if the record has "grid[0]", "grid[1]" and "grid[2]". */
static bool resolve_array(struct kineto_args *a, const struct record *r, const char *key,
			  size_t len, struct kineto_field *out, struct error *err)
{
	char arg[KEY_BYTES + 4];

	if (!r || len > KEY_BYTES)
		return false;
	memcpy(arg, key, len);
	for (unsigned i = 0; i < 3; i++) {
		const struct field *f;

		memcpy(arg + len, (const char[]){ '[', (char)('0' + i), ']' }, 3);
		f = record_arg(r, arg, len + 3);
		if (!f)
			return false;
		out->names[i] = trace_name(a->to->trace, f->name, strlen(f->name), err);
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
		out->names[0] = trace_name(a->to->trace, f->name, strlen(f->name), err);
	} else if (len == strlen(PATH_KEY) && !memcmp(key, PATH_KEY, len)) {
		out->role = ROLE_PATH;
		return ST_OK;
	} else if (!resolve_array(a, r, key, len, out, err)) {
		out->role = ROLE_ARG;
		for (size_t i = 0; i < sizeof(repeating) / sizeof(repeating[0]); i++)
			if (strlen(repeating[i]) == len && memcmp(repeating[i], key, len) == 0)
				out->role = ROLE_REPEATING;
		out->names[0] = trace_name(a->to->trace, key, len, err);
	}
	return out->names[0] ? ST_OK : err->status;
}

/* Returns whether a number has few values so far.  One with many differs in each event, so as a
 * constant it would create a schema and a template for each. */
static bool is_repeated(struct kineto_key *k, uint64_t bits)
{
	uint64_t at = hash_word(0, bits) % SEEN_BITS, bit = UINT64_C(1) << at % 64;

	k->seen_count += !(k->seen[at / 64] & bit);
	k->seen[at / 64] |= bit;
	return k->seen_count <= SEEN_MOST;
}

/* Finds the meaning of `key` for events of `kind`.  *out points into *row, a row of the cache, or
 * to *fresh if the key cannot be cached. */
static enum status find_field(struct kineto_args *a, unsigned kind, const struct json *key,
			      struct kineto_field *fresh, struct kineto_key **row,
			      const struct kineto_field **out, struct error *err)
{
	uint64_t hash = hash_text(key->text, key->len);
	struct kineto_key *k = &a->keys[hash % KEYS];
	struct kineto_field *field;

	*out = fresh;
	if (key->special || key->len > KEY_BYTES || !key->len) {
		buf_clear(&a->text);
		a->repairs += json_decode(key->text, key->len, &a->text);
		TRY(buf_status(&a->text, err));
		return resolve(a, kind, buf_text(&a->text), a->text.len, fresh, err);
	}
	for (unsigned i = 1; i < KEY_PROBES && k->event && !key_is(k, key); i++)
		k = &a->keys[(hash + i) % KEYS];
	if (!k->event || !key_is(k, key)) { /* take over the row, which another key may have used */
		memset(k, 0, sizeof(*k));
		memcpy(k->text, key->text, key->len);
		k->len = (uint8_t)key->len;
	}
	a->repeated |= k->event == a->event;
	k->event = a->event;
	field = &k->fields[kind];
	*row = k;
	*out = field;
	return field->role ? ST_OK : resolve(a, kind, k->text, k->len, field, err);
}

/* ---- attributes of the current event ------------------------------------------------------ */

static void put_attr(struct kineto_args *a, uint32_t key, uint8_t unit, const struct attr *value,
		     bool is_arg)
{
	struct attr attr = { .key = key, .type = value->type, .unit = unit, .bits = value->bits };

	import_attr(a->to, &attr, is_arg);
}

enum status kineto_args_put_const(struct kineto_args *a, const char *key, size_t key_len,
				  const struct json *value, struct error *err)
{
	struct attr attr = { .unit = UNIT_NONE };

	TRY(read_value(a, value, &attr, err));
	return import_attr_named(a->to, key, key_len, &attr, false, err);
}

enum status kineto_args_put_others(struct kineto_args *a, const struct kineto_event *element,
				   struct error *err)
{
	const struct kineto_member *m;
	size_t count = kineto_members(&element->others, &m);

	for (size_t i = 0; i < count; i++) {
		struct attr attr = { .unit = UNIT_NONE };

		TRY(read_value(a, &m[i].value, &attr, err));
		buf_clear(&a->text);
		buf_put_byte(&a->text, '.');
		a->repairs += json_decode(m[i].key.text, m[i].key.len, &a->text);
		TRY(buf_status(&a->text, err));
		TRY(import_attr_named(a->to, buf_text(&a->text), a->text.len, &attr, false, err));
	}
	return ST_OK;
}

/* Adds an array of three whole numbers as three constants.  Returns false if `value` is not such an
 * array. */
static bool put_array(struct kineto_args *a, const struct kineto_field *f, const struct json *value)
{
	struct attr parts[3] = { 0 };
	struct json_scan s;
	struct json part;

	if (value->type != JSON_ARRAY)
		return false;
	json_open_text(&s, value->text, value->len);
	if (json_next(&s, &part, NULL) != ST_OK)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (json_next(&s, &part, NULL) != ST_OK || part.type != JSON_NUMBER ||
		    !is_whole(&part) || !number_attr(&part, &parts[i]))
			return false;
	if (json_next(&s, &part, NULL) != ST_OK || part.type != JSON_ARRAY_END)
		return false;
	for (unsigned i = 0; i < 3; i++)
		put_attr(a, f->names[i], f->unit, &parts[i], false);
	return true;
}

static bool is_allocation(const struct event *e)
{
	return e->kind == KIND_ALLOC || e->kind == KIND_FREE;
}

/* Stores a number in the event or in *place, unless a sink could not restore it exactly from there.
 * Returns whether it was stored. */
static bool put_member(unsigned role, const struct attr *v, struct event *e,
		       struct kineto_place *place)
{
	bool whole = v->type == ATTR_U64 || v->type == ATTR_I64;
	int64_t number = (int64_t)v->bits;
	bool positive = v->type == ATTR_U64 && v->bits > 0;

	switch (whole ? role : ROLE_UNKNOWN) {
	case ROLE_CORRELATION:
		if (positive)
			e->number = v->bits;
		return positive;
	case ROLE_VALUE:
		if (is_allocation(e) && v->type == ATTR_I64 && number > INT64_MIN) {
			e->bytes = (uint64_t)-number;
			return true;
		}
		if (positive && number > 0)
			e->bytes = v->bits;
		return positive && number > 0;
	case ROLE_DEVICE:
		if (is_allocation(e) && number == -1 && v->type == ATTR_I64) {
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
		return true;
	case ROLE_STREAM:
		if (v->type == ATTR_U64 && number < 0)
			return false;
		place->stream = number;
		return place->has_stream = true;
	}
	return false;
}

/* Reads one argument; *use is set to where its number went. */
static enum status take_arg(struct kineto_args *a, const struct kineto_member *m, struct event *e,
			    struct kineto_place *place, enum kineto_use *use, struct error *err)
{
	const struct kineto_field *f;
	struct kineto_field fresh;
	struct kineto_key *row = NULL;
	struct attr value = { 0 };
	size_t words = a->to->words.len;

	*use = KINETO_KEPT;
	TRY(find_field(a, e->kind, &m->key, &fresh, &row, &f, err));
	if (f->role == ROLE_PATH || (f->role == ROLE_ARRAY && put_array(a, f, &m->value)))
		return ST_OK;
	TRY(read_value(a, &m->value, &value, err));
	if (f->role == ROLE_ARRAY) /* keep the value under the array's name */
		return import_attr_named(a->to, m->key.text, m->key.len, &value, false, err);
	if (f->role == ROLE_CORRELATION || f->role == ROLE_VALUE)
		*use = f->role == ROLE_CORRELATION ? KINETO_CORRELATION
		       : value.type == ATTR_I64    ? KINETO_MINUS_BYTES
						   : KINETO_BYTES;
	if (put_member(f->role, &value, e, place))
		return ST_OK;
	put_attr(a, f->names[0], f->unit, &value,
		 f->role == ROLE_ARG || (f->role == ROLE_REPEATING && row &&
					 value.type <= ATTR_F64 && !is_repeated(row, value.bits)));
	*use = a->to->words.len > words ? KINETO_WORD : KINETO_KEPT;
	return ST_OK;
}

enum status kineto_args_take(struct kineto_args *a, struct kineto_event *element, struct event *e,
			     struct kineto_place *place, struct error *err)
{
	const struct kineto_member *m;
	enum kineto_use use;

	for (bool again = false;; again = true) {
		size_t count = kineto_members(&element->args, &m);

		import_begin(a->to);
		a->event++;
		a->repairs = 0;
		a->repeated = false;
		*place = (struct kineto_place){ .device = NO_ID, .context = NO_ID };
		e->number = e->bytes = 0;
		for (size_t i = 0; i < count; i++) {
			TRY(take_arg(a, &m[i], e, place, &use, err));
			if (i < KINETO_USES)
				a->uses[i] = (uint8_t)use;
			if (use != KINETO_KEPT)
				kineto_fast_number(a->fast, &m[i].value, use);
		}
		if (!a->repeated || again)
			return ST_OK;
		kineto_drop_repeated(&element->args);
	}
}
