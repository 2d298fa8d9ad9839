/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL's inspector knows of a rank's collectives, for those of its trace that say neither
 * communicator nor size (DEFINITIONS.md 7).
 *
 * A stream of the trace and a communicator of the inspector belong together if their collectives,
 * each in its order, take the same times.  That needs no clock.  Either may lack some: a trace is
 * of a few steps, and the inspector writes none of little data and only the latest.
 */
#include "analyze/report/comm/comm.h"

#include "convert/stage/collective.h"
#include "schemas/base/hash.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum {
	LIKE_NS = 5000, /* so much both may differ about one, and 2 % of it */
	LIKE_PART = 50,
	LACKING_NS = 2500, /* what it costs that the trace lacks one */
	CHUNK = 64,        /* collectives of a trace that are placed together */
	BEHIND = 512,      /* from the chunk before on, so many are looked at */
	ALIKE_LEAST = 3,
};

struct side {             /* a collective, as one side has it */
	union value *row; /* of comm_events */
	uint64_t place, index, bytes, ns;
	struct rank_call call;
	enum operation operation;
	uint64_t row_at;       /* the same, to sort by */
	uint64_t part;         /* stream or communicator, in one input */
	const struct side *is; /* of a trace: what the inspector has; NULL: unknown */
	const char *group;     /* of that: what is put together */
	enum operation as;
};
struct sides { /* of a rank */
	struct side *all;
	size_t count, cap;
};
struct sequence { /* a stream of the trace, or a communicator */
	struct side *at;
	size_t count;
};

static uint64_t slack(const struct side *a)
{
	return LIKE_NS + a->ns / LIKE_PART;
}

/* How much two differ; slack(a): they are not the same. */
static uint64_t differ(const struct side *a, const struct side *b)
{
	uint64_t by = a->ns > b->ns ? a->ns - b->ns : b->ns - a->ns, most = slack(a);

	if (a->operation != b->operation && a->operation != OPERATION_OTHER)
		return most;
	return by < most ? by : most;
}

struct placed { /* the best way to have placed the first ones of a chunk */
	uint64_t cost;
	size_t start; /* first one of the inspector; SIZE_MAX: none yet */
};
enum taken { STEP_BOTH, STEP_TRACE, STEP_INSPECTOR }; /* who has the last one */
struct placing {
	struct placed *before, *now; /* by how many of the inspector have been passed */
	uint8_t *steps;              /* of CHUNK rows */
};

/* One row further: the collective `a`. */
static void place_one(struct placing *p, const struct side *a, const struct sequence *b,
		      uint8_t *steps)
{
	p->now[0] = (struct placed){ p->before[0].cost + slack(a), SIZE_MAX };
	steps[0] = STEP_TRACE;
	for (size_t k = 1; k <= b->count; k++) {
		uint64_t by = differ(a, &b->at[k - 1]);
		struct placed both = p->before[k - 1], best = p->before[k];

		best.cost += slack(a);
		steps[k] = STEP_TRACE;
		if (p->now[k - 1].cost + LACKING_NS < best.cost) {
			best = p->now[k - 1];
			best.cost += LACKING_NS;
			steps[k] = STEP_INSPECTOR;
		}
		if (by < slack(a) && both.cost + by < best.cost) {
			best = (struct placed){ both.cost + by,
						both.start == SIZE_MAX ? k - 1 : both.start };
			steps[k] = STEP_BOTH;
		}
		p->now[k] = best;
	}
}

/* Places a chunk, if one place is much better than all others or `is_sure`; *used becomes how many
 * of the inspector lie before its end.  Returns the cost, UINT64_MAX: no place. */
static uint64_t place(struct placing *p, const struct sequence *a, const struct sequence *b,
		      bool is_sure, size_t *used)
{
	uint64_t whole = 0, second = UINT64_MAX;
	size_t width = b->count + 1, end = 0, pairs = 0;

	for (size_t k = 0; k < width; k++)
		p->now[k] = (struct placed){ 0, SIZE_MAX };
	for (size_t i = 0; i < a->count; i++) {
		struct placed *swap = p->before;

		p->before = p->now;
		p->now = swap;
		whole += slack(&a->at[i]);
		place_one(p, &a->at[i], b, p->steps + i * width);
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
		enum taken step = p->steps[(i - 1) * width + k];

		i -= step != STEP_INSPECTOR;
		k -= step != STEP_TRACE;
		a->at[i].is = step == STEP_BOTH ? &b->at[k] : a->at[i].is;
		pairs += step == STEP_BOTH;
	}
	return pairs < ALIKE_LEAST ? UINT64_MAX : p->now[end].cost;
}

/* ---- what follows of it ----------------------------------------------------------------- */

/* Collectives of one row of the trace that are of one communicator and operation, or of none. */
static enum status put_events(struct table *t, const struct side *all, size_t count,
			      struct error *err)
{
	union value keys[EVENTS_KEYS], *row = all->row;
	struct packed_last last = { 0, 0 };
	struct buf packed;

	if (all->is) {
		memcpy(keys, all->row, sizeof(keys));
		keys[EVENTS_GROUP] = all->is->row[EVENTS_GROUP];
		keys[EVENTS_OPERATION] = all->is->row[EVENTS_OPERATION];
		keys[EVENTS_STREAM].u64 = NO_U64;
		keys[EVENTS_BY_SEQ].u64 = 1;
		TRY(table_row(t, keys, &row, err));
		memcpy(row + EVENTS_KEYS, all->row + EVENTS_KEYS,
		       (EVENTS_GPU + 1 - EVENTS_KEYS) * sizeof(*row));
	}
	buf_init(&packed, SIZE_MAX);
	for (size_t i = 0; i < count; i++) {
		struct rank_call one = all[i].call;

		if (all[i].is) {
			one.index = all[i].is->index;
			one.bytes = all[i].is->bytes;
		}
		call_pack(&packed, &one, &last);
	}
	enum status status = buf_status(&packed, err);
	row[EVENTS_PACKED].text = status == ST_OK ? table_text(t, buf_text(&packed), err) : NULL;
	/* the places of the rest in their step say nothing any more */
	if (!all->is)
		row[EVENTS_WHOLE].u64 = 0;
	buf_release(&packed);
	return row[EVENTS_PACKED].text ? ST_OK : err->status;
}

/* The figures of one go from those of unknown ones to those of its communicator. */
static enum status put_figures(struct tables *all, const struct side *one, struct error *err)
{
	struct table *t = tables_find(all, "comm");
	union value keys[COMM_BYTES + 1], *from, *beside, *to;
	uint64_t exposed_ns = call_exposed_ns(&one->call, UINT64_MAX);

	memcpy(keys, one->is->row, RANK_KEYS * sizeof(keys[0]));
	keys[COMM_GROUP] = one->is->row[EVENTS_GROUP];
	keys[COMM_OPERATION] = one->is->row[EVENTS_OPERATION];
	keys[COMM_TYPE] = one->is->row[EVENTS_TYPE];
	keys[COMM_BYTES].u64 = one->is->bytes;
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

/* Of what stays unknown the shortest and the longest, where all of it is at hand. */
static enum status put_rest(struct tables *all, const struct side *one, bool is_begin,
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

static enum status put_joined(struct tables *all, struct side *of, size_t count, struct error *err)
{
	size_t end;

	for (size_t i = 0; i < count; i++) {
		TRY(of[i].is ? put_figures(all, &of[i], err) : ST_OK);
		TRY(put_rest(all, &of[i], true, err));
		of[i].group = of[i].is ? of[i].is->row[EVENTS_GROUP].text : NULL;
		of[i].as = of[i].is ? of[i].is->operation : of[i].operation;
		of[i].row[EVENTS_PACKED].text = NULL;
	}
	for (size_t i = 0; i < count; i++)
		TRY(of[i].is ? ST_OK : put_rest(all, &of[i], false, err));
	SORT_BY(of, count, UP(struct side, row_at), UP(struct side, group), UP(struct side, as),
		UP(struct side, place));
	for (size_t first = 0; first < count; first = end) {
		for (end = first; end < count && of[end].row == of[first].row &&
				  of[end].group == of[first].group && of[end].as == of[first].as;)
			end++;
		TRY(put_events(tables_find(all, "comm_events"), &of[first], end - first, err));
	}
	return ST_OK;
}

/* ---- both sides ------------------------------------------------------------------------- */

static enum status take_row(struct sides *s, union value *row, struct error *err)
{
	enum operation operation = operation_find(row[EVENTS_OPERATION].text);
	bool is_known = row[EVENTS_BY_SEQ].u64 == 1 && *row[EVENTS_GROUP].text;
	bool is_unknown = row[EVENTS_BY_SEQ].u64 != 1 && !*row[EVENTS_GROUP].text;
	const char *packed = row[EVENTS_PACKED].text;
	struct packed_last last = { 0, 0 };
	struct side one = { .row = row, .row_at = (uintptr_t)row, .operation = operation };

	if (operation_is_point(operation) || !(row_is_beside(row) ? is_known : is_unknown))
		return ST_OK;
	for (size_t i = 1; i < EVENTS_OPERATION; i++)
		one.part = hash_word(one.part, row[i].u64); /* equal texts are one */
	one.part = hash_word(one.part, row[EVENTS_STREAM].u64);
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

/* The next stream or communicator. */
static bool part_next(const struct sides *s, struct sequence *p)
{
	size_t first = p->at ? (size_t)(p->at - s->all) + p->count : 0, end = first;

	while (end < s->count && s->all[end].part == s->all[first].part)
		end++;
	*p = (struct sequence){ s->all + first, end - first };
	return end > first;
}

static void forget(const struct sequence *a)
{
	for (size_t i = 0; i < a->count; i++)
		a->at[i].is = NULL;
}

/* The communicator of a stream by its first collectives, then its others one chunk after the other.
 */
static bool join_stream(struct placing *p, const struct sequence *a, const struct sides *inspector)
{
	struct sequence first = { a->at, a->count < CHUNK ? a->count : CHUNK }, of = { NULL };
	uint64_t best = UINT64_MAX, second = UINT64_MAX;
	size_t used = 0;

	for (struct sequence b = { NULL }; part_next(inspector, &b);) {
		uint64_t cost = place(p, &first, &b, false, &used);

		forget(&first);
		second = cost < best ? best : cost < second ? cost : second;
		of = cost < best ? b : of;
		best = cost < best ? cost : best;
	}
	if (!of.at || best > second / 2)
		return false;
	place(p, &first, &of, false, &used);
	for (size_t i = first.count, at = used; i < a->count; i += first.count) {
		size_t left = of.count - at;
		struct sequence b = { of.at + at, left < BEHIND ? left : BEHIND };

		first = (struct sequence){ a->at + i, a->count - i < CHUNK ? a->count - i : CHUNK };
		if (place(p, &first, &b, true, &used) == UINT64_MAX)
			forget(&first);
		else
			at += used;
	}
	return true;
}

static enum status join_streams(const struct sides *trace, const struct sides *inspector, bool *any,
				struct error *err)
{
	struct placing p = { .before = calloc(inspector->count + 1, sizeof(struct placed)),
			     .now = calloc(inspector->count + 1, sizeof(struct placed)),
			     .steps = calloc(inspector->count + 1, CHUNK) };
	bool fits = p.before && p.now && p.steps;

	*any = false;
	for (struct sequence a = { NULL }; fits && part_next(trace, &a);)
		*any |= join_stream(&p, &a, inspector);
	free(p.before);
	free(p.now);
	free(p.steps);
	return fits ? ST_OK : fail_memory(err);
}

static enum status keep_rows(void *self, struct table *t, union value *row, bool *is_kept,
			     struct error *err)
{
	(void)self;
	(void)err;
	*is_kept = table_type(t) == &table_comm ? row[COMM_COUNT].u64 > 0
						: row[EVENTS_PACKED].text != NULL;
	return ST_OK;
}

enum status comm_join(struct tables *all, struct error *err)
{
	struct table *events = tables_find(all, "comm_events");
	struct sides trace = { NULL }, inspector = { NULL };
	enum status status = ST_OK;
	union value **rows = NULL, *row;
	size_t count = table_count(events), end;

	TRY(vec_new(&rows, count, err));
	for (size_t i = 0; (row = table_at(events, i)); i++)
		rows[i] = row;
	for (size_t first = 0; first < count && status == ST_OK; first = end) {
		trace.count = inspector.count = 0;
		for (end = first;
		     end < count && rows[end][0].u64 == rows[first][0].u64 && status == ST_OK;
		     end++)
			status = take_row(row_is_beside(rows[end]) ? &inspector : &trace, rows[end],
					  err);
		if (!trace.count || !inspector.count || rows[first][0].u64 == NO_U64)
			continue;
		SORT_BY(trace.all, trace.count, UP(struct side, part), UP(struct side, place));
		SORT_BY(inspector.all, inspector.count, UP(struct side, part),
			UP(struct side, place));
		bool any = false;
		if (status == ST_OK)
			status = join_streams(&trace, &inspector, &any, err);
		if (status == ST_OK && any)
			status = put_joined(all, trace.all, trace.count, err);
	}
	free(rows);
	free(trace.all);
	free(inspector.all);
	if (status == ST_OK)
		status = table_sift(events, keep_rows, NULL, err);
	return status == ST_OK ? table_sift(tables_find(all, "comm"), keep_rows, NULL, err)
			       : status;
}
