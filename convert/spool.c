/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool.h"

#include "convert/spool/runs.h"
#include "convert/spool/sort.h"

#include <stdlib.h>
#include <string.h>

enum {
	WORDS_CHUNK = 2048,         /* vary words allocated at once */
	WRITE_BYTES = 16 * 1024,    /* of rows written at once, at least */
	OUT_EVENTS = 512,           /* of a batch that comes from memory */
	SLACK_BYTES = 64 * 1024,    /* of the budget: chunks that are begun, rows to write */
	/* in memory, with what sorting needs */
	EVENT_BYTES = sizeof(struct chunk) / SPOOL_CHUNK + 2 * sizeof(struct key),
};

struct words_chunk {
	struct words_chunk *older;
	size_t used, size;
	uint64_t words[];
};

struct spool {
	const struct trace *trace;
	size_t budget_bytes;
	const char *folder;

	/* Events in memory. */
	struct chunk **chunks;
	size_t chunk_count, chunk_cap, count;
	struct words_chunk *words;
	size_t words_bytes;
	struct event last; /* times of the last one put */
	uint32_t last_group;
	bool in_order; /* so far; most inputs are not */
	struct key *keys; /* in order, once sorted */

	/* Runs in the scratch file. */
	struct scratch *scratch;
	struct segment *segments;
	size_t segment_count, segment_cap;
	uint8_t *write;
	size_t write_cap, write_len;

	/* The way out. */
	bool is_ending;
	struct event *out;
	size_t at; /* key or segment */
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

static void words_free(struct spool *s)
{
	struct words_chunk *chunk;

	while ((chunk = s->words)) {
		s->words = chunk->older;
		s->held_bytes -= sizeof(*chunk) + chunk->size * sizeof(chunk->words[0]);
		free(chunk);
	}
	s->words_bytes = 0;
}

/* Memory for events; what a run has written stays for the next one. */
static void events_free(struct spool *s)
{
	size_t i;

	for (i = 0; i < s->chunk_count; i++)
		free(s->chunks[i]);
	s->held_bytes -= s->chunk_count * sizeof(struct chunk) + s->chunk_cap * sizeof(*s->chunks);
	free(s->chunks);
	s->chunks = NULL;
	s->chunk_count = s->chunk_cap = s->count = 0;
	words_free(s);
}

static void keys_free(struct spool *s)
{
	if (s->keys)
		s->held_bytes -= s->count * sizeof(*s->keys);
	free(s->keys);
	s->keys = NULL;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	keys_free(s);
	events_free(s);
	runs_close(s->runs);
	scratch_close(s->scratch);
	free(s->segments);
	free(s->write);
	free(s->out);
	free(s);
}

struct spool_totals spool_totals(const struct spool *s)
{
	struct spool_totals totals = s->totals;

	totals.scratch_bytes = scratch_size(s->scratch);
	return totals;
}

/* Sorting what is in memory */

static enum status keys_make(struct spool *s, struct error *err)
{
	size_t bytes = s->count * sizeof(*s->keys), i;
	struct key *spare = NULL;

	s->keys = malloc(bytes + 1);
	if (!s->in_order)
		spare = malloc(bytes + 1);
	if (!s->keys || (!s->in_order && !spare)) {
		free(s->keys);
		free(spare);
		s->keys = NULL;
		return spool_memory(err);
	}
	spool_hold(s, bytes * (spare ? 2 : 1));
	for (i = 0; i < s->count; i++) {
		s->keys[i].begin_ns = chunk_event(s->chunks, i)->begin_ns;
		s->keys[i].index = (uint32_t)i;
		s->keys[i].group = *chunk_group(s->chunks, i);
	}
	if (spare) {
		keys_sort(s->keys, spare, s->count, s->chunks);
		s->held_bytes -= bytes;
		free(spare);
	}
	return ST_OK;
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

static enum status row_write(struct spool *s, struct segment *segment, struct row_state *state,
			     const struct event *e, struct error *err)
{
	uint32_t words = event_words(s, e);

	TRY(write_room(s, ROW_MOST + (size_t)words * ROW_WORD_MOST, err));
	s->write_len += row_encode(state, e, words, s->write + s->write_len);
	if (words > segment->most_words)
		segment->most_words = words;
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

/* Events lie in the order in which they came: ask for them before their turn. */
static void event_expect(const struct spool *s, size_t at)
{
	enum { EVENT_AHEAD = 16, WORDS_AHEAD = 8 };

	if (at + EVENT_AHEAD >= s->count)
		return;
	__builtin_prefetch(chunk_event(s->chunks, s->keys[at + EVENT_AHEAD].index));
	__builtin_prefetch(chunk_event(s->chunks, s->keys[at + WORDS_AHEAD].index)->vary);
}

/* A segment for each group that is in memory; then memory is empty. */
static enum status spool_flush(struct spool *s, struct error *err)
{
	struct row_state state;
	struct segment segment;
	size_t i = 0;

	if (!s->scratch)
		TRY(scratch_open(&s->scratch, s->folder, err));
	TRY(keys_make(s, err));
	while (i < s->count) {
		state = (struct row_state){ 0 };
		segment = segment_begin(s, s->keys[i].group, s->keys[i].begin_ns);
		for (; i < s->count && s->keys[i].group == segment.group; i++) {
			event_expect(s, i);
			TRY(row_write(s, &segment, &state,
				      chunk_event(s->chunks, s->keys[i].index), err));
		}
		TRY(segment_end(s, &segment, err));
		TRY(segment_add(s, &segment, err));
	}
	keys_free(s);
	words_free(s);
	s->count = 0;
	s->in_order = true;
	return ST_OK;
}

/* The way in */

static enum status chunk_add(struct spool *s, struct error *err)
{
	size_t cap = s->chunk_cap ? s->chunk_cap * 2 : 16;
	struct chunk **bigger;

	if (s->chunk_count == s->chunk_cap) {
		bigger = realloc(s->chunks, cap * sizeof(*bigger));
		if (!bigger)
			return spool_memory(err);
		spool_hold(s, (cap - s->chunk_cap) * sizeof(*bigger));
		s->chunks = bigger;
		s->chunk_cap = cap;
	}
	s->chunks[s->chunk_count] = malloc(sizeof(struct chunk));
	if (!s->chunks[s->chunk_count])
		return spool_memory(err);
	s->chunk_count++;
	spool_hold(s, sizeof(struct chunk));
	return ST_OK;
}

/* Room for `count` words that stays where it is; NULL without memory. */
static uint64_t *words_take(struct spool *s, size_t count)
{
	struct words_chunk *chunk = s->words;
	size_t size = count > WORDS_CHUNK ? count : WORDS_CHUNK;

	if (!chunk || chunk->size - chunk->used < count) {
		chunk = malloc(sizeof(*chunk) + size * sizeof(chunk->words[0]));
		if (!chunk)
			return NULL;
		*chunk = (struct words_chunk){ .older = s->words, .size = size };
		s->words = chunk;
		s->words_bytes += sizeof(*chunk) + size * sizeof(chunk->words[0]);
		spool_hold(s, sizeof(*chunk) + size * sizeof(chunk->words[0]));
	}
	chunk->used += count;
	return chunk->words + chunk->used - count;
}

static bool is_over(const struct spool *s)
{
	return (s->count + 1) * EVENT_BYTES + s->words_bytes > s->budget_bytes - SLACK_BYTES;
}

/* Before the one that was put last. */
static bool is_early(const struct spool *s, uint32_t group, const struct event *e)
{
	return group != s->last_group ? group < s->last_group : event_before(e, &s->last);
}

static enum status event_put(struct spool *s, uint32_t group, const struct event *e,
			     struct error *err)
{
	uint32_t words = event_words(s, e);
	struct event *copy;
	uint64_t *vary;

	if (is_over(s) && s->count)
		TRY(spool_flush(s, err));
	if (s->count == s->chunk_count << SPOOL_CHUNK_SHIFT)
		TRY(chunk_add(s, err));
	copy = chunk_event(s->chunks, s->count);
	*copy = *e;
	copy->vary = NULL;
	if (words) {
		vary = words_take(s, words);
		if (!vary)
			return spool_memory(err);
		memcpy(vary, e->vary, words * sizeof(*vary));
		copy->vary = vary;
	}
	*chunk_group(s->chunks, s->count) = group;
	if (s->count && is_early(s, group, e))
		s->in_order = false;
	s->last.begin_ns = e->begin_ns;
	s->last.end_ns = e->end_ns;
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

/* Runs [first, first + count) become one, in their place. */
static enum status segments_merge(struct spool *s, size_t first, size_t count, struct error *err)
{
	struct segment *at = &s->segments[first];
	struct segment merged = segment_begin(s, at->group, at->first_ns);
	struct row_state state = { 0 };
	struct batch batch;
	enum status status;
	size_t i;

	for (i = 0; i < count; i++)
		if (at[i].first_ns < merged.first_ns)
			merged.first_ns = at[i].first_ns;
	TRY(runs_open(&s->runs, s->trace, s->scratch, at, count, s->budget_bytes / 2, err));
	spool_hold(s, runs_bytes(s->runs));
	while ((status = runs_next(s->runs, &batch, err)) == ST_OK)
		for (i = 0; i < batch.count && status == ST_OK; i++)
			TRY(row_write(s, &merged, &state, &batch.events[i], err));
	s->held_bytes -= runs_bytes(s->runs);
	runs_close(s->runs);
	s->runs = NULL;
	if (status != ST_END)
		return status;
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
	TRY(runs_open(&s->runs, s->trace, s->scratch, s->segments + first, end - first,
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

static enum status spool_end(struct spool *s, struct error *err)
{
	s->is_ending = true;
	if (!s->segment_count) {
		TRY(keys_make(s, err));
		s->out = malloc(OUT_EVENTS * sizeof(*s->out));
		spool_hold(s, OUT_EVENTS * sizeof(*s->out));
		return s->out ? ST_OK : spool_memory(err);
	}
	if (s->count)
		TRY(spool_flush(s, err));
	events_free(s);
	qsort(s->segments, s->segment_count, sizeof(*s->segments), segment_compare);
	return ST_OK;
}

static enum status memory_next(struct spool *s, uint32_t *group, struct batch *out)
{
	size_t n;

	if (s->at == s->count)
		return ST_END;
	*group = s->keys[s->at].group;
	for (n = 0; n < OUT_EVENTS && s->at < s->count; n++, s->at++) {
		if (s->keys[s->at].group != *group)
			break;
		s->out[n] = *chunk_event(s->chunks, s->keys[s->at].index);
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
