/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome/text.h - the text of an event and its arrow, kept to be written again.
 *
 * Whoever writes an event the long way notes where its text holds what differs from event to event
 * (holes).  Of all events of one kind, track, name and shape the rest is the same, so from the
 * second on only the holes are written.  Memory is bounded: when it is full all is forgotten.
 */
#ifndef CONVERT_CHROME_TEXT_H
#define CONVERT_CHROME_TEXT_H

#include "convert/chrome/digits.h"
#include "schemas/arena.h"
#include "schemas/buf.h"
#include "schemas/event.h"
#include "schemas/hash.h"

enum chrome_hole {
	HOLE_NONE, /* the end */
	HOLE_TIME,
	HOLE_TIME_AGAIN, /* a copy of the one before */
	HOLE_DURATION,
	HOLE_JOIN,
	HOLE_JOIN_AGAIN,
	HOLE_BYTES,
	HOLE_TAKEN_BYTES, /* as a number with a sign */
	HOLE_GIVEN_BYTES, /* the same below 0 */
	HOLE_VALUE,
	HOLE_BANDWIDTH,
	HOLE_VARY_U64,
	HOLE_VARY_I64,
	HOLE_VARY_F64,
};
enum { HOLES_MOST = 48 };

/* Where the holes of one text are; `buf` is what it is appended to. */
struct chrome_holes {
	const struct buf *buf;
	size_t begin; /* of the event's text in it */
	unsigned count;
	bool is_odd; /* it cannot be kept: a text that varies, too many holes */
	struct {
		size_t begin, end;
		uint8_t what;
		uint16_t vary;
	} at[HOLES_MOST];
};

static inline void chrome_holes_begin(struct chrome_holes *h, const struct buf *b)
{
	h->buf = b;
	h->begin = b->len;
	h->count = 0;
	h->is_odd = false;
}
/* What was appended from `begin` on was a hole. */
void chrome_holes_add(struct chrome_holes *h, size_t begin, enum chrome_hole what, size_t vary);

struct chrome_piece { /* constant text, and the hole behind it */
	uint32_t len;
	uint16_t vary;
	uint8_t what;
};
struct chrome_text {
	uint32_t most; /* bytes it needs, what is touched behind it included */
	const uint8_t *bytes;
	struct chrome_piece pieces[];
};

/* What decides of an event's text, but for the holes. */
struct chrome_key {
	uint64_t where, what;
};
static inline struct chrome_key chrome_key_of(const struct event *e)
{
	uint64_t variant = (e->correlation == 0) | (e->bytes == 0) << 1 | (e->vary == NULL) << 2 |
			   (e->begin_ns == e->end_ns) << 3 | 1 << 4; /* never 0 */

	return (struct chrome_key){
		(uint64_t)e->name << 32 | e->track,
		(uint64_t)e->shape << 32 | (uint64_t)variant << 16 | (uint64_t)e->subkind << 8 |
			e->kind,
	};
}

struct chrome_texts {
	struct arena arena;
	struct chrome_slot {
		struct chrome_key key; /* .what 0: free */
		const struct chrome_text *text; /* NULL: seen once, or not to be kept */
	} *slots;
	size_t count;
	struct digits_clock clock;
	struct buf number; /* scratch */
};
enum { CHROME_SLOTS = 1 << 15, CHROME_TEXT_MOST = 16 * 1024 };

enum status chrome_texts_init(struct chrome_texts *t, struct error *err);
void chrome_texts_release(struct chrome_texts *t); /* accepts a zeroed one */

static inline struct chrome_slot *chrome_texts_slot(struct chrome_texts *t, struct chrome_key key)
{
	size_t i = hash_fold(key.where ^ HASH_A, key.what ^ HASH_B) % CHROME_SLOTS;

	while (t->slots[i].key.what &&
	       (t->slots[i].key.what != key.what || t->slots[i].key.where != key.where))
		i = (i + 1) % CHROME_SLOTS;
	return &t->slots[i];
}
/* NULL: it has to be written the long way, and then noted. */
static inline const struct chrome_text *chrome_texts_find(struct chrome_texts *t,
							  struct chrome_key key)
{
	return chrome_texts_slot(t, key)->text;
}
/* An event of this key was appended to `holes->buf`, to its end. */
void chrome_texts_note(struct chrome_texts *t, struct chrome_key key,
		       const struct chrome_holes *holes);

/* At `p` there is room for text->most bytes; returns the end.  The time is not before the base. */
uint8_t *chrome_text_put(struct chrome_texts *t, const struct chrome_text *text, uint8_t *p,
			 const struct event *e, uint64_t duration_ns);

#endif
