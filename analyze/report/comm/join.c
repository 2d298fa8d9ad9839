/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the collectives of a trace that has neither communicators nor sizes from NCCL's
 * inspector's records of them (DEFINITIONS.md 7).
 *
 * A stream of the trace and a communicator of the inspector are the same if their collectives, in
 * order, take the same times. Only durations are compared, so the clocks of the two files do not
 * matter. Collectives may be missing in either: a trace covers a few steps, and the inspector
 * leaves out small messages and keeps only the latest ones.
 */
#include "analyze/report/comm/comm.h"

#include "convert/stage/collective.h"
#include "schemas/base/hash.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum {
	/* Two durations of one collective differ by at most 5 us and 2 % of it. */
	TOLERANCE_NS = 5000,
	TOLERANCE_PART = 50,
	/* The cost of a collective that only the inspector has, in ns of difference. */
	MISSING_NS = 2500,
	CHUNK = 64,      /* collectives of the trace that are matched at once */
	LOOKED_AT = 512, /* collectives of the inspector that are candidates for the next chunk */
	PAIRS_LEAST = 3, /* with fewer pairs a match may be chance */
};

struct timed {            /* a collective in the trace or of the inspector */
	union value *row; /* its row in comm_events */
	uint64_t place, index, bytes, ns;
	struct rank_call call;
	enum operation operation;
	uint64_t row_address;        /* address of `row`, for sorting */
	uint64_t sequence;           /* hash of its stream or communicator, within one input */
	const struct timed *matched; /* for the trace's: the inspector's record; NULL: unknown */
	/* These determine its new row: values of `matched`, if there is one. */
	const char *group;
	enum operation operation_known;
};
struct timed_list { /* all collectives of a rank, from its trace or from the inspector */
	struct timed *all;
	size_t count, cap;
};
struct sequence { /* the collectives of one stream of the trace, or of one communicator */
	struct timed *at;
	size_t count;
};

static uint64_t tolerance(const struct timed *a)
{
	return TOLERANCE_NS + a->ns / TOLERANCE_PART;
}

/* Returns by how many ns the durations differ; tolerance(a) means that the two are not the same. */
static uint64_t difference(const struct timed *a, const struct timed *b)
{
	uint64_t by = a->ns > b->ns ? a->ns - b->ns : b->ns - a->ns, most = tolerance(a);

	if (a->operation != b->operation && a->operation != OPERATION_OTHER)
		return most;
	return by < most ? by : most;
}

/* The matching is an edit distance between a chunk of the trace and the inspector's sequence, which
 * may begin and end anywhere. The table has one row for each collective of the chunk and one column
 * for each number of inspector's collectives before it; only two rows are kept. */
struct cell_best {     /* the cheapest matching of everything before a cell */
	uint64_t cost; /* ns */
	size_t start;  /* first matched collective of the inspector; SIZE_MAX: none yet */
};
enum edit { EDIT_MATCH, EDIT_TRACE_ONLY, EDIT_INSPECTOR_ONLY }; /* the last edit of a cell */
struct matching {
	struct cell_best *before, *now;
	uint8_t *edits; /* edits of all CHUNK rows, to find the pairs */
};

/* Fills the row of collective `a`. */
static void fill_row(struct matching *p, const struct timed *a, const struct sequence *b,
		     uint8_t *edits)
{
	p->now[0] = (struct cell_best){ p->before[0].cost + tolerance(a), SIZE_MAX };
	edits[0] = EDIT_TRACE_ONLY;
	for (size_t k = 1; k <= b->count; k++) {
		uint64_t by = difference(a, &b->at[k - 1]);
		struct cell_best both = p->before[k - 1], best = p->before[k];

		best.cost += tolerance(a);
		edits[k] = EDIT_TRACE_ONLY;
		if (p->now[k - 1].cost + MISSING_NS < best.cost) {
			best = p->now[k - 1];
			best.cost += MISSING_NS;
			edits[k] = EDIT_INSPECTOR_ONLY;
		}
		if (by < tolerance(a) && both.cost + by < best.cost) {
			best = (struct cell_best){ both.cost + by,
						   both.start == SIZE_MAX ? k - 1 : both.start };
			edits[k] = EDIT_MATCH;
		}
		p->now[k] = best;
	}
}

/* Matches a chunk, if one place is at least twice as good as all others or `is_sure` means that the
 * communicator is known. *used becomes the number of the inspector's collectives before its end.
 * Returns the cost in ns; UINT64_MAX if nothing matches. */
static uint64_t match_chunk(struct matching *p, const struct sequence *a, const struct sequence *b,
			    bool is_sure, size_t *used)
{
	uint64_t whole = 0, second = UINT64_MAX;
	size_t width = b->count + 1, end = 0, pairs = 0;

	for (size_t k = 0; k < width; k++)
		p->now[k] = (struct cell_best){ 0, SIZE_MAX };
	for (size_t i = 0; i < a->count; i++) {
		struct cell_best *swap = p->before;

		p->before = p->now;
		p->now = swap;
		whole += tolerance(&a->at[i]);
		fill_row(p, &a->at[i], b, p->edits + i * width);
	}
	for (size_t k = 0; k < width; k++)
		end = p->now[k].cost < p->now[end].cost ? k : end;
	for (size_t k = 0; k < width; k++)
		if (p->now[k].start != p->now[end].start && p->now[k].cost < second)
			second = p->now[k].cost;
	if (p->now[end].cost > whole / 2 || (!is_sure && p->now[end].cost > second / 2))
		return UINT64_MAX;
	*used = end;
	for (size_t i = a->count, k = end; i && k;) {
		enum edit edit = p->edits[(i - 1) * width + k];

		i -= edit != EDIT_INSPECTOR_ONLY;
		k -= edit != EDIT_TRACE_ONLY;
		a->at[i].matched = edit == EDIT_MATCH ? &b->at[k] : a->at[i].matched;
		pairs += edit == EDIT_MATCH;
	}
	return pairs < PAIRS_LEAST ? UINT64_MAX : p->now[end].cost;
}

/* ---- rows of the matched ones ----------------------------------------------------------- */

/* Writes the collectives of one row with the same communicator and operation, or with none, to a
 * row. */
static enum status put_events(struct table *t, const struct timed *all, size_t count,
			      struct error *err)
{
	union value keys[EVENTS_KEYS], *row = all->row;
	struct packed_last last = { 0, 0 };
	struct buf packed;

	if (all->matched) {
		memcpy(keys, all->row, sizeof(keys));
		keys[EVENTS_GROUP] = all->matched->row[EVENTS_GROUP];
		keys[EVENTS_OPERATION] = all->matched->row[EVENTS_OPERATION];
		keys[EVENTS_STREAM].u64 = NO_U64;
		keys[EVENTS_BY_SEQ].u64 = 1;
		TRY(table_row(t, keys, &row, err));
		memcpy(row + EVENTS_KEYS, all->row + EVENTS_KEYS,
		       (EVENTS_GPU + 1 - EVENTS_KEYS) * sizeof(*row));
	}
	buf_init(&packed, SIZE_MAX);
	for (size_t i = 0; i < count; i++) {
		struct rank_call one = all[i].call;

		if (all[i].matched) {
			one.index = all[i].matched->index;
			one.bytes = all[i].matched->bytes;
		}
		call_pack(&packed, &one, &last);
	}
	enum status status = buf_status(&packed, err);
	row[EVENTS_PACKED].text = status == ST_OK ? table_text(t, buf_text(&packed), err) : NULL;
	/* The rest is incomplete, so ranks cannot match it by its place in the step. */
	if (!all->matched)
		row[EVENTS_WHOLE].u64 = 0;
	buf_release(&packed);
	return row[EVENTS_PACKED].text ? ST_OK : err->status;
}

/* Moves the figures of a matched collective to the row with its communicator. */
static enum status put_figures(struct tables *all, const struct timed *one, struct error *err)
{
	struct table *t = tables_find(all, "comm");
	union value keys[COMM_BYTES + 1], *from, *beside, *to;
	uint64_t exposed_ns = call_exposed_ns(&one->call, UINT64_MAX);

	memcpy(keys, one->matched->row, RANK_KEYS * sizeof(keys[0]));
	keys[COMM_GROUP] = one->matched->row[EVENTS_GROUP];
	keys[COMM_OPERATION] = one->matched->row[EVENTS_OPERATION];
	keys[COMM_TYPE] = one->matched->row[EVENTS_TYPE];
	keys[COMM_BYTES].u64 = one->matched->bytes;
	TRY(table_have(t, keys, &beside, err));
	memcpy(keys, one->row, RANK_KEYS * sizeof(keys[0]));
	keys[COMM_TYPE] = one->row[EVENTS_TYPE];
	TRY(table_row(t, keys, &to, err));
	keys[COMM_GROUP] = one->row[EVENTS_GROUP];
	keys[COMM_OPERATION] = one->row[EVENTS_OPERATION];
	keys[COMM_BYTES].u64 = one->bytes;
	TRY(table_have(t, keys, &from, err));
	to[COMM_RANKS] = beside[COMM_RANKS];
	to[COMM_COUNT].u64++;
	to[COMM_TOTAL].u64 += one->ns;
	to[COMM_EXPOSED].u64 += exposed_ns;
	to[COMM_HIDDEN].u64 += one->ns - exposed_ns;
	to[COMM_MIN].u64 = one->ns < to[COMM_MIN].u64 ? one->ns : to[COMM_MIN].u64;
	to[COMM_MAX].u64 = one->ns > to[COMM_MAX].u64 ? one->ns : to[COMM_MAX].u64;
	from[COMM_COUNT].u64--;
	from[COMM_TOTAL].u64 -= one->ns;
	from[COMM_EXPOSED].u64 -= exposed_ns;
	from[COMM_HIDDEN].u64 -= one->ns - exposed_ns;
	return ST_OK;
}

/* Recomputes least and most in the row of unmatched collectives, unless it has calls that are not
 * in comm_events. `is_begin` clears both; each unmatched one is then added. */
static enum status put_unmatched(struct tables *all, const struct timed *one, bool is_begin,
				 struct error *err)
{
	union value keys[COMM_BYTES + 1], *row;

	memcpy(keys, one->row, RANK_KEYS * sizeof(keys[0]));
	keys[COMM_GROUP] = one->row[EVENTS_GROUP];
	keys[COMM_OPERATION] = one->row[EVENTS_OPERATION];
	keys[COMM_TYPE] = one->row[EVENTS_TYPE];
	keys[COMM_BYTES].u64 = one->bytes;
	TRY(table_have(tables_find(all, "comm"), keys, &row, err));
	if (row[COMM_LEFT_OUT].u64)
		return ST_OK;
	if (is_begin) {
		row[COMM_MIN].u64 = NO_U64;
		row[COMM_MAX].u64 = 0;
		return ST_OK;
	}
	row[COMM_MIN].u64 = one->ns < row[COMM_MIN].u64 ? one->ns : row[COMM_MIN].u64;
	cell_raise(&row[COMM_MAX], one->ns);
	return ST_OK;
}

static enum status put_joined(struct tables *all, struct timed *of, size_t count, struct error *err)
{
	size_t end;

	for (size_t i = 0; i < count; i++) {
		TRY(of[i].matched ? put_figures(all, &of[i], err) : ST_OK);
		TRY(put_unmatched(all, &of[i], true, err));
		of[i].group = of[i].matched ? of[i].matched->row[EVENTS_GROUP].text : NULL;
		of[i].operation_known = of[i].matched ? of[i].matched->operation : of[i].operation;
		of[i].row[EVENTS_PACKED].text = NULL;
	}
	for (size_t i = 0; i < count; i++)
		TRY(of[i].matched ? ST_OK : put_unmatched(all, &of[i], false, err));
	SORT_BY(of, count, UP(struct timed, row_address), UP(struct timed, group),
		UP(struct timed, operation_known), UP(struct timed, place));
	for (size_t first = 0; first < count; first = end) {
		for (end = first; end < count && of[end].row == of[first].row &&
				  of[end].group == of[first].group &&
				  of[end].operation_known == of[first].operation_known;)
			end++;
		TRY(put_events(tables_find(all, "comm_events"), &of[first], end - first, err));
	}
	return ST_OK;
}

/* ---- collectives of both inputs --------------------------------------------------------- */

static enum status take_row(struct timed_list *s, union value *row, struct error *err)
{
	enum operation operation = operation_find(row[EVENTS_OPERATION].text);
	bool is_known = row[EVENTS_BY_SEQ].u64 == 1 && *row[EVENTS_GROUP].text;
	bool is_unknown = row[EVENTS_BY_SEQ].u64 != 1 && !*row[EVENTS_GROUP].text;
	const char *packed = row[EVENTS_PACKED].text;
	struct packed_last last = { 0, 0 };
	struct timed one = { .row = row, .row_address = (uintptr_t)row, .operation = operation };

	if (operation_is_point(operation) || !(row_is_beside(row) ? is_known : is_unknown))
		return ST_OK;
	for (size_t i = 1; i < EVENTS_OPERATION; i++)
		one.sequence =
			hash_word(one.sequence, row[i].u64); /* equal texts have equal addresses */
	one.sequence = hash_word(one.sequence, row[EVENTS_STREAM].u64);
	while (call_unpack(&packed, &one.call, &last)) {
		one.place = one.call.place;
		one.index = one.call.index;
		one.bytes = one.call.bytes;
		one.ns = one.call.ns;
		TRY(vec_reserve(&s->all, &s->cap, s->count + 1, err));
		s->all[s->count++] = one;
	}
	return ST_OK;
}

/* Advances to the next stream or communicator; false: there is none. */
static bool next_sequence(const struct timed_list *s, struct sequence *p)
{
	size_t first = p->at ? (size_t)(p->at - s->all) + p->count : 0, end = first;

	while (end < s->count && s->all[end].sequence == s->all[first].sequence)
		end++;
	*p = (struct sequence){ s->all + first, end - first };
	return end > first;
}

static void forget(const struct sequence *a)
{
	for (size_t i = 0; i < a->count; i++)
		a->at[i].matched = NULL;
}

/* Finds the communicator of a stream by the stream's first collectives, then matches the rest chunk
 * by chunk. */
static bool join_stream(struct matching *p, const struct sequence *a,
			const struct timed_list *inspector)
{
	struct sequence first = { a->at, a->count < CHUNK ? a->count : CHUNK }, of = { NULL };
	uint64_t best = UINT64_MAX, second = UINT64_MAX;
	size_t used = 0;

	for (struct sequence b = { NULL }; next_sequence(inspector, &b);) {
		uint64_t cost = match_chunk(p, &first, &b, false, &used);

		forget(&first);
		second = cost < best ? best : cost < second ? cost : second;
		of = cost < best ? b : of;
		best = cost < best ? cost : best;
	}
	if (!of.at || best > second / 2)
		return false;
	match_chunk(p, &first, &of, false, &used);
	for (size_t i = first.count, at = used; i < a->count; i += first.count) {
		size_t left = of.count - at;
		struct sequence b = { of.at + at, left < LOOKED_AT ? left : LOOKED_AT };

		first = (struct sequence){ a->at + i, a->count - i < CHUNK ? a->count - i : CHUNK };
		if (match_chunk(p, &first, &b, true, &used) == UINT64_MAX)
			forget(&first);
		else
			at += used;
	}
	return true;
}

static enum status join_streams(const struct timed_list *trace, const struct timed_list *inspector,
				bool *any, struct error *err)
{
	struct matching p = { .before = calloc(inspector->count + 1, sizeof(struct cell_best)),
			      .now = calloc(inspector->count + 1, sizeof(struct cell_best)),
			      .edits = calloc(inspector->count + 1, CHUNK) };
	bool fits = p.before && p.now && p.edits;

	*any = false;
	for (struct sequence a = { NULL }; fits && next_sequence(trace, &a);)
		*any |= join_stream(&p, &a, inspector);
	free(p.before);
	free(p.now);
	free(p.edits);
	return fits ? ST_OK : fail_memory(err);
}

static enum status keep_rows(void *self, struct table *t, union value *row, bool *is_kept,
			     struct error *err)
{

	*is_kept = table_type(t) == &table_comm ? row[COMM_COUNT].u64 > 0
						: row[EVENTS_PACKED].text != NULL;
	return ST_OK;
}

static void timed_release(struct timed_list *l)
{
	free(l->all);
}

enum status comm_join(struct tables *all, struct error *err)
{
	struct table *events = tables_find(all, "comm_events");
	RELEASED_BY(timed_release) struct timed_list trace = { NULL };
	RELEASED_BY(timed_release) struct timed_list inspector = { NULL };
	RELEASED_BY(vec_release) union value **rows = NULL;
	union value *row;
	size_t count = table_count(events), end;

	TRY(vec_new(&rows, count, err));
	for (size_t i = 0; (row = table_at(events, i)); i++)
		rows[i] = row;
	for (size_t first = 0; first < count; first = end) {
		trace.count = inspector.count = 0;
		for (end = first; end < count && rows[end][0].u64 == rows[first][0].u64; end++)
			TRY(take_row(row_is_beside(rows[end]) ? &inspector : &trace, rows[end],
				     err));
		if (!trace.count || !inspector.count || rows[first][0].u64 == NO_U64)
			continue;
		SORT_BY(trace.all, trace.count, UP(struct timed, sequence),
			UP(struct timed, place));
		SORT_BY(inspector.all, inspector.count, UP(struct timed, sequence),
			UP(struct timed, place));
		bool any = false;
		TRY(join_streams(&trace, &inspector, &any, err));
		if (any)
			TRY(put_joined(all, trace.all, trace.count, err));
	}
	TRY(table_sift(events, keep_rows, NULL, err));
	return table_sift(tables_find(all, "comm"), keep_rows, NULL, err);
}
