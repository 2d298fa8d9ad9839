/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/open.h"

#include "collector/probe/nvtx/names.h"

#include <string.h>
#include <sys/mman.h>

enum {
	GONE = 1 << 30, /* mark in a level: the range was popped while others are above it */
	PLACE = RING_PLACE,
	TRIES = 100,
};

/* Release and acquire order the fields between the reads of the version before and after
 * (open.h). */
#define PUT(field, value) atomic_store_explicit(&(field), (value), memory_order_release)
#define GET(field)        atomic_load_explicit(&(field), memory_order_acquire)
#define OWN(field)        atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- drafts ---- */

void nvtx_draft_init(struct nvtx_draft *d, uint64_t word)
{
	d->word = word;
	d->name = 0;
	d->size = sizeof(struct nvtx_tail);
	memset(d->bytes, 0, sizeof(struct nvtx_tail));
}

void nvtx_draft_text(struct nvtx_draft *d, size_t len)
{
	nvtx_draft_tail(d)->text_len = (uint16_t)len;
	d->size += (uint32_t)len;
}

uint8_t *nvtx_draft_add_payload(struct nvtx_draft *d, uint64_t schema, size_t size)
{
	struct nvtx_payload_header payload = { .schema = schema, .size = (uint16_t)size };
	struct nvtx_tail *tail = nvtx_draft_tail(d);
	uint8_t *at = d->bytes + d->size;

	if (size > sizeof(d->bytes) || d->size + sizeof(payload) + size > sizeof(d->bytes) ||
	    tail->payloads == UINT8_MAX) {
		nvtx_lose(1);
		return NULL;
	}
	memcpy(at, &payload, sizeof(payload));
	tail->payloads++;
	d->payload = d->size;
	d->size += (uint32_t)(sizeof(payload) + size);
	return at + sizeof(payload);
}

uint8_t *nvtx_draft_extra(struct nvtx_draft *d, size_t len)
{
	struct nvtx_payload_header payload;
	uint8_t *at = d->bytes + d->size;

	if (d->size + len > sizeof(d->bytes)) {
		nvtx_lose(1);
		return NULL;
	}
	memcpy(&payload, d->bytes + d->payload, sizeof(payload));
	payload.extra = (uint16_t)(payload.extra + len);
	memcpy(d->bytes + d->payload, &payload, sizeof(payload));
	d->size += (uint32_t)len;
	return at;
}

unsigned nvtx_draft_more(struct nvtx_draft *d)
{
	const struct nvtx_tail *tail = nvtx_draft_tail(d);
	unsigned more = (d->size + PLACE - 1) / PLACE;

	if (d->name && !tail->payloads && !tail->value_type && !tail->tid)
		return 0;
	memset(d->bytes + d->size, 0, more * PLACE - d->size);
	return more;
}

static void put_words(_Atomic uint64_t *to, const uint8_t *from, unsigned more)
{
	uint64_t word;

	for (unsigned i = 0; i < more * PLACE / 8; i++) {
		memcpy(&word, from + 8 * i, 8);
		PUT(to[i], word);
	}
}

static void get_words(uint8_t *to, _Atomic uint64_t *from, unsigned more)
{
	for (unsigned i = 0; i < more * PLACE / 8; i++) {
		uint64_t word = GET(from[i]);
		memcpy(to + 8 * i, &word, 8);
	}
}

/* Restores the draft from a stored range. */
static void load_draft(struct nvtx_draft *d, uint64_t word, uint32_t name, _Atomic uint64_t *tail,
		       unsigned more, unsigned bytes)
{
	nvtx_draft_init(d, word);
	d->name = name;
	if (!more)
		return;
	get_words(d->bytes, tail, more);
	d->size = bytes;
}

bool nvtx_open_record(struct ring_record *out, const struct tick_span *window, uint64_t begin,
		      uint64_t word, uint32_t name, uint32_t more)
{
	*out = (struct ring_record){ .begin = begin,
				     .word = word,
				     .name = name,
				     .kind = KIND_RANGE,
				     .subkind = RANGE_NVTX,
				     .more = (uint16_t)more,
				     .flags = RING_NVTX };
	return thread_clip_open(out, window);
}

/* ---- ranges of a thread ---- */

struct nvtx_stack *nvtx_stack_new(void)
{
	uint64_t at = arena_is_mine() ? arena_alloc(sizeof(struct nvtx_stack)) : 0;
	void *s = at ? arena_at(arena(), at)
		     : mmap(NULL, sizeof(struct nvtx_stack), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return s == MAP_FAILED ? NULL : s;
}

static void change_begins(struct nvtx_stack *s)
{
	atomic_store_explicit(&s->version, OWN(s->version) + 1, memory_order_relaxed);
}

static void change_ends(struct nvtx_stack *s)
{
	PUT(s->version, OWN(s->version) + 1);
}

void nvtx_stack_clear(struct nvtx_stack *s)
{
	change_begins(s);
	PUT(s->depth, 0);
	change_ends(s);
	s->used = 0;
}

bool nvtx_stack_push(struct nvtx_stack *s, uint32_t level, uint64_t begin)
{
	unsigned more = nvtx_draft_more(&s->draft);
	uint32_t depth = OWN(s->depth), words = more * PLACE / 8;
	struct nvtx_open *o = &s->open[depth];

	if (depth == NVTX_DEPTH || s->used + words > NVTX_TAILS / 8) {
		nvtx_lose(1);
		return false;
	}
	change_begins(s);
	PUT(o->begin, begin);
	PUT(o->word, s->draft.word);
	PUT(o->name, s->draft.name);
	PUT(o->level, level);
	PUT(o->tail, s->used);
	PUT(o->size, more ? s->draft.size : 0);
	put_words(&s->tails[s->used], s->draft.bytes, more);
	s->used += words;
	PUT(s->depth, depth + 1);
	change_ends(s);
	return true;
}

/* Removes entry `i`, and the entries on top that were popped before. */
static void drop(struct nvtx_stack *s, uint32_t i)
{
	uint32_t depth = OWN(s->depth);

	PUT(s->open[i].level, GONE);
	while (depth && OWN(s->open[depth - 1].level) & GONE) {
		depth--;
		s->used = OWN(s->open[depth].tail);
	}
	PUT(s->depth, depth);
}

/* Returns the entry of this range, or -1.  Entries of its domain above it are marked as popped. */
static int find(struct nvtx_stack *s, uint32_t domain, uint32_t level)
{
	for (uint32_t i = OWN(s->depth); i > 0; i--) {
		uint32_t there = OWN(s->open[i - 1].level);
		if (there & GONE || nvtx_word_domain(OWN(s->open[i - 1].word)) != domain)
			continue;
		if (there <= level)
			return there == level ? (int)i - 1 : -1;
		PUT(s->open[i - 1].level, GONE);
	}
	return -1;
}

static unsigned places(uint32_t size)
{
	return (size + PLACE - 1) / PLACE;
}

bool nvtx_stack_pop(struct nvtx_stack *s, uint32_t domain, uint32_t level, uint64_t *begin)
{
	change_begins(s);
	int i = find(s, domain, level);
	if (i >= 0) {
		struct nvtx_open *o = &s->open[i];
		*begin = OWN(o->begin);
		load_draft(&s->draft, OWN(o->word), OWN(o->name), &s->tails[OWN(o->tail)],
			   places(OWN(o->size)), OWN(o->size));
		drop(s, (uint32_t)i);
	}
	change_ends(s);
	return i >= 0;
}

/* Reads entry `i` as a record; returns false if it is not open, or if its owner keeps changing the
 * stack. */
static bool read_open(struct nvtx_stack *s, uint32_t i, const struct tick_span *window,
		      struct ring_record *r, uint8_t *tail)
{
	struct nvtx_open *o = &s->open[i];

	for (unsigned tries = 0; tries < TRIES; tries++) {
		uint32_t version = GET(s->version);
		if (i >= GET(s->depth))
			return false;
		uint32_t at = GET(o->tail);
		uint32_t size = GET(o->size);
		if (version & 1 || size > RING_TAIL_MAX ||
		    (uint64_t)at + places(size) * PLACE / 8 > NVTX_TAILS / 8)
			continue;
		bool is_open = !(GET(o->level) & GONE) &&
			       nvtx_open_record(r, window, GET(o->begin), GET(o->word),
						GET(o->name), places(size));
		if (is_open)
			get_words(tail, &s->tails[at], places(size));
		if (OWN(s->version) == version)
			return is_open;
	}
	return false;
}

void nvtx_stack_put_open(struct nvtx_stack *s, struct thread_state *thread,
			 const struct tick_span *window, thread_put_fn put, void *arg)
{
	_Alignas(8) uint8_t tail[RING_TAIL_MAX];
	struct ring_record r;

	for (uint32_t i = 0; i < GET(s->depth) && i < NVTX_DEPTH; i++)
		if (read_open(s, i, window, &r, tail))
			put(thread, &r, tail, arg);
}

static void put_open_ranges(void *ranges, struct thread_state *thread,
			    const struct tick_span *window, thread_put_fn put, void *arg)
{
	nvtx_stack_put_open(ranges, thread, window, put, arg);
}

static void clear_ranges(void *ranges)
{
	nvtx_stack_clear(ranges);
}

const struct probe_ranges nvtx_ranges = { put_open_ranges, clear_ranges,
					  sizeof(struct nvtx_stack) };

/* ---- ranges that any thread may end ---- */

#define BUSY UINT64_MAX
struct started {
	_Atomic uint64_t id; /* 0: the entry is free */
	_Atomic uint64_t begin, last_window, word;
	_Atomic uint32_t name, size;
	_Atomic uint64_t tail[NVTX_STARTED_BYTES / 8];
};
/* The table, which is in the arena. */
struct table {
	_Atomic uint32_t high; /* entries from here on are free */
	struct started rows[NVTX_STARTED];
};
static struct table *_Atomic started; /* NULL until there is a range, or without space for it */

/* Returns the table if it belongs to this process, otherwise NULL. */
static struct table *table_now(void)
{
	return arena_is_mine() ? GET(started) : NULL;
}

static struct table *make_table(void)
{
	struct table *t = table_now();

	if (t)
		return t;
	if (!nvtx_names_lock())
		return NULL;
	t = arena_table(ARENA_NVTX_STARTED, sizeof(*t));
	PUT(started, t);
	nvtx_names_unlock();
	return t;
}

void nvtx_started_prepare(void)
{
	make_table();
}

void nvtx_started_adopt(void)
{
	PUT(started, arena_table_there(ARENA_NVTX_STARTED, sizeof(struct table)));
}

/* Makes a draft fit in a table entry: truncates the text between characters and drops payloads. */
static void shorten(struct nvtx_draft *d)
{
	struct nvtx_tail *tail = nvtx_draft_tail(d);
	const char *text = nvtx_draft_text_space(d);
	size_t len = tail->text_len, most = NVTX_STARTED_BYTES - sizeof(*tail);

	if (d->size <= NVTX_STARTED_BYTES)
		return;
	if (len > most)
		for (len = most; len && ((uint8_t)text[len] & 0xc0) == 0x80; len--)
			;
	nvtx_lose(tail->payloads);
	tail->payloads = 0;
	tail->text_len = (uint16_t)len;
	d->size = (uint32_t)(sizeof(*tail) + len);
}

static struct started *claim(struct table *t, uint64_t serial)
{
	uint32_t first = (uint32_t)(serial >> 32) * 16, high, end, i;

	for (i = 0; i < NVTX_STARTED; i++) {
		struct started *s = &t->rows[(first + i) % NVTX_STARTED];

		uint64_t there = 0;
		if (OWN(s->id) || !atomic_compare_exchange_strong(&s->id, &there, BUSY))
			continue;
		high = OWN(t->high);
		end = (uint32_t)(s - t->rows) + 1;
		while (high < end && !atomic_compare_exchange_weak(&t->high, &high, end))
			;
		return s;
	}
	return NULL;
}

uint64_t nvtx_started_put(struct nvtx_draft *d, uint64_t serial, uint32_t tid, uint64_t begin,
			  uint64_t last_window)
{
	struct table *t = make_table();
	struct started *s = t ? claim(t, serial) : NULL;

	if (!s) {
		nvtx_lose(1);
		return serial;
	}
	nvtx_draft_tail(d)->tid = tid;
	shorten(d);
	unsigned more = nvtx_draft_more(d);
	uint64_t id = (uint64_t)(s - t->rows + 1) << NVTX_SERIAL_BITS | serial;
	PUT(s->begin, begin);
	PUT(s->last_window, last_window);
	PUT(s->word, d->word | UINT64_C(1) << NVTX_WORD_STARTED);
	PUT(s->name, d->name);
	PUT(s->size, d->size);
	put_words(s->tail, d->bytes, more);
	PUT(s->id, id);
	return id;
}

bool nvtx_started_take(uint64_t id, struct nvtx_draft *d, struct nvtx_ended *out)
{
	uint64_t place = id >> NVTX_SERIAL_BITS;

	struct table *t = table_now();
	struct started *s = t && place && place <= NVTX_STARTED ? &t->rows[place - 1] : NULL;

	if (!s || !atomic_compare_exchange_strong(&s->id, &id, BUSY))
		return false;
	out->begin = OWN(s->begin);
	/* The writer skips a range with this mark. */
	out->last_window = atomic_exchange(&s->last_window, UINT64_MAX);
	uint32_t size = OWN(s->size);
	if (d)
		load_draft(d, OWN(s->word), OWN(s->name), s->tail, places(size), size);
	PUT(s->id, 0);
	return true;
}

static bool read_started(struct started *s, uint64_t window, const struct tick_span *span,
			 struct ring_record *r, uint8_t *tail)
{
	uint64_t id = GET(s->id), last_window = GET(s->last_window);
	uint32_t size = GET(s->size);

	if (!id || id == BUSY || last_window >= window || size > NVTX_STARTED_BYTES)
		return false;
	if (!nvtx_open_record(r, span, GET(s->begin), GET(s->word), GET(s->name), places(size)))
		return false;
	get_words(tail, s->tail, places(size));
	if (GET(s->id) != id)
		return false;
	return atomic_compare_exchange_strong(&s->last_window, &last_window, window);
}

void nvtx_started_put_open(uint64_t window, const struct tick_span *span, thread_put_fn put,
			   void *arg)
{
	_Alignas(8) uint8_t tail[NVTX_STARTED_BYTES + PLACE];
	struct table *t = table_now();
	struct ring_record r;

	for (uint32_t i = 0; t && i < GET(t->high) && i < NVTX_STARTED; i++)
		if (read_started(&t->rows[i], window, span, &r, tail))
			put(NULL, &r, tail, arg);
}

void nvtx_started_clear(void)
{
	struct table *t = table_now(); /* NULL for the table of a parent, which is not changed */

	for (uint32_t i = 0; t && i < OWN(t->high); i++)
		PUT(t->rows[i].id, 0);
	if (t)
		PUT(t->high, 0);
	PUT(started, NULL);
}
