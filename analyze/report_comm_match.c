/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives matched over the ranks (DEFINITIONS.md 7): who waited, and for whom.
 *
 * Per communicator and operation, twice over the packed rows of all ranks: first the shortest time
 * of each index and whose it is, then what each rank's own time is beyond it.  Memory is one entry
 * for each index, not for each rank's.
 */
#include "analyze/report_comm.h"

#include "convert/collective.h"
#include "schemas/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1 << 15 /* of stragglers and of pairs; more are not told apart */ };

/* ---- who there is ----------------------------------------------------------------------- */

struct member { /* a GPU of a rank */
	const union value *keys; /* rank, host, pid, device */
	uint64_t collectives, matched, transfer_ns, wait_ns, exposed_wait_ns;
	uint64_t times_last, late_ns, made_wait_ns;
};
struct ref { /* a packed row */
	const union value *row;
	const char *group, *operation; /* of the tables: equal ones are one */
	uint32_t member;
};
struct meet { /* an index of a communicator and operation; what the ranks have of it */
	uint64_t step, index, of_step; /* step: NO_U64 with Seq */
	uint64_t least_ns, second_ns;
	uint32_t count, last, least; /* members */
	bool twice, used;
};
struct match {
	struct tables *all;
	struct member *members;
	size_t member_count;
	struct ref *refs;
	size_t ref_count;
	struct meet *meets; /* open hash */
	size_t meet_cap, meet_count;
};
struct late { /* what one collective says of its culprit */
	uint64_t times, late_ns, made_ns;
};

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory to match collectives");
}

static int compare_refs(const void *pa, const void *pb)
{
	const struct ref *a = pa, *b = pb;
	int order = a->group == b->group ? 0 : strcmp(a->group, b->group);

	if (!order && a->operation != b->operation)
		order = strcmp(a->operation, b->operation);
	if (order)
		return order;
	if (a->member != b->member)
		return a->member < b->member ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

/* Rows come in the order of their ranks: each new one is a new member. */
static enum status refs_take(struct match *m, struct error *err)
{
	struct table *t = tables_find(m->all, "comm_events");
	size_t i, count = table_count(t);

	m->refs = calloc(count + 1, sizeof(*m->refs));
	m->members = calloc(count + 1, sizeof(*m->members));
	if (!m->refs || !m->members)
		return no_memory(err);
	for (i = 0; i < count; i++) {
		const union value *row = table_at(t, i);
		const union value *last = m->member_count ? m->members[m->member_count - 1].keys
							  : NULL;

		if (!last || memcmp(last, row, (EVENTS_DEVICE + 1) * sizeof(*row)) != 0)
			m->members[m->member_count++].keys = row;
		m->refs[m->ref_count++] = (struct ref){
			.row = row, .group = row[EVENTS_GROUP].text,
			.operation = row[EVENTS_OPERATION].text,
			.member = (uint32_t)(m->member_count - 1),
		};
	}
	if (m->ref_count)
		qsort(m->refs, m->ref_count, sizeof(*m->refs), compare_refs);
	return ST_OK;
}

/* Members that have anything of this communicator. */
static size_t participants(const struct match *m, size_t first)
{
	size_t count = 0, from = first, i;
	bool *has = calloc(m->member_count + 1, 1);

	while (from && m->refs[from - 1].group == m->refs[first].group)
		from--;
	for (i = from; has && i < m->ref_count && m->refs[i].group == m->refs[first].group; i++) {
		count += !has[m->refs[i].member];
		has[m->refs[i].member] = true;
	}
	free(has);
	return count;
}

/* ---- meeting ---------------------------------------------------------------------------- */

static size_t meet_slot(const struct match *m, const struct meet *key)
{
	uint64_t hash = hash_word(hash_word(hash_word(1, key->step), key->index), key->of_step);
	size_t at = hash & (m->meet_cap - 1);

	for (;; at = (at + 1) & (m->meet_cap - 1)) {
		const struct meet *have = &m->meets[at];

		if (!have->used || (have->step == key->step && have->index == key->index &&
				    have->of_step == key->of_step))
			return at;
	}
}

static enum status meets_grow(struct match *m, struct error *err)
{
	struct meet *old = m->meets;
	size_t cap = m->meet_cap, i;

	m->meet_cap = cap ? cap * 2 : 1024;
	m->meets = calloc(m->meet_cap, sizeof(*m->meets));
	if (!m->meets) {
		m->meets = old;
		m->meet_cap = cap;
		return no_memory(err);
	}
	for (i = 0; i < cap; i++)
		if (old[i].used)
			m->meets[meet_slot(m, &old[i])] = old[i];
	free(old);
	return ST_OK;
}

static struct meet key_of(const struct ref *r, const struct met *one)
{
	bool by_seq = r->row[EVENTS_BY_SEQ].u64 == 1;

	/* ranks with different counts in a step do not meet: one of them misses something */
	return (struct meet){ .step = by_seq ? NO_U64 : r->row[EVENTS_STEP].u64,
			      .of_step = by_seq ? NO_U64 : r->row[EVENTS_OF_STEP].u64,
			      .index = one->index, .least_ns = UINT64_MAX,
			      .second_ns = UINT64_MAX, .used = true };
}

static bool is_usable(const struct ref *r)
{
	return r->row[EVENTS_BY_SEQ].u64 == 1 || r->row[EVENTS_WHOLE].u64 == 1;
}

static enum status meet_put(struct match *m, const struct ref *r, const struct met *one,
			    struct error *err)
{
	struct meet key = key_of(r, one), *at;

	if (m->meet_count * 2 >= m->meet_cap)
		TRY(meets_grow(m, err));
	at = &m->meets[meet_slot(m, &key)];
	if (!at->used) {
		*at = key;
		m->meet_count++;
	} else if (at->last == r->member) {
		at->twice = true;
		return ST_OK;
	}
	at->last = r->member;
	at->count++;
	if (one->ns < at->least_ns) {
		at->second_ns = at->least_ns;
		at->least_ns = one->ns;
		at->least = r->member;
	} else if (one->ns < at->second_ns) {
		at->second_ns = one->ns;
	}
	return ST_OK;
}

static enum status meets_fill(struct match *m, size_t first, size_t end, struct error *err)
{
	struct met one;
	size_t i;

	if (m->meet_cap)
		memset(m->meets, 0, m->meet_cap * sizeof(*m->meets));
	m->meet_count = 0;
	for (i = first; i < end; i++) {
		const char *packed = m->refs[i].row[EVENTS_PACKED].text;
		uint64_t last_index = 0;

		while (is_usable(&m->refs[i]) && met_take(&packed, &one, &last_index))
			TRY(meet_put(m, &m->refs[i], &one, err));
	}
	return ST_OK;
}

/* The rank that came last, NO_ID: within the noise. */
enum { NOISE_NS = 5000, NOISE_PERCENT = 5 };
static uint32_t culprit_of(const struct meet *at)
{
	uint64_t noise = at->least_ns / 100 * NOISE_PERCENT, ahead = at->second_ns - at->least_ns;

	return ahead > (noise > NOISE_NS ? noise : NOISE_NS) ? at->least : NO_ID;
}

/* ---- what follows from it --------------------------------------------------------------- */

static uint64_t plus(uint64_t sum, uint64_t more)
{
	return (sum == NO_U64 ? 0 : sum) + more;
}

static enum status note_straggler(struct match *m, const struct ref *r, uint32_t culprit,
				  const struct late *of, struct error *err)
{
	struct table *t = tables_find(m->all, "stragglers");
	union value keys[STRAGGLER_KEYS], *row;

	if (table_count(t) >= ROWS_MOST)
		return ST_OK;
	keys[STRAGGLER_STEP] = r->row[EVENTS_STEP];
	keys[STRAGGLER_PHASE] = r->row[EVENTS_PHASE];
	memcpy(&keys[STRAGGLER_RANK], m->members[culprit].keys, RANK_KEYS * sizeof(keys[0]));
	TRY(table_row(t, keys, &row, err));
	row[STRAGGLER_LAST].u64 = plus(row[STRAGGLER_LAST].u64, of->times);
	row[STRAGGLER_LATE].u64 = plus(row[STRAGGLER_LATE].u64, of->late_ns);
	row[STRAGGLER_MADE].u64 = plus(row[STRAGGLER_MADE].u64, of->made_ns);
	return ST_OK;
}

static enum status note_pair(struct match *m, const struct ref *r, uint32_t culprit,
			     uint64_t wait_ns, struct error *err)
{
	struct table *t = tables_find(m->all, "waits_for");
	union value keys[PAIR_KEYS], *row;

	if (table_count(t) >= ROWS_MOST)
		return ST_OK;
	memcpy(keys, r->row, RANK_KEYS * sizeof(keys[0]));
	memcpy(&keys[PAIR_RANK], m->members[culprit].keys, RANK_KEYS * sizeof(keys[0]));
	TRY(table_row(t, keys, &row, err));
	row[PAIR_CALLS].u64 = plus(row[PAIR_CALLS].u64, 1);
	row[PAIR_WAIT].u64 = plus(row[PAIR_WAIT].u64, wait_ns);
	return ST_OK;
}

static enum status note_class(struct match *m, const struct ref *r, const struct met *one,
			      const struct meet *at, struct error *err)
{
	struct table *t = tables_find(m->all, "comm");
	union value keys[COMM_BYTES + 1], *row;
	uint64_t wait_ns = one->ns - at->least_ns;

	memcpy(keys, r->row, RANK_KEYS * sizeof(keys[0]));
	keys[COMM_GROUP] = r->row[EVENTS_GROUP];
	keys[COMM_OPERATION] = r->row[EVENTS_OPERATION];
	keys[COMM_TYPE] = r->row[EVENTS_TYPE];
	keys[COMM_BYTES].u64 = one->bytes;
	TRY(table_row(t, keys, &row, err));
	row[COMM_MATCHED].u64 = plus(row[COMM_MATCHED].u64, 1);
	row[COMM_TRANSFER].u64 = plus(row[COMM_TRANSFER].u64, at->least_ns);
	row[COMM_WAIT].u64 = plus(row[COMM_WAIT].u64, wait_ns);
	row[COMM_EXPOSED_WAIT].u64 = plus(row[COMM_EXPOSED_WAIT].u64, met_exposed(one, wait_ns));
	return ST_OK;
}

struct sums {
	uint64_t calls, matched, transfer_ns, wait_ns, named;
};

static enum status match_one(struct match *m, const struct ref *r, const struct met *one,
			     const struct meet *at, struct sums *s, struct error *err)
{
	struct member *own = &m->members[r->member];
	uint64_t wait_ns = one->ns - at->least_ns;
	uint32_t culprit = culprit_of(at);
	struct late of = { 0 };

	own->matched++;
	own->transfer_ns += at->least_ns;
	own->wait_ns += wait_ns;
	own->exposed_wait_ns += met_exposed(one, wait_ns);
	s->matched++;
	s->transfer_ns += at->least_ns;
	s->wait_ns += wait_ns;
	TRY(note_class(m, r, one, at, err));
	if (culprit == NO_ID)
		return ST_OK;
	if (culprit != r->member) {
		m->members[culprit].made_wait_ns += of.made_ns = wait_ns;
		TRY(note_pair(m, r, culprit, wait_ns, err));
		return note_straggler(m, r, culprit, &of, err);
	}
	of.times = 1;
	of.late_ns = at->second_ns - at->least_ns;
	s->named++;
	own->times_last++;
	own->late_ns += of.late_ns;
	return note_straggler(m, r, culprit, &of, err);
}

static enum status match_all(struct match *m, size_t first, size_t end, size_t members,
			     struct sums *s, struct error *err)
{
	struct met one;
	size_t i;

	for (i = first; i < end; i++) {
		const struct ref *r = &m->refs[i];
		const char *packed = r->row[EVENTS_PACKED].text;
		uint64_t last_index = 0;

		while (members > 1 && is_usable(r) && met_take(&packed, &one, &last_index)) {
			struct meet key = key_of(r, &one);
			const struct meet *at = &m->meets[meet_slot(m, &key)];

			if (at->count == members && !at->twice)
				TRY(match_one(m, r, &one, at, s, err));
		}
	}
	return ST_OK;
}

/* ---- may they meet at all --------------------------------------------------------------- */

struct count_of { /* of a step */
	uint64_t step, of_step;
	uint32_t member;
};

static int compare_counts(const void *pa, const void *pb)
{
	const struct count_of *a = pa, *b = pb;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return (a->member > b->member) - (a->member < b->member);
}

/* Of rows that are in order: whether steps that all have whole have equal counts. */
static bool equal_counts(const struct count_of *all, size_t count, size_t members)
{
	size_t first, end, seen;
	bool equal;

	for (first = 0; first < count; first = end) {
		seen = 1;
		equal = true;
		for (end = first + 1; end < count && all[end].step == all[first].step; end++) {
			seen += all[end].member != all[end - 1].member;
			equal &= all[end].of_step == all[first].of_step;
		}
		if (seen == members && !equal)
			return false;
	}
	return true;
}

/* Without a communicator: one stream on each rank, and as many in each step. */
static enum status check_nameless(struct match *m, size_t first, size_t end, size_t members,
				  const char **why, struct error *err)
{
	struct count_of *all = calloc(end - first + 1, sizeof(*all));
	size_t count = 0, i;

	if (!all)
		return no_memory(err);
	for (i = first; i < end && !*why; i++) {
		const union value *row = m->refs[i].row;

		if (i > first && m->refs[i - 1].member == m->refs[i].member &&
		    m->refs[i - 1].row[EVENTS_STREAM].u64 != row[EVENTS_STREAM].u64)
			*why = "no communicator in the files, and a rank has it on several streams";
		if (row[EVENTS_WHOLE].u64 == 1)
			all[count++] = (struct count_of){ row[EVENTS_STEP].u64,
							  row[EVENTS_OF_STEP].u64,
							  m->refs[i].member };
	}
	if (count)
		qsort(all, count, sizeof(*all), compare_counts);
	if (!*why && !equal_counts(all, count, members))
		*why = "no communicator in the files, and steps have different counts on the ranks";
	free(all);
	return ST_OK;
}

static bool any_sampled(const struct match *m)
{
	struct table *t = tables_find(m->all, "trust");
	size_t sampled = table_column(t, "sampled"), i;

	for (i = 0; i < table_count(t); i++)
		if (table_at(t, i)[sampled].u64 == 1)
			return true;
	return false;
}

static enum status check(struct match *m, size_t first, size_t end, size_t members,
			 const char **why, struct error *err)
{
	const struct ref *r = &m->refs[first];
	bool any = false;
	size_t i;

	for (i = first; i < end; i++)
		any |= is_usable(&m->refs[i]);
	*why = NULL;
	if (operation_is_point(operation_find(r->operation)))
		*why = "SendRecv never by order";
	else if (members < 2)
		*why = "only one of its ranks is given";
	else if (!any)
		*why = "no Seq, and no step that was recorded whole";
	else if (r->row[EVENTS_BY_SEQ].u64 != 1 && any_sampled(m))
		*why = "no Seq, and of a sample the order says nothing";
	else if (!*r->group)
		return check_nameless(m, first, end, members, why, err);
	return ST_OK;
}

/* ---- tables ----------------------------------------------------------------------------- */

static enum status put_group(struct match *m, size_t first, size_t members, const char *why,
			     const struct sums *s, struct error *err)
{
	struct table *t = tables_find(m->all, "groups");
	union value keys[2] = { { .text = m->refs[first].group },
				{ .text = m->refs[first].operation } }, *row;

	TRY(table_row(t, keys, &row, err));
	row[GROUPS_RANKS].u64 = members;
	row[GROUPS_CALLS].u64 = row[GROUPS_SIZE].u64 = 0;
	row[GROUPS_MATCHED].u64 = s->matched;
	row[GROUPS_NAMED].u64 = s->named;
	row[GROUPS_TRANSFER].u64 = s->matched ? s->transfer_ns : NO_U64;
	row[GROUPS_WAIT].u64 = s->matched ? s->wait_ns : NO_U64;
	row[GROUPS_BY].text = m->refs[first].row[EVENTS_BY_SEQ].u64 == 1 ? "seq" : "count";
	row[GROUPS_BY].text = table_text(t, row[GROUPS_BY].text, err);
	if (!row[GROUPS_BY].text)
		return ST_CEILING;
	if (!why)
		return ST_OK;
	row[GROUPS_WHY].text = table_text(t, why, err);
	return row[GROUPS_WHY].text ? ST_OK : ST_CEILING;
}

static enum status match_range(struct match *m, size_t first, size_t end, struct error *err)
{
	struct sums s = { 0 };
	size_t members = participants(m, first);
	const char *why = NULL;

	TRY(check(m, first, end, members, &why, err));
	if (!why) {
		TRY(meets_fill(m, first, end, err));
		TRY(match_all(m, first, end, members, &s, err));
		if (!s.matched)
			why = "no index is on all of its ranks";
	}
	return put_group(m, first, members, why, &s, err);
}

/* Calls and sizes, of what was kept to be matched and what was not. */
static enum status groups_count(struct match *m, struct error *err)
{
	struct table *comm = tables_find(m->all, "comm"), *groups = tables_find(m->all, "groups");
	union value *row, *of;
	size_t i;

	for (i = 0; (row = table_at(comm, i)); i++) {
		union value keys[2] = { row[COMM_GROUP], row[COMM_OPERATION] };

		TRY(table_row(groups, keys, &of, err));
		of[GROUPS_CALLS].u64 = plus(of[GROUPS_CALLS].u64, row[COMM_COUNT].u64);
		of[GROUPS_SIZE].u64 = plus(of[GROUPS_SIZE].u64, 0);
		if (row[COMM_RANKS].u64 > of[GROUPS_SIZE].u64)
			of[GROUPS_SIZE].u64 = row[COMM_RANKS].u64;
		of[GROUPS_MATCHED].u64 = plus(of[GROUPS_MATCHED].u64, 0);
		if (row[COMM_LEFT_OUT].u64 && !of[GROUPS_WHY].text)
			of[GROUPS_WHY].text = table_text(
				groups, "of a rank only the first ones are kept", err);
	}
	return ST_OK;
}

static void bandwidths(struct match *m)
{
	struct table *comm = tables_find(m->all, "comm");
	union value *row;
	size_t i;

	for (i = 0; (row = table_at(comm, i)); i++) {
		bool is_matched = row[COMM_MATCHED].u64 != NO_U64;
		double calls = (double)(is_matched ? row[COMM_MATCHED].u64 : row[COMM_COUNT].u64);
		double ns = (double)(is_matched ? row[COMM_TRANSFER].u64 : row[COMM_TOTAL].u64);
		double factor = operation_factor(operation_find(row[COMM_OPERATION].text),
						 row[COMM_RANKS].u64);

		row[COMM_MATCHED].u64 = is_matched ? row[COMM_MATCHED].u64 : 0;
		if (row[COMM_BYTES].u64 == NO_U64 || ns <= 0)
			continue;
		row[COMM_ALGORITHM].f64 = (double)row[COMM_BYTES].u64 * calls / ns;
		if (factor > 0)
			row[COMM_BUS].f64 = row[COMM_ALGORITHM].f64 * factor;
	}
}

static enum status put_waits(struct match *m, struct error *err)
{
	struct table *t = tables_find(m->all, "waits"), *comm = tables_find(m->all, "comm");
	union value *row, *of;
	size_t i;

	for (i = 0; (row = table_at(comm, i)); i++) {
		TRY(table_row(t, row, &of, err));
		of[WAITS_CALLS].u64 = plus(of[WAITS_CALLS].u64, row[COMM_COUNT].u64);
		of[WAITS_MATCHED].u64 = plus(of[WAITS_MATCHED].u64, 0);
	}
	for (i = 0; i < m->member_count; i++) {
		const struct member *own = &m->members[i];

		if (!own->matched)
			continue;
		TRY(table_row(t, own->keys, &row, err));
		row[WAITS_MATCHED].u64 = plus(row[WAITS_MATCHED].u64, own->matched);
		row[WAITS_TRANSFER].u64 = plus(row[WAITS_TRANSFER].u64, own->transfer_ns);
		row[WAITS_WAIT].u64 = plus(row[WAITS_WAIT].u64, own->wait_ns);
		row[WAITS_EXPOSED].u64 = plus(row[WAITS_EXPOSED].u64, own->exposed_wait_ns);
		row[WAITS_LAST].u64 = plus(row[WAITS_LAST].u64, own->times_last);
		row[WAITS_LATE].u64 = plus(row[WAITS_LATE].u64, own->late_ns);
		row[WAITS_MADE].u64 = plus(row[WAITS_MADE].u64, own->made_wait_ns);
	}
	return ST_OK;
}

/* gpus.exposed_comm_wait_ns: 0 where nothing communicates, null where nothing is matched. */
static enum status put_gpus(struct match *m, struct error *err)
{
	struct table *t = tables_find(m->all, "gpus");
	size_t at = t ? table_column(t, "exposed_comm_wait_ns") : 0, i;
	size_t comm = t ? table_column(t, "comm_ns") : 0;
	union value *row;

	for (i = 0; at && i < table_count(t); i++) {
		row = table_at(t, i);
		row[at].u64 = row[comm].u64 ? NO_U64 : 0;
	}
	for (i = 0; at && i < m->member_count; i++) {
		if (!m->members[i].matched)
			continue;
		TRY(table_row(t, m->members[i].keys, &row, err));
		row[at].u64 = plus(row[at].u64, m->members[i].exposed_wait_ns);
	}
	return ST_OK;
}

static enum status match_run(struct match *m, struct error *err)
{
	size_t first, end;

	TRY(refs_take(m, err));
	for (first = 0; first < m->ref_count; first = end) {
		for (end = first + 1; end < m->ref_count &&
		     m->refs[end].group == m->refs[first].group &&
		     m->refs[end].operation == m->refs[first].operation; end++)
			;
		TRY(match_range(m, first, end, err));
	}
	TRY(groups_count(m, err));
	bandwidths(m);
	TRY(put_waits(m, err));
	return put_gpus(m, err);
}

enum status comm_match(struct tables *all, struct error *err)
{
	struct match m = { .all = all };
	enum status status = match_run(&m, err);

	free(m.members);
	free(m.refs);
	free(m.meets);
	return status;
}
