/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_fast.h - the fast path of the Chrome sink, which reuses the text of an event and its arrow.
 *
 * put_plain() of chrome/sink.c notes where the text of an event has values that differ from event
 * to event.  The rest is the same for events of one kind, track, name and schema, so for later
 * events only the values are encoded.  Memory is bounded: when it is full, all texts are dropped.
 */
#pragma once

#include "convert/sink/chrome/digits_fast.h"
#include "schemas/base/arena.h"
#include "schemas/base/buf.h"
#include "schemas/base/hash.h"
#include "schemas/model/args.h"

/* Sources of placeholders in addition to those of args.h. */
enum chrome_source {
	CHROME_END = ARG_SOURCES, /* end of a cached text */
	CHROME_TIME,
	CHROME_TIME_AGAIN, /* the digits of the time again */
	CHROME_DURATION,
	CHROME_CORRELATION_AGAIN,
};

/* Positions of the values in one event's text that differ from event to event. */
struct chrome_notes {
	const struct buf *buf; /* buffer to which the text is appended */
	size_t begin;          /* offset of the event in `buf` */
	unsigned count;
	bool is_odd; /* not cacheable: a text in it varies, or there are too many values */
	struct {
		size_t begin, end;
		struct placeholder at;
	} values[48];
};

static inline void chrome_notes_begin(struct chrome_notes *n, const struct buf *b)
{
	n->buf = b;
	n->begin = b->len;
	n->count = 0;
	n->is_odd = false;
}
/* Notes that the text from `begin` on is the value of a placeholder. */
void chrome_note(struct chrome_notes *n, size_t begin, struct placeholder at);

struct chrome_text_part { /* constant text, and the placeholder after it */
	uint32_t len;
	struct placeholder at;
};
struct chrome_text {
	uint32_t most; /* bytes that writing needs, including those overwritten after the end */
	const uint8_t *bytes;
	struct chrome_text_part parts[];
};

/* Everything that determines an event's text except the values.  `what` is never 0. */
struct chrome_key {
	uint64_t where, what;
};
static inline struct chrome_key chrome_key_of(const struct event *e)
{
	uint64_t variant = (e->correlation == 0) | (e->bytes == 0) << 1 | (e->args == NULL) << 2 |
			   (e->begin_ns == e->end_ns) << 3 | 1 << 4;

	return (struct chrome_key){
		(uint64_t)e->name << 32 | e->track,
		(uint64_t)e->schema << 32 | (uint64_t)variant << 16 | (uint64_t)e->subkind << 8 |
			e->kind,
	};
}

struct chrome_text_entry {
	struct chrome_key key;          /* .what 0: free entry */
	const struct chrome_text *text; /* NULL: the text is not cacheable */
};
struct chrome_texts {
	struct arena arena;
	struct chrome_text_entry *entries;
	size_t count;
	struct digits_clock clock;
	struct buf number; /* scratch */
};
enum { CHROME_TEXT_ENTRIES = 1 << 15, CHROME_TEXT_MOST = 16 * 1024 };

enum status chrome_texts_init(struct chrome_texts *t, struct error *err);
void chrome_texts_release(struct chrome_texts *t); /* accepts a zeroed one */

static inline struct chrome_text_entry *chrome_texts_entry(struct chrome_texts *t,
							   struct chrome_key key)
{
	size_t i = hash_fold(key.where ^ HASH_A, key.what ^ HASH_B) % CHROME_TEXT_ENTRIES;

	while (t->entries[i].key.what &&
	       (t->entries[i].key.what != key.what || t->entries[i].key.where != key.where))
		i = (i + 1) % CHROME_TEXT_ENTRIES;
	return &t->entries[i];
}
/* Returns NULL if the event must be written in full, and noted afterwards. */
static inline const struct chrome_text *chrome_texts_find(struct chrome_texts *t,
							  struct chrome_key key)
{
	return chrome_texts_entry(t, key)->text;
}
/* Caches the text of an event with this key, which is the end of n->buf. */
void chrome_texts_note(struct chrome_texts *t, struct chrome_key key, const struct chrome_notes *n);

/* Writes at most text->most bytes and returns the end of the text.  The event must not begin before
 * the clock's base. */
uint8_t *chrome_text_put(struct chrome_texts *t, const struct chrome_text *text, uint8_t *p,
			 const struct event *e, uint64_t duration_ns);
