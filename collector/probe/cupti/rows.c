/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/rows.h"

#include "collector/probe/cupti/clock.h"
#include "collector/probe/cupti/correlation.h"
#include "collector/probe/cupti/strings.h"
#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/rows_fast.h"
#include "collector/probe/cupti/cache.h"
#include "collector/probe/cupti/tables.h"
#include "collector/store/writer.h"
#include "schemas/base/plain.h"

static const struct cupti_lib *lib;

/* ---- times ---- */

static inline uint64_t host_time(struct cupti_run *r, uint64_t cupti_ns)
{
	return cupti_clock_convert(cupti_ns, r->completed_ns, &r->epoch);
}

/* False: the record has no times that can be used. */
static bool read_times(struct cupti_run *r, const struct cupti_layout *p, const uint8_t *record,
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

static void count_left_out(struct cupti_run *r, uint32_t desc)
{
	if (desc == DESC_NOISE)
		cupti_cache.counts.noise++;
	else if (desc == DESC_UNWANTED)
		cupti_cache.counts.unwanted++;
	r->lost[desc ? LOSS_CUT_OUT : LOSS_CEILING]++;
}

/*
 * `begin_ns` is not 0 for a record without a time of its own that belongs to a call with that
 * begin.
 */
static void put_record(struct cupti_run *r, const struct cupti_layout *p, const uint8_t *record,
		       uint64_t external, uint64_t begin_ns)
{
	uint64_t args[LAYOUT_ARGS];
	struct event e = { .flags = p->flags, .args = args, .kind = p->record->kind };
	uint32_t number = cupti_cache_find(r->w, p, record);
	const struct cache_row *row = &cupti_cache.rows[number];

	if (!plain_ways)
		cupti_run_learn(p, record, number);
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
		cupti_cache.counts.early++;
		r->lost[LOSS_CUT_OUT]++;
		return;
	}
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

static void put_any(struct cupti_run *r, const struct cupti_family *f, uint32_t kind,
		    const uint8_t *record)
{
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

static uint32_t kind_of(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind;
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
		if (!is_table(kind_of(record)))
			continue;
		cupti_tables_take(lib, kind_of(record), record);
		cupti_names_free(lib, kind_of(record), record);
	}
}

static void note_event(struct cupti_run *r, const uint8_t *record)
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
static void note_correlations(struct cupti_run *r, const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	if (!(b->marks & (MARK_EXTERNAL | MARK_EVENTS)))
		return;
	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		if (kind_of(record) == CUPTI_EXTERNAL_CORRELATION)
			r->lost[LOSS_NO_PLACE] += !cupti_correlation_note_external(record);
		else if (kind_of(record) == CUPTI_CUDA_EVENT)
			note_event(r, record);
	}
}

/* What holds tables only needs no log. */
static bool has_events(const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK)
		if (!is_table(kind_of(record)))
			return true;
	return false;
}

/* Counts record kinds that we do not know.  Tables and external ids were handled before. */
static void count_strange(struct cupti_run *r, uint32_t kind)
{
	if (is_table(kind) || kind == CUPTI_EXTERNAL_CORRELATION)
		return;
	cupti_cache.counts.unknown++;
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
		at += lib->sizes[kind_of(at)];
		return at < b->bytes + b->valid ? at : NULL;
	}
	return lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK ? record : NULL;
}

/* Runs where the sizes are sure, and one by one what ends them. */
static void take_all(struct cupti_run *r, const struct pool_buffer *b)
{
	const uint8_t *at = b->bytes, *end = b->bytes + b->valid;

	while (at && at < end) {
		if (b->marks & MARK_EVEN && !plain_ways)
			at = cupti_run_put(r, at, end);
		if (at == end)
			return;
		/* One record, whatever it is. */
		const struct cupti_family *f = cupti_family_of(kind_of(at), at);
		if (f)
			put_any(r, f, kind_of(at), at);
		else
			count_strange(r, kind_of(at));
		if (kind_of(at) == CUPTI_OVERHEAD)
			cupti_names_free(lib, CUPTI_OVERHEAD, (uint8_t *)(uintptr_t)at);
		r->places = writer_places(r->w);
		at = next_record(b, at);
	}
}

void cupti_rows_put(struct writer *w, const struct pool_buffer *b, uint64_t warmup_ns,
		    uint64_t begin_ns)
{
	struct cupti_run r = { .w = w,
			       .completed_ns = b->completed_ns,
			       .warmup_ns = warmup_ns,
			       .begin_ns = begin_ns };

	if (!has_events(b) || !cupti_cache_ready(w)) {
		cupti_rows_drop(b);
		return;
	}
	r.epoch = (struct cupti_epoch){ .first = UINT64_MAX, .last = UINT64_MAX };
	note_correlations(&r, b);
	r.correlations = cupti_correlation_any();
	take_all(&r, b);
	cupti_cache.counts.rows += r.rows;
	cupti_cache.counts.nodes += r.nodes;
	cupti_cache.counts.no_time += r.lost[LOSS_NO_TIME];
	for (unsigned why = 1; why < LOSS_END; why++)
		writer_lose(r.w, (enum loss)why, r.lost[why]);
}

void cupti_rows_end(struct writer *w)
{
	uint64_t lost = cupti_correlation_end();

	cupti_cache.counts.no_time += lost;
	writer_lose(w, LOSS_NO_TIME, lost);
}

void cupti_rows_open(const struct cupti_lib *loaded)
{
	lib = loaded;
	cupti_cache_clear();
}

void cupti_rows_forget(void)
{
	cupti_cache_clear();
	cupti_cache.log = 0;
	cupti_cache.counts = (struct cupti_row_counts){ 0 };
	cupti_correlation_forget();
}

const struct cupti_row_counts *cupti_row_counts(void)
{
	return &cupti_cache.counts;
}
