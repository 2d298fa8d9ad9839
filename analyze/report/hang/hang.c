/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report `hang` (DEFINITIONS.md 7): in each process group the first collective that some rank
 * has not completed, the ranks that wait in it, those that never called it, and those without a
 * dump. If no rank waits, gloo may have ended the other ranks' collectives because a rank died, so
 * a rank without a dump is reported too. All ranks took part in what NCCL completed.
 *
 * Dumps of PyTorch's Flight Recorder are matched by process group and sequence number, so neither
 * clocks nor complete rings are needed. The group's list of members contains ranks without a dump.
 * The calls that NCCL's profiler plugin put into Tacho logs are compared in the same way, for ranks
 * that hung (open.c); the members are those that made a call.
 */
#include "analyze/report/hang/internal.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MEMBERS_MOST = 1 << 20, WORLD_MOST = 1 << 14 };

#define HANG_COLUMNS(X)                                                                            \
	X(HANG_PLACE, "place", NULL, U64, KEY, "position in the order of hanging; 1: the first")   \
	X(HANG_GROUP, "group", "process group", TEXT, MAX, "name and ranks of the process group")  \
	X(HANG_ABOUT, "description", "description", TEXT, MAX,                                     \
	  "description of the group, as in the program")                                           \
	X(HANG_SEQ, "seq", "number", U64, MAX,                                                     \
	  "number of the first collective that a rank did not complete, else of the last")         \
	X(HANG_OPERATION, "operation", "operation", TEXT, MAX,                                     \
	  "operation that most ranks requested under this number")                                 \
	X(HANG_DONE, "completed_by_all", "done by all", U64, MAX,                                  \
	  "number of the latest collective that every rank with a dump completed")                 \
	X(HANG_WAITING, "waiting", "wait", TEXT, MAX,                                              \
	  "ranks that requested the collective and did not complete it; null: none")               \
	X(HANG_NEVER, "never_came", "never came", TEXT, MAX,                                       \
	  "ranks whose latest collective has a lower number; null: none")                          \
	X(HANG_NOT_STARTED, "not_started", "not started", TEXT, MAX,                               \
	  "waiting ranks whose GPU has not begun it although another GPU has; null: none")         \
	X(HANG_NO_DUMP, "no_dump", "no dump", TEXT, MAX,                                           \
	  "ranks of the group without a dump file; null: none")                                    \
	X(HANG_MISMATCH, "mismatch", "mismatch", TEXT, MAX,                                        \
	  "first collective for which ranks requested different things, as text; null: none")      \
	X(HANG_GAP, "gap_ns", "since its last", U64, MAX,                                          \
	  "time from the last collective of a rank that never came to the first request of the "   \
	  "one that hangs")                                                                        \
	X(HANG_WHERE, "where", "where", TEXT, MAX,                                                 \
	  "functions in which the late rank, or else a waiting one, made its latest request")      \
	X(HANG_SENTENCE, "sentence", NULL, TEXT, MAX, "the hang as a sentence")
static TABLE(hang, HANG_COLUMNS,
	     .null_texts = "description waiting never_came not_started no_dump mismatch where",
	     .is_finished = true, .is_seldom = true);

struct row { /* a collective of one rank */
	const char *group, *operation;
	uint64_t rank, seq, state, created_ns;
	const union value *cells;
};
struct member {
	uint64_t rank, last_seq, open_seq, done_seq, last_ns; /* open_seq UINT64_MAX: none */
	const struct row *last;
	bool is_there; /* the rank has a dump */
};
static void rank_list_flush(struct rank_list *l)
{
	size_t at = strlen(l->text);

	if (at > sizeof(l->text) - 64)
		return;
	if (l->first == l->last)
		snprintf(l->text + at, sizeof(l->text) - at, "%s%llu", at ? ", " : "",
			 (unsigned long long)l->first);
	else
		snprintf(l->text + at, sizeof(l->text) - at, "%s%llu%s%llu", at ? ", " : "",
			 (unsigned long long)l->first, l->last == l->first + 1 ? ", " : "-",
			 (unsigned long long)l->last);
}

void rank_list_add(struct rank_list *l, uint64_t rank)
{
	if (l->count++ && rank == l->last + 1) {
		l->last = rank;
		return;
	}
	if (l->count > 1)
		rank_list_flush(l);
	l->first = l->last = rank;
}

const char *rank_list_text(struct rank_list *l)
{
	if (l->count)
		rank_list_flush(l);
	return l->text;
}

struct group { /* data for one row of the report */
	const struct row *rows;
	size_t count;
	struct member *members;
	size_t member_count, member_cap;
	/* the collective that hangs; the latest that all ranks completed */
	uint64_t seq, done;
	uint64_t asked_ns;       /* when the first rank called it */
	const struct row *usual; /* what most ranks called */
	struct rank_list waiting, never, not_started, no_dump, odd;
	char mismatch[TEXT_BYTES];
	uint64_t gap_ns;
	const char *where;
};

static struct member *member_find(struct group *g, uint64_t rank)
{
	for (size_t i = 0; i < g->member_count; i++)
		if (g->members[i].rank == rank)
			return &g->members[i];
	return NULL;
}

static enum status member_add(struct group *g, uint64_t rank, struct error *err)
{
	if (member_find(g, rank) || g->member_count == MEMBERS_MOST)
		return ST_OK;
	TRY(vec_reserve(&g->members, &g->member_cap, g->member_count + 1, err));
	g->members[g->member_count++] = (struct member){ .rank = rank, .open_seq = UINT64_MAX };
	return ST_OK;
}

/* Of calls whose end is unknown, those are taken as complete that every rank has made. */
static void infer_ends(struct group *g)
{
	uint64_t all = UINT64_MAX;

	for (size_t i = 0; i < g->member_count; i++)
		all = g->members[i].last_seq < all ? g->members[i].last_seq : all;
	for (size_t i = 0; i < g->member_count; i++) {
		g->members[i].done_seq = all;
		g->members[i].open_seq = g->members[i].last_seq > all ? all + 1 : UINT64_MAX;
	}
}

/* Lists the ranks in the group's list and those with calls in the group, sorted. */
static enum status take_members(struct group *g, struct error *err)
{
	const char *list = g->rows[0].cells[CALL_MEMBERS].text;
	uint64_t world = 0;

	for (size_t i = 0; i < g->count; i++) {
		uint64_t size = g->rows[i].cells[CALL_WORLD].u64;

		world = size > world ? size : world;
		TRY(member_add(g, g->rows[i].rank, err));
	}
	for (uint64_t rank = 0; !list && rank < world && rank < WORLD_MOST; rank++)
		TRY(member_add(g, rank, err));
	while (list && *list) {
		char *end;
		unsigned long long rank = strtoull(list, &end, 10);

		if (isdigit((unsigned char)*list)) {
			TRY(member_add(g, rank, err));
			list = end;
		} else {
			list++;
		}
	}
	SORT_BY(g->members, g->member_count, UP(struct member, rank));
	for (size_t i = 0; i < g->count; i++) {
		const struct row *r = &g->rows[i];
		struct member *m = member_find(g, r->rank);

		if (!m)
			continue;
		m->is_there = true;
		if (!m->last || r->seq >= m->last_seq) {
			m->last = r;
			m->last_seq = r->seq;
			m->last_ns = r->created_ns;
		}
		if (r->state >= STATE_COMPLETED && r->seq > m->done_seq)
			m->done_seq = r->seq;
		if (r->state < STATE_COMPLETED && r->seq < m->open_seq)
			m->open_seq = r->seq;
	}
	if (g->rows[0].state == STATE_CALLED)
		infer_ends(g);
	return ST_OK;
}

/* Returns the index of the first row that is not before this number and rank. */
static size_t lower_bound(const struct group *g, uint64_t seq, uint64_t rank)
{
	const struct row *r = g->rows;
	size_t at;

	SEARCH(at, 0, g->count, r[at].seq < seq || (r[at].seq == seq && r[at].rank < rank));
	return at;
}

static const struct row *call_of(const struct group *g, uint64_t rank, uint64_t seq)
{
	size_t at = lower_bound(g, seq, rank);

	return at < g->count && g->rows[at].seq == seq && g->rows[at].rank == rank ? &g->rows[at]
										   : NULL;
}

/* Returns whether all ranks must use the same sizes for an operation. */
static bool needs_sizes(const char *operation)
{
	return strstr(operation, "all_reduce") || strstr(operation, "allreduce") ||
	       strstr(operation, "broadcast") || !strcmp(operation, "reduce");
}

static bool cells_differ(const struct row *a, const struct row *b, size_t column)
{
	const char *x = a->cells[column].text, *y = b->cells[column].text;

	return x && y && strcmp(x, y) != 0;
}

static bool is_unlike(const struct row *a, const struct row *b)
{
	return strcmp(a->operation, b->operation) != 0 || cells_differ(a, b, CALL_TYPES) ||
	       (needs_sizes(a->operation) && cells_differ(a, b, CALL_SIZES));
}

/* Returns what most ranks called under a number. */
static const struct row *usual_of(const struct group *g, uint64_t seq)
{
	size_t first = lower_bound(g, seq, 0), end = first, most = 0;
	const struct row *best = NULL;

	while (end < g->count && g->rows[end].seq == seq)
		end++;
	for (size_t i = first; i < end && 2 * most <= end - first; i++) {
		size_t like = 0;

		for (size_t k = first; k < end; k++)
			like += !is_unlike(&g->rows[i], &g->rows[k]);
		if (like > most) {
			most = like;
			best = &g->rows[i];
		}
	}
	return best;
}

/* Finds the first number up to the hanging one under which ranks called different things. */
static void take_mismatch(struct group *g)
{
	uint64_t first = g->seq > KEPT ? g->seq - KEPT : 0;

	for (uint64_t seq = first; seq <= g->seq; seq++) {
		const struct row *usual = usual_of(g, seq), *one = NULL;
		struct rank_list odd = { .count = 0 };

		for (size_t i = 0; usual && i < g->member_count; i++) {
			const struct row *r = call_of(g, g->members[i].rank, seq);

			if (r && is_unlike(usual, r)) {
				rank_list_add(&odd, r->rank);
				one = r;
			}
		}
		if (!one)
			continue;
		g->odd = odd;
		snprintf(g->mismatch, sizeof(g->mismatch),
			 "collective %llu: %.60s of %.80s %.40s on rank%s %.100s, but %.60s of "
			 "%.80s "
			 "%.40s on the others",
			 (unsigned long long)seq, one->operation,
			 one->cells[CALL_SIZES].text ? one->cells[CALL_SIZES].text : "?",
			 one->cells[CALL_TYPES].text ? one->cells[CALL_TYPES].text : "",
			 odd.count > 1 ? "s" : "", rank_list_text(&g->odd), usual->operation,
			 usual->cells[CALL_SIZES].text ? usual->cells[CALL_SIZES].text : "?",
			 usual->cells[CALL_TYPES].text ? usual->cells[CALL_TYPES].text : "");
		return; /* the first one causes the later ones */
	}
}

/* Determines the state of a group. false: nothing is open, and nothing ended while a rank has no
 * dump. */
static bool take_state(struct group *g)
{
	bool any_started = false, any_gone = false, any_ended = false;
	uint64_t last = 0;

	g->seq = g->done = UINT64_MAX;
	for (size_t i = 0; i < g->member_count; i++) {
		const struct member *m = &g->members[i];

		any_gone |= !m->is_there;
		any_ended |= m->is_there && m->last->state == STATE_ENDED;
		last = m->last_seq > last ? m->last_seq : last;
		if (m->is_there && m->open_seq < g->seq)
			g->seq = m->open_seq;
		if (m->is_there && m->done_seq < g->done)
			g->done = m->done_seq;
	}
	if (g->seq == UINT64_MAX && any_gone && any_ended)
		g->seq = last;
	if (g->seq == UINT64_MAX)
		return false;
	g->asked_ns = UINT64_MAX;
	for (size_t i = 0; i < g->count; i++) {
		any_started |= g->rows[i].seq == g->seq && g->rows[i].state == STATE_STARTED;
		if (g->rows[i].seq == g->seq && g->rows[i].created_ns < g->asked_ns)
			g->asked_ns = g->rows[i].created_ns;
	}
	for (size_t i = 0; i < g->member_count; i++) {
		const struct member *m = &g->members[i];
		const struct row *r = call_of(g, m->rank, g->seq);

		if (!m->is_there) {
			rank_list_add(&g->no_dump, m->rank);
		} else if (!r && m->last_seq < g->seq) {
			rank_list_add(&g->never, m->rank);
			if (m->last_ns < g->asked_ns && g->asked_ns - m->last_ns > g->gap_ns)
				g->gap_ns = g->asked_ns - m->last_ns;
			g->where = m->last->cells[CALL_WHERE].text;
		} else if (r && r->state < STATE_COMPLETED) {
			rank_list_add(&g->waiting, m->rank);
			if (any_started && r->state == STATE_SCHEDULED)
				rank_list_add(&g->not_started, m->rank);
			if (!g->where && !g->never.count)
				g->where = r->cells[CALL_WHERE].text;
		}
	}
	g->usual = usual_of(g, g->seq);
	take_mismatch(g);
	return g->usual != NULL;
}

static void put_sentence(struct group *g, char out[TEXT_BYTES])
{
	size_t at = (size_t)snprintf(out, TEXT_BYTES,
				     "%.60s %llu of process group %.60s %s: ", g->usual->operation,
				     (unsigned long long)g->seq, g->usual->group,
				     g->waiting.count ? "hangs" : "is the last");

	if (!g->waiting.count) {
		snprintf(out + at, TEXT_BYTES - at,
			 "rank%s %.100s left no dump and may have died; no other rank waits.",
			 g->no_dump.count > 1 ? "s" : "", rank_list_text(&g->no_dump));
		return;
	}
	if (g->never.count)
		at += (size_t)snprintf(out + at, TEXT_BYTES - at,
				       "rank%s %.100s never requested it",
				       g->never.count > 1 ? "s" : "", rank_list_text(&g->never));
	else if (g->mismatch[0])
		at += (size_t)snprintf(out + at, TEXT_BYTES - at,
				       "rank%s %.100s requested a different collective",
				       g->odd.count > 1 ? "s" : "", g->odd.text);
	else if (g->no_dump.count)
		at += (size_t)snprintf(
			out + at, TEXT_BYTES - at,
			"every rank with a dump requested it, but rank%s %.100s left no dump",
			g->no_dump.count > 1 ? "s" : "", rank_list_text(&g->no_dump));
	else if (g->not_started.count)
		at += (size_t)snprintf(out + at, TEXT_BYTES - at,
				       "the GPU of rank%s %.100s has not begun it, because earlier "
				       "work of that stream has not ended",
				       g->not_started.count > 1 ? "s" : "",
				       rank_list_text(&g->not_started));
	else
		at += (size_t)snprintf(out + at, TEXT_BYTES - at,
				       "every rank requested it and none completed it; check the "
				       "network and the GPUs");
	snprintf(out + at, TEXT_BYTES - at, "; rank%s %.100s wait%s.",
		 g->waiting.count > 1 ? "s" : "", rank_list_text(&g->waiting),
		 g->waiting.count > 1 ? "" : "s");
}

static enum status put_cell(struct table *t, union value *cell, const char *text, struct error *err)
{
	cell->text = text && text[0] ? table_text(t, text, err) : NULL;
	return text && text[0] && !cell->text ? ST_CEILING : ST_OK;
}

static enum status put_group(struct table *t, struct group *g, uint64_t place, struct error *err)
{
	char sentence[TEXT_BYTES];
	union value key = { .u64 = place }, *row;

	put_sentence(g, sentence);
	TRY(table_row(t, &key, &row, err));
	row[HANG_SEQ].u64 = g->seq;
	row[HANG_DONE].u64 = g->done;
	row[HANG_GAP].u64 = g->gap_ns;
	TRY(put_cell(t, &row[HANG_GROUP], g->usual->group, err));
	TRY(put_cell(t, &row[HANG_ABOUT], g->usual->cells[CALL_ABOUT].text, err));
	TRY(put_cell(t, &row[HANG_OPERATION], g->usual->operation, err));
	TRY(put_cell(t, &row[HANG_WAITING], g->waiting.text, err));
	TRY(put_cell(t, &row[HANG_NEVER], g->never.text, err));
	TRY(put_cell(t, &row[HANG_NOT_STARTED], g->not_started.text, err));
	TRY(put_cell(t, &row[HANG_NO_DUMP], g->no_dump.text, err));
	TRY(put_cell(t, &row[HANG_MISMATCH], g->mismatch, err));
	TRY(put_cell(t, &row[HANG_WHERE], g->where, err));
	return put_cell(t, &row[HANG_SENTENCE], sentence, err);
}

struct stuck { /* a group that hangs, or has ranks without a dump */
	uint64_t asked_ns;
	bool waits;
	size_t first, count; /* range of rows */
};

static enum status group_take(struct group *g, const struct row *rows, size_t count, bool *hangs,
			      struct error *err)
{
	*g = (struct group){ .rows = rows, .count = count };
	TRY(take_members(g, err));
	*hangs = take_state(g);
	return ST_OK;
}

static void group_release(struct group *g)
{
	free(g->members);
}

/* Writes the groups in the order in which they got stuck: the first causes the others. */
static enum status put_groups(struct table *t, const struct row *rows, size_t count,
			      struct error *err)
{
	RELEASED_BY(vec_release) struct stuck *stuck = NULL;
	size_t stuck_count = 0, waiting = 0, cap = 0;
	bool hangs;

	for (size_t i = 0, end; i < count; i = end) {
		RELEASED_BY(group_release) struct group g = { .rows = NULL };
		for (end = i; end < count && !strcmp(rows[end].group, rows[i].group); end++)
			;
		TRY(group_take(&g, rows + i, end - i, &hangs, err));
		if (!hangs)
			continue;
		TRY(vec_reserve(&stuck, &cap, stuck_count + 1, err));
		stuck[stuck_count++] =
			(struct stuck){ g.asked_ns, g.waiting.count > 0, i, end - i };
	}
	if (stuck_count)
		SORT_BY(stuck, stuck_count, DOWN(struct stuck, waits), UP(struct stuck, asked_ns),
			UP(struct stuck, first));
	/* If no rank waits, a rank without a dump is reported once, for the group that it left
	 * last.
	 */
	while (waiting < stuck_count && stuck[waiting].waits)
		waiting++;
	if (stuck_count && !waiting)
		stuck[waiting++] = stuck[stuck_count - 1];
	stuck_count = waiting;
	for (size_t i = 0; i < stuck_count; i++) {
		RELEASED_BY(group_release) struct group g = { .rows = NULL };

		TRY(group_take(&g, rows + stuck[i].first, stuck[i].count, &hangs, err));
		TRY(put_group(t, &g, i + 1, err));
	}
	return ST_OK;
}

static enum status hang_finish(struct tables *all, struct error *err)
{
	struct table *calls = tables_find(all, "hang_calls"), *t = tables_find(all, "hang");
	size_t count = table_count(calls);
	RELEASED_BY(vec_release) struct row *rows = NULL;

	TRY(hang_open_finish(all, err));
	if (!count)
		return ST_OK;
	TRY(vec_new(&rows, count, err));
	for (size_t i = 0; i < count; i++) {
		const union value *cells = table_at(calls, i);

		rows[i] = (struct row){ .group = cells[CALL_GROUP].text,
					.operation = cells[CALL_OPERATION].text,
					.rank = cells[0].u64,
					.seq = cells[CALL_SEQ].u64,
					.state = cells[CALL_STATE].u64,
					.created_ns = cells[CALL_CREATED].u64,
					.cells = cells };
	}
	SORT_BY(rows, count, UP(struct row, group), UP(struct row, seq), UP(struct row, rank));
	return put_groups(t, rows, count, err);
}

const struct report_type report_hang = {
	.name = "hang",
	.help = "hangs: the collective that a rank did not complete, and the ranks that never came",
	.tables = TABLES(&table_hang_calls, &table_hang, &table_hang_open),
	.state_size = sizeof(struct hang),
	.owned = OWNED(offsetof(struct hang, calls), offsetof(struct hang, ranges),
		       offsetof(struct hang, sort_of_schema)),
	.put = hang_put,
	.end = hang_end,
	.finish = hang_finish,
};
