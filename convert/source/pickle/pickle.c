/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/pickle/internal.h"

#include "schemas/base/vec.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MOST = 200, ARRAY_LEAST = 4 /* items */ };

/* ---- the stack -------------------------------------------------------------------------- */

/* Returns the value `below` the top of the stack, or NULL if a mark or the bottom is there. */
static struct pickle_value *peek(struct pickle *p, size_t below)
{
	struct pickle_value *v = below < p->depth ? p->stack[p->depth - 1 - below] : NULL;

	return v && v->type != PICKLE_MARK ? v : NULL;
}

/* Returns whether the top `count` entries are values, not marks. */
static bool are_values(struct pickle *p, size_t count)
{
	while (count && peek(p, count - 1))
		count--;
	return !count;
}

/* Moves stack[from ..] to the end of a container, except for streamed items. */
static enum status append(struct pickle *p, struct pickle_value *to, size_t from)
{
	uint64_t more = p->depth - from, cap = to->cap ? to->cap : ARRAY_LEAST;
	struct pickle_value **items;
	size_t kept = from;

	if (to->flags & KEPT)
		return pickle_bad(p, "that changes a finished value");
	for (size_t i = from; to->list && i < p->depth; i++) {
		struct pickle_value *v = p->stack[i];

		if (pickle_gives_away(to, v))
			TRY(pickle_give(p, to, v));
		else if (v != p->gone)
			p->stack[kept++] = v;
	}
	if (to->list)
		more = kept - from;
	while (cap < to->count + more)
		cap *= 2;
	if (cap > (uint64_t)1 << 31)
		return pickle_bad(p, "with a list that is too long");
	if (cap > to->cap && more) {
		items = pickle_array_new(p, (uint32_t)cap);
		if (!items)
			return p->err->status;
		if (to->count)
			memcpy(items, to->items, to->count * sizeof(*items));
		if (to->cap)
			pickle_array_free(p, to->items, to->cap);
		to->items = items;
		to->cap = (uint32_t)cap;
	}
	if (more)
		memcpy(to->items + to->count, p->stack + from, more * sizeof(*items));
	to->count += (uint32_t)more;
	p->depth = from;
	return ST_OK;
}

enum status pickle_collect(struct pickle *p, enum pickle_type type, size_t from, size_t drop_to)
{
	struct pickle_value *v = pickle_value_new(p, type);

	if (!v)
		return p->err->status;
	TRY(append(p, v, from));
	p->depth = drop_to;
	return pickle_push(p, v);
}

/* Moves the values above the mark into the container below it. */
static enum status extend(struct pickle *p, enum pickle_type type)
{
	size_t from = pickle_after_mark(p, p->depth);
	struct pickle_value *to = from != SIZE_MAX && from >= 2 ? p->stack[from - 2] : NULL;

	if (!to || to->type != type || (type == PICKLE_DICT && (p->depth - from) % 2))
		return pickle_bad(p, "that appends to a value other than a list or dictionary");
	TRY(append(p, to, from));
	to->flags |= type == PICKLE_DICT ? FILLED : 0;
	p->depth = from - 1;
	return ST_OK;
}

static enum status memo_put(struct pickle *p, uint64_t number)
{
	struct pickle_value *v = peek(p, 0);

	/* Numbers count from 0, so a pickle of this length cannot have greater ones. */
	if (!v || number > (p->in ? pickle_place(p) : p->len) || number >= UINT32_MAX)
		return pickle_bad(p, "that stores no value in its memo");
	TRY(vec_reserve(&p->memo, &p->memo_cap, number / SLAB + 1, p->err));
	if (!p->memo[number / SLAB])
		p->memo[number / SLAB] = pickle_allocate(p, SLAB * sizeof(**p->memo));
	if (!p->memo[number / SLAB])
		return p->err->status;
	p->memo[number / SLAB][number % SLAB] = v->id;
	if (!(v->flags & KEPT))
		v->memo = (uint32_t)number + 1;
	return ST_OK;
}

static enum status memo_get(struct pickle *p, uint64_t number)
{
	uint32_t id = number / SLAB < p->memo_cap && p->memo[number / SLAB]
			      ? p->memo[number / SLAB][number % SLAB]
			      : 0;

	if (!id)
		return pickle_bad(p, "that reads a missing entry of its memo");
	pickle_value_at(p, id)->refs += !(pickle_value_at(p, id)->flags & KEPT);
	return pickle_push(p, pickle_value_at(p, id));
}

/* ---- functions -------------------------------------------------------------------------- */

static enum status refuse(struct pickle *p, const char *name, size_t len)
{
	return fail(p->err, ST_FORMAT, pickle_place(p),
		    "a pickle that calls %.*s: Tacho runs no code of a file",
		    (int)(len < NAME_MOST ? len : NAME_MOST), name);
}

/* Pushes a known function such as "torch.jit._pickle\nbuild_intlist\n".  Refuses any other name,
 * and every name in INST. */
static enum status push_function(struct pickle *p, uint8_t op)
{
	static const char *const known[] = {
		"torch.jit._pickle\nbuild_intlist\n",    "torch.jit._pickle\nbuild_doublelist\n",
		"torch.jit._pickle\nbuild_boollist\n",   "torch.jit._pickle\nbuild_tensorlist\n",
		"torch.jit._pickle\nrestore_type_tag\n",
	};
	enum status status = pickle_look(p, NAME_MOST);
	const char *name = (const char *)p->bytes + p->at;
	char shown[NAME_MOST + 1];
	size_t left = p->len - p->at, len = 0;

	TRY(status);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (op == 'c' && left >= strlen(known[i]) &&
		    !memcmp(name, known[i], strlen(known[i]))) {
			p->at += strlen(known[i]);
			return pickle_push(p, pickle_value_new(p, PICKLE_FUNCTION));
		}
	for (size_t ends = 0; len < left && len < NAME_MOST && ends < 2; len++) {
		ends += name[len] == '\n';
		shown[len] = name[len] == '\n' ? '.' : name[len];
	}
	return refuse(p, shown, len ? len - 1 : 0);
}

/* Refuses a function whose module and name are two texts on the stack. */
static enum status refuse_global(struct pickle *p)
{
	const char *module = pickle_text(peek(p, 1), "?"), *name = pickle_text(peek(p, 0), "?");
	char shown[NAME_MOST + 1];
	int len = snprintf(shown, sizeof(shown), "%.90s.%.90s", module, name);

	return refuse(p, shown, (size_t)len);
}

/* Calls a known function: replaces it and its arguments by its first argument. */
static enum status reduce(struct pickle *p)
{
	struct pickle_value *arguments = peek(p, 0), *function = peek(p, 1);

	if (!function || !arguments || function->type != PICKLE_FUNCTION ||
	    arguments->type != PICKLE_LIST || !arguments->count)
		return refuse(p, "a function", strlen("a function"));
	function = arguments->items[0];
	function->refs += !(function->flags & KEPT);
	p->depth -= 2;
	pickle_drop(p, arguments, 0);
	return pickle_push(p, function);
}

/* ---- the machine ------------------------------------------------------------------------ */

/* Reads a number of `bytes` bytes that follows an operation, and calls `then` with it. */
static enum status with_number(struct pickle *p, size_t bytes,
			       enum status (*then)(struct pickle *, uint64_t))
{
	const uint8_t *at = pickle_take(p, bytes);

	return at ? then(p, pickle_little(at, bytes)) : p->err->status;
}

static enum status push_small(struct pickle *p, uint64_t number)
{
	return pickle_push_int(p, PICKLE_INT, (int64_t)number);
}

static enum status push_int32(struct pickle *p, uint64_t number)
{
	return pickle_push_int(p, PICKLE_INT, (int32_t)(uint32_t)number);
}

static enum status skip(struct pickle *p, uint64_t number)
{
	(void)number; /* the length of a frame, whose content is read like any other */
	return ST_OK;
}

/* Appends the `count` values on top of the stack to the container below them. */
static enum status append_top(struct pickle *p, enum pickle_type type, size_t count)
{
	struct pickle_value *to = are_values(p, count + 1) ? peek(p, count) : NULL;

	if (!to || to->type != type)
		return pickle_bad(p, "that appends to a value other than a list or dictionary");
	return append(p, to, p->depth - count);
}

static enum status tuple(struct pickle *p, size_t count)
{
	struct pickle_value *v;

	if (!are_values(p, count))
		return pickle_bad(p, "that needs more values than its stack has");
	TRY(pickle_collect(p, PICKLE_LIST, p->depth - count, p->depth - count));
	v = p->stack[p->depth - 1];
	for (uint32_t i = 0; i < v->count; i++)
		if (v->items[i]->type != PICKLE_INT && !(v->items[i]->flags & KEPT))
			return ST_OK;
	return pickle_keep(p, &p->stack[p->depth - 1]) ? ST_OK : p->err->status;
}

static enum status from_mark(struct pickle *p, enum pickle_type type)
{
	size_t from = pickle_after_mark(p, p->depth);

	if (from == SIZE_MAX || (type == PICKLE_DICT && (p->depth - from) % 2))
		return pickle_bad(p, "in which a mark is missing");
	return pickle_collect(p, type, from, from - 1);
}

/* Refuses operations that create objects, and those of protocol 0. */
static enum status refuse_operation(struct pickle *p, uint8_t op)
{
	static const struct {
		uint8_t op;
		const char *name;
	} rows[] = {
		{ 'o', "OBJ" },         { 'b', "BUILD" },        { 0x81, "NEWOBJ" },
		{ 0x92, "NEWOBJ_EX" },  { 'P', "PERSID" },       { 'Q', "BINPERSID" },
		{ 0x82, "EXT1" },       { 0x83, "EXT2" },        { 0x84, "EXT4" },
		{ 0x96, "BYTEARRAY8" }, { 0x97, "NEXT_BUFFER" }, { 0x98, "READONLY_BUFFER" },
	};
	const char *name = "an unknown opcode, or one of protocol 0";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].op == op)
			name = rows[i].name;
	return fail(p->err, ST_FORMAT, pickle_place(p) - 1,
		    "a pickle with %s (0x%02x), which plain values do not need: Tacho runs no code "
		    "of a file",
		    name, op);
}

/* Runs one operation; *ends: it was the last. */
static enum status step(struct pickle *p, bool *ends)
{
	const uint8_t *op = pickle_take(p, 1);

	switch (op ? *op : '.') {
	case 0x80: /* PROTO */
		return with_number(p, 1, skip);
	case 0x95: /* FRAME */
		return with_number(p, 8, skip);
	case '.': /* STOP */
		*ends = true;
		return op ? ST_OK : p->err->status;
	case '(':
		return pickle_push(p, p->mark);
	case 'N':
		return pickle_push(p, pickle_value_new(p, PICKLE_NONE));
	case 0x88:
	case 0x89:
		return pickle_push_int(p, PICKLE_BOOL, *op == 0x88);
	case 'K':
		return with_number(p, 1, push_small);
	case 'M':
		return with_number(p, 2, push_small);
	case 'J':
		return with_number(p, 4, push_int32);
	case 0x8a:
		return with_number(p, 1, pickle_push_long);
	case 0x8b:
		return with_number(p, 4, pickle_push_long);
	case 'G':
		return pickle_push_real(p);
	case 0x8c:
	case 'U':
	case 'C':
		return with_number(p, 1, pickle_push_text);
	case 'X':
	case 'T':
	case 'B':
		return with_number(p, 4, pickle_push_text);
	case 0x8d:
	case 0x8e:
		return with_number(p, 8, pickle_push_text);
	case ']':
		TRY(pickle_push(p, pickle_value_new(p, PICKLE_LIST)));
		pickle_watch(p); /* determines whether the items of the list are streamed */
		return ST_OK;
	case ')':
	case 0x8f:
		return pickle_push(p, pickle_value_new(p, PICKLE_LIST));
	case '}':
		return pickle_push(p, pickle_value_new(p, PICKLE_DICT));
	case 'a':
		return append_top(p, PICKLE_LIST, 1);
	case 'e':
	case 0x90:
		return extend(p, PICKLE_LIST);
	case 's':
		return append_top(p, PICKLE_DICT, 2);
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
	case 'i':
		return push_function(p, *op);
	case 0x93:
		return refuse_global(p);
	case 'R':
		return reduce(p);
	}
	return refuse_operation(p, *op);
}

static enum status run(struct pickle **out, const struct pickle_value **root)
{
	struct pickle *p = *out;
	enum status status = ST_OK;

	for (bool ends = false; status == ST_OK && !ends;)
		status = step(p, &ends);
	if (status == ST_OK && p->taker)
		status = pickle_give_top(p);
	if (status == ST_OK && !peek(p, 0))
		status = pickle_bad(p, "without a value");
	if (status == ST_OK) {
		*root = p->stack[p->depth - 1];
		return ST_OK;
	}
	pickle_free(p);
	*out = NULL;
	return status;
}

enum status pickle_read(struct pickle **out, const struct pickle_value **root, const void *bytes,
			size_t len, size_t ceiling, struct error *err)
{
	TRY(pickle_new(out, bytes, len, ceiling, err));
	return run(out, root);
}

enum status pickle_stream(struct pickle **out, const struct pickle_value **root, struct input *in,
			  const struct pickle_taker *taker, size_t ceiling, struct error *err)
{
	TRY(pickle_new(out, NULL, 0, ceiling, err));
	(*out)->in = in;
	(*out)->taker = taker;
	return run(out, root);
}
