/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/runs.h"

#include "schemas/base/heap.h"

#include <stdlib.h>

enum { READ_LEAST = 4096, READ_MOST = 64 * 1024 }; /* bytes per read of a run */

struct run_reader {
	uint8_t *bytes;
	struct bytes in;           /* bytes not decoded yet, from the next event's row */
	uint64_t begin_ns, end_ns; /* times of the next event */
	uint64_t at, left;         /* range of the file */
	uint64_t short_bit;        /* RUN_SHORT if the run has such events, or 0 */
	uint32_t shared;           /* 1 + number of the next event, if it had RUN_SHORT */
};

struct runs {
	const struct scratch *scratch;
	struct run_reader *readers;
	size_t count, read_cap;
	uint32_t most_words;
	size_t row_most;
	struct heap heap; /* readers with an event */
};

size_t row_encode(const struct event *e, uint32_t words, uint8_t *out)
{
	uint8_t *p = out + ROW_HEAD;
	uint32_t has = 0;

	if (e->correlation) {
		put_u64(p, e->correlation);
		p += 8;
		has |= ROW_HAS_NUMBER;
	}
	if (e->bytes) {
		put_u64(p, e->bytes);
		p += 8;
		has |= ROW_HAS_BYTES;
	}
	if (e->step | e->path) {
		put_u32(p, e->step);
		put_u32(p + 4, e->path);
		p += 8;
		has |= ROW_HAS_PLACE;
	}
	for (uint32_t i = 0; i < words; i++)
		p += put_varint(p, e->args[i]);
	put_u32(out, (uint32_t)(p - out));
	out[4] = e->kind;
	out[5] = e->subkind;
	out[6] = e->phase;
	out[7] = e->flags;
	put_u32(out + 8, e->track);
	put_u32(out + 12, e->name);
	put_u32(out + 16, e->schema);
	put_u32(out + ROW_WORDS, words << ROW_HAS | has);
	return (size_t)(p - out);
}

/* Reads a row of a shared event.  Returns false if the row is not one. */
static inline bool take_shared(struct bytes *in, const struct row_shared *shared, struct event *e)
{
	uint32_t place = bytes_left(in) < ROW_SHARED_BYTES ? 0 : get_u32(in->at);

	if (!(place & ROW_SHARED))
		return false;
	place &= ~ROW_SHARED;
	in->at += ROW_SHARED_BYTES;
	if (place < shared->count)
		*e = shared->events[place];
	else
		in->is_truncated = true;
	return true;
}

void row_decode(struct bytes *in, const struct row_shared *shared, struct event *e, uint64_t *words)
{
	const uint8_t *head;
	uint32_t has, count;

	if (take_shared(in, shared, e))
		return;
	head = take_bytes(in, ROW_HEAD);
	has = head ? get_u32(head + ROW_WORDS) : 0;
	count = has >> ROW_HAS;
	*e = (struct event){ .args = count ? words : NULL };
	if (!head)
		return;
	e->kind = head[4];
	e->subkind = head[5];
	e->phase = head[6];
	e->flags = head[7];
	e->track = get_u32(head + 8);
	e->name = get_u32(head + 12);
	e->schema = get_u32(head + 16);
	e->correlation = has & ROW_HAS_NUMBER ? take_u64(in) : 0;
	e->bytes = has & ROW_HAS_BYTES ? take_u64(in) : 0;
	if (has & ROW_HAS_PLACE) {
		e->step = take_u32(in);
		e->path = take_u32(in);
	}
	for (uint32_t i = 0; i < count; i++)
		words[i] = take_varint(in);
}

static __attribute__((noinline)) bool add_whole(struct run_batch *b, uint64_t begin_ns,
						uint64_t end_ns, struct bytes *in)
{
	struct event *e = &b->events[b->count];
	uint32_t words = row_words(in->at);

	if (b->count == b->cap || words > b->word_cap - b->word_count)
		return false;
	row_decode(in, &b->shared, e, b->words + b->word_count);
	e->begin_ns = begin_ns;
	e->end_ns = end_ns;
	b->word_count += words;
	b->count++;
	return true;
}

bool run_batch_add(struct run_batch *b, uint64_t begin_ns, uint64_t end_ns, struct bytes *in)
{
	struct event *e = &b->events[b->count];

	if (b->count == b->cap || !take_shared(in, &b->shared, e))
		return add_whole(b, begin_ns, end_ns, in);
	e->begin_ns = begin_ns;
	e->end_ns = end_ns;
	b->count++;
	return true;
}

static size_t read_least(uint32_t most_words)
{
	size_t rows = 2 * row_most(most_words);

	return rows > READ_LEAST ? rows : READ_LEAST;
}

size_t runs_fan_in(size_t bytes, uint32_t most_words)
{
	size_t fan_in = bytes / (sizeof(struct run_reader) + read_least(most_words));

	return fan_in < 2 ? 2 : fan_in;
}

static bool reader_before(const void *self, uint32_t a, uint32_t b)
{
	const struct run_reader *readers = self;
	const struct run_reader *x = &readers[a], *y = &readers[b];

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns;
	return x->end_ns != y->end_ns ? x->end_ns > y->end_ns : a < b;
}

static enum status damaged(struct error *err)
{
	return fail(err, ST_IO, NOWHERE, "the temporary file was damaged");
}

static enum status reader_fill(const struct runs *r, struct run_reader *reader, struct error *err)
{
	size_t held = bytes_left(&reader->in), len = r->read_cap - held;

	memmove(reader->bytes, reader->in.at, held);
	if (len > reader->left)
		len = (size_t)reader->left;
	TRY(scratch_read(r->scratch, reader->at, reader->bytes + held, len, err));
	reader->at += len;
	reader->left -= len;
	reader->in = bytes_init(reader->bytes, held + len);
	return ST_OK;
}

static inline void take_short(struct run_reader *reader, uint64_t bits)
{
	reader->shared = 1 + (uint32_t)(bits & ((1u << RUN_SHARED_BITS) - 1));
	bits = (bits & ~RUN_SHORT) >> RUN_SHARED_BITS;
	reader->begin_ns += bits >> RUN_DURATION_BITS;
	reader->end_ns = reader->begin_ns + (bits & ((1u << RUN_DURATION_BITS) - 1));
	reader->in.at += sizeof(bits);
}

static __attribute__((noinline)) enum status
advance_slowly(const struct runs *r, struct run_reader *reader, bool *has_more, struct error *err)
{
	uint64_t bits;

	if (bytes_left(&reader->in) < r->row_most && reader->left)
		TRY(reader_fill(r, reader, err));
	*has_more = bytes_left(&reader->in) != 0;
	if (!*has_more)
		return ST_OK;
	if (bytes_left(&reader->in) < sizeof(bits))
		return damaged(err);
	bits = get_u64(reader->in.at);
	if (bits & reader->short_bit) {
		take_short(reader, bits);
		return ST_OK;
	}
	if (bytes_left(&reader->in) < ROW_TIMES + ROW_SHARED_BYTES ||
	    row_words(reader->in.at + ROW_TIMES) > r->most_words)
		return damaged(err);
	reader->shared = 0;
	reader->begin_ns = bits;
	reader->end_ns = get_u64(reader->in.at + sizeof(bits));
	reader->in.at += ROW_TIMES;
	return ST_OK;
}

/* Reads the times of the next event; *has_more is false at the end of the run. */
static inline enum status reader_advance(const struct runs *r, struct run_reader *reader,
					 bool *has_more, struct error *err)
{
	uint64_t bits = 0;

	if (bytes_left(&reader->in) >= r->row_most)
		bits = get_u64(reader->in.at);
	if (!(bits & reader->short_bit))
		return advance_slowly(r, reader, has_more, err);
	take_short(reader, bits);
	*has_more = true;
	return ST_OK;
}

static enum status readers_begin(struct runs *r, const struct run *list, struct error *err)
{
	for (size_t i = 0; i < r->count; i++) {
		struct run_reader *reader = &r->readers[i];
		bool has_more;

		*reader = (struct run_reader){
			.bytes = malloc(r->read_cap),
			.in = bytes_init(NULL, 0),
			.at = list[i].at,
			.left = list[i].size,
			.short_bit = list[i].has_short ? RUN_SHORT : 0,
		};
		if (!reader->bytes)
			return fail_memory(err);
		TRY(reader_advance(r, reader, &has_more, err));
		if (has_more)
			TRY(heap_push(&r->heap, (uint32_t)i, reader_before, err));
	}
	return ST_OK;
}

enum status runs_open(struct runs **out, const struct scratch *scratch, const struct run *list,
		      size_t count, size_t bytes, uint32_t most_words, struct error *err)
{
	struct runs *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (!r)
		return fail_memory(err);
	r->scratch = scratch;
	r->count = count;
	r->most_words = most_words;
	r->row_most = row_most(most_words);
	r->read_cap = bytes / count > READ_MOST ? READ_MOST : bytes / count;
	r->read_cap -= r->read_cap > READ_LEAST ? sizeof(struct run_reader) : 0;
	if (r->read_cap < read_least(most_words))
		r->read_cap = read_least(most_words);
	r->readers = calloc(count, sizeof(*r->readers));
	r->heap.self = r->readers;
	enum status status = r->readers ? readers_begin(r, list, err) : fail_memory(err);
	if (status == ST_OK)
		*out = r;
	else
		runs_close(r);
	return status;
}

void runs_close(struct runs *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->readers && i < r->count; i++)
		free(r->readers[i].bytes);
	free(r->readers);
	free(r->heap.items);
	free(r);
}

size_t runs_bytes(const struct runs *r)
{
	return r ? sizeof(*r) + r->count * (sizeof(*r->readers) + r->read_cap) : 0;
}

/* Adds the next event to the batch.  Returns false if the batch is full. */
static inline bool reader_put(struct run_reader *reader, struct run_batch *out)
{
	struct event *e = &out->events[out->count];

	if (!reader->shared)
		return run_batch_add(out, reader->begin_ns, reader->end_ns, &reader->in);
	if (out->count == out->cap)
		return false;
	if (reader->shared > out->shared.count) {
		reader->in.is_truncated = true;
		return true;
	}
	*e = out->shared.events[reader->shared - 1];
	e->begin_ns = reader->begin_ns;
	e->end_ns = reader->end_ns;
	out->count++;
	return true;
}

enum status runs_next(struct runs *r, struct run_batch *out, struct error *err)
{
	out->count = out->word_count = 0;
	while (r->heap.count) {
		const uint32_t *top = r->heap.items;
		struct run_reader *reader = &r->readers[*top];
		size_t second =
			r->heap.count > 2 && reader_before(r->readers, top[2], top[1]) ? 2 : 1;
		bool has_more;

		do {
			if (!reader_put(reader, out))
				return ST_OK;
			if (reader->in.is_truncated)
				return damaged(err);
			TRY(reader_advance(r, reader, &has_more, err));
		} while (has_more &&
			 (r->heap.count < 2 || reader_before(r->readers, *top, top[second])));
		if (has_more)
			heap_sink(&r->heap, 0, reader_before);
		else
			heap_pop(&r->heap, reader_before);
	}
	return out->count ? ST_OK : ST_END;
}
