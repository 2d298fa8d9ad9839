/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool.h"

#include "convert/spool/runs.h"
#include "convert/spool/sort.h"

#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_FIRST = 256 * 1024,   /* grows to the budget */
	KEY_BYTES = 2 * sizeof(struct key), /* of an event: with what sorting needs */
	WRITE_BYTES = 32 * 1024,    /* of rows written at once, at least */
	OUT_EVENTS = 256,           /* of a batch that comes from memory */
	OUT_WORDS = 4 * OUT_EVENTS,
	SLACK_BYTES = 64 * 1024,    /* of the budget: rows to write, or a batch that comes out */
};

#define ROWS_MOST ((size_t)UINT32_MAX) /* bytes that keys can point into */

struct spool {
	const struct trace *trace;
	size_t budget_bytes;
	const char *folder;

	/*
	 * Events in memory: one block, rows from its beginning on, keys from its end on downwards.
	 * Between them there is always room for as many keys again, to sort.
	 */
	uint8_t *block;
	size_t block_bytes, rows_bytes, count;
	uint32_t most_words;
	uint64_t last_begin_ns, last_end_ns; /* of the last one put */
	uint32_t last_group;
	bool in_order; /* so far; most inputs are not */
	struct key *keys; /* in order, once sorted; in the block */

	/* Runs in the scratch file. */
	struct scratch *scratch;
	struct segment *segments;
	size_t segment_count, segment_cap;
	uint8_t *write;
	size_t write_cap, write_len;

	/* The way out. */
	bool is_ending;
	struct event *out;
	uint64_t *out_words;
	size_t at, out_words_cap; /* at: key or segment */
	struct spool_runs *runs;

	size_t held_bytes; /* of memory now */
	struct spool_totals totals;
};

static void spool_hold(struct spool *s, size_t bytes)
{
	s->held_bytes += bytes;
	if (s->held_bytes > s->totals.peak_bytes)
		s->totals.peak_bytes = s->held_bytes;
}

static enum status spool_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory to sort events");
}

enum status spool_open(struct spool **out, const struct trace *trace, const struct budget *budget,
		       struct error *err)
{
	struct spool *s = calloc(1, sizeof(*s));

	*out = s;
	if (!s)
		return spool_memory(err);
	s->trace = trace;
	s->folder = budget->scratch;
	s->budget_bytes = budget->opening / 2 < SPOOL_LEAST ? SPOOL_LEAST : budget->opening / 2;
	s->in_order = true;
	return ST_OK;
}

static void block_free(struct spool *s)
{
	s->held_bytes -= s->block_bytes;
	free(s->block);
	s->block = NULL;
	s->keys = NULL;
	s->block_bytes = s->rows_bytes = s->count = 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	block_free(s);
	runs_close(s->runs);
	scratch_close(s->scratch);
	free(s->segments);
	free(s->write);
	free(s->out);
	free(s->out_words);
	free(s);
}

struct spool_totals spool_totals(const struct spool *s)
{
	struct spool_totals totals = s->totals;

	totals.scratch_bytes = scratch_size(s->scratch);
	return totals;
}

/* Sorting what is in memory */

/* The key of event `i`. */
static struct key *key_at(const struct spool *s, size_t i)
{
	return (struct key *)(void *)(s->block + s->block_bytes) - 1 - i;
}

/* From s->keys on they stand in order. */
static void keys_order(struct spool *s)
{
	struct key *first, swap;
	size_t i;

	if (!s->count)
		return;
	s->keys = first = key_at(s, s->count - 1);
	for (i = 0; i < s->count / 2; i++) { /* as they came */
		swap = first[i];
		first[i] = first[s->count - 1 - i];
		first[s->count - 1 - i] = swap;
	}
	if (!s->in_order)
		keys_sort(first, first - s->count, s->count, s->block);
}

/* Writing a run */

static enum status write_flush(struct spool *s, struct error *err)
{
	size_t len = s->write_len;

	s->write_len = 0;
	return scratch_write(s->scratch, s->write, len, err);
}

static enum status write_room(struct spool *s, size_t need, struct error *err)
{
	size_t cap = need < WRITE_BYTES ? WRITE_BYTES : need;
	uint8_t *bigger;

	if (s->write_cap - s->write_len >= need)
		return ST_OK;
	TRY(write_flush(s, err));
	if (s->write_cap >= need)
		return ST_OK;
	bigger = realloc(s->write, cap);
	if (!bigger)
		return spool_memory(err);
	spool_hold(s, cap - s->write_cap);
	s->write = bigger;
	s->write_cap = cap;
	return ST_OK;
}

static uint32_t event_words(const struct spool *s, const struct event *e)
{
	return e->vary ? trace_get_shape(s->trace, e->shape)->vary_count : 0;
}

/* The row of a key, `since_ns` after the one before it. */
static inline enum status row_write(struct spool *s, const uint8_t *row, uint64_t since_ns,
				    struct error *err)
{
	TRY(write_room(s, row_room(row), err));
	s->write_len += row_move(row, since_ns, s->write + s->write_len);
	return ST_OK;
}

static struct segment segment_begin(const struct spool *s, uint32_t group, uint64_t first_ns)
{
	return (struct segment){
		.at = scratch_size(s->scratch),
		.group = group,
		.first_ns = first_ns,
	};
}

static enum status segment_end(struct spool *s, struct segment *segment, struct error *err)
{
	TRY(write_flush(s, err));
	segment->size = scratch_size(s->scratch) - segment->at;
	s->totals.runs++;
	return ST_OK;
}

static enum status segment_add(struct spool *s, const struct segment *segment, struct error *err)
{
	size_t cap = s->segment_cap ? s->segment_cap * 2 : 32;
	struct segment *bigger;

	if (s->segment_count == s->segment_cap) {
		bigger = realloc(s->segments, cap * sizeof(*bigger));
		if (!bigger)
			return spool_memory(err);
		spool_hold(s, (cap - s->segment_cap) * sizeof(*bigger));
		s->segments = bigger;
		s->segment_cap = cap;
	}
	s->segments[s->segment_count++] = *segment;
	return ST_OK;
}

/* A segment for each group that is in memory; then memory is empty. */
static enum status spool_flush(struct spool *s, struct error *err)
{
	enum { KEYS_AHEAD = 12 }; /* rows lie in the order in which they came */
	struct segment segment;
	size_t i = 0;

	if (!s->scratch)
		TRY(scratch_open(&s->scratch, s->folder, err));
	keys_order(s);
	while (i < s->count) {
		const struct key *key = &s->keys[i];
		uint64_t last_ns = 0;

		segment = segment_begin(s, key->group, key->begin_ns);
		for (; i < s->count && key->group == segment.group; i++, key++) {
			if (i + KEYS_AHEAD < s->count)
				__builtin_prefetch(s->block + key[KEYS_AHEAD].row);
			TRY(row_write(s, s->block + key->row, key->begin_ns - last_ns, err));
			last_ns = key->begin_ns;
		}
		segment.most_words = s->most_words;
		TRY(segment_end(s, &segment, err));
		TRY(segment_add(s, &segment, err));
	}
	s->count = s->rows_bytes = 0;
	s->most_words = 0;
	s->in_order = true;
	return ST_OK;
}

/* The way in */

/* Bytes of the block with one event more, whose row takes up to `row`. */
static size_t bytes_with(const struct spool *s, size_t row)
{
	return s->rows_bytes + row + (s->count + 1) * KEY_BYTES;
}

static enum status block_grow(struct spool *s, size_t need, struct error *err)
{
	size_t most = s->budget_bytes - SLACK_BYTES, old = s->block_bytes;
	size_t bytes = old ? old * 2 : BLOCK_FIRST, keys = s->count * sizeof(struct key);
	uint8_t *bigger;

	bytes = bytes > most ? most : bytes;
	bytes = (bytes < need ? need : bytes) + sizeof(struct key) - 1;
	bytes -= bytes % sizeof(struct key);
	bigger = realloc(s->block, bytes);
	if (!bigger)
		return spool_memory(err);
	memmove(bigger + bytes - keys, bigger + old - keys, keys);
	s->block = bigger;
	s->block_bytes = bytes;
	spool_hold(s, bytes - old);
	return ST_OK;
}

/* Room for one event more, after a flush if need be. */
static enum status block_room(struct spool *s, size_t row, struct error *err)
{
	size_t most = s->budget_bytes - SLACK_BYTES;

	if (s->count && (bytes_with(s, row) > most || s->rows_bytes + row > ROWS_MOST))
		TRY(spool_flush(s, err));
	return bytes_with(s, row) > s->block_bytes ? block_grow(s, bytes_with(s, row), err) : ST_OK;
}

/* Before the one that was put last. */
static bool is_early(const struct spool *s, uint32_t group, const struct event *e)
{
	if (group != s->last_group)
		return group < s->last_group;
	return e->begin_ns != s->last_begin_ns ? e->begin_ns < s->last_begin_ns
					       : e->end_ns > s->last_end_ns;
}

static enum status event_put(struct spool *s, uint32_t group, const struct event *e,
			     struct error *err)
{
	uint32_t words = event_words(s, e);
	size_t row = ROW_MOST + (size_t)words * ROW_WORD_MOST;

	if (bytes_with(s, row) > s->block_bytes)
		TRY(block_room(s, row, err));
	*key_at(s, s->count) = (struct key){ e->begin_ns, (uint32_t)s->rows_bytes, group };
	s->rows_bytes += row_encode(e, words, s->block + s->rows_bytes);
	if (words > s->most_words)
		s->most_words = words;
	if (s->count && is_early(s, group, e))
		s->in_order = false;
	s->last_begin_ns = e->begin_ns;
	s->last_end_ns = e->end_ns;
	s->last_group = group;
	s->count++;
	return ST_OK;
}

enum status spool_put(struct spool *s, uint32_t group, const struct event *events, size_t count,
		      struct error *err)
{
	size_t i;

	for (i = 0; i < count; i++)
		TRY(event_put(s, group, &events[i], err));
	s->totals.events += count;
	return ST_OK;
}

/* The way out */

/* An event that stands in no row, `since_ns` after the one before it. */
static enum status event_write(struct spool *s, const struct event *e, uint64_t since_ns,
			       struct error *err)
{
	uint32_t words = event_words(s, e);
	size_t most = ROW_MOST + (size_t)words * ROW_WORD_MOST;
	uint8_t *row;

	TRY(write_room(s, 3 * most, err)); /* as in memory it stands behind where it goes to */
	row = s->write + s->write_len + 2 * most;
	row_encode(e, words, row);
	s->write_len += row_move(row, since_ns, s->write + s->write_len);
	return ST_OK;
}

static enum status runs_write(struct spool *s, struct error *err)
{
	uint64_t last_ns = 0;
	struct batch batch;
	enum status status;

	while ((status = runs_next(s->runs, &batch, err)) == ST_OK) {
		for (size_t i = 0; i < batch.count; i++) {
			const struct event *e = &batch.events[i];

			TRY(event_write(s, e, e->begin_ns - last_ns, err));
			last_ns = e->begin_ns;
		}
	}
	return status == ST_END ? ST_OK : status;
}

/* Runs [first, first + count) become one, in their place. */
static enum status segments_merge(struct spool *s, size_t first, size_t count, struct error *err)
{
	struct segment *at = &s->segments[first];
	struct segment merged = segment_begin(s, at->group, at->first_ns);
	size_t i;

	for (i = 0; i < count; i++) {
		if (at[i].first_ns < merged.first_ns)
			merged.first_ns = at[i].first_ns;
		if (at[i].most_words > merged.most_words)
			merged.most_words = at[i].most_words;
	}
	TRY(runs_open(&s->runs, s->scratch, at, count, s->budget_bytes / 2, err));
	spool_hold(s, runs_bytes(s->runs));
	TRY(runs_write(s, err));
	s->held_bytes -= runs_bytes(s->runs);
	runs_close(s->runs);
	s->runs = NULL;
	TRY(segment_end(s, &merged, err));
	*at = merged;
	memmove(at + 1, at + count, (s->segment_count - first - count) * sizeof(*at));
	s->segment_count -= count - 1;
	return ST_OK;
}

/* The end of the group that begins at segment `first`. */
static size_t group_end(const struct spool *s, size_t first)
{
	size_t end = first;

	while (end < s->segment_count && s->segments[end].group == s->segments[first].group)
		end++;
	return end;
}

/* Neighbours are merged until what is left can be in hand at once. */
static enum status group_open(struct spool *s, struct error *err)
{
	size_t first = s->at, end, i, fan, n;
	uint32_t most_words = 0;

	end = group_end(s, first);
	for (i = first; i < end; i++)
		if (s->segments[i].most_words > most_words)
			most_words = s->segments[i].most_words;
	fan = runs_fan(s->budget_bytes / 2, most_words);
	while ((end = group_end(s, first)) - first > fan) {
		for (i = first; i + 1 < end; i++) {
			n = end - i < fan ? end - i : fan;
			TRY(segments_merge(s, i, n, err));
			end -= n - 1;
		}
	}
	s->at = end;
	TRY(runs_open(&s->runs, s->scratch, s->segments + first, end - first,
		      s->budget_bytes / 2, err));
	spool_hold(s, runs_bytes(s->runs));
	return ST_OK;
}

static int segment_compare(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static enum status memory_open(struct spool *s, struct error *err)
{
	keys_order(s);
	s->out_words_cap = s->most_words > OUT_WORDS ? s->most_words : OUT_WORDS;
	s->out = malloc(OUT_EVENTS * sizeof(*s->out));
	s->out_words = malloc(s->out_words_cap * sizeof(*s->out_words));
	spool_hold(s, OUT_EVENTS * sizeof(*s->out) + s->out_words_cap * sizeof(*s->out_words));
	return s->out && s->out_words ? ST_OK : spool_memory(err);
}

static enum status spool_end(struct spool *s, struct error *err)
{
	s->is_ending = true;
	if (!s->segment_count)
		return memory_open(s, err);
	if (s->count)
		TRY(spool_flush(s, err));
	block_free(s);
	qsort(s->segments, s->segment_count, sizeof(*s->segments), segment_compare);
	return ST_OK;
}

/* The event of a key with its words from `words` on; false: they would be too many. */
static bool memory_take(struct spool *s, const struct key *key, struct event *e, size_t *words)
{
	struct bytes in = bytes_init(s->block, s->block_bytes);
	uint32_t count;

	in.at = row_open(s->block + key->row, key->begin_ns, e, &count);
	if (!count)
		return true;
	if (count > s->out_words_cap - *words)
		return false;
	e->vary = s->out_words + *words;
	row_words(&in, s->out_words + *words, count);
	*words += count;
	return true;
}

static enum status memory_next(struct spool *s, uint32_t *group, struct batch *out)
{
	size_t n, words = 0;

	if (s->at == s->count)
		return ST_END;
	*group = s->keys[s->at].group;
	for (n = 0; n < OUT_EVENTS && s->at < s->count; n++, s->at++) {
		const struct key *key = &s->keys[s->at];

		if (key->group != *group || !memory_take(s, key, &s->out[n], &words))
			break;
	}
	*out = (struct batch){ s->out, n };
	return ST_OK;
}

enum status spool_next(struct spool *s, uint32_t *group, struct batch *out, struct error *err)
{
	enum status status;

	*out = (struct batch){ .count = 0 };
	if (!s->is_ending)
		TRY(spool_end(s, err));
	if (!s->segment_count)
		return memory_next(s, group, out);
	for (;;) {
		if (!s->runs && s->at == s->segment_count)
			return ST_END;
		if (!s->runs)
			TRY(group_open(s, err));
		*group = s->segments[s->at - 1].group;
		status = runs_next(s->runs, out, err);
		if (status != ST_END)
			return status;
		s->held_bytes -= runs_bytes(s->runs);
		runs_close(s->runs);
		s->runs = NULL;
	}
}
