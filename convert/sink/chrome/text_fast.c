/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/chrome/text_fast.h"

#include "schemas/base/json_text.h"

#include <stdlib.h>

enum {
	TEXTS_CEILING = 12 << 20,
	ENTRIES_USED = CHROME_TEXT_ENTRIES / 4 * 3,
	STRIDE = 32, /* constant text is copied in blocks of this size */
	NUMBER_CEILING = 64,
};

void chrome_note(struct chrome_notes *n, size_t begin, struct placeholder at)
{
	switch (at.source) {
	case ARG_CONST: /* these are the same for all events with a key */
	case ARG_DEVICE:
	case ARG_CONTEXT:
	case ARG_STREAM:
	case ARG_ALLOCATOR_TYPE:
	case ARG_ALLOCATOR_DEVICE:
		return;
	case ARG_ADDRESS: /* the same member of a union */
		at.source = ARG_CORRELATION;
	}
	if (n->count == sizeof(n->values) / sizeof(*n->values) ||
	    (at.source == ARG_EVENT && at.type >= ATTR_TEXT)) {
		n->is_odd = true;
		return;
	}
	n->values[n->count].begin = begin;
	n->values[n->count].end = n->buf->len;
	n->values[n->count++].at = at;
}

enum status chrome_texts_init(struct chrome_texts *t, struct error *err)
{
	*t = (struct chrome_texts){ .count = 0 };
	arena_init(&t->arena, TEXTS_CEILING);
	buf_init(&t->number, NUMBER_CEILING);
	t->entries = calloc(CHROME_TEXT_ENTRIES, sizeof(*t->entries));
	return t->entries ? ST_OK : fail_memory(err);
}

void chrome_texts_release(struct chrome_texts *t)
{
	arena_release(&t->arena);
	buf_release(&t->number);
	free(t->entries);
	t->entries = NULL;
}

/* ---- keeping a text ---- */

/* Makes a cached text.  Returns NULL if it is too large, or the arena is full. */
static const struct chrome_text *make_text(struct chrome_texts *t, const struct chrome_notes *n)
{
	size_t len = n->buf->len - n->begin, most = len + (size_t)n->count * DIGITS_MOST + STRIDE;
	size_t from = n->begin;
	bool has_time = false, has_correlation = false;
	struct chrome_text *text;
	uint8_t *bytes;

	if (most > CHROME_TEXT_MOST)
		return NULL;
	text = arena_take(&t->arena, sizeof(*text) + (n->count + 1) * sizeof(text->parts[0]), 0);
	bytes = text ? arena_take(&t->arena, len + STRIDE, 1) : NULL;
	if (!bytes)
		return NULL;
	text->most = (uint32_t)most;
	text->bytes = bytes;
	for (unsigned i = 0; i < n->count; i++) {
		struct chrome_text_part *p = &text->parts[i];

		p->len = (uint32_t)(n->values[i].begin - from);
		p->at = n->values[i].at;
		memcpy(bytes, n->buf->data + from, p->len);
		bytes += p->len;
		from = n->values[i].end;
		if (p->at.source == CHROME_TIME && has_time)
			p->at.source = CHROME_TIME_AGAIN;
		if (p->at.source == ARG_CORRELATION && has_correlation)
			p->at.source = CHROME_CORRELATION_AGAIN;
		has_time |= p->at.source == CHROME_TIME;
		has_correlation |= p->at.source == ARG_CORRELATION;
	}
	text->parts[n->count].len = (uint32_t)(n->buf->len - from);
	text->parts[n->count].at.source = CHROME_END;
	memcpy(bytes, n->buf->data + from, n->buf->len - from);
	return text;
}

void chrome_texts_note(struct chrome_texts *t, struct chrome_key key, const struct chrome_notes *n)
{
	struct chrome_text_entry *entry = chrome_texts_entry(t, key);

	if (n->buf->status != ST_OK || entry->key.what) /* the text is not cacheable */
		return;
	if (t->count == ENTRIES_USED || arena_is_full(&t->arena, 4 * CHROME_TEXT_MOST)) {
		arena_release(&t->arena);
		arena_init(&t->arena, TEXTS_CEILING);
		memset(t->entries, 0, CHROME_TEXT_ENTRIES * sizeof(*t->entries));
		t->count = 0;
		return;
	}
	t->count++;
	entry->key = key;
	entry->text = n->is_odd ? NULL : make_text(t, n);
}

/* ---- writing it again ---- */

static inline uint8_t *copy_text(uint8_t *p, const uint8_t *from, size_t len)
{
	for (size_t at = 0; at < len; at += STRIDE)
		memcpy(p + at, from + at, STRIDE);
	return p + len;
}

/* Writes a value of a type that few events have. */
static uint8_t *put_rare(struct chrome_texts *t, uint8_t *p, struct placeholder at,
			 const struct event *e)
{
	uint64_t bits = 0;
	uint8_t *end;
	double f64;

	arg_bits(at, e, NULL, &bits);
	if (at.type == ATTR_I64)
		return digits_put_i64(p, (int64_t)bits);
	if (at.type != ATTR_F64)
		return digits_put_u64(p, bits);
	memcpy(&f64, &bits, sizeof(f64));
	end = digits_put_short_f64(p, f64);
	if (end)
		return end;
	buf_clear(&t->number);
	json_put_f64(&t->number, f64);
	memcpy(p, t->number.data, t->number.len);
	return p + t->number.len;
}

uint8_t *chrome_text_put(struct chrome_texts *t, const struct chrome_text *text, uint8_t *p,
			 const struct event *e, uint64_t duration_ns)
{
	const uint8_t *from = text->bytes;
	uint8_t time[STRIDE], correlation[STRIDE], *begin;
	size_t time_len = 0, correlation_len = 0;

	for (const struct chrome_text_part *part = text->parts;; part++) {
		p = copy_text(p, from, part->len);
		from += part->len;
		begin = p;
		switch (part->at.source) {
		case CHROME_END:
			return p;
		case CHROME_TIME:
			p = digits_put_time(p, &t->clock, e->begin_ns);
			time_len = (size_t)(p - begin);
			memcpy(time, begin, STRIDE);
			break;
		case CHROME_TIME_AGAIN:
			p = copy_text(p, time, time_len);
			break;
		case CHROME_DURATION:
			p = digits_put_us(p, duration_ns);
			break;
		case ARG_CORRELATION:
			p = digits_put_u64(p, e->correlation);
			correlation_len = (size_t)(p - begin);
			memcpy(correlation, begin, STRIDE);
			break;
		case CHROME_CORRELATION_AGAIN:
			p = copy_text(p, correlation, correlation_len);
			break;
		case ARG_EVENT:
			if (part->at.type == ATTR_U64) {
				p = digits_put_u64(p, e->args[part->at.index]);
				break;
			}
			/* fall through */
		default:
			p = put_rare(t, p, part->at, e);
		}
	}
}
