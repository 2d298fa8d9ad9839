/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - values.c manages memory and values, pickle.c runs the stack machine, json.c reads
 * JSON. */
#pragma once

#include "convert/source/pickle/pickle.h"
#include "schemas/base/arena.h"
#include "schemas/base/map.h"

enum {
	SLAB = 1 << 12, /* values, and numbers of the memo, that are made together */
};
enum flag {
	KEPT = 1,   /* nothing of it changes any more; there is no other of its content */
	FILLED = 2, /* a dictionary that got its items in one go */
	OUTER = 4,  /* the lists in this one are what is given away */
};

struct pickle {
	struct arena arena;
	struct pickle_value **stack;
	size_t depth, stack_cap;
	struct pickle_value **slabs; /* of SLAB values; the first value is nobody's */
	uint32_t **memo;             /* of SLAB ids each, or NULL */
	size_t slab_cap, memo_cap;
	uint32_t value_count;
	uint32_t free_value;   /* the first unused one, which has the next in `memo` */
	void *free_arrays[32]; /* by the power of two of their length; each begins with the next */
	struct hash_index kept;
	struct pickle_value *mark, *gone; /* gone: stands for what was given away */
	struct input *in;                 /* NULL: all is in `bytes` */
	const struct pickle_taker *taker; /* NULL: nothing is given away */
	const uint8_t *bytes;
	size_t len, at;
	uint64_t base;      /* of the stream: where `bytes` begin */
	uint64_t memo_next; /* MEMOIZE takes the numbers in turn */
	struct error *err;
};

enum status pickle_new(struct pickle **out, const void *bytes, size_t len, size_t ceiling,
		       struct error *err);
uint64_t pickle_place(const struct pickle *p);
enum status pickle_bad(struct pickle *p, const char *what);
/* Makes `want` bytes be there, as far as the pickle has them. */
enum status pickle_look(struct pickle *p, uint64_t want);
/* The next `count` bytes; NULL: the pickle ends before. */
const uint8_t *pickle_take(struct pickle *p, uint64_t count);
uint64_t pickle_little(const uint8_t *at, size_t count); /* a number, lowest byte first */

void *pickle_allocate(struct pickle *p, size_t size);
struct pickle_value *pickle_value_at(const struct pickle *p, uint32_t id);
struct pickle_value *pickle_value_new(struct pickle *p, enum pickle_type type);
struct pickle_value **pickle_array_new(struct pickle *p, uint32_t cap);
void pickle_array_free(struct pickle *p, struct pickle_value **items, uint32_t cap);
/* Gives up one use of a value; without any its memory serves again.  `depth` is 0. */
void pickle_drop(struct pickle *p, struct pickle_value *v, unsigned depth);

/* NULL: the error is there already. */
enum status pickle_push(struct pickle *p, struct pickle_value *v);
enum status pickle_push_int(struct pickle *p, enum pickle_type type, int64_t number);
enum status pickle_push_text(struct pickle *p, uint64_t len);
/* A number of any length, two's complement; and one of 8 bytes with the highest first, a double. */
enum status pickle_push_long(struct pickle *p, uint64_t count);
enum status pickle_push_real(struct pickle *p);
/* Of what lies above `from` a list or a dictionary. */
enum status pickle_collect(struct pickle *p, enum pickle_type type, size_t from, size_t drop_to);

/* The place after the last mark below stack[end], or SIZE_MAX. */
size_t pickle_after_mark(const struct pickle *p, size_t end);
/* Finds out whether the items of the list on top of the stack are given away. */
void pickle_watch(struct pickle *p);
bool pickle_gives_away(const struct pickle_value *list, const struct pickle_value *item);
enum status pickle_give(struct pickle *p, const struct pickle_value *list,
			struct pickle_value *item);
/* The dictionary on top of the stack, where it is whole. */
enum status pickle_give_top(struct pickle *p);
