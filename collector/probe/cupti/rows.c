/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/rows.h"

#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/tables.h"
#include "collector/store/writer.h"
#include "schemas/base/hash.h"

#include <stdlib.h>

enum {
	CACHE_MAX =
		65536, /* graphs and shapes that change make many; pages are touched as needed */
	CACHE_BUCKETS = 4 * CACHE_MAX,
};

/* Descriptors of records that are left out on purpose; those of the log are small, from 1. */
#define DESC_UNWANTED UINT32_MAX
#define DESC_NOISE    (UINT32_MAX - 1)

/*
 * A descriptor of the log.  Its records differ only in times, correlation and values, so the other
 * words of a record, which its layout masks, are the key.
 */
struct cached_desc {
	const struct cupti_layout *p;
	uint32_t desc, track;
	uint64_t words[LAYOUT_WORDS];
};

/* The state of putting one buffer. */
struct putting {
	struct writer *w;
	uint64_t completed_ns, warmup_ns, begin_ns;
	struct cupti_epoch epoch;
	uint64_t lost[LOSS_END], rows, nodes;
	bool correlations; /* some calls have an external id, or CUDA events wait for their call */
};

static const struct cupti_lib *lib;
static struct cached_desc *cache; /* CACHE_MAX + 1; NULL until the first buffer */
static uint32_t cache_count;
static uint32_t cache_buckets[CACHE_BUCKETS]; /* numbers of descriptors, from 1, by hash */
static uint64_t cache_log;                    /* number of the log that they belong to */
static struct cupti_row_counts counts;
/* Calls of the runtime by correlation, each at its number: the newest one. */
enum { CALLS = 32768 };
static uint32_t runtime_calls[CALLS];
static struct {
	uint64_t from_ns, to_ns;
	bool is_inside, is_after; /* a record began there */
} watched;

/* ---- descriptors ---- */

static void clear_cache(void)
{
	cache_count = 0;
	memset(cache_buckets, 0, sizeof(cache_buckets));
}

/* False: no log, or no memory.  Descriptors of another log are forgotten. */
static bool is_cache_ready(struct writer *w)
{
	if (!writer_ready(w))
		return false;
	if (!cache)
		cache = calloc(CACHE_MAX + 1, sizeof(*cache));
	if (writer_log_changed(w, &cache_log))
		clear_cache();
	return cache;
}

static size_t bucket_of(const struct cupti_layout *p, const uint8_t *record)
{
	uint64_t hash = p->index;

	for (unsigned i = 0; i < p->words; i += 2)
		hash = hash_fold(hash ^ (read_word(record, 8 * i) & p->mask[i]) ^ HASH_A,
				 (read_word(record, 8 * i + 8) & p->mask[i + 1]) ^ HASH_B);
	return hash % CACHE_BUCKETS;
}

static bool is_cached(const struct cached_desc *c, const struct cupti_layout *p,
		      const uint8_t *record)
{
	uint64_t differs = c->p != p;

	for (unsigned i = 0; i < p->words && !differs; i++)
		differs = (read_word(record, 8 * i) & p->mask[i]) ^ c->words[i];
	return !differs;
}

/* The record's descriptor, made if it is new; cache[0], without one: the log is at a ceiling. */
static const struct cached_desc *find_desc(struct writer *w, const struct cupti_layout *p,
					   const uint8_t *record)
{
	uint32_t track = 0, desc = DESC_UNWANTED;
	size_t bucket = bucket_of(p, record);

	for (; cache_buckets[bucket]; bucket = (bucket + 1) % CACHE_BUCKETS)
		if (is_cached(&cache[cache_buckets[bucket]], p, record))
			return &cache[cache_buckets[bucket]];
	if (p->wanted)
		desc = cupti_desc_is_noise(p, record) ? DESC_NOISE
						      : cupti_desc_make(w, p, record, &track);
	if (!desc) /* not kept, so that it is tried again */
		return &cache[0];
	if (cache_count == CACHE_MAX) {
		clear_cache();
		bucket = bucket_of(p, record);
	}
	cache_buckets[bucket] = ++cache_count;
	counts.made++;

	struct cached_desc *c = &cache[cache_count];

	*c = (struct cached_desc){ .p = p, .desc = desc, .track = track };
	for (unsigned i = 0; i < p->words; i++)
		c->words[i] = read_word(record, 8 * i) & p->mask[i];
	return c;
}

/* ---- times ---- */

static inline uint64_t host_time(struct putting *r, uint64_t cupti_ns)
{
	return cupti_clock_convert(cupti_ns, r->completed_ns, &r->epoch);
}

/* False: the record has no times that can be used. */
static bool read_times(struct putting *r, const struct cupti_layout *p, const uint8_t *record,
		       struct event *e)
{
	uint64_t begin = read_number(record, &p->begin);
	uint64_t end = p->end.bytes ? read_number(record, &p->end) : begin;

	if (!begin || end < begin)
		return false;
	e->begin_ns = host_time(r, begin);
	e->end_ns = end == begin ? e->begin_ns : host_time(r, end);
	return e->begin_ns && e->end_ns >= e->begin_ns;
}

/* ---- records ---- */

static void count_left_out(struct putting *r, uint32_t desc)
{
	if (desc == DESC_NOISE)
		counts.noise++;
	else if (desc == DESC_UNWANTED)
		counts.unwanted++;
	r->lost[desc ? LOSS_CUT_OUT : LOSS_CEILING]++;
}

/*
 * `begin_ns` is not 0 for a record without a time of its own that belongs to a call with that
 * begin.
 */
static void put_record(struct putting *r, const struct cupti_layout *p, const uint8_t *record,
		       uint64_t external, uint64_t begin_ns)
{
	uint64_t args[LAYOUT_ARGS];
	struct event e = { .flags = p->flags, .args = args, .kind = p->record->kind };
	const struct cached_desc *row = find_desc(r->w, p, record);

	if (!row->desc || row->desc >= DESC_NOISE) {
		count_left_out(r, row->desc);
		return;
	}
	if (begin_ns) {
		e.begin_ns = e.end_ns = begin_ns;
	} else if (!read_times(r, p, record, &e)) {
		r->lost[LOSS_NO_TIME]++;
		return;
	}
	e.correlation = read_number(record, &p->correlation);
	e.bytes = read_number(record, &p->value);
	for (unsigned i = 0; i < p->arg_count; i++) {
		const struct cupti_number *n = &p->args[i];
		uint64_t word = n->bytes ? read_number(record, n) : external;

		if (n->is_time && word)
			word = host_time(r, word);
		args[i] = word;
	}
	r->nodes += p->is_node;
	if (e.end_ns < r->begin_ns && e.begin_ns >= r->warmup_ns) {
		counts.early++;
		r->lost[LOSS_CUT_OUT]++;
		return;
	}
	watched.is_inside |= e.begin_ns - watched.from_ns < watched.to_ns - watched.from_ns;
	watched.is_after |= e.begin_ns >= watched.to_ns;
	e.track = row->track;
	writer_put_ready(r->w, &e, row->desc);
	r->rows++;
}

/* A CUDA event whose call was found. */
static void put_event_of_call(const uint8_t *record, uint64_t begin_ns, void *arg)
{
	const struct cupti_family *f = cupti_family_of(CUPTI_CUDA_EVENT, record);

	put_record(arg, cupti_layout_of(f, record, 0), record, 0, begin_ns);
}

/*
 * A call of the runtime makes calls of the driver, with one correlation for all: the outer one says
 * what the program did.
 */
static bool is_covered(uint32_t kind, const uint8_t *record)
{
	uint32_t correlation = get_u32(record + API_CORRELATION);

	return kind == CUPTI_DRIVER_CALL && correlation &&
	       runtime_calls[correlation % CALLS] == correlation;
}

static void put_any(struct putting *r, const struct cupti_family *f, uint32_t kind,
		    const uint8_t *record)
{
	if (is_covered(kind, record)) {
		count_left_out(r, DESC_NOISE);
		return;
	}
	if (f->variants & LAYOUT_EXTERNAL && r->correlations) {
		/* Some calls have an id that was pushed, or something waits for them. */
		const struct cupti_layout *p = f->layouts[0];
		uint32_t correlation = (uint32_t)read_number(record, &p->correlation);
		uint64_t begin = read_number(record, &p->begin), external = 0;

		if (cupti_correlation_external(correlation, &external))
			p = f->layouts[LAYOUT_EXTERNAL];
		if (begin)
			cupti_correlation_call(correlation, host_time(r, begin), put_event_of_call,
					       r);
		put_record(r, p, record, external, 0);
	} else if (kind != CUPTI_CUDA_EVENT || cupti_correlation_has_time(f, record))
		put_record(r, cupti_layout_of(f, record, 0), record, 0, 0);
}

static bool is_table(uint32_t kind)
{
	return kind == CUPTI_DEVICE || kind == CUPTI_CONTEXT || kind == CUPTI_STREAM;
}

void cupti_rows_tables(const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	if (!(b->marks & MARK_TABLES))
		return;
	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		if (!is_table(get_u32(record)))
			continue;
		cupti_tables_take(lib, get_u32(record), record);
		cupti_names_free(lib, get_u32(record), record);
	}
}

static void note_event(struct putting *r, const uint8_t *record)
{
	const struct cupti_family *f = cupti_family_of(CUPTI_CUDA_EVENT, record);

	if (!f || cupti_correlation_has_time(f, record))
		return;
	uint32_t correlation = (uint32_t)read_word(record, f->correlation_at);
	uint64_t begin_ns = cupti_correlation_find_call(correlation);
	if (begin_ns)
		put_event_of_call(record, begin_ns, r);
	else
		r->lost[LOSS_NO_TIME] += !cupti_correlation_note_event(f, record);
}

/* Collects external ids and CUDA events of the buffer first, because records come in any order. */
static void note_correlations(struct putting *r, const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	if (!(b->marks & (MARK_EXTERNAL | MARK_EVENTS)))
		return;
	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		if (get_u32(record) == CUPTI_EXTERNAL_CORRELATION)
			r->lost[LOSS_NO_PLACE] += !cupti_correlation_note_external(record);
		else if (get_u32(record) == CUPTI_CUDA_EVENT)
			note_event(r, record);
	}
}

/*
 * Notes the runtime's calls, as records of a call stand behind those of calls within it.  False:
 * the buffer holds tables only, which need no log.
 */
static bool note_calls(const struct pool_buffer *b)
{
	uint8_t *record = NULL;
	bool has_events = false;

	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		uint32_t kind = get_u32(record), correlation;

		has_events |= !is_table(kind);
		if (kind != CUPTI_RUNTIME_CALL ||
		    cupti_call_is_noise(CUPTI_RUNTIME, get_u32(record + 4)))
			continue;
		correlation = get_u32(record + API_CORRELATION);
		runtime_calls[correlation % CALLS] = correlation;
	}
	return has_events;
}

/* Counts record kinds that we do not know.  Tables and external ids were handled before. */
static void count_strange(struct putting *r, uint32_t kind)
{
	if (is_table(kind) || kind == CUPTI_EXTERNAL_CORRELATION)
		return;
	counts.unknown++;
	r->lost[LOSS_NO_PLACE]++;
}

void cupti_rows_drop(const struct pool_buffer *b)
{
	cupti_names_drop(lib, b->bytes, b->valid);
}

/* The record after `at`; NULL: there is none. */
static const uint8_t *next_record(const struct pool_buffer *b, const uint8_t *at)
{
	uint8_t *record = b->bytes + (at - b->bytes);

	if (b->marks & MARK_EVEN) {
		at += lib->sizes[get_u32(at)];
		return at < b->bytes + b->valid ? at : NULL;
	}
	return lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK ? record : NULL;
}

static void put_all(struct putting *r, const struct pool_buffer *b)
{
	for (const uint8_t *at = b->bytes; at && b->valid; at = next_record(b, at)) {
		const struct cupti_family *f = cupti_family_of(get_u32(at), at);
		if (f)
			put_any(r, f, get_u32(at), at);
		else
			count_strange(r, get_u32(at));
		if (get_u32(at) == CUPTI_OVERHEAD)
			cupti_names_free(lib, CUPTI_OVERHEAD, (uint8_t *)(uintptr_t)at);
	}
}

void cupti_rows_put(struct writer *w, const struct pool_buffer *b, uint64_t warmup_ns,
		    uint64_t begin_ns)
{
	struct putting r = { .w = w,
			     .completed_ns = b->completed_ns,
			     .warmup_ns = warmup_ns,
			     .begin_ns = begin_ns };

	if (!note_calls(b) || !is_cache_ready(w)) {
		cupti_rows_drop(b);
		return;
	}
	r.epoch = (struct cupti_epoch){ .first = UINT64_MAX, .last = UINT64_MAX };
	note_correlations(&r, b);
	r.correlations = cupti_correlation_any();
	put_all(&r, b);
	counts.rows += r.rows;
	counts.nodes += r.nodes;
	counts.no_time += r.lost[LOSS_NO_TIME];
	for (unsigned why = 1; why < LOSS_END; why++)
		writer_lose(r.w, (enum loss)why, r.lost[why]);
}

void cupti_rows_end(struct writer *w)
{
	uint64_t lost = cupti_correlation_end();

	counts.no_time += lost;
	writer_lose(w, LOSS_NO_TIME, lost);
}

void cupti_rows_watch(uint64_t from_ns, uint64_t to_ns)
{
	watched.from_ns = from_ns;
	watched.to_ns = to_ns;
	watched.is_inside = watched.is_after = false;
}

uint64_t cupti_rows_missed(void)
{
	uint64_t ns = watched.is_inside || !watched.is_after ? 0 : watched.to_ns - watched.from_ns;

	cupti_rows_watch(0, 0);
	return ns;
}

void cupti_rows_open(const struct cupti_lib *loaded)
{
	lib = loaded;
	cupti_desc_open(lib->api_version);
	clear_cache();
}

void cupti_rows_forget(void)
{
	clear_cache();
	cache_log = 0;
	counts = (struct cupti_row_counts){ 0 };
	cupti_correlation_forget();
}

const struct cupti_row_counts *cupti_row_counts(void)
{
	return &counts;
}
