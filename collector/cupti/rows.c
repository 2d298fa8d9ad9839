/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti/rows.h"

#include "collector/cupti/clock.h"
#include "collector/cupti/join.h"
#include "collector/cupti/names.h"
#include "collector/cupti/plan.h"
#include "collector/cupti/run.h"
#include "collector/cupti/seen.h"
#include "collector/cupti/tables.h"
#include "collector/writer.h"

static const struct cupti_lib *lib;

/* ---- times ---- */

static inline uint64_t told(struct cupti_run *r, uint64_t cupti_ns)
{
	return cupti_clock_tell(cupti_ns, r->completed_ns, &r->era);
}

/* False: the record has no times that can be used. */
static bool tell_times(struct cupti_run *r, const struct cupti_plan *p, const uint8_t *record,
		       struct event *e)
{
	uint64_t begin = plan_number(record, &p->begin);
	uint64_t end = p->end.bytes ? plan_number(record, &p->end) : begin;

	if (!begin || end < begin)
		return false;
	e->begin_ns = told(r, begin);
	e->end_ns = end == begin ? e->begin_ns : told(r, end);
	return e->begin_ns && e->end_ns >= e->begin_ns;
}

static void read_vary(struct cupti_run *r, const struct cupti_plan *p, const uint8_t *record,
		      uint64_t external, uint64_t *out)
{
	unsigned i;

	for (i = 0; i < p->vary_count; i++) {
		const struct plan_number *n = &p->vary[i];
		uint64_t word = n->bytes ? plan_number(record, n) : external;

		if (n->is_time && word)
			word = told(r, word);
		out[i] = word;
	}
}

/* ---- records ---- */

static void count_left_out(struct cupti_run *r, uint32_t site)
{
	if (site == SITE_NOISE)
		cupti_seen.counts.noise++;
	else if (site == SITE_UNWANTED)
		cupti_seen.counts.unwanted++;
	r->lost[site ? LOSS_CUT_OUT : LOSS_CEILING]++;
}

static void put_event(struct cupti_run *r, const struct seen_row *row, struct event *e)
{
	if (e->end_ns < r->begin_ns && e->begin_ns >= r->warm_ns) {
		cupti_seen.counts.early++;
		r->lost[LOSS_CUT_OUT]++;
		return;
	}
	e->track = row->track;
	writer_put_ready(r->w, e, row->site);
	r->rows++;
}

/* `begin_ns` is not 0 where the record has no time of its own but is known to be of that call. */
static void put_record(struct cupti_run *r, const struct cupti_plan *p, const uint8_t *record,
		       uint64_t external, uint64_t begin_ns)
{
	uint64_t vary[PLAN_VARY];
	struct event e = { .flags = p->flags, .vary = vary, .kind = p->record->kind };
	const struct seen_row *row = cupti_seen_find(r->w, p, record);

	if (!row->site || row->site >= SITE_NOISE) {
		count_left_out(r, row->site);
		return;
	}
	if (begin_ns) {
		e.begin_ns = e.end_ns = begin_ns;
	} else if (!tell_times(r, p, record, &e)) {
		r->lost[LOSS_NO_TIME]++;
		return;
	}
	e.correlation = plan_number(record, &p->join);
	e.bytes = plan_number(record, &p->amount);
	read_vary(r, p, record, external, vary);
	r->nodes += p->is_node;
	put_event(r, row, &e);
}

/* A CUDA event whose call was found. */
static void put_joined(const uint8_t *record, uint64_t begin_ns, void *arg)
{
	const struct cupti_family *f = cupti_family_of(CUPTI_CUDA_EVENT, record);

	put_record(arg, cupti_plan_of(f, record, 0), record, 0, begin_ns);
}

/* Some calls have an id that was pushed, or something waits for them. */
static void put_joining_call(struct cupti_run *r, const struct cupti_family *f,
			     const uint8_t *record)
{
	const struct cupti_plan *p = f->plans[0];
	uint32_t correlation = (uint32_t)plan_number(record, &p->join);
	uint64_t begin = plan_number(record, &p->begin), external = 0;

	if (cupti_join_external(correlation, &external))
		p = f->plans[PLAN_EXTERNAL];
	if (begin)
		cupti_join_call(correlation, told(r, begin), put_joined, r);
	put_record(r, p, record, external, 0);
}

static void put_any(struct cupti_run *r, const struct cupti_family *f, uint32_t kind,
		    const uint8_t *record)
{
	if (f->flavours & PLAN_EXTERNAL && r->joins)
		put_joining_call(r, f, record);
	else if (kind != CUPTI_CUDA_EVENT || cupti_join_has_time(f, record))
		put_record(r, cupti_plan_of(f, record, 0), record, 0, 0);
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
	uint32_t correlation;
	uint64_t begin_ns;

	if (!f || cupti_join_has_time(f, record))
		return;
	correlation = (uint32_t)plan_word(record, f->correlation_at);
	begin_ns = cupti_join_known_call(correlation);
	if (begin_ns)
		put_joined(record, begin_ns, r);
	else
		r->lost[LOSS_NO_TIME] += !cupti_join_note_event(f, record);
}

/* Ids and events of the whole buffer first: records stand in any order. */
static void note_joins(struct cupti_run *r, const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	if (!(b->marks & (MARK_EXTERNAL | MARK_EVENTS)))
		return;
	while (lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		if (kind_of(record) == CUPTI_EXTERNAL_CORRELATION)
			r->lost[LOSS_NO_PLACE] += !cupti_join_note_external(record);
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

/* Of no family: tables and ids were taken before; what else there is nobody here knows. */
static void count_strange(struct cupti_run *r, uint32_t kind)
{
	if (is_table(kind) || kind == CUPTI_EXTERNAL_CORRELATION)
		return;
	cupti_seen.counts.unknown++;
	r->lost[LOSS_NO_PLACE]++;
}

static void hand_over(struct cupti_run *r)
{
	unsigned why;

	cupti_seen.counts.rows += r->rows;
	cupti_seen.counts.nodes += r->nodes;
	cupti_seen.counts.no_time += r->lost[LOSS_NO_TIME];
	for (why = 1; why < LOSS_END; why++)
		writer_lose(r->w, (enum loss)why, r->lost[why]);
}

void cupti_rows_drop(const struct pool_buffer *b)
{
	cupti_names_drop(lib, b->bytes, b->valid);
}

/* The record behind `at`; NULL: there is none. */
static const uint8_t *next_record(const struct pool_buffer *b, const uint8_t *at)
{
	uint8_t *record = b->bytes + (at - b->bytes);

	if (b->marks & MARK_EVEN) {
		at += lib->sizes[kind_of(at)];
		return at < b->bytes + b->valid ? at : NULL;
	}
	return lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK ? record : NULL;
}

/* One record, whatever it is. */
static void take_record(struct cupti_run *r, const struct cupti_family *f, const uint8_t *record)
{
	if (f)
		put_any(r, f, kind_of(record), record);
	else
		count_strange(r, kind_of(record));
	if (kind_of(record) == CUPTI_OVERHEAD)
		cupti_names_free(lib, CUPTI_OVERHEAD, (uint8_t *)(uintptr_t)record);
	r->places = writer_places(r->w);
}

/* Runs where the sizes are sure, and one by one what ends them. */
static void take_all(struct cupti_run *r, const struct pool_buffer *b)
{
	const uint8_t *at = b->bytes, *end = b->bytes + b->valid;

	while (at && at < end) {
		if (b->marks & MARK_EVEN)
			at = cupti_run_put(r, at, end);
		if (at == end)
			return;
		take_record(r, cupti_family_of(kind_of(at), at), at);
		at = next_record(b, at);
	}
}

void cupti_rows_put(struct writer *w, const struct pool_buffer *b, uint64_t warm_ns,
		    uint64_t begin_ns)
{
	struct cupti_run r = { .w = w, .completed_ns = b->completed_ns, .warm_ns = warm_ns,
			       .begin_ns = begin_ns };

	if (!has_events(b) || !cupti_seen_ready(w)) {
		cupti_rows_drop(b);
		return;
	}
	r.era = (struct cupti_era){ .first = UINT64_MAX, .last = UINT64_MAX };
	note_joins(&r, b);
	r.joins = cupti_join_any();
	take_all(&r, b);
	hand_over(&r);
}

void cupti_rows_end(struct writer *w)
{
	uint64_t lost = cupti_join_end();

	cupti_seen.counts.no_time += lost;
	writer_lose(w, LOSS_NO_TIME, lost);
}

void cupti_rows_open(const struct cupti_lib *loaded)
{
	lib = loaded;
	cupti_seen_clear();
}

void cupti_rows_forget(void)
{
	cupti_seen_clear();
	cupti_seen.log = 0;
	cupti_seen.counts = (struct cupti_row_counts){ 0 };
	cupti_join_forget();
}

const struct cupti_row_counts *cupti_row_counts(void)
{
	return &cupti_seen.counts;
}
