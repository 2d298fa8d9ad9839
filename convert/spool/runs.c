/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/runs.h"

#include <stdlib.h>
#include <string.h>

/* What a run in hand has at least and at most. */
enum {
	READ_LEAST = 4096, READ_MOST = 64 * 1024, /* bytes of the file */
	EVENTS_LEAST = 32, EVENTS_MOST = 1024,
	WORDS_MOST = 8 * EVENTS_MOST,
};

struct reader {
	uint8_t *bytes;
	struct bytes in;       /* what of `bytes` is not decoded */
	uint64_t at, left;     /* of the file */
	uint64_t begin_ns;     /* of the row before */
	struct event *events;
	uint64_t *words;
	uint32_t most_words;
};

struct spool_runs {
	const struct scratch *scratch;
	struct reader *readers;
	struct run *runs;
	struct event *out;
	size_t count, refill; /* refill: the run to fill first, count: none */
	size_t read_cap, events_cap, words_cap, held_bytes;
};

static size_t row_most(uint32_t most_words)
{
	return ROW_MOST + (size_t)most_words * ROW_WORD_MOST;
}

/* Memory of one run with so many bytes to read and events, out slice included. */
static size_t reader_bytes(size_t read_cap, size_t events_cap, size_t words_cap)
{
	return sizeof(struct reader) + sizeof(struct run) + read_cap +
	       2 * events_cap * sizeof(struct event) + words_cap * sizeof(uint64_t);
}

static size_t words_least(uint32_t most_words)
{
	return most_words > EVENTS_LEAST * 4 ? most_words : EVENTS_LEAST * 4;
}

static size_t read_least(uint32_t most_words)
{
	size_t row = row_most(most_words);

	return row > READ_LEAST / 2 ? row * 2 : READ_LEAST;
}

size_t runs_fan(size_t bytes, uint32_t most_words)
{
	size_t fan = bytes / reader_bytes(read_least(most_words), EVENTS_LEAST,
					  words_least(most_words));

	return fan < 2 ? 2 : fan;
}

/* `least` wins. */
static size_t between(size_t v, size_t least, size_t most)
{
	v = v > most ? most : v;
	return v < least ? least : v;
}

/* Half of a run's share is bytes to read, a quarter events twice, a quarter words. */
static void runs_share(struct spool_runs *r, size_t bytes, uint32_t most_words)
{
	size_t share = bytes / r->count;

	r->read_cap = between(share / 2, read_least(most_words), READ_MOST);
	r->events_cap = between(share / 8 / sizeof(struct event), EVENTS_LEAST, EVENTS_MOST);
	r->words_cap = between(share / 4 / sizeof(uint64_t), words_least(most_words), WORDS_MOST);
	r->held_bytes = sizeof(*r) +
			r->count * reader_bytes(r->read_cap, r->events_cap, r->words_cap);
}

static enum status reader_open(struct spool_runs *r, size_t index, const struct segment *segment)
{
	struct reader *reader = &r->readers[index];

	reader->bytes = malloc(r->read_cap);
	reader->events = malloc(r->events_cap * sizeof(*reader->events));
	reader->words = malloc(r->words_cap * sizeof(*reader->words));
	reader->at = segment->at;
	reader->left = segment->size;
	reader->most_words = segment->most_words;
	reader->in = bytes_init(reader->bytes, 0);
	r->runs[index].promise_ns = segment->first_ns;
	return reader->bytes && reader->events && reader->words ? ST_OK : ST_MEMORY;
}

enum status runs_open(struct spool_runs **out, const struct scratch *scratch,
		      const struct segment *segments, size_t count, size_t bytes,
		      struct error *err)
{
	struct spool_runs *r = calloc(1, sizeof(*r));
	enum status status = ST_OK;
	uint32_t most_words = 0;
	size_t i;

	*out = r;
	if (!r)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to merge %zu runs", count);
	r->scratch = scratch;
	r->count = count;
	r->refill = count;
	for (i = 0; i < count; i++)
		if (segments[i].most_words > most_words)
			most_words = segments[i].most_words;
	runs_share(r, bytes, most_words);
	r->readers = calloc(count, sizeof(*r->readers));
	r->runs = calloc(count, sizeof(*r->runs));
	r->out = malloc(count * r->events_cap * sizeof(*r->out));
	if (!r->readers || !r->runs || !r->out)
		status = ST_MEMORY;
	for (i = 0; i < count && status == ST_OK; i++)
		status = reader_open(r, i, &segments[i]);
	if (status == ST_OK)
		return ST_OK;
	runs_close(r);
	*out = NULL;
	return fail(err, status, NOWHERE, "no memory to merge %zu runs", count);
}

void runs_close(struct spool_runs *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->count && r->readers; i++) {
		free(r->readers[i].bytes);
		free(r->readers[i].events);
		free(r->readers[i].words);
	}
	free(r->readers);
	free(r->runs);
	free(r->out);
	free(r);
}

size_t runs_bytes(const struct spool_runs *r)
{
	return r->held_bytes;
}

/* What is not decoded moves to the front, the file fills the rest. */
static enum status reader_read(struct spool_runs *r, struct reader *reader, struct error *err)
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

static enum status reader_fill(struct spool_runs *r, size_t index, struct error *err)
{
	struct reader *reader = &r->readers[index];
	struct run *run = &r->runs[index];
	size_t row_bytes = row_most(reader->most_words), words = 0;

	*run = (struct run){ .events = reader->events, .promise_ns = UINT64_MAX };
	while (run->count < r->events_cap) {
		struct event *e = &reader->events[run->count];
		uint64_t before_ns = reader->begin_ns;
		const uint8_t *at;
		uint32_t count;

		if (bytes_left(&reader->in) < row_bytes && reader->left)
			TRY(reader_read(r, reader, err));
		if (!bytes_left(&reader->in))
			break;
		at = reader->in.at;
		row_decode(&reader->begin_ns, &reader->in, e, &count);
		if (count > r->words_cap - words && run->count) { /* next time */
			reader->begin_ns = before_ns;
			reader->in.at = at;
			break;
		}
		if (count > reader->most_words || reader->in.cut)
			return fail(err, ST_IO, NOWHERE, "the scratch file was damaged");
		run->count++;
		if (!count)
			continue;
		e->vary = reader->words + words;
		row_words(&reader->in, reader->words + words, count);
		words += count;
	}
	if (reader->in.cut)
		return fail(err, ST_IO, NOWHERE, "the scratch file was damaged");
	return ST_OK;
}

enum status runs_next(struct spool_runs *r, struct batch *out, struct error *err)
{
	size_t total = 0, lowest = r->refill;

	*out = (struct batch){ r->out, 0 };
	while (!total) {
		if (lowest < r->count)
			TRY(reader_fill(r, lowest, err));
		total = merge_slice(r->runs, r->count, r->out, r->count * r->events_cap, &lowest);
		if (lowest == r->count)
			break;
	}
	r->refill = lowest;
	out->count = total;
	return total ? ST_OK : ST_END;
}
