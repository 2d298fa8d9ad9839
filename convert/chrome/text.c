/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/chrome/text.h"

#include "schemas/json_text.h"

#include <stdlib.h>

enum {
	TEXTS_CEILING = 12 << 20,
	SLOTS_USED = CHROME_SLOTS / 4 * 3,
	STRIDE = 32,        /* constant text is copied in pieces of this many bytes */
	NUMBER_CEILING = 64,
};

void chrome_holes_add(struct chrome_holes *h, size_t begin, enum chrome_hole what, size_t vary)
{
	if (h->count == HOLES_MOST || what == HOLE_NONE) {
		h->is_odd = true;
		return;
	}
	h->at[h->count].begin = begin;
	h->at[h->count].end = h->buf->len;
	h->at[h->count].what = (uint8_t)what;
	h->at[h->count++].vary = (uint16_t)vary;
}

enum status chrome_texts_init(struct chrome_texts *t, struct error *err)
{
	*t = (struct chrome_texts){.count = 0};
	arena_init(&t->arena, TEXTS_CEILING);
	buf_init(&t->number, NUMBER_CEILING);
	t->slots = calloc(CHROME_SLOTS, sizeof(*t->slots));
	return t->slots ? ST_OK
			: fail(err, ST_MEMORY, NOWHERE, "no memory for the texts of events");
}

void chrome_texts_release(struct chrome_texts *t)
{
	arena_release(&t->arena);
	buf_release(&t->number);
	free(t->slots);
	t->slots = NULL;
}

static void forget(struct chrome_texts *t)
{
	arena_release(&t->arena);
	arena_init(&t->arena, TEXTS_CEILING);
	memset(t->slots, 0, CHROME_SLOTS * sizeof(*t->slots));
	t->count = 0;
}

/* ---- made from what was written the long way ---- */

/* The constant text between the holes, one behind the other. */
static void fill_pieces(struct chrome_text *text, uint8_t *bytes, const struct chrome_holes *h)
{
	size_t at = h->begin;
	bool has_time = false, has_join = false;

	text->bytes = bytes;
	for (unsigned i = 0; i <= h->count; i++) {
		size_t end = i < h->count ? h->at[i].begin : h->buf->len;
		struct chrome_piece *p = &text->pieces[i];

		memcpy(bytes, h->buf->data + at, end - at);
		bytes += end - at;
		p->len = (uint32_t)(end - at);
		if (i == h->count)
			break;
		at = h->at[i].end;
		p->vary = h->at[i].vary;
		p->what = h->at[i].what;
		if (p->what == HOLE_TIME && has_time)
			p->what = HOLE_TIME_AGAIN;
		if (p->what == HOLE_JOIN && has_join)
			p->what = HOLE_JOIN_AGAIN;
		has_time |= p->what == HOLE_TIME;
		has_join |= p->what == HOLE_JOIN;
	}
}

/* NULL: it is too large, or there is no room left. */
static const struct chrome_text *make_text(struct chrome_texts *t, const struct chrome_holes *h)
{
	size_t len = h->buf->len - h->begin, most = len + (size_t)h->count * DIGITS_ROOM + STRIDE;
	struct chrome_text *text;
	uint8_t *bytes;

	if (most > CHROME_TEXT_MOST)
		return NULL;
	text = arena_take(&t->arena, sizeof(*text) + (h->count + 1) * sizeof(text->pieces[0]), 0);
	bytes = text ? arena_take(&t->arena, len + STRIDE, 1) : NULL;
	if (!bytes)
		return NULL;
	text->most = (uint32_t)most;
	fill_pieces(text, bytes, h);
	return text;
}

void chrome_texts_note(struct chrome_texts *t, struct chrome_key key,
		       const struct chrome_holes *holes)
{
	struct chrome_slot *slot = chrome_texts_slot(t, key);
	bool is_known = slot->key.what != 0;

	if (holes->buf->status != ST_OK)
		return;
	if ((!is_known && t->count == SLOTS_USED) ||
	    arena_is_full(&t->arena, 4 * CHROME_TEXT_MOST)) {
		forget(t);
		return;
	}
	if (is_known && !holes->is_odd)
		slot->text = make_text(t, holes);
	t->count += !is_known;
	slot->key = key;
}

/* ---- written again ---- */

static inline uint8_t *copy_text(uint8_t *p, const uint8_t *from, size_t len)
{
	for (size_t at = 0; at < len; at += STRIDE)
		memcpy(p + at, from + at, STRIDE);
	return p + len;
}

static uint8_t *put_double(struct chrome_texts *t, uint8_t *p, double v)
{
	uint8_t *end = digits_put_short_f64(p, v);

	if (end)
		return end;
	buf_clear(&t->number);
	json_put_f64(&t->number, v);
	memcpy(p, t->number.data, t->number.len);
	return p + t->number.len;
}

/* Those that few events have. */
static uint8_t *put_rare(struct chrome_texts *t, uint8_t *p, const struct chrome_piece *piece,
			 const struct event *e)
{
	switch (piece->what) {
	case HOLE_TAKEN_BYTES:
		return digits_put_i64(p, (int64_t)e->bytes);
	case HOLE_GIVEN_BYTES:
		return digits_put_i64(p, (int64_t)(0 - e->bytes));
	case HOLE_VALUE:
		return put_double(t, p, e->value);
	case HOLE_BANDWIDTH:
		return put_double(t, p, (double)e->bytes / (double)(e->end_ns - e->begin_ns));
	case HOLE_VARY_F64:
		return put_double(t, p, get_f64((const uint8_t *)&e->vary[piece->vary]));
	case HOLE_VARY_I64:
		return digits_put_i64(p, (int64_t)e->vary[piece->vary]);
	default:
		return digits_put_u64(p, e->bytes);
	}
}

uint8_t *chrome_text_put(struct chrome_texts *t, const struct chrome_text *text, uint8_t *p,
			 const struct event *e, uint64_t duration_ns)
{
	const struct chrome_piece *piece = text->pieces;
	const uint8_t *from = text->bytes;
	uint8_t time[STRIDE], join[STRIDE], *begin = p;
	size_t time_len = 0, join_len = 0;

	for (;; piece++) {
		p = copy_text(p, from, piece->len);
		from += piece->len;
		switch (piece->what) {
		case HOLE_NONE:
			return p;
		case HOLE_TIME:
			begin = p;
			p = digits_put_time(p, &t->clock, e->begin_ns);
			time_len = (size_t)(p - begin);
			memcpy(time, begin, STRIDE);
			break;
		case HOLE_TIME_AGAIN:
			p = copy_text(p, time, time_len);
			break;
		case HOLE_DURATION:
			p = digits_put_us(p, duration_ns);
			break;
		case HOLE_JOIN:
			begin = p;
			p = digits_put_u64(p, e->correlation);
			join_len = (size_t)(p - begin);
			memcpy(join, begin, STRIDE);
			break;
		case HOLE_JOIN_AGAIN:
			p = copy_text(p, join, join_len);
			break;
		case HOLE_VARY_U64:
			p = digits_put_u64(p, e->vary[piece->vary]);
			break;
		default:
			p = put_rare(t, p, piece, e);
		}
	}
}
