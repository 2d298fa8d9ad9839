/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/spool.h"

#include "convert/spool/runs.h"
#include "schemas/base/buf.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
	WRITE_BYTES = 60 * 1024, /* bytes per write to the scratch file */
	OUT_EVENTS = 256,        /* events of a batch */
	OUT_WORDS = 4 * OUT_EVENTS,
	SHARED_MOST = 16 * 1024, /* most shared events */
	SHARED_PART = 16,        /* divisor: their share of the budget */
	SLACK_BYTES = 96 * 1024, /* part of the budget for rows to write and a batch */
};

struct key {
	uint64_t begin_ns, end_ns; /* end_ns: KEY_OPEN and the place if unknown */
	uint32_t group;
	uint32_t row; /* offset of the event in `rows` */
};

#define KEY_OPEN (UINT64_C(3) << 62) /* greater than the end of any event that has been begun */
#define HOLE     UINT32_MAX          /* group of an event that was taken back */

/* Memory for each key, including its entry in `ascents`. */
#define KEY_BYTES (sizeof(struct key) + sizeof(uint32_t))

struct spool {
	const struct trace *trace;
	size_t budget_bytes;
	const char *folder;
	struct spool_totals totals;

	/* Events in memory: rows in the order in which they arrived, and a key for each.  There is
	 * always space for twice as many keys, to sort them. */
	uint8_t *rows;
	size_t rows_len, rows_cap;
	struct key *keys;
	size_t count, key_cap;
	uint64_t last_ns;  /* begin of the last key */
	bool is_sorted;    /* all are of group 0, and each begins after the one before */
	uint32_t *ascents; /* indices of keys that precede their predecessor */
	size_t ascent_cap;
	uint32_t most_words; /* most argument values of any event so far */
	uint32_t *open;      /* index of the key of each event without an end, by its place */
	size_t open_cap;
	size_t stay_count;            /* keys that the last flush left in memory */
	uint64_t *taken;              /* argument values of the event that was taken back last */
	size_t taken_cap, hole_count; /* hole_count: keys of events that were taken back */

	/* Runs in the scratch file. */
	struct scratch *scratch;
	struct run *list;
	size_t run_count, run_cap;
	struct buf write;

	/* State while events are returned. */
	bool is_ending;
	size_t at; /* the next key, or the next run in the list */
	struct run_batch batch;
	struct runs *runs;
};

enum status spool_open(struct spool **out, const struct trace *trace, const struct budget *budget,
		       struct error *err)
{
	struct spool *s = calloc(1, sizeof(*s));

	*out = s;
	if (!s)
		return fail_memory(err);
	s->trace = trace;
	s->folder = budget->scratch;
	s->budget_bytes = budget->opening / 2 < SPOOL_LEAST ? SPOOL_LEAST : budget->opening / 2;
	s->is_sorted = true;
	buf_init(&s->write, SIZE_MAX);
	return ST_OK;
}

static void memory_free(struct spool *s)
{
	free(s->rows);
	free(s->keys);
	free(s->ascents);
	s->rows = NULL;
	s->keys = NULL;
	s->ascents = NULL;
	s->rows_cap = s->key_cap = s->ascent_cap = 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	memory_free(s);
	runs_close(s->runs);
	scratch_close(s->scratch);
	buf_release(&s->write);
	free(s->list);
	free(s->open);
	free(s->taken);
	free(s->batch.events);
	free(s->batch.shared.events);
	free(s->batch.words);
	free(s);
}

struct spool_totals spool_totals(const struct spool *s)
{
	struct spool_totals totals = s->totals;

	totals.scratch_bytes = scratch_size(s->scratch);
	return totals;
}

static void note_memory(struct spool *s)
{
	size_t bytes = s->rows_cap + s->key_cap * sizeof(*s->keys) + s->run_cap * sizeof(*s->list) +
		       s->batch.shared.cap * sizeof(struct event) + s->write.cap +
		       runs_bytes(s->runs) + s->batch.cap * sizeof(*s->batch.events) +
		       s->batch.word_cap * sizeof(*s->batch.words);

	if (bytes > s->totals.peak_bytes)
		s->totals.peak_bytes = bytes;
}

static uint32_t event_words(const struct spool *s, const struct event *e)
{
	return e->args ? trace_get_schema(s->trace, e->schema)->arg_count : 0;
}

/* ---- sorting keys in memory ---- */

static inline bool key_before(const struct key *a, const struct key *b)
{
	if (a->group != b->group)
		return a->group < b->group;
	return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->end_ns > b->end_ns;
}

/* Removes the keys of events that were taken back. */
static void holes_close(struct spool *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->keys[i].group != HOLE)
			s->keys[kept++] = s->keys[i];
	s->count = kept;
	s->hole_count = 0;
}

/* Merges the ascending sequences that exist already, because most inputs are nearly in order.  The
 * sort is stable, so events with equal times stay in the order in which they arrived. */
static enum status keys_sort(struct spool *s, struct error *err)
{
	struct key *from = s->keys, *to, *swap;
	size_t ascents = 0;

	if (s->hole_count)
		holes_close(s);
	if (s->is_sorted || !s->count)
		return ST_OK;
	to = s->keys + s->count;
	for (size_t i = 0; i < s->count; i++) {
		if (i && !key_before(&from[i], &from[i - 1]))
			continue;
		TRY(vec_reserve(&s->ascents, &s->ascent_cap, ascents + 2, err));
		s->ascents[ascents++] = (uint32_t)i;
	}
	for (; ascents > 1; ascents = (ascents + 1) / 2) {
		s->ascents[ascents] = (uint32_t)s->count;
		for (size_t i = 0; i < ascents; i += 2) {
			size_t a = s->ascents[i], middle = s->ascents[i + 1], b = middle;
			size_t end = s->ascents[i + 1 < ascents ? i + 2 : i + 1];
			struct key *out = to + a;

			s->ascents[i / 2] = (uint32_t)a;
			while (a < middle && b < end)
				*out++ = key_before(&from[b], &from[a]) ? from[b++] : from[a++];
			memcpy(out, from + a, (middle - a) * sizeof(*out));
			memcpy(out + (middle - a), from + b, (end - b) * sizeof(*out));
		}
		swap = from;
		from = to;
		to = swap;
	}
	if (from != s->keys)
		memcpy(s->keys, from, s->count * sizeof(*from));
	return ST_OK;
}

/* ---- writing runs ---- */

static enum status write_flush(struct spool *s, struct error *err)
{
	TRY(buf_status(&s->write, err));
	TRY(scratch_write(s->scratch, s->write.data, s->write.len, err));
	buf_clear(&s->write);
	note_memory(s);
	return ST_OK;
}

static enum status run_end(struct spool *s, struct run *run, struct error *err)
{
	TRY(write_flush(s, err));
	run->size = scratch_size(s->scratch) - run->at;
	s->totals.runs++;
	return ST_OK;
}

/* Only a spool without begun events may hold an end that looks like that of an open one. */
static bool is_open(const struct spool *s, const struct key *key)
{
	return key->end_ns >= KEY_OPEN && s->open_cap;
}

/* Keeps the first `count` keys in memory, again in the order in which they arrived. */
static enum status keys_keep(struct spool *s, size_t count, struct error *err)
{
	SORT_BY(s->keys, count, UP(struct key, row));
	for (size_t i = 0; i < count; i++) {
		const uint8_t *row = s->rows + s->keys[i].row;

		s->keys[i].row = (uint32_t)s->write.len;
		if (is_open(s, &s->keys[i]))
			s->open[s->keys[i].end_ns - KEY_OPEN] = (uint32_t)i;
		buf_put(&s->write, row, row_size(row));
	}
	TRY(buf_status(&s->write, err));
	if (s->write.len)
		memcpy(s->rows, s->write.data, s->write.len);
	s->rows_len = s->write.len;
	s->count = s->stay_count = count;
	buf_clear(&s->write);
	return ST_OK;
}

/* Writes a run for each group in memory, and then keeps only the keys that stay: open events, and
 * events that begin together with one, because if they also end together, the first to arrive comes
 * first. */
static enum status spool_flush(struct spool *s, struct error *err)
{
	const uint8_t *rows = s->rows;
	struct key *keys = s->keys, *kept = keys;

	if (!s->scratch)
		TRY(scratch_open(&s->scratch, s->folder, err));
	TRY(keys_sort(s, err));
	for (const struct key *key = keys, *end = keys + s->count; key < end;) {
		struct run run = { scratch_size(s->scratch), 0, key->group,
				   s->batch.shared.count != 0 };
		uint64_t last_ns = 0;

		for (; key < end && key->group == run.group; key++) {
			const uint8_t *row = rows + key->row;
			size_t size;
			uint8_t *out;

			if (is_open(s, key) || (kept > keys && kept[-1].begin_ns == key->begin_ns &&
						(size_t)(kept - keys) < s->count / 2)) {
				*kept++ = *key;
				continue;
			}
			size = row_size(row);
			out = buf_reserve(&s->write, ROW_TIMES + size);
			if (!out)
				return s->write.status;
			s->write.len +=
				run_put(out, last_ns, key->begin_ns, key->end_ns, row, size);
			last_ns = key->begin_ns;
			if (s->write.len >= WRITE_BYTES)
				TRY(write_flush(s, err));
		}
		TRY(run_end(s, &run, err));
		TRY(vec_reserve(&s->list, &s->run_cap, s->run_count + 1, err));
		s->list[s->run_count] = run;
		s->run_count += run.size != 0; /* 0: all of them stay */
	}
	return keys_keep(s, (size_t)(kept - keys), err);
}

/* ---- putting events ---- */

static size_t grown(size_t cap, size_t wanted)
{
	return wanted <= cap ? cap : wanted < 2 * cap ? 2 * cap : wanted;
}

/* Makes space for one more event, and flushes before if the budget would be exceeded.  It does not
 * use vec_reserve(), which would touch new memory before it is used. */
static enum status memory_reserve(struct spool *s, size_t row, struct error *err)
{
	size_t rows_cap = grown(s->rows_cap, s->rows_len + row);
	size_t key_cap = grown(s->key_cap, 2 * (s->count + 1));
	struct key *keys;

	/* A flush that leaves most keys in memory would be repeated at once. */
	if (s->count > 2 * s->stay_count &&
	    (rows_cap + key_cap * KEY_BYTES + s->batch.shared.cap * sizeof(struct event) >
		     s->budget_bytes - SLACK_BYTES ||
	     s->rows_len + row > UINT32_MAX)) {
		TRY(spool_flush(s, err));
		rows_cap = grown(s->rows_cap, s->rows_len + row);
		key_cap = grown(s->key_cap, 2 * (s->count + 1));
	}
	uint8_t *rows = realloc(s->rows, rows_cap);
	if (!rows)
		return fail_memory(err);
	s->rows = rows;
	s->rows_cap = rows_cap;
	keys = realloc(s->keys, key_cap * sizeof(*keys));
	if (!keys)
		return fail_memory(err);
	s->keys = keys;
	s->key_cap = key_cap;
	note_memory(s);
	return ST_OK;
}

static inline void key_put(struct spool *s, uint64_t begin_ns, uint64_t end_ns, uint32_t group)
{
	s->is_sorted &= begin_ns > s->last_ns && !group;
	s->last_ns = begin_ns;
	s->keys[s->count++] = (struct key){ begin_ns, end_ns, group, (uint32_t)s->rows_len };
	s->totals.events++;
}

static inline enum status put(struct spool *s, uint32_t group, const struct event *e,
			      uint64_t end_ns, struct error *err)
{
	uint32_t words = event_words(s, e);
	size_t row = row_most(words);

	if (row > s->rows_cap - s->rows_len || 2 * (s->count + 1) > s->key_cap)
		TRY(memory_reserve(s, row, err));
	key_put(s, e->begin_ns, end_ns, group);
	s->rows_len += row_encode(e, words, s->rows + s->rows_len);
	if (words > s->most_words)
		s->most_words = words;
	return ST_OK;
}

enum status spool_put(struct spool *s, uint32_t group, const struct event *events, size_t count,
		      struct error *err)
{
	for (const struct event *e = events; e < events + count; e++)
		TRY(put(s, group, e, e->end_ns, err));
	return ST_OK;
}

enum status spool_begin(struct spool *s, const struct event *e, uint32_t place, struct error *err)
{
	TRY(vec_reserve(&s->open, &s->open_cap, (size_t)place + 1, err));
	TRY(put(s, 0, e, KEY_OPEN | place, err));
	s->open[place] = (uint32_t)s->count - 1;
	return ST_OK;
}

enum status spool_share(struct spool *s, const struct event *e, uint32_t *shared, struct error *err)
{
	struct row_shared *x = &s->batch.shared;

	*shared = 0;
	if (e->args || x->count == SHARED_MOST ||
	    x->count >= s->budget_bytes / SHARED_PART / sizeof(*e) / 2)
		return ST_OK;
	TRY(vec_reserve(&x->events, &x->cap, x->count + 1, err));
	x->events[x->count++] = *e;
	*shared = (uint32_t)x->count;
	return ST_OK;
}

const struct event *spool_shared(const struct spool *s, uint32_t shared)
{
	return &s->batch.shared.events[shared - 1];
}

static __attribute__((noinline)) enum status begin_shared_again(struct spool *s, uint32_t shared,
								uint64_t begin_ns, uint32_t place,
								struct error *err)
{
	TRY(vec_reserve(&s->open, &s->open_cap, (size_t)place + 1, err));
	TRY(memory_reserve(s, ROW_SHARED_BYTES, err));
	return spool_begin_shared(s, shared, begin_ns, place, err);
}

enum status spool_begin_shared(struct spool *s, uint32_t shared, uint64_t begin_ns, uint32_t place,
			       struct error *err)
{
	if (place >= s->open_cap || s->rows_cap - s->rows_len < ROW_SHARED_BYTES ||
	    2 * (s->count + 1) > s->key_cap)
		return begin_shared_again(s, shared, begin_ns, place, err);
	s->open[place] = (uint32_t)s->count;
	key_put(s, begin_ns, KEY_OPEN | place, 0);
	put_u32(s->rows + s->rows_len, ROW_SHARED | (shared - 1));
	s->rows_len += ROW_SHARED_BYTES;
	return ST_OK;
}

void spool_finish(struct spool *s, uint32_t place, uint64_t end_ns)
{
	s->keys[s->open[place]].end_ns = end_ns;
}

enum status spool_take_back(struct spool *s, uint32_t place, struct event *e, struct error *err)
{
	struct key *key = &s->keys[s->open[place]];
	struct bytes in = bytes_init(s->rows + key->row, s->rows_len - key->row);

	TRY(vec_reserve(&s->taken, &s->taken_cap, row_words(in.at), err));
	row_decode(&in, &s->batch.shared, e, s->taken);
	e->begin_ns = e->end_ns = key->begin_ns;
	key->group = HOLE;
	key->end_ns = key->begin_ns;
	s->hole_count++;
	s->totals.events--;
	return ST_OK;
}

/* ---- returning events ---- */

/* Replaces the runs [first, first + count) by one. */
static enum status runs_join(struct spool *s, size_t first, size_t count, struct error *err)
{
	struct run *at = &s->list[first], joined = *at;
	enum status status;

	joined.at = scratch_size(s->scratch);
	TRY(runs_open(&s->runs, s->scratch, at, count, s->budget_bytes / 2, s->most_words, err));
	note_memory(s);
	while ((status = runs_next(s->runs, &s->batch, err)) == ST_OK) {
		for (size_t i = 0; i < s->batch.count; i++) {
			const struct event *e = &s->batch.events[i];
			uint32_t words = event_words(s, e);
			uint8_t *row = buf_reserve(&s->write, row_most(words));

			if (!row)
				break;
			put_u64(row, e->begin_ns);
			put_u64(row + 8, e->end_ns);
			s->write.len += ROW_TIMES;
			s->write.len += row_encode(e, words, s->write.data + s->write.len);
			if (s->write.len >= WRITE_BYTES)
				TRY(write_flush(s, err));
		}
		TRY(buf_status(&s->write, err));
	}
	if (status != ST_END)
		return status;
	runs_close(s->runs);
	s->runs = NULL;
	TRY(run_end(s, &joined, err));
	*at = joined;
	memmove(at + 1, at + count, (s->run_count - first - count) * sizeof(*at));
	s->run_count -= count - 1;
	return ST_OK;
}

/* Opens the runs of the next group.  Adjacent runs are merged until all can be open at once. */
static enum status group_open(struct spool *s, struct error *err)
{
	size_t first = s->at, end = first, fan_in = runs_fan_in(s->budget_bytes / 2, s->most_words);

	while (end < s->run_count && s->list[end].group == s->list[first].group)
		end++;
	while (end - first > fan_in) {
		for (size_t i = first; i + 1 < end; i++) {
			size_t n = end - i < fan_in ? end - i : fan_in;

			TRY(runs_join(s, i, n, err));
			end -= n - 1;
		}
	}
	s->at = end;
	TRY(runs_open(&s->runs, s->scratch, s->list + first, end - first, s->budget_bytes / 2,
		      s->most_words, err));
	note_memory(s);
	return ST_OK;
}

static enum status spool_end(struct spool *s, struct error *err)
{
	s->is_ending = true;
	if (s->run_count) {
		TRY(spool_flush(s, err));
		memory_free(s);
		SORT_BY(s->list, s->run_count, UP(struct run, group), UP(struct run, at));
	} else {
		TRY(keys_sort(s, err));
	}
	TRY(vec_reserve(&s->batch.events, &s->batch.cap, OUT_EVENTS, err));
	TRY(vec_reserve(&s->batch.words, &s->batch.word_cap,
			s->most_words > OUT_WORDS ? s->most_words : OUT_WORDS, err));
	note_memory(s);
	return ST_OK;
}

static void memory_next(struct spool *s, uint32_t *group)
{
	*group = s->keys[s->at].group;
	s->batch.count = s->batch.word_count = 0;
	for (; s->at < s->count && s->keys[s->at].group == *group; s->at++) {
		const struct key *key = &s->keys[s->at];
		struct bytes in = bytes_init(s->rows + key->row, s->rows_len - key->row);

		if (!run_batch_add(&s->batch, key->begin_ns, key->end_ns, &in))
			break;
	}
}

enum status spool_next(struct spool *s, uint32_t *group, struct batch *out, struct error *err)
{
	enum status status;

	*out = (struct batch){ .count = 0 };
	if (!s->is_ending)
		TRY(spool_end(s, err));
	for (;;) {
		if (!s->runs && s->at == (s->run_count ? s->run_count : s->count))
			return ST_END;
		if (!s->run_count) {
			memory_next(s, group);
			break;
		}
		if (!s->runs)
			TRY(group_open(s, err));
		*group = s->list[s->at - 1].group;
		status = runs_next(s->runs, &s->batch, err);
		if (status == ST_OK)
			break;
		if (status != ST_END)
			return status;
		runs_close(s->runs);
		s->runs = NULL;
	}
	*out = (struct batch){ .events = s->batch.events, .count = s->batch.count };
	return ST_OK;
}
