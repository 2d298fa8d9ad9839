/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/pickle/internal.h"

#include "convert/input/input.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
	LONG_BYTES = 8,
	NEST_MOST = 32,
	WINDOW = 1 << 20, /* bytes read at once */
};

/* ---- bytes and values ------------------------------------------------------------------- */

uint64_t pickle_place(const struct pickle *p)
{
	return p->base + p->at;
}

enum status pickle_bad(struct pickle *p, const char *what)
{
	return fail(p->err, ST_FORMAT, pickle_place(p), "a pickle %s", what);
}

enum status pickle_look(struct pickle *p, uint64_t want)
{
	if (want <= p->len - p->at || !p->in)
		return ST_OK;
	if (want > INPUT_PEEK_MAX)
		return pickle_bad(p, "with a text that is too long");
	input_skip(p->in, p->at);
	p->base += p->at;
	p->at = 0;
	p->len = 0;
	return input_peek(p->in, want > WINDOW ? (size_t)want : WINDOW, &p->bytes, &p->len, p->err);
}

const uint8_t *pickle_take(struct pickle *p, uint64_t count)
{
	const uint8_t *at;

	if (count > p->len - p->at && pickle_look(p, count) != ST_OK)
		return NULL;
	at = p->bytes + p->at;
	if (count > p->len - p->at) {
		fail(p->err, ST_TRUNCATED, p->base + p->len,
		     "a pickle that ends before its last value");
		return NULL;
	}
	p->at += (size_t)count;
	return at;
}

uint64_t pickle_little(const uint8_t *at, size_t count)
{
	uint64_t v = 0;

	for (size_t i = count; i-- > 0;)
		v = v << 8 | at[i];
	return v;
}

void *pickle_allocate(struct pickle *p, size_t size)
{
	void *got = arena_take(&p->arena, size, 0);

	if (!got && arena_is_full(&p->arena, size))
		fail(p->err, ST_CEILING, pickle_place(p),
		     "a pickle with more than %zu MB of values", p->arena.ceiling >> 20);
	else if (!got)
		fail_memory(p->err);
	return got;
}

struct pickle_value *pickle_value_at(const struct pickle *p, uint32_t id)
{
	return &p->slabs[id / SLAB][id % SLAB];
}

struct pickle_value *pickle_value_new(struct pickle *p, enum pickle_type type)
{
	uint32_t id = p->free_value;
	struct pickle_value *v;

	if (id) {
		v = pickle_value_at(p, id);
		p->free_value = v->memo;
	} else {
		id = p->value_count + 1;
		if (id == UINT32_MAX ||
		    vec_reserve(&p->slabs, &p->slab_cap, id / SLAB + 1, p->err) != ST_OK)
			return NULL;
		if (!p->slabs[id / SLAB])
			p->slabs[id / SLAB] = pickle_allocate(p, SLAB * sizeof(*v));
		if (!p->slabs[id / SLAB])
			return NULL;
		p->value_count = id;
		v = pickle_value_at(p, id);
	}
	*v = (struct pickle_value){ .type = (uint8_t)type, .id = id, .refs = 1 };
	return v;
}

static bool is_container(const struct pickle_value *v)
{
	return v->type == PICKLE_LIST || v->type == PICKLE_DICT;
}

/* Returns log2 of a capacity, which is a power of two. */
static unsigned class_of(uint32_t cap)
{
	return (unsigned)__builtin_ctz(cap);
}

struct pickle_value **pickle_array_new(struct pickle *p, uint32_t cap)
{
	void **list = &p->free_arrays[class_of(cap)];
	void *got = *list;

	if (!got)
		return pickle_allocate(p, cap * sizeof(struct pickle_value *));
	memcpy(list, got, sizeof(*list));
	return got;
}

void pickle_array_free(struct pickle *p, struct pickle_value **items, uint32_t cap)
{
	void **list = &p->free_arrays[class_of(cap)];

	memcpy(items, list, sizeof(*list));
	*list = items;
}

static void memo_set(struct pickle *p, const struct pickle_value *v, uint32_t id)
{
	if (v->memo)
		p->memo[(v->memo - 1) / SLAB][(v->memo - 1) % SLAB] = id;
}

void pickle_drop(struct pickle *p, struct pickle_value *v, unsigned depth)
{
	if (v->flags & KEPT || --v->refs || depth > NEST_MOST)
		return;
	if (is_container(v) && v->cap) {
		for (uint32_t i = 0; i < v->count; i++)
			pickle_drop(p, v->items[i], depth + 1);
		pickle_array_free(p, v->items, v->cap);
	}
	memo_set(p, v, p->gone->id);
	v->memo = p->free_value;
	v->type = PICKLE_NONE;
	p->free_value = v->id;
}

/* ---- one value for each content --------------------------------------------------------- */

static bool is_same(const struct pickle_value *a, const struct pickle_value *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == PICKLE_TEXT)
		return a->len == b->len && !memcmp(a->text, b->text, a->len);
	if (is_container(a))
		return a->count == b->count &&
		       (!a->count || !memcmp(a->items, b->items, a->count * sizeof(*a->items)));
	return a->number == b->number;
}

/* Returns the kept value with this content, or NULL. */
static struct pickle_value *kept_find(const struct pickle *p, uint64_t hash,
				      const struct pickle_value *like)
{
	uint32_t id;

	for (size_t at = hash_first(&p->kept, hash);
	     (id = hash_item(&p->kept, &at, hash)) != HASH_NONE; at = hash_next(&p->kept, at))
		if (is_same(pickle_value_at(p, id), like))
			return pickle_value_at(p, id);
	return NULL;
}

static struct pickle_value *keep(struct pickle *p, struct pickle_value *v, unsigned depth)
{
	uint64_t hash = hash_word(v->type, is_container(v) ? v->count : (uint64_t)v->number);
	struct pickle_value *one;

	if (v->flags & KEPT || depth > NEST_MOST)
		return v;
	for (uint32_t i = 0; is_container(v) && i < v->count; i++) {
		one = keep(p, v->items[i], depth + 1);
		if (!one)
			return NULL;
		if (one != v->items[i])
			pickle_drop(p, v->items[i], depth + 1);
		v->items[i] = one;
		hash = hash_word(hash, one->id);
	}
	one = kept_find(p, hash, v);
	if (one) {
		memo_set(p, v, one->id);
		v->memo = 0;
		return one;
	}
	if (hash_add(&p->kept, hash, v->id, p->err) != ST_OK)
		return NULL;
	v->flags |= KEPT;
	return v;
}

const struct pickle_value *pickle_keep(struct pickle *p, struct pickle_value **at)
{
	struct pickle_value *one = keep(p, *at, 0);

	if (one && one != *at) {
		pickle_drop(p, *at, 0);
		*at = one;
	}
	return one;
}

/* ---- streaming --------------------------------------------------------------------------- */

size_t pickle_after_mark(const struct pickle *p, size_t end)
{
	for (size_t i = end; i-- > 0;)
		if (p->stack[i]->type == PICKLE_MARK)
			return i + 1;
	return SIZE_MAX;
}

void pickle_watch(struct pickle *p)
{
	size_t top = p->depth - 1, from = p->taker ? pickle_after_mark(p, top) : SIZE_MAX;
	struct pickle_value *v = p->stack[top], *parent;
	const struct pickle_list *lists = p->taker ? p->taker->lists : NULL;

	if (from == SIZE_MAX || from < 2)
		return;
	parent = p->stack[from - 2];
	if (parent->flags & OUTER) {
		size_t ordinal = parent->count + top - from;

		v->list = parent->list;
		v->ordinal = (uint8_t)(ordinal < UINT8_MAX ? ordinal : UINT8_MAX);
	}
	if (from != 2 || parent->type != PICKLE_DICT || (top - from) % 2 != 1 ||
	    p->stack[top - 1]->type != PICKLE_TEXT)
		return;
	for (uint8_t i = 0; lists[i].key; i++)
		if (!strcmp(p->stack[top - 1]->text, lists[i].key)) {
			v->list = (uint8_t)(i + 1);
			v->flags |= lists[i].is_nested ? OUTER : 0;
		}
}

bool pickle_gives_away(const struct pickle_value *list, const struct pickle_value *item)
{
	return list->list && !(list->flags & OUTER) && item->type == PICKLE_DICT;
}

enum status pickle_give(struct pickle *p, const struct pickle_value *list,
			struct pickle_value *item)
{
	TRY(p->taker->take(p->taker->user, list->list - 1u, list->ordinal, item, p->err));
	pickle_drop(p, item, 0);
	return ST_OK;
}

/* Streams the dictionary on top of the stack if it is complete.  Some writers push a million of
 * them before the operation that appends them to their list. */
enum status pickle_give_top(struct pickle *p)
{
	struct pickle_value *v = p->depth > 2 ? p->stack[p->depth - 1] : p->gone;
	size_t below = p->depth - 2;

	if (!(v->flags & FILLED))
		return ST_OK;
	below -= p->stack[below] == p->gone;
	if (!below || p->stack[below]->type != PICKLE_MARK ||
	    !pickle_gives_away(p->stack[below - 1], v))
		return ST_OK;
	TRY(pickle_give(p, p->stack[below - 1], v));
	p->depth = below + 2;
	p->stack[below + 1] = p->gone;
	return ST_OK;
}

enum status pickle_push(struct pickle *p, struct pickle_value *v)
{
	if (!v)
		return p->err->status;
	if (p->taker)
		TRY(pickle_give_top(p));
	TRY(vec_reserve(&p->stack, &p->stack_cap, p->depth + 1, p->err));
	p->stack[p->depth++] = v;
	return ST_OK;
}

enum status pickle_push_int(struct pickle *p, enum pickle_type type, int64_t number)
{
	struct pickle_value *v = pickle_value_new(p, type);

	if (v)
		v->number = number;
	return pickle_push(p, v);
}

enum status pickle_push_text(struct pickle *p, uint64_t len)
{
	const uint8_t *at = pickle_take(p, len);
	struct pickle_value like = { .type = PICKLE_TEXT }, *v;
	uint64_t hash;
	char *copy;

	if (!at)
		return p->err->status;
	like.text = (const char *)at;
	like.len = (size_t)len;
	hash = hash_text(like.text, like.len);
	v = kept_find(p, hash, &like);
	if (v)
		return pickle_push(p, v);
	v = pickle_value_new(p, PICKLE_TEXT);
	copy = v ? pickle_allocate(p, (size_t)len + 1) : NULL;
	if (!copy)
		return p->err->status;
	memcpy(copy, at, (size_t)len);
	copy[len] = '\0';
	v->text = copy;
	v->len = (size_t)len;
	v->flags = KEPT;
	TRY(hash_add(&p->kept, hash, v->id, p->err));
	return pickle_push(p, v);
}

enum status pickle_push_long(struct pickle *p, uint64_t count)
{
	const uint8_t *at = pickle_take(p, count);
	bool is_negative;
	uint64_t v;

	if (!at)
		return p->err->status;
	is_negative = count && at[count - 1] & 0x80;
	if (count > LONG_BYTES) {
		for (size_t i = LONG_BYTES - 1; i < count; i++)
			if (at[i] != (is_negative ? 0xff : 0))
				return pickle_push_int(p, PICKLE_INT,
						       is_negative ? INT64_MIN : INT64_MAX);
		count = LONG_BYTES;
	}
	v = pickle_little(at, (size_t)count);
	if (is_negative && count < LONG_BYTES)
		v |= ~(uint64_t)0 << 8 * count;
	return pickle_push_int(p, PICKLE_INT, (int64_t)v);
}

enum status pickle_push_real(struct pickle *p)
{
	const uint8_t *at = pickle_take(p, sizeof(uint64_t));
	struct pickle_value *v = at ? pickle_value_new(p, PICKLE_REAL) : NULL;
	uint64_t bits = 0;

	if (!v)
		return p->err->status;
	for (size_t i = 0; i < sizeof(bits); i++)
		bits = bits << 8 | at[i];
	memcpy(&v->real, &bits, sizeof(bits));
	return pickle_push(p, v);
}

/* ---- the interface ----------------------------------------------------------------------- */

enum status pickle_new(struct pickle **out, const void *bytes, size_t len, size_t ceiling,
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
	p->mark = pickle_value_new(p, PICKLE_MARK);
	p->gone = p->mark ? pickle_value_new(p, PICKLE_NONE) : NULL;
	if (p->gone) {
		p->mark->flags = p->gone->flags = KEPT;
		return ST_OK;
	}
	pickle_free(p);
	*out = NULL;
	return err->status;
}

void pickle_free(struct pickle *p)
{
	if (!p)
		return;
	arena_release(&p->arena);
	free(p->stack);
	free(p->slabs);
	free(p->memo);
	hash_release(&p->kept);
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

bool pickle_head_has(const uint8_t *head, size_t len, const char *word)
{
	return memmem(head, len, word, strlen(word)) != NULL;
}
