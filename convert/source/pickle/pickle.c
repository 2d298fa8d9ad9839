/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/pickle/pickle.h"

#include "schemas/base/arena.h"
#include "schemas/base/vec.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROTOCOL_MOST = 5, NAME_MOST = 200, LONG_BYTES = 8 };

struct pickle {
	struct arena arena;
	struct pickle_value **stack, **memo;
	size_t depth, stack_cap, memo_cap;
	const uint8_t *bytes;
	size_t len, at;
	uint64_t memo_next; /* MEMOIZE takes the numbers in turn */
	struct error *err;
};

/* ---- bytes and values ------------------------------------------------------------------- */

static enum status bad(struct pickle *p, const char *what)
{
	return fail(p->err, ST_FORMAT, p->at, "a pickle %s", what);
}

/* The next `count` bytes; NULL: the pickle ends before. */
static const uint8_t *take(struct pickle *p, uint64_t count)
{
	const uint8_t *at = p->bytes + p->at;

	if (count > p->len - p->at) {
		fail(p->err, ST_TRUNCATED, p->len, "a pickle that ends before its last value");
		return NULL;
	}
	p->at += (size_t)count;
	return at;
}

static uint64_t little(const uint8_t *at, size_t count)
{
	uint64_t v = 0;

	for (size_t i = count; i-- > 0;)
		v = v << 8 | at[i];
	return v;
}

static void *allocate(struct pickle *p, size_t size)
{
	void *place = arena_take(&p->arena, size, 0);

	if (!place && arena_is_full(&p->arena, size))
		fail(p->err, ST_CEILING, p->at, "a pickle of more than %zu MB of values",
		     p->arena.ceiling >> 20);
	else if (!place)
		fail_memory(p->err);
	return place;
}

static struct pickle_value *value_new(struct pickle *p, enum pickle_type type)
{
	struct pickle_value *v = allocate(p, sizeof(*v));

	if (v)
		v->type = (uint8_t)type;
	return v;
}

static enum status push(struct pickle *p, struct pickle_value *v)
{
	if (!v)
		return p->err->status;
	TRY(vec_reserve(&p->stack, &p->stack_cap, p->depth + 1, p->err));
	p->stack[p->depth++] = v;
	return ST_OK;
}

static enum status push_int(struct pickle *p, enum pickle_type type, int64_t number)
{
	struct pickle_value *v = value_new(p, type);

	if (v)
		v->number = number;
	return push(p, v);
}

static enum status push_text(struct pickle *p, uint64_t len)
{
	const uint8_t *at = take(p, len);
	struct pickle_value *v = at ? value_new(p, PICKLE_TEXT) : NULL;
	char *copy = v ? allocate(p, (size_t)len + 1) : NULL;

	if (!copy)
		return p->err->status;
	memcpy(copy, at, (size_t)len);
	copy[len] = '\0';
	v->text = copy;
	v->len = (size_t)len;
	return push(p, v);
}

/* A number of any length, two's complement. */
static enum status push_long(struct pickle *p, uint64_t count)
{
	const uint8_t *at = take(p, count);
	bool is_negative;
	uint64_t v;

	if (!at)
		return p->err->status;
	is_negative = count && at[count - 1] & 0x80;
	if (count > LONG_BYTES) {
		for (size_t i = LONG_BYTES - 1; i < count; i++)
			if (at[i] != (is_negative ? 0xff : 0))
				return push_int(p, PICKLE_INT, is_negative ? INT64_MIN : INT64_MAX);
		count = LONG_BYTES;
	}
	v = little(at, (size_t)count);
	if (is_negative && count < LONG_BYTES)
		v |= ~(uint64_t)0 << 8 * count;
	return push_int(p, PICKLE_INT, (int64_t)v);
}

/* A number of 8 bytes with the highest first, as a double. */
static enum status push_real(struct pickle *p)
{
	const uint8_t *at = take(p, sizeof(uint64_t));
	struct pickle_value *v = at ? value_new(p, PICKLE_REAL) : NULL;
	uint64_t bits = 0;

	if (!v)
		return p->err->status;
	for (size_t i = 0; i < sizeof(bits); i++)
		bits = bits << 8 | at[i];
	memcpy(&v->real, &bits, sizeof(bits));
	return push(p, v);
}

/* ---- the stack -------------------------------------------------------------------------- */

/* The value `below` the top; NULL: there is none above the mark. */
static struct pickle_value *peek(struct pickle *p, size_t below)
{
	struct pickle_value *v = below < p->depth ? p->stack[p->depth - 1 - below] : NULL;

	return v && v->type != PICKLE_MARK ? v : NULL;
}

/* The place after the last mark, or SIZE_MAX. */
static size_t after_mark(const struct pickle *p)
{
	for (size_t i = p->depth; i-- > 0;)
		if (p->stack[i]->type == PICKLE_MARK)
			return i + 1;
	return SIZE_MAX;
}

/* Appends stack[from ..] to a container.  The array doubles in the arena. */
static enum status append(struct pickle *p, struct pickle_value *to, size_t from)
{
	size_t more = p->depth - from, cap = to->cap ? to->cap : 4;
	struct pickle_value **items;

	while (cap < to->count + more)
		cap *= 2;
	if (cap > to->cap && more) {
		items = allocate(p, cap * sizeof(*items));
		if (!items)
			return p->err->status;
		if (to->count)
			memcpy(items, to->items, to->count * sizeof(*items));
		to->items = items;
		to->cap = cap;
	}
	if (more)
		memcpy(to->items + to->count, p->stack + from, more * sizeof(*items));
	to->count += more;
	return ST_OK;
}

/* Of what lies above `from` a list or a dictionary. */
static enum status collect(struct pickle *p, enum pickle_type type, size_t from, size_t drop_to)
{
	struct pickle_value *v = value_new(p, type);

	if (!v)
		return p->err->status;
	TRY(append(p, v, from));
	p->depth = drop_to;
	return push(p, v);
}

/* Puts what lies above the mark into the container below it. */
static enum status extend(struct pickle *p, enum pickle_type type)
{
	size_t from = after_mark(p);
	struct pickle_value *to = from != SIZE_MAX && from >= 2 ? p->stack[from - 2] : NULL;

	if (!to || to->type != type || (type == PICKLE_DICT && (p->depth - from) % 2))
		return bad(p, "that adds to what is no list or dictionary");
	TRY(append(p, to, from));
	p->depth = from - 1;
	return ST_OK;
}

static enum status memo_put(struct pickle *p, uint64_t number)
{
	struct pickle_value *v = peek(p, 0);

	/* Numbers count from 0, so a pickle of this length cannot have more. */
	if (!v || number > p->len)
		return bad(p, "that remembers nothing");
	TRY(vec_reserve(&p->memo, &p->memo_cap, number + 1, p->err));
	p->memo[number] = v;
	return ST_OK;
}

static enum status memo_get(struct pickle *p, uint64_t number)
{
	if (number >= p->memo_cap || !p->memo[number])
		return bad(p, "that refers to what it did not remember");
	return push(p, p->memo[number]);
}

/* ---- functions -------------------------------------------------------------------------- */

static enum status refuse(struct pickle *p, const char *name, size_t len)
{
	return fail(p->err, ST_FORMAT, p->at,
		    "a pickle that wants to run %.*s; nothing of it was run",
		    (int)(len < NAME_MOST ? len : NAME_MOST), name);
}

/* "torch.jit._pickle\nbuild_intlist\n" */
static enum status push_function(struct pickle *p)
{
	static const char *const known[] = {
		"torch.jit._pickle\nbuild_intlist\n",    "torch.jit._pickle\nbuild_doublelist\n",
		"torch.jit._pickle\nbuild_boollist\n",   "torch.jit._pickle\nbuild_tensorlist\n",
		"torch.jit._pickle\nrestore_type_tag\n",
	};
	const char *name = (const char *)p->bytes + p->at;
	char shown[NAME_MOST + 1];
	size_t left = p->len - p->at, len = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (left >= strlen(known[i]) && !memcmp(name, known[i], strlen(known[i]))) {
			p->at += strlen(known[i]);
			return push(p, value_new(p, PICKLE_FUNCTION));
		}
	for (size_t ends = 0; len < left && len < NAME_MOST && ends < 2; len++) {
		ends += name[len] == '\n';
		shown[len] = name[len] == '\n' ? '.' : name[len];
	}
	return refuse(p, shown, len ? len - 1 : 0);
}

/* A call of such a function gives its first argument back. */
static enum status reduce(struct pickle *p)
{
	struct pickle_value *arguments = peek(p, 0), *function = peek(p, 1);

	if (!function || !arguments || function->type != PICKLE_FUNCTION ||
	    arguments->type != PICKLE_LIST || !arguments->count)
		return refuse(p, "a function", strlen("a function"));
	p->depth -= 2;
	return push(p, arguments->items[0]);
}

/* ---- the machine ------------------------------------------------------------------------ */

/* Lengths and numbers that stand behind an operation: how many bytes they have. */
static enum status with_number(struct pickle *p, size_t bytes,
			       enum status (*then)(struct pickle *, uint64_t))
{
	const uint8_t *at = take(p, bytes);

	return at ? then(p, little(at, bytes)) : p->err->status;
}

static enum status push_small(struct pickle *p, uint64_t number)
{
	return push_int(p, PICKLE_INT, (int64_t)number);
}

static enum status push_int32(struct pickle *p, uint64_t number)
{
	return push_int(p, PICKLE_INT, (int32_t)(uint32_t)number);
}

static enum status skip(struct pickle *p, uint64_t number)
{
	(void)number; /* the length of a frame: what is in it is read all the same */
	return ST_OK;
}

static enum status set_item(struct pickle *p)
{
	struct pickle_value *to = peek(p, 2);

	if (!to || !peek(p, 1) || to->type != PICKLE_DICT)
		return bad(p, "that adds to what is no list or dictionary");
	TRY(append(p, to, p->depth - 2));
	p->depth -= 2;
	return ST_OK;
}

static enum status append_one(struct pickle *p)
{
	struct pickle_value *to = peek(p, 1);

	if (!to || to->type != PICKLE_LIST)
		return bad(p, "that adds to what is no list or dictionary");
	TRY(append(p, to, p->depth - 1));
	p->depth--;
	return ST_OK;
}

static enum status tuple(struct pickle *p, size_t count)
{
	if (count && !peek(p, count - 1))
		return bad(p, "that lacks a value");
	return collect(p, PICKLE_LIST, p->depth - count, p->depth - count);
}

static enum status from_mark(struct pickle *p, enum pickle_type type)
{
	size_t from = after_mark(p);

	if (from == SIZE_MAX || (type == PICKLE_DICT && (p->depth - from) % 2))
		return bad(p, "that lacks a mark");
	return collect(p, type, from, from - 1);
}

/* One operation; *ends: it was the last. */
static enum status step(struct pickle *p, bool *ends)
{
	const uint8_t *op = take(p, 1);

	switch (op ? *op : '.') {
	case 0x80: /* PROTO */
		return with_number(p, 1, skip);
	case 0x95: /* FRAME */
		return with_number(p, 8, skip);
	case '.': /* STOP */
		*ends = true;
		return op ? ST_OK : p->err->status;
	case '(':
		return push(p, value_new(p, PICKLE_MARK));
	case 'N':
		return push(p, value_new(p, PICKLE_NONE));
	case 0x88:
	case 0x89:
		return push_int(p, PICKLE_BOOL, *op == 0x88);
	case 'K':
		return with_number(p, 1, push_small);
	case 'M':
		return with_number(p, 2, push_small);
	case 'J':
		return with_number(p, 4, push_int32);
	case 0x8a:
		return with_number(p, 1, push_long);
	case 0x8b:
		return with_number(p, 4, push_long);
	case 'G':
		return push_real(p);
	case 0x8c:
	case 'U':
	case 'C':
		return with_number(p, 1, push_text);
	case 'X':
	case 'T':
	case 'B':
		return with_number(p, 4, push_text);
	case 0x8d:
	case 0x8e:
		return with_number(p, 8, push_text);
	case ']':
	case ')':
	case 0x8f:
		return push(p, value_new(p, PICKLE_LIST));
	case '}':
		return push(p, value_new(p, PICKLE_DICT));
	case 'a':
		return append_one(p);
	case 'e':
	case 0x90:
		return extend(p, PICKLE_LIST);
	case 's':
		return set_item(p);
	case 'u':
		return extend(p, PICKLE_DICT);
	case 'l':
	case 't':
		return from_mark(p, PICKLE_LIST);
	case 'd':
		return from_mark(p, PICKLE_DICT);
	case 0x85:
	case 0x86:
	case 0x87:
		return tuple(p, *op - 0x84u);
	case 'q':
		return with_number(p, 1, memo_put);
	case 'r':
		return with_number(p, 4, memo_put);
	case 0x94:
		return memo_put(p, p->memo_next++);
	case 'h':
		return with_number(p, 1, memo_get);
	case 'j':
		return with_number(p, 4, memo_get);
	case 'c':
		return push_function(p);
	case 'R':
		return reduce(p);
	}
	return fail(p->err, ST_FORMAT, p->at - 1,
		    "a pickle with an operation (0x%02x) that values do not need; nothing was run",
		    *op);
}

static enum status pickle_new(struct pickle **out, const void *bytes, size_t len, size_t ceiling,
			      struct error *err)
{
	struct pickle *p = calloc(1, sizeof(*p));

	*out = p;
	if (!p)
		return fail_memory(err);
	arena_init(&p->arena, ceiling);
	p->bytes = bytes;
	p->len = len;
	p->err = err;
	return ST_OK;
}

enum status pickle_read(struct pickle **out, const struct pickle_value **root, const void *bytes,
			size_t len, size_t ceiling, struct error *err)
{
	enum status status = pickle_new(out, bytes, len, ceiling, err);
	struct pickle *p = *out;
	bool ends = false;

	while (status == ST_OK && !ends)
		status = step(p, &ends);
	if (status == ST_OK && !peek(p, 0))
		status = bad(p, "without a value");
	if (status == ST_OK) {
		*root = p->stack[p->depth - 1];
		return ST_OK;
	}
	pickle_free(p);
	*out = NULL;
	return status;
}

/* ---- JSON ------------------------------------------------------------------------------- */

static enum status push_json(struct pickle *p, const cJSON *from);

/* The members of an array or object; cJSON limits how deep they nest. */
static enum status push_members(struct pickle *p, const cJSON *from)
{
	size_t first = p->depth;
	const cJSON *item;

	cJSON_ArrayForEach(item, from)
	{
		if (cJSON_IsObject(from)) {
			p->bytes = (const uint8_t *)item->string;
			p->len = strlen(item->string);
			p->at = 0;
			TRY(push_text(p, p->len));
		}
		TRY(push_json(p, item));
	}
	return collect(p, cJSON_IsObject(from) ? PICKLE_DICT : PICKLE_LIST, first, first);
}

static enum status push_json(struct pickle *p, const cJSON *from)
{
	struct pickle_value *v;
	double number = from->valuedouble;

	if (cJSON_IsArray(from) || cJSON_IsObject(from))
		return push_members(p, from);
	if (cJSON_IsString(from)) {
		p->bytes = (const uint8_t *)from->valuestring;
		p->len = strlen(from->valuestring);
		p->at = 0;
		return push_text(p, p->len);
	}
	if (cJSON_IsBool(from))
		return push_int(p, PICKLE_BOOL, cJSON_IsTrue(from));
	if (cJSON_IsNumber(from) && number > -9223372036854775808.0 &&
	    number < 9223372036854775808.0 && number == trunc(number))
		return push_int(p, PICKLE_INT, (int64_t)number);
	v = value_new(p, cJSON_IsNumber(from) ? PICKLE_REAL : PICKLE_NONE);
	if (v && cJSON_IsNumber(from))
		v->real = number;
	return push(p, v);
}

enum status pickle_of_json(struct pickle **out, const struct pickle_value **root, const char *text,
			   size_t len, size_t ceiling, struct error *err)
{
	enum status status = pickle_new(out, NULL, 0, ceiling, err);
	const char *end = NULL;
	cJSON *json;

	TRY(status);
	json = cJSON_ParseWithLengthOpts(text, len, &end, false);
	status = json ? push_json(*out, json)
		      : fail(err, ST_FORMAT, end ? (uint64_t)(end - text) : 0, "damaged JSON");
	cJSON_Delete(json);
	if (status == ST_OK) {
		*root = (*out)->stack[0];
		return ST_OK;
	}
	pickle_free(*out);
	*out = NULL;
	return status;
}

void pickle_free(struct pickle *p)
{
	if (!p)
		return;
	arena_release(&p->arena);
	free(p->stack);
	free(p->memo);
	free(p);
}

const struct pickle_value *pickle_get(const struct pickle_value *v, const char *key)
{
	for (size_t i = 0; v && v->type == PICKLE_DICT && i + 1 < v->count; i += 2)
		if (v->items[i]->type == PICKLE_TEXT && !strcmp(v->items[i]->text, key))
			return v->items[i + 1];
	return NULL;
}

int64_t pickle_int(const struct pickle_value *v, int64_t fallback)
{
	return v && (v->type == PICKLE_INT || v->type == PICKLE_BOOL) ? v->number : fallback;
}

const char *pickle_text(const struct pickle_value *v, const char *fallback)
{
	return v && v->type == PICKLE_TEXT ? v->text : fallback;
}

size_t pickle_count(const struct pickle_value *v)
{
	return v && (v->type == PICKLE_LIST || v->type == PICKLE_DICT) ? v->count : 0;
}
