/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates collectives that were matched over the ranks (DEFINITIONS.md 7): which rank waited, and
 * for which. */
#include "analyze/report/comm/collectives.h"

#include "convert/stage/collective.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { ROWS_MOST = 1 << 15 /* rows of stragglers and of pairs; further ones are not separated */ };

struct member { /* a GPU of a rank */
	uint64_t matched, all_exposed_wait_ns;
	/* Without settling steps, which each rank enters when its start-up is finished: */
	uint64_t transfer_ns, wait_ns, exposed_wait_ns, exposed_ns, after_next_ns;
	uint64_t times_last, late_ns, made_wait_ns;
};
struct comm_matching {
	struct tables *all;
	struct coll_matches matches;
	struct member *members;
	struct sums { /* of a communicator and operation */
		uint64_t matched, transfer_ns, wait_ns, named;
	} sums;
};
struct late { /* contribution of one collective to its culprit */
	uint64_t times, late_ns, made_ns;
};

/* ---- a matched collective ----------------------------------------------------------------- */

static uint64_t plus(uint64_t sum, uint64_t more)
{
	return (sum == NO_U64 ? 0 : sum) + more;
}

static enum status note_straggler(struct comm_matching *m, const struct ref *r, uint32_t culprit,
				  const struct late *of, struct error *err)
{
	struct table *t = tables_find(m->all, "stragglers");
	union value keys[STRAGGLER_KEYS], *row;

	if (table_count(t) >= ROWS_MOST)
		return ST_OK;
	keys[STRAGGLER_STEP] = r->row[EVENTS_STEP];
	keys[STRAGGLER_PHASE] = r->row[EVENTS_PHASE];
	memcpy(&keys[STRAGGLER_RANK], m->matches.members[culprit], RANK_KEYS * sizeof(keys[0]));
	TRY(table_row(t, keys, &row, err));
	row[STRAGGLER_LAST].u64 = plus(row[STRAGGLER_LAST].u64, of->times);
	row[STRAGGLER_LATE].u64 = plus(row[STRAGGLER_LATE].u64, of->late_ns);
	row[STRAGGLER_MADE].u64 = plus(row[STRAGGLER_MADE].u64, of->made_ns);
	return ST_OK;
}

static enum status note_class(struct comm_matching *m, const struct ref *r,
			      const struct rank_call *one, const struct coll_match *at,
			      struct error *err)
{
	struct table *t = tables_find(m->all, "comm");
	union value keys[COMM_BYTES + 1], *row;
	uint64_t wait_ns = one->ns - at->least_ns;

	memcpy(keys, r->row, RANK_KEYS * sizeof(keys[0]));
	keys[COMM_GROUP] = r->row[EVENTS_GROUP];
	keys[COMM_OPERATION] = r->row[EVENTS_OPERATION];
	keys[COMM_TYPE] = r->row[EVENTS_TYPE];
	keys[COMM_BYTES].u64 = one->bytes;
	TRY(table_have(t, keys, &row, err));
	row[COMM_MATCHED].u64 = plus(row[COMM_MATCHED].u64, 1);
	row[COMM_TRANSFER].u64 = plus(row[COMM_TRANSFER].u64, at->least_ns);
	row[COMM_WAIT].u64 = plus(row[COMM_WAIT].u64, wait_ns);
	row[COMM_EXPOSED_WAIT].u64 =
		plus(row[COMM_EXPOSED_WAIT].u64, call_exposed_ns(one, wait_ns));
	return ST_OK;
}

static enum status match_one(void *self, const struct matched_call *of_rank, struct error *err)
{
	struct comm_matching *m = self;
	const struct ref *r = of_rank->ref;
	const struct rank_call *one = of_rank->call;
	const struct coll_match *at = of_rank->match;
	struct sums *s = &m->sums;
	struct member *own = &m->members[r->member];
	uint64_t wait_ns = one->ns - at->least_ns;
	uint32_t culprit = match_culprit(at);
	struct late of = { 0 };

	own->matched++;
	own->all_exposed_wait_ns += call_exposed_ns(one, wait_ns);
	s->matched++;
	s->transfer_ns += at->least_ns;
	s->wait_ns += wait_ns;
	s->named += culprit == r->member;
	TRY(note_class(m, r, one, at, err));
	if (at->settles)
		return ST_OK;
	own->transfer_ns += at->least_ns;
	own->wait_ns += wait_ns;
	own->exposed_wait_ns += call_exposed_ns(one, wait_ns);
	own->exposed_ns += call_exposed_ns(one, UINT64_MAX);
	own->after_next_ns += one->ns == at->least_ns ? at->second_ns - at->least_ns : 0;
	if (culprit == NO_ID)
		return ST_OK;
	if (culprit != r->member) {
		uint64_t exposed_ns = call_exposed_ns(one, UINT64_MAX);
		m->members[culprit].made_wait_ns += of.made_ns = wait_ns;
		struct table *t = tables_find(m->all, "waits_for");
		union value keys[PAIR_KEYS], *row;
		if (table_count(t) < ROWS_MOST) {
			memcpy(keys, r->row, RANK_KEYS * sizeof(keys[0]));
			memcpy(&keys[PAIR_RANK], m->matches.members[culprit],
			       RANK_KEYS * sizeof(keys[0]));
			TRY(table_row(t, keys, &row, err));
			row[PAIR_CALLS].u64 = plus(row[PAIR_CALLS].u64, 1);
			row[PAIR_WAIT].u64 = plus(row[PAIR_WAIT].u64, wait_ns);
			row[PAIR_EXCESS].u64 = plus(row[PAIR_EXCESS].u64,
						    exposed_ns > at->least_exposed_ns
							    ? exposed_ns - at->least_exposed_ns
							    : 0);
		}
		return note_straggler(m, r, culprit, &of, err);
	}
	of.times = 1;
	of.late_ns = at->second_ns - at->least_ns;
	own->times_last++;
	own->late_ns += of.late_ns;
	return note_straggler(m, r, culprit, &of, err);
}

/* ---- tables ----------------------------------------------------------------------------- */

/* Returns the name of a rank's GPU; NULL: unknown. Both tables are sorted by rank; *at advances. */
static const char *gpu_of(struct table *events, const union value *rank, size_t *at)
{
	const union value *row;

	for (size_t i = *at; (row = table_at(events, i)); i++) {
		if (memcmp(row, rank, RANK_KEYS * sizeof(*row)) != 0)
			continue;
		*at = i;
		return row[EVENTS_GPU].text;
	}
	return NULL;
}

static void bandwidths(struct comm_matching *m)
{
	struct table *comm = tables_find(m->all, "comm"),
		     *events = tables_find(m->all, "comm_events");
	size_t at = 0;
	union value *row;

	for (size_t i = 0; (row = table_at(comm, i)); i++) {
		double link = link_gb_per_s(gpu_of(events, row, &at), row[COMM_GROUP].text,
					    row[COMM_RANKS].u64);
		bool is_matched = row[COMM_MATCHED].u64 != NO_U64;
		double calls = (double)(is_matched ? row[COMM_MATCHED].u64 : row[COMM_COUNT].u64);
		double ns = (double)(is_matched ? row[COMM_TRANSFER].u64 : row[COMM_TOTAL].u64);
		double factor = operation_factor(operation_find(row[COMM_OPERATION].text),
						 row[COMM_RANKS].u64);

		if (link > 0)
			row[COMM_LINK].f64 = link;
		row[COMM_MATCHED].u64 = is_matched ? row[COMM_MATCHED].u64 : 0;
		if (row[COMM_BYTES].u64 == NO_U64 || ns <= 0)
			continue;
		row[COMM_ALGORITHM].f64 = (double)row[COMM_BYTES].u64 * calls / ns;
		if (factor > 0)
			row[COMM_BUS].f64 = row[COMM_ALGORITHM].f64 * factor;
	}
}

static enum status put_waits(struct comm_matching *m, struct error *err)
{
	struct table *t = tables_find(m->all, "waits"), *comm = tables_find(m->all, "comm");
	union value *row, *of;

	for (size_t i = 0; (row = table_at(comm, i)); i++) {
		TRY(table_row(t, row, &of, err));
		of[WAITS_CALLS].u64 = plus(of[WAITS_CALLS].u64, row[COMM_COUNT].u64);
		of[WAITS_MATCHED].u64 = plus(of[WAITS_MATCHED].u64, 0);
	}
	for (size_t i = 0; i < m->matches.member_count; i++) {
		const struct member *own = &m->members[i];

		if (!own->matched)
			continue;
		TRY(table_row(t, m->matches.members[i], &row, err));
		row[WAITS_MATCHED].u64 = plus(row[WAITS_MATCHED].u64, own->matched);
		row[WAITS_TRANSFER].u64 = plus(row[WAITS_TRANSFER].u64, own->transfer_ns);
		row[WAITS_WAIT].u64 = plus(row[WAITS_WAIT].u64, own->wait_ns);
		row[WAITS_ALL_EXPOSED].u64 = plus(row[WAITS_ALL_EXPOSED].u64, own->exposed_ns);
		row[WAITS_EXPOSED].u64 = plus(row[WAITS_EXPOSED].u64, own->exposed_wait_ns);
		row[WAITS_AFTER].u64 = plus(row[WAITS_AFTER].u64, own->after_next_ns);
		row[WAITS_LAST].u64 = plus(row[WAITS_LAST].u64, own->times_last);
		row[WAITS_LATE].u64 = plus(row[WAITS_LATE].u64, own->late_ns);
		row[WAITS_MADE].u64 = plus(row[WAITS_MADE].u64, own->made_wait_ns);
	}
	return ST_OK;
}

static int compare_pairs(const void *pa, const void *pb)
{
	const union value *a = *(union value *const *)pa, *b = *(union value *const *)pb;

	return memcmp(&a[PAIR_RANK], &b[PAIR_RANK], RANK_KEYS * sizeof(*a));
}

/* Widens the excess of a pair of ranks. A late rank computes during later collectives, for which no
 * rank is late, so two ranks with the same collectives differ by all their exposed time. */
static enum status widen_excess(struct table *waits, union value *pair, struct error *err)
{
	union value *own, *late;

	TRY(table_have(waits, pair, &own, err));
	TRY(table_have(waits, &pair[PAIR_RANK], &late, err));
	uint64_t more = own[WAITS_ALL_EXPOSED].u64, less = late[WAITS_ALL_EXPOSED].u64;
	if (own[WAITS_MATCHED].u64 == late[WAITS_MATCHED].u64 && more > less &&
	    more - less > pair[PAIR_EXCESS].u64)
		pair[PAIR_EXCESS].u64 = more - less;
	return ST_OK;
}

/* Estimates what the job saves if a rank comes as early as another one. The other then does not
 * wait for it, nor for what it computed longer during transfers, so the gain is at most the exposed
 * part of that. Ranks that share few collectives with it, in a smaller communicator, are ignored.
 */
static enum status put_savings(struct comm_matching *m, struct error *err)
{
	struct table *t = tables_find(m->all, "waits"), *pairs = tables_find(m->all, "waits_for");
	size_t count = table_count(pairs), end;
	RELEASED_BY(vec_release) union value **rows = NULL;
	union value *of;

	TRY(vec_new(&rows, count, err));
	for (size_t i = 0; i < count; i++) {
		rows[i] = table_at(pairs, i);
		TRY(widen_excess(t, rows[i], err));
	}
	qsort(rows, count, sizeof(*rows), compare_pairs);
	for (size_t first = 0; first < count; first = end) {
		uint64_t most = 0, least_ns = NO_U64;

		for (end = first; end < count && !compare_pairs(&rows[first], &rows[end]); end++)
			if (rows[end][PAIR_CALLS].u64 > most)
				most = rows[end][PAIR_CALLS].u64;
		for (size_t i = first; i < end; i++)
			if (rows[i][PAIR_CALLS].u64 >= most - most / 2 &&
			    rows[i][PAIR_EXCESS].u64 < least_ns)
				least_ns = rows[i][PAIR_EXCESS].u64;
		TRY(table_have(t, &rows[first][PAIR_RANK], &of, err));
		of[WAITS_SAVING].u64 =
			least_ns < of[WAITS_AFTER].u64 ? least_ns : of[WAITS_AFTER].u64;
	}
	return ST_OK;
}

/* Sets gpus.exposed_comm_wait_ns: 0 without communication, null if nothing was matched. */
static enum status put_gpus(struct comm_matching *m, struct error *err)
{
	struct table *t = tables_find(m->all, "gpus");
	size_t at = t ? table_column(t, "exposed_comm_wait_ns") : 0;
	size_t comm = t ? table_column(t, "comm_ns") : 0;
	union value *row;

	for (size_t i = 0; at && i < table_count(t); i++) {
		row = table_at(t, i);
		row[at].u64 = row[comm].u64 ? NO_U64 : 0;
	}
	for (size_t i = 0; at && i < m->matches.member_count; i++) {
		if (!m->members[i].matched)
			continue;
		TRY(table_have(t, m->matches.members[i], &row, err));
		row[at].u64 = plus(row[at].u64, m->members[i].all_exposed_wait_ns);
	}
	return ST_OK;
}

static enum status matches_run(struct comm_matching *m, struct error *err)
{
	struct match_range range = { 0 };
	bool more;

	TRY(matches_open(&m->matches, m->all, err));
	TRY(vec_new(&m->members, m->matches.member_count, err));
	TRY(matches_next(&m->matches, &range, &more, err));
	while (more) {
		const char *why = range.why;

		m->sums = (struct sums){ 0 };
		if (!why) {
			TRY(matches_each(&m->matches, &range, match_one, m, err));
			if (!m->sums.matched)
				why = "no collective is recorded on all ranks of the group";
		}
		struct table *t = tables_find(m->all, "groups");
		const struct ref *first = &m->matches.refs[range.first];
		const struct sums *s = &m->sums;
		union value keys[2] = { { .text = first->group }, { .text = first->operation } },
			    *row;
		TRY(table_row(t, keys, &row, err));
		row[GROUPS_RANKS].u64 = range.members;
		row[GROUPS_CALLS].u64 = row[GROUPS_SIZE].u64 = 0;
		row[GROUPS_MATCHED].u64 = s->matched;
		row[GROUPS_NAMED].u64 = s->named;
		row[GROUPS_TRANSFER].u64 = s->matched ? s->transfer_ns : NO_U64;
		row[GROUPS_WAIT].u64 = s->matched ? s->wait_ns : NO_U64;
		row[GROUPS_BY].text = first->row[EVENTS_BY_SEQ].u64 == 1 ? "seq" : "count";
		row[GROUPS_BY].text = table_text(t, row[GROUPS_BY].text, err);
		if (!row[GROUPS_BY].text)
			return ST_CEILING;
		if (why) {
			row[GROUPS_WHY].text = table_text(t, why, err);
			if (!row[GROUPS_WHY].text)
				return ST_CEILING;
		}
		TRY(matches_next(&m->matches, &range, &more, err));
	}
	/* Add calls and sizes, including those that were not kept for matching. */
	struct table *comm = tables_find(m->all, "comm"), *groups = tables_find(m->all, "groups");
	union value *row, *of;
	for (size_t i = 0; (row = table_at(comm, i)); i++) {
		union value keys[2] = { row[COMM_GROUP], row[COMM_OPERATION] };

		TRY(table_row(groups, keys, &of, err));
		of[GROUPS_CALLS].u64 = plus(of[GROUPS_CALLS].u64, row[COMM_COUNT].u64);
		of[GROUPS_SIZE].u64 = plus(of[GROUPS_SIZE].u64, 0);
		of[GROUPS_SIZE].u64 = later(of[GROUPS_SIZE].u64, row[COMM_RANKS].u64);
		of[GROUPS_MATCHED].u64 = plus(of[GROUPS_MATCHED].u64, 0);
		if (row[COMM_LEFT_OUT].u64 && !of[GROUPS_WHY].text)
			of[GROUPS_WHY].text =
				table_text(groups, "of a rank only the first ones are kept", err);
	}
	bandwidths(m);
	TRY(put_waits(m, err));
	TRY(put_savings(m, err));
	return put_gpus(m, err);
}

enum status comm_match(struct tables *all, struct error *err)
{
	struct comm_matching m = { .all = all };
	enum status status = matches_run(&m, err);

	matches_release(&m.matches);
	free(m.members);
	return status;
}
