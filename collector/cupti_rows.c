/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti_rows.h"

#include "collector/cupti_clock.h"
#include "collector/cupti_join.h"
#include "collector/cupti_names.h"
#include "collector/cupti_plan.h"
#include "collector/cupti_site.h"
#include "collector/cupti_tables.h"
#include "collector/writer.h"
#include "schemas/hash.h"

#include <stdlib.h>

enum {
	ROWS = 8192,
	SLOTS = 4 * ROWS,
	GUESS_BITS = 16,
	AHEAD = 1024, /* bytes that are asked for before they are needed */
	GUESSES = 1 << GUESS_BITS,
	NO_ROW = 0, /* rows are numbered from 1 */
};

/* Left out on purpose; sites of the log are small numbers from 1. */
#define SITE_UNWANTED UINT32_MAX
#define SITE_NOISE (UINT32_MAX - 1)

struct row {
	_Alignas(16) uint64_t words[PLAN_WORDS]; /* of the record, masked */
	uint32_t site, track;
	uint16_t plan;
};
static struct {
	const struct cupti_lib *lib;
	struct row *rows; /* mapped when first used */
	uint32_t count;
	uint32_t slots[SLOTS];
	uint64_t log; /* that the sites are of */
	uint16_t guesses[GUESSES]; /* what followed the last time, by these: */
	uint32_t last;  /* row */
	uint64_t works; /* the last two rows of work on a GPU: calls are too much alike */
	struct cupti_row_counts counts;
} state;

/* What one buffer brings with it. */
struct run {
	struct writer *w;
	uint64_t completed_ns, warm_ns, begin_ns;
	struct cupti_era era;
	uint64_t lost[LOSS_END], rows, nodes;
	bool joins; /* some calls have an external id, or events wait for their call */
};

/* ---- rows that were seen before ---- */

/* Two words at a time, in registers of 128 bits; a record lies where it likes. */
typedef uint64_t two_words __attribute__((vector_size(16), may_alias));
typedef uint64_t two_of_record __attribute__((vector_size(16), aligned(8), may_alias));

static inline bool row_is(const struct row *row, const struct cupti_plan *p, const uint8_t *record)
{
	const two_of_record *r = (const two_of_record *)(const void *)record;
	const two_words *mask = (const two_words *)(const void *)p->mask;
	const two_words *words = (const two_words *)(const void *)row->words;
	two_words differs = { 0, 0 };
	unsigned i, pairs = p->words / 2u;

	if (row->plan != p->index)
		return false;
#pragma GCC unroll 2
	for (i = 0; i < pairs; i++)
		differs |= (r[i] & mask[i]) ^ words[i];
	return (differs[0] | differs[1]) == 0;
}

static uint64_t hash_of(const struct cupti_plan *p, const uint8_t *record)
{
	uint64_t hash = p->index;
	unsigned i;

	for (i = 0; i < p->words; i += 2)
		hash = hash_fold(hash ^ (plan_word(record, 8 * i) & p->mask[i]) ^ HASH_A,
				 (plan_word(record, 8 * i + 8) & p->mask[i + 1]) ^ HASH_B);
	return hash;
}

static void rows_clear(void)
{
	state.count = 0;
	state.last = NO_ROW;
	state.works = 0;
	memset(state.slots, 0, sizeof(state.slots));
	memset(state.guesses, 0, sizeof(state.guesses));
}

static bool rows_ready(struct writer *w)
{
	if (!writer_ready(w))
		return false;
	if (!state.rows)
		state.rows = calloc(ROWS + 1, sizeof(*state.rows));
	if (state.log != writer_log(w))
		rows_clear();
	state.log = writer_log(w);
	return state.rows != NULL;
}

static uint32_t site_of(struct run *r, const struct cupti_plan *p, const uint8_t *record,
			uint32_t *track)
{
	if (!p->wanted)
		return SITE_UNWANTED;
	if (cupti_site_is_noise(p, record))
		return SITE_NOISE;
	return cupti_site_make(r->w, p, record, track);
}

static uint32_t row_add(struct run *r, const struct cupti_plan *p, const uint8_t *record,
			size_t slot)
{
	uint32_t track = 0, site = site_of(r, p, record, &track);
	struct row *row;
	unsigned i;

	if (!site) /* a ceiling: not kept, so that it is tried again */
		return NO_ROW;
	if (state.count == ROWS) {
		rows_clear();
		slot = hash_of(p, record) % SLOTS;
	}
	row = &state.rows[++state.count];
	row->site = site;
	row->track = track;
	row->plan = p->index;
	for (i = 0; i < p->words; i++)
		row->words[i] = plan_word(record, 8 * i) & p->mask[i];
	state.slots[slot] = state.count;
	state.counts.made++;
	return state.count;
}

static __attribute__((noinline)) uint32_t row_search(struct run *r, const struct cupti_plan *p,
						     const uint8_t *record)
{
	size_t slot = hash_of(p, record) % SLOTS;

	for (; state.slots[slot]; slot = (slot + 1) % SLOTS)
		if (row_is(&state.rows[state.slots[slot]], p, record)) {
			state.counts.searched++;
			return state.slots[slot];
		}
	return row_add(r, p, record, slot);
}

/* Calls follow each other in any order, but there are few of them: found by what they say. */
static inline struct row *row_find_call(struct run *r, const struct cupti_plan *p,
					const uint8_t *record)
{
	uint64_t who = plan_word(record, CALL_WHO) & p->mask[CALL_WHO / 8];
	uint64_t thread = plan_word(record, CALL_THREAD) & p->mask[CALL_THREAD / 8];
	uint64_t hash = (who ^ p->index) * HASH_A ^ thread * HASH_B;
	uint16_t *guess = &state.guesses[hash >> (64 - GUESS_BITS)];
	struct row *row = &state.rows[*guess];

	if (__builtin_expect(row->plan == p->index && row->words[CALL_WHO / 8] == who &&
			     row->words[CALL_THREAD / 8] == thread && *guess, 1)) {
		state.counts.guessed++;
		return row;
	}
	*guess = (uint16_t)row_search(r, p, record);
	return &state.rows[*guess];
}

/* Work follows work, whatever calls stand between; all else is after what was before it. */
static inline struct row *row_find(struct run *r, const struct cupti_plan *p,
				   const uint8_t *record)
{
	bool is_work = p->record->kind <= KIND_GRAPH;
	uint64_t before = (state.works ^ (is_work ? 0 : (uint64_t)state.last << 16)) * HASH_A;
	uint16_t *guess = &state.guesses[before >> (64 - GUESS_BITS)];
	uint32_t found = *guess;

	if (__builtin_expect(found && row_is(&state.rows[found], p, record), 1)) {
		state.counts.guessed++;
	} else {
		found = row_search(r, p, record);
		*guess = (uint16_t)found;
	}
	state.last = found;
	if (is_work)
		state.works = state.works << 32 | found;
	return &state.rows[found];
}

/* ---- times ---- */

static inline uint64_t told(struct run *r, uint64_t cupti_ns)
{
	return cupti_clock_tell(cupti_ns, r->completed_ns, &r->era);
}

/* False: the record has no times that can be used. */
static inline bool tell_times(struct run *r, const struct cupti_plan *p, const uint8_t *record,
			      struct event *e)
{
	uint64_t begin = plan_number(record, &p->begin);
	uint64_t end = p->end.bytes ? plan_number(record, &p->end) : begin;

	if (__builtin_expect(!begin || end < begin, 0))
		return false;
	e->begin_ns = told(r, begin);
	e->end_ns = end == begin ? e->begin_ns : told(r, end);
	return e->begin_ns && e->end_ns >= e->begin_ns;
}

static inline void read_vary(struct run *r, const struct cupti_plan *p, const uint8_t *record,
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

static void count_left_out(struct run *r, uint32_t site)
{
	if (site == SITE_NOISE)
		state.counts.noise++;
	else if (site == SITE_UNWANTED)
		state.counts.unwanted++;
	r->lost[site ? LOSS_CUT_OUT : LOSS_CEILING]++;
}

static void put_event(struct run *r, const struct row *row, struct event *e)
{
	if (__builtin_expect(e->end_ns < r->begin_ns && e->begin_ns >= r->warm_ns, 0)) {
		state.counts.early++;
		r->lost[LOSS_CUT_OUT]++;
		return;
	}
	e->track = row->track;
	writer_put_ready(r->w, e, row->site);
	r->rows++;
}

static inline bool is_left_out(struct run *r, const struct row *row)
{
	if (__builtin_expect(row != state.rows && row->site < SITE_NOISE, 1))
		return false;
	count_left_out(r, row == state.rows ? 0 : row->site);
	return true;
}

/* `begin_ns` is not 0 where the record has no time of its own but is known to be of that call. */
static void put_record(struct run *r, const struct cupti_plan *p, const uint8_t *record,
		       uint64_t external, uint64_t begin_ns)
{
	uint64_t vary[PLAN_VARY];
	struct event e = { .flags = p->flags, .vary = vary, .kind = p->record->kind };
	const struct row *row = row_find(r, p, record);

	if (is_left_out(r, row))
		return;
	if (begin_ns) {
		e.begin_ns = e.end_ns = begin_ns;
	} else if (__builtin_expect(!tell_times(r, p, record, &e), 0)) {
		r->lost[LOSS_NO_TIME]++;
		return;
	}
	e.correlation = plan_number(record, &p->join);
	e.bytes = plan_number(record, &p->amount);
	read_vary(r, p, record, external, vary);
	r->nodes += p->is_node;
	put_event(r, row, &e);
}

/* The same for what comes most often, in a straight line. */
static inline void put_call(struct run *r, const struct cupti_plan *p, const uint8_t *record)
{
	uint64_t begin = plan_word(record, CALL_BEGIN), end = plan_word(record, CALL_END);
	uint64_t join = plan_word(record, CALL_JOIN);
	const struct row *row = row_find_call(r, p, record);
	struct event e;

	if (is_left_out(r, row))
		return;
	e.begin_ns = told(r, begin);
	e.end_ns = told(r, end);
	if (__builtin_expect(!begin || end < begin || !e.begin_ns || e.end_ns < e.begin_ns, 0)) {
		r->lost[LOSS_NO_TIME]++;
		return;
	}
	e.correlation = (uint32_t)join;
	e.bytes = (join >> 32 ^ p->amount.sign) - p->amount.sign;
	e.vary = NULL;
	e.kind = KIND_API;
	e.flags = p->flags;
	put_event(r, row, &e);
}

/* A CUDA event whose call was found. */
static void put_joined(const uint8_t *record, uint64_t begin_ns, void *arg)
{
	const struct cupti_family *f = cupti_family_of(CUPTI_CUDA_EVENT, record);

	put_record(arg, cupti_plan_of(f, record, 0), record, 0, begin_ns);
}

/* Some calls have an id that was pushed, or something waits for them. */
static void put_joining_call(struct run *r, const struct cupti_family *f, const uint8_t *record)
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

static void put_any(struct run *r, const struct cupti_family *f, uint32_t kind,
		    const uint8_t *record)
{
	const struct cupti_plan *p = cupti_plan_of(f, record, 0);

	if (f->flavours & PLAN_EXTERNAL && r->joins)
		put_joining_call(r, f, record);
	else if (__builtin_expect(p->is_call, 1))
		put_call(r, p, record);
	else if (__builtin_expect(kind != CUPTI_CUDA_EVENT || cupti_join_has_time(f, record), 1))
		put_record(r, p, record, 0, 0);
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
	while (state.lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		if (!is_table(kind_of(record)))
			continue;
		cupti_tables_take(state.lib, kind_of(record), record);
		cupti_names_free(state.lib, kind_of(record), record);
	}
}

static void note_event(struct run *r, const uint8_t *record)
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
static void note_joins(struct run *r, const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	if (!(b->marks & (MARK_EXTERNAL | MARK_EVENTS)))
		return;
	while (state.lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		if (kind_of(record) == CUPTI_EXTERNAL_CORRELATION)
			r->lost[LOSS_NO_PLACE] += !cupti_join_note_external(record);
		else if (kind_of(record) == CUPTI_CUDA_EVENT)
			note_event(r, record);
	}
}

/* The buffer lies where another core wrote it; beyond its end nothing happens. */
static inline void look_ahead(const uint8_t *record, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += 64)
		__builtin_prefetch(record + AHEAD + at);
}

/* What holds tables only needs no log. */
static bool has_events(const struct pool_buffer *b)
{
	uint8_t *record = NULL;

	while (state.lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK)
		if (!is_table(kind_of(record)))
			return true;
	return false;
}

/* Of no family: tables and ids were taken before; what else there is nobody here knows. */
static void count_strange(struct run *r, uint32_t kind)
{
	if (is_table(kind) || kind == CUPTI_EXTERNAL_CORRELATION)
		return;
	state.counts.unknown++;
	r->lost[LOSS_NO_PLACE]++;
}

static void hand_over(struct run *r)
{
	unsigned why;

	state.counts.rows += r->rows;
	state.counts.nodes += r->nodes;
	state.counts.no_time += r->lost[LOSS_NO_TIME];
	for (why = 1; why < LOSS_END; why++)
		writer_lose(r->w, (enum loss)why, r->lost[why]);
}

void cupti_rows_drop(const struct pool_buffer *b)
{
	cupti_names_drop(state.lib, b->bytes, b->valid);
}

void cupti_rows_put(struct writer *w, const struct pool_buffer *b, uint64_t warm_ns,
		    uint64_t begin_ns)
{
	struct run r = { .w = w, .completed_ns = b->completed_ns, .warm_ns = warm_ns,
			 .begin_ns = begin_ns };
	uint8_t *record = NULL;

	if (!has_events(b) || !rows_ready(w)) {
		cupti_rows_drop(b);
		return;
	}
	r.era = (struct cupti_era){ .first = UINT64_MAX, .last = UINT64_MAX };
	note_joins(&r, b);
	r.joins = cupti_join_any();
	while (state.lib->next_record(b->bytes, b->valid, &record) == CUPTI_OK) {
		const struct cupti_family *f = cupti_family_of(kind_of(record), record);

		if (__builtin_expect(!f, 0)) {
			count_strange(&r, kind_of(record));
			continue;
		}
		look_ahead(record, f->size);
		put_any(&r, f, kind_of(record), record);
		if (kind_of(record) == CUPTI_OVERHEAD)
			cupti_names_free(state.lib, CUPTI_OVERHEAD, record);
	}
	hand_over(&r);
}

void cupti_rows_end(struct writer *w)
{
	uint64_t lost = cupti_join_end();

	state.counts.no_time += lost;
	writer_lose(w, LOSS_NO_TIME, lost);
}

void cupti_rows_open(const struct cupti_lib *lib)
{
	state.lib = lib;
	rows_clear();
}

void cupti_rows_forget(void)
{
	rows_clear();
	state.log = 0;
	state.counts = (struct cupti_row_counts){ 0 };
	cupti_join_forget();
}

const struct cupti_row_counts *cupti_row_counts(void)
{
	return &state.counts;
}
