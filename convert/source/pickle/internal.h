/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - values.c manages memory and values, pickle.c runs the stack machine, json.c reads
 * JSON. */
#pragma once

#include "convert/source/pickle/pickle.h"
#include "schemas/base/arena.h"
#include "schemas/base/map.h"

enum {
	SLAB = 1 << 12, /* values, or memo entries, per allocation */
};
enum flag {
	KEPT = 1,   /* the value never changes again, and no other value has its content */
	FILLED = 2, /* a dictionary that got all its items at once */
	OUTER = 4,  /* a list whose nested lists are the streamed ones */
};

struct pickle {
	struct arena arena;
	struct pickle_value **stack;
	size_t depth, stack_cap;
	struct pickle_value **slabs; /* SLAB values each; value 0 is unused */
	uint32_t **memo;             /* SLAB ids each, or NULL */
	size_t slab_cap, memo_cap;
	uint32_t value_count;
	uint32_t free_value;   /* first unused value; `memo` links the next one */
	void *free_arrays[32]; /* by log2 of their capacity; each begins with a link to the next */
	struct hash_index kept;
	struct pickle_value *mark, *gone; /* `gone` replaces values that were streamed */
	struct input *in;                 /* NULL: `bytes` contains the whole pickle */
	const struct pickle_taker *taker; /* NULL: nothing is streamed */
	const uint8_t *bytes;
	size_t len, at;
	uint64_t base;      /* offset of `bytes` in the stream */
	uint64_t memo_next; /* next number that MEMOIZE assigns */
	struct error *err;
};

enum status pickle_new(struct pickle **out, const void *bytes, size_t len, size_t ceiling,
		       struct error *err);
uint64_t pickle_place(const struct pickle *p);
enum status pickle_bad(struct pickle *p, const char *what);
/* Reads ahead until `want` bytes are in memory, or all that the pickle still has. */
enum status pickle_look(struct pickle *p, uint64_t want);
/* Returns the next `count` bytes, or NULL with an error if the pickle ends before. */
const uint8_t *pickle_take(struct pickle *p, uint64_t count);
uint64_t pickle_little(const uint8_t *at, size_t count); /* a little-endian number */

void *pickle_allocate(struct pickle *p, size_t size);
struct pickle_value *pickle_value_at(const struct pickle *p, uint32_t id);
struct pickle_value *pickle_value_new(struct pickle *p, enum pickle_type type);
struct pickle_value **pickle_array_new(struct pickle *p, uint32_t cap);
void pickle_array_free(struct pickle *p, struct pickle_value **items, uint32_t cap);
/* Releases one reference to a value; without any its memory is reused.  The caller passes `depth`
 * 0. */
void pickle_drop(struct pickle *p, struct pickle_value *v, unsigned depth);

/* Pushes `v`.  If `v` is NULL, returns the error that p->err already contains. */
enum status pickle_push(struct pickle *p, struct pickle_value *v);
enum status pickle_push_int(struct pickle *p, enum pickle_type type, int64_t number);
enum status pickle_push_text(struct pickle *p, uint64_t len);
/* Pushes a two's complement number of `count` bytes; and a big-endian double of 8 bytes. */
enum status pickle_push_long(struct pickle *p, uint64_t count);
enum status pickle_push_real(struct pickle *p);
/* Collects the values from stack[from] up into a list or dictionary, cuts the stack to `drop_to`
 * and pushes the result. */
enum status pickle_collect(struct pickle *p, enum pickle_type type, size_t from, size_t drop_to);

/* Returns the position after the last mark below stack[end], or SIZE_MAX. */
size_t pickle_after_mark(const struct pickle *p, size_t end);
/* Determines whether the items of the list on top of the stack are streamed. */
void pickle_watch(struct pickle *p);
bool pickle_gives_away(const struct pickle_value *list, const struct pickle_value *item);
enum status pickle_give(struct pickle *p, const struct pickle_value *list,
			struct pickle_value *item);
/* Streams the dictionary on top of the stack if it is complete and its list is streamed. */
enum status pickle_give_top(struct pickle *p);
