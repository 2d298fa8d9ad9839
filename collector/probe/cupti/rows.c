/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/rows.h"

#include "collector/arena/arena.h"
#include "collector/probe/cupti/internal.h"
#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/tables.h"
#include "collector/store/writer.h"
#include "schemas/base/hash.h"

#include <stdlib.h>

enum {
	CACHE_MAX = 65536, /* changing graphs and shapes make many; unused pages cost nothing */
	CACHE_BUCKETS = 4 * CACHE_MAX,
	WIDE_AFTER = 8192, /* descriptors of a log from which on wide layouts are used */
	CALLS = 131072,
	EXTERNALS = 8192,
	EVENTS = 4096,
	EVENT_BYTES = LAYOUT_WORDS * 8,
};

/* Descriptors of records that are left out on purpose.  Descriptors of the log are small numbers
 * from 1 on. */
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

/* State while one buffer is put. */
struct putting {
	struct writer *w;
	uint64_t completed_ns, warmup_ns, begin_ns;
	struct cupti_epoch epoch;
	uint64_t lost[LOSS_END], rows, nodes;
};

static const struct cupti_lib *lib;
static struct cached_desc *cache; /* CACHE_MAX + 1 rows; NULL until the first buffer */
static uint32_t cache_count;
static uint64_t cache_log; /* number of the log to which the descriptors belong */
static uint64_t log_made;  /* number of descriptors made for that log */
static unsigned wide;      /* LAYOUT_WIDE or 0 */
static struct cupti_row_counts counts;
/*
 * Calls and external ids by correlation; each place has the newest one.  A tool pushes an external
 * id, whose record comes before or after that of the call, in the same buffer or an earlier one.
 */
struct call {
	uint64_t begin; /* on CUPTI's clock; 0: unknown */
	uint32_t correlation;
	bool is_runtime;
};
struct external {
	uint64_t id;
	uint32_t correlation, kind;
};
static bool has_externals;
/* CUDA events without a time, which are put at the time of their call.  CUPTI could record their
 * times, but at a cost. */
struct waiting_event {
	uint64_t begin; /* begin of its call; 0: the call has not come */
	uint32_t correlation;
	_Alignas(8) uint8_t record[EVENT_BYTES];
};
static struct tables {
	uint32_t cache_buckets[CACHE_BUCKETS]; /* numbers of descriptors (from 1), by hash */
	struct call calls[CALLS];
	struct external externals[EXTERNALS];
	struct waiting_event waiting[EVENTS];
} * tables; /* NULL until cupti_rows_open() */
static size_t waiting_count;
static uint32_t awaited[EVENTS]; /* number of events that wait, by correlation % EVENTS */
static struct {
	uint64_t from_ns, to_ns;
	bool is_inside, is_after; /* a record began inside, after the span */
} watched;

/* ---- descriptors ---- */

static void clear_cache(void)
{
	cache_count = 0;
	if (tables)
		memset(tables->cache_buckets, 0, sizeof(tables->cache_buckets));
}

/* Returns false without a log or memory.  Discards the descriptors of another log. */
static bool is_cache_ready(struct writer *w)
{
	if (!writer_ready(w))
		return false;
	if (!cache)
		cache = calloc(CACHE_MAX + 1, sizeof(*cache));
	if (writer_log_changed(w, &cache_log)) {
		clear_cache();
		wide = 0;
		log_made = 0;
	}
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

/* Returns whether a call shows that the program has graphs, or captures one. */
static bool is_of_graphs(const struct cupti_layout *p, const uint8_t *record)
{
	size_t len;
	const char *name =
		p->record->kind != KIND_API
			? NULL
			: cupti_call_name(p->subkind == API_DRIVER ? CUPTI_DRIVER : CUPTI_RUNTIME,
					  get_u32(record + API_CBID), &len);

	return name && ((strstr(name, "Graph") && !strstr(name, "Graphics")) ||
			strstr(name, "BeginCapture"));
}

/* Finds or makes the record's descriptor.  Returns cache[0], which has none, if the log is at a
 * ceiling. */
static const struct cached_desc *find_desc(struct writer *w, const struct cupti_layout *p,
					   const uint8_t *record)
{
	uint32_t track = 0, desc = DESC_UNWANTED;
	size_t bucket = bucket_of(p, record);

	for (; tables->cache_buckets[bucket]; bucket = (bucket + 1) % CACHE_BUCKETS)
		if (is_cached(&cache[tables->cache_buckets[bucket]], p, record))
			return &cache[tables->cache_buckets[bucket]];
	if (p->wanted)
		desc = cupti_desc_is_noise(p, record) ? DESC_NOISE
						      : cupti_desc_make(w, p, record, &track);
	if (!desc) /* not cached, so that it is tried again */
		return &cache[0];
	if (cache_count == CACHE_MAX) {
		clear_cache();
		bucket = bucket_of(p, record);
	}
	tables->cache_buckets[bucket] = ++cache_count;
	counts.made++;
	counts.has_graphs |= p->is_node || is_of_graphs(p, record);
	if (++log_made > WIDE_AFTER)
		wide = LAYOUT_WIDE;

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

/* Returns false if the record has no usable times. */
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
 * Puts a record as a row.  If `begin_ns` is not 0, the record has no time, and `begin_ns` is the
 * begin of its call.
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

static const struct call *find_call(uint32_t correlation)
{
	const struct call *c = &tables->calls[correlation % CALLS];

	return correlation && c->correlation == correlation ? c : NULL;
}

static const struct external *find_external(uint32_t correlation)
{
	const struct external *e = &tables->externals[correlation % EXTERNALS];

	return has_externals && correlation && e->correlation == correlation ? e : NULL;
}

/* Puts the CUDA events whose calls have come in the meantime. */
static void put_waiting_events(struct putting *r)
{
	for (size_t i = waiting_count; i-- > 0;) {
		const uint8_t *record = tables->waiting[i].record;

		if (!tables->waiting[i].begin)
			continue;
		put_record(r, cupti_family_of(CUPTI_CUDA_EVENT, record)->layouts[0], record, 0,
			   host_time(r, tables->waiting[i].begin));
		tables->waiting[i] = tables->waiting[--waiting_count];
	}
}

/*
 * Returns whether a driver call is within a runtime call, which has the same correlation.  Only the
 * outer one is recorded, because that is what the program did.
 */
static bool is_covered(const uint8_t *record)
{
	const struct call *c = find_call(get_u32(record + API_CORRELATION));

	return c && c->is_runtime;
}

/*
 * Returns whether a CUDA event has a usable time.  It has the GPU's time only if a tool of the
 * process requested that, and CUPTI does not document its clock.  Without a usable time, the time
 * of the call is used.
 */
static bool has_time(struct putting *r, const struct cupti_family *f, const uint8_t *record)
{
	uint64_t ns = read_number(record, &f->layouts[0]->begin);

	return ns && host_time(r, ns);
}

static void put_any(struct putting *r, const struct cupti_family *f, uint32_t kind,
		    const uint8_t *record)
{
	const struct external *e = NULL;

	if (kind == CUPTI_DRIVER_CALL) {
		counts.driver++;
		if (is_covered(record)) {
			count_left_out(r, DESC_NOISE);
			return;
		}
		counts.driver_only +=
			!cupti_call_is_noise(CUPTI_DRIVER, get_u32(record + API_CBID));
	} else if (kind == CUPTI_KERNEL && !lib->enable_driver_call) {
		counts.kernels++;
		counts.orphans +=
			!find_call((uint32_t)read_number(record, &f->layouts[0]->correlation));
	} else if (kind == CUPTI_CUDA_EVENT && !has_time(r, f, record)) {
		return; /* note_event() has stored it */
	}
	if (f->variants & LAYOUT_EXTERNAL)
		e = find_external(get_u32(record + API_CORRELATION));
	put_record(r, cupti_layout_of(f, record, wide | (e ? LAYOUT_EXTERNAL : 0)), record,
		   e ? e->id : 0, 0);
}

void cupti_rows_tables(const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	if (!(b->marks & MARK_TABLES))
		return;
	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		if (!cupti_is_table(get_u32(record)))
			continue;
		cupti_tables_take(lib, get_u32(record), record);
		cupti_names_free(lib, get_u32(record), record);
	}
}

static void note_event(struct putting *r, const uint8_t *record)
{
	const struct cupti_family *f = cupti_family_of(CUPTI_CUDA_EVENT, record);

	if (!f || has_time(r, f, record))
		return;
	uint32_t correlation = f->correlation_at ? get_u32(record + f->correlation_at) : 0;
	if (!correlation || waiting_count == EVENTS) {
		r->lost[LOSS_NO_TIME]++;
		return;
	}
	const struct call *c = find_call(correlation);
	struct waiting_event *to = &tables->waiting[waiting_count++];

	*to = (struct waiting_event){ .begin = c ? c->begin : 0, .correlation = correlation };
	awaited[correlation % EVENTS] += !to->begin;
	memcpy(to->record, record, f->size < EVENT_BYTES ? f->size : EVENT_BYTES);
}

/* Stores a CUpti_ActivityExternalCorrelation.  Of two ids of a call, the one with the lower kind is
 * kept. */
static void note_external(struct putting *r, const uint8_t *record)
{
	struct external new = { .id = read_word(record, 8),
				.correlation = get_u32(record + 16),
				.kind = get_u32(record + 4) };
	struct external *e = &tables->externals[new.correlation % EXTERNALS];
	bool is_same = has_externals && e->correlation == new.correlation;

	has_externals = true;
	r->lost[LOSS_NO_PLACE] += is_same && e->kind != new.kind;
	if (!is_same || e->kind >= new.kind)
		*e = new;
}

static void note_call(uint32_t kind, const uint8_t *record)
{
	bool is_runtime = kind == CUPTI_RUNTIME_CALL;
	uint32_t correlation = get_u32(record + API_CORRELATION);
	uint64_t begin = read_word(record, API_BEGIN);

	if (cupti_call_is_noise(is_runtime ? CUPTI_RUNTIME : CUPTI_DRIVER,
				get_u32(record + API_CBID)))
		return;
	if (is_runtime || !find_call(correlation))
		tables->calls[correlation % CALLS] =
			(struct call){ begin, correlation, is_runtime };
	for (size_t i = 0; begin && awaited[correlation % EVENTS] && i < waiting_count; i++)
		if (tables->waiting[i].correlation == correlation && !tables->waiting[i].begin) {
			tables->waiting[i].begin = begin;
			awaited[correlation % EVENTS]--;
		}
}

/*
 * Stores calls, external ids and CUDA events before any record is put, because records come in any
 * order: a call comes after the calls within it.  Returns false if the buffer only has tables,
 * which need no log.
 */
static bool note_correlations(struct putting *r, const struct pool_buffer *b)
{
	uint8_t *record = NULL;
	bool has_events = false;

	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		uint32_t kind = get_u32(record);

		has_events |= !cupti_is_table(kind);
		if (kind == CUPTI_RUNTIME_CALL || kind == CUPTI_DRIVER_CALL)
			note_call(kind, record);
		else if (kind == CUPTI_EXTERNAL_CORRELATION)
			note_external(r, record);
		else if (kind == CUPTI_CUDA_EVENT)
			note_event(r, record);
	}
	return has_events;
}

/* Counts records of unknown kinds.  Tables and external ids were handled before. */
static void count_strange(struct putting *r, uint32_t kind)
{
	if (cupti_is_table(kind) || kind == CUPTI_EXTERNAL_CORRELATION)
		return;
	counts.unknown++;
	r->lost[LOSS_NO_PLACE]++;
}

void cupti_rows_drop(const struct pool_buffer *b)
{
	cupti_names_drop(lib, b->bytes, b->valid);
}

/* Returns the record after `at`, or NULL. */
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

	if (!note_correlations(&r, b) || !is_cache_ready(w)) {
		cupti_rows_drop(b);
		return;
	}
	r.epoch = (struct cupti_epoch){ .first = UINT64_MAX, .last = UINT64_MAX };
	put_waiting_events(&r);
	put_all(&r, b);
	counts.rows += r.rows;
	counts.nodes += r.nodes;
	counts.no_time += r.lost[LOSS_NO_TIME];
	for (unsigned why = 1; why < LOSS_END; why++)
		writer_lose(r.w, (enum loss)why, r.lost[why]);
}

void cupti_rows_end(struct writer *w)
{
	counts.no_time += waiting_count;
	writer_lose(w, LOSS_NO_TIME, waiting_count);
	waiting_count = 0;
	memset(awaited, 0, sizeof(awaited));
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

bool cupti_rows_open(const struct cupti_lib *loaded)
{
	static void *_Atomic memory;

	tables = arena_once(&memory, sizeof(*tables));
	if (!tables)
		return false;
	lib = loaded;
	cupti_desc_open(lib->api_version);
	clear_cache();
	return true;
}

void cupti_rows_forget(void)
{
	clear_cache();
	cache_log = 0;
	counts = (struct cupti_row_counts){ 0 };
	if (tables)
		memset(tables->calls, 0, sizeof(tables->calls));
	has_externals = false;
	waiting_count = 0;
	memset(awaited, 0, sizeof(awaited));
}

const struct cupti_row_counts *cupti_row_counts(void)
{
	return &counts;
}
