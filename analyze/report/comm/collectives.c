/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/comm/collectives.h"

#include "convert/stage/collective.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

struct of_number { /* a step's number in a row */
	uint64_t number;
	uint32_t part; /* index of the group of refs with one communicator, operation and member */
	uint32_t interval;
	struct ref *ref;
};

/* Numbers the steps of one member with the same number over its inputs. */
static void number_add(const struct of_number *all, size_t first, size_t end)
{
	uint32_t times = 0;

	for (size_t i = first; i < end; i++) {
		struct ref *r = all[i].ref;

		r->nth = times + (uint32_t)r->row[EVENTS_NTH].u64;
		if (i + 1 == end || all[i + 1].ref->interval != r->interval)
			times += (uint32_t)r->row[EVENTS_TIMES].u64;
	}
	for (size_t i = first; i < end; i++)
		all[i].ref->times = times;
}

static void numbers_add(const struct of_number *all, size_t count)
{
	size_t end;

	for (size_t first = 0; first < count; first = end) {
		bool is_even = true;
		size_t part = first;
		for (end = first; end < count && all[end].number == all[first].number; end++) {
			is_even &= all[end].ref->row[EVENTS_TIMES].u64 ==
				   all[first].ref->row[EVENTS_TIMES].u64;
			if (all[end].part == all[part].part)
				continue;
			number_add(all, part, end);
			part = end;
		}
		number_add(all, part, end);
		for (size_t i = first; i < end; i++)
			all[i].ref->is_even = is_even;
	}
}

/* Counts repeated step numbers, within an input and over the inputs of a member. */
static enum status numbers_find(struct coll_matches *m, struct error *err)
{
	RELEASED_BY(vec_release) struct of_number *all = NULL;
	uint32_t part = 0;
	size_t count = 0;

	TRY(vec_new(&all, m->ref_count, err));
	for (size_t i = 0; i < m->ref_count; i++) {
		struct ref *r = &m->refs[i];

		part += i && (r->group != r[-1].group || r->operation != r[-1].operation ||
			      r->member != r[-1].member);
		if (r->row[EVENTS_STEP].u64 != NO_U64)
			all[count++] =
				(struct of_number){ r->row[EVENTS_STEP].u64, part, r->interval, r };
	}
	SORT_BY(all, count, UP(struct of_number, number), UP(struct of_number, part),
		UP(struct of_number, interval));
	numbers_add(all, count);
	return ST_OK;
}

/* Returns the number of members with any collective of this communicator. */
static size_t participants(const struct coll_matches *m, size_t first)
{
	size_t count = 0, from = first;
	bool *has = calloc(m->member_count + 1, 1);

	while (from && m->refs[from - 1].group == m->refs[first].group)
		from--;
	for (size_t i = from; has && i < m->ref_count && m->refs[i].group == m->refs[first].group;
	     i++) {
		count += !has[m->refs[i].member];
		has[m->refs[i].member] = true;
	}
	free(has);
	return count;
}

/* ---- matching --------------------------------------------------------------------------- */

static uint64_t match_hash(const struct coll_match *key)
{
	return hash_word(hash_word(hash_word(1 + key->nth, key->step), key->index), key->of_step);
}

/* Returns NULL if there is none. */
static struct coll_match *match_find(const struct coll_matches *m, const struct coll_match *key)
{
	uint32_t i = hash_find(&m->index, match_hash(key), m->items, sizeof(*key), key,
			       offsetof(struct coll_match, least_ns));

	return i == HASH_NONE ? NULL : &m->items[i];
}

static struct coll_match key_of(const struct ref *r, const struct rank_call *one)
{
	bool by_seq = r->row[EVENTS_BY_SEQ].u64 == 1;

	/* The key has the step's count of collectives and of its number. Ranks with different
	 * counts in a step are not matched, because one of them lacks some. Nor are ranks with
	 * different counts of a step's number, because it is unknown which steps correspond. */
	return (struct coll_match){ .step = by_seq ? NO_U64 : r->row[EVENTS_STEP].u64,
				    .of_step = by_seq ? NO_U64 : r->row[EVENTS_OF_STEP].u64,
				    .nth = by_seq ? 0 : r->nth,
				    .times = by_seq ? 0 : r->times,
				    .index = one->index,
				    .place = one->place,
				    .bytes = one->bytes,
				    .type = r->row[EVENTS_TYPE].text,
				    .least_ns = UINT64_MAX,
				    .second_ns = UINT64_MAX };
}

static bool is_usable(const struct ref *r)
{
	return r->row[EVENTS_BY_SEQ].u64 == 1 || r->row[EVENTS_WHOLE].u64 == 1;
}

/* Returns whether only its place among all collectives identifies it: no Seq, and no marks. */
static bool is_unmarked(const struct ref *r)
{
	return r->row[EVENTS_BY_SEQ].u64 != 1 && r->row[EVENTS_STEP].u64 == NO_U64;
}

static bool is_alike(const struct coll_match *a, const struct coll_match *b)
{
	return a->place == b->place && a->bytes == b->bytes && a->type == b->type;
}

/* Returns whether all collectives agree. If one is missing or differs on a rank, the places of all
 * others may be wrong. */
static bool all_agree(const struct coll_matches *m, size_t members)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->items[i].twice || m->items[i].count != members)
			return false;
	return true;
}

static enum status match_add(struct coll_matches *m, const struct ref *r,
			     const struct rank_call *one, struct error *err)
{
	struct coll_match key = key_of(r, one);

	struct coll_match *at = match_find(m, &key);
	if (!at) {
		TRY(vec_reserve(&m->items, &m->cap, m->count + 1, err));
		TRY(hash_add(&m->index, match_hash(&key), (uint32_t)m->count, err));
		at = &m->items[m->count++];
		*at = key;
		at->number = m->numbers++;
	} else if (at->last == r->member || (is_unmarked(r) && !is_alike(at, &key))) {
		at->twice = true;
		return ST_OK;
	}
	at->last = r->member;
	at->settles |= r->row[EVENTS_SETTLES].u64 == 1;
	at->count++;
	if (one->ns < at->least_ns) {
		at->second_ns = at->least_ns;
		at->least_ns = one->ns;
		at->least = r->member;
		at->least_exposed_ns = call_exposed_ns(one, UINT64_MAX);
	} else if (one->ns < at->second_ns) {
		at->second_ns = one->ns;
	}
	return ST_OK;
}

/* A lead of the last rank up to this is noise. */
enum { NOISE_NS = 5000, NOISE_PERCENT = 5 };
uint32_t match_culprit(const struct coll_match *at)
{
	uint64_t noise = at->least_ns / 100 * NOISE_PERCENT, ahead = at->second_ns - at->least_ns;

	return ahead > (noise > NOISE_NS ? noise : NOISE_NS) ? at->least : NO_ID;
}

/* ---- whether ranks can be matched at all ------------------------------------------------ */

struct count_of { /* count of collectives in a step */
	uint64_t step, of_step;
	uint32_t nth, times, member;
};

static bool same_step(const struct count_of *a, const struct count_of *b)
{
	return a->step == b->step && a->nth == b->nth && a->times == b->times;
}

/* Returns whether steps that all members have complete have equal counts. `all` is sorted. */
static bool equal_counts(const struct count_of *all, size_t count, size_t members)
{
	size_t end;

	for (size_t first = 0; first < count; first = end) {
		size_t seen = 1;
		bool equal = true;
		for (end = first + 1; end < count && same_step(&all[end], &all[first]); end++) {
			seen += all[end].member != all[end - 1].member;
			equal &= all[end].of_step == all[first].of_step;
		}
		if (seen == members && !equal)
			return false;
	}
	return true;
}

static bool any_sampled(const struct coll_matches *m)
{
	struct table *t = tables_find(m->all, "trust");
	size_t sampled = table_column(t, "sampled");

	for (size_t i = 0; i < table_count(t); i++)
		if (table_at(t, i)[sampled].u64 == 1)
			return true;
	return false;
}

static enum status check(struct coll_matches *m, size_t first, size_t end, size_t members,
			 const char **why, struct error *err)
{
	const struct ref *r = &m->refs[first];
	bool any = false;

	for (size_t i = first; i < end; i++)
		any |= is_usable(&m->refs[i]);
	*why = NULL;
	if (operation_is_point(operation_find(r->operation)) && r->row[EVENTS_BY_SEQ].u64 != 1)
		*why = "SendRecv calls without Seq cannot be matched by their order";
	else if (operation_is_point(operation_find(r->operation)) && !group_is_pair(r->group))
		*why = "the files do not state which ranks a SendRecv connects";
	else if (members < 2)
		*why = "the inputs contain only one rank of the group";
	else if (!any)
		*why = "the calls have no Seq, and no step is complete";
	else if (r->row[EVENTS_BY_SEQ].u64 != 1 && any_sampled(m))
		*why = "the calls have no Seq, and a sample does not keep their order";
	else if (!*r->group) {
		/* Without a communicator, each rank must use one stream and have equally many in
		 * each step. */
		RELEASED_BY(vec_release) struct count_of *all = NULL;
		size_t count = 0;
		TRY(vec_new(&all, end - first, err));
		for (size_t i = first; i < end && !*why; i++) {
			const union value *row = m->refs[i].row;

			if (i > first && m->refs[i - 1].member == m->refs[i].member &&
			    m->refs[i - 1].row[EVENTS_STREAM].u64 != row[EVENTS_STREAM].u64)
				*why = "the files have no communicators, and a rank uses several "
				       "streams for it";
			if (row[EVENTS_WHOLE].u64 == 1)
				all[count++] = (struct count_of){
					row[EVENTS_STEP].u64, row[EVENTS_OF_STEP].u64,
					m->refs[i].nth,       m->refs[i].times,
					m->refs[i].member,
				};
		}
		SORT_BY(all, count, UP(struct count_of, step), UP(struct count_of, nth),
			UP(struct count_of, times), UP(struct count_of, member));
		if (!*why && !equal_counts(all, count, members))
			*why = "the files have no communicators, and ranks have different counts "
			       "in a step";
	}
	return ST_OK;
}

/* ---- interface -------------------------------------------------------------------------- */

enum status matches_open(struct coll_matches *m, struct tables *all, struct error *err)
{
	*m = (struct coll_matches){ .all = all };
	/* Rows are sorted by rank: each new rank and device is a new member. */
	struct table *t = tables_find(m->all, "comm_events");
	size_t count = table_count(t);
	TRY(vec_new(&m->refs, count, err));
	TRY(vec_new(&m->members, count, err));
	TRY(vec_new(&m->intervals, count, err));
	for (size_t i = 0; i < count; i++) {
		const union value *row = table_at(t, i);
		const union value *last = i ? table_at(t, i - 1) : NULL;

		if (!last || memcmp(last, row, (EVENTS_DEVICE + 1) * sizeof(*row)) != 0)
			m->members[m->member_count++] = row;
		if (!last || memcmp(last, row, (EVENTS_FROM + 1) * sizeof(*row)) != 0)
			m->intervals[m->interval_count++] = row;
		m->refs[m->ref_count++] = (struct ref){
			.row = row,
			.place = i,
			.group = row[EVENTS_GROUP].text,
			.operation = row[EVENTS_OPERATION].text,
			.member = (uint32_t)(m->member_count - 1),
			.interval = (uint32_t)(m->interval_count - 1),
		};
	}
	SORT_BY(m->refs, m->ref_count, UP(struct ref, group), UP(struct ref, operation),
		UP(struct ref, member), UP(struct ref, place));
	return numbers_find(m, err);
}

void matches_release(struct coll_matches *m)
{
	free(m->members);
	free(m->intervals);
	free(m->refs);
	free(m->items);
	hash_release(&m->index);
}

enum status matches_next(struct coll_matches *m, struct match_range *range, bool *more,
			 struct error *err)
{
	size_t first = range->end, end = first + 1;
	struct rank_call one;

	*more = first < m->ref_count;
	if (!*more)
		return ST_OK;
	while (end < m->ref_count && m->refs[end].group == m->refs[first].group &&
	       m->refs[end].operation == m->refs[first].operation)
		end++;
	*range = (struct match_range){ first, end, participants(m, first), NULL };
	TRY(check(m, first, end, range->members, &range->why, err));
	if (range->why)
		return ST_OK;
	hash_clear(&m->index);
	m->count = 0;
	for (size_t i = first; i < end; i++) {
		const char *packed = m->refs[i].row[EVENTS_PACKED].text;
		struct packed_last last = { 0, 0 };

		while (is_usable(&m->refs[i]) && call_unpack(&packed, &one, &last))
			TRY(match_add(m, &m->refs[i], &one, err));
	}
	if (is_unmarked(&m->refs[first]) && !all_agree(m, range->members))
		range->why = "the calls have no Seq, no step is marked, and the ranks differ";
	return ST_OK;
}

enum status matches_each(struct coll_matches *m, const struct match_range *range,
			 matched_call_fn visit, void *self, struct error *err)
{
	struct rank_call one;

	for (size_t i = range->first; i < range->end; i++) {
		const struct ref *r = &m->refs[i];
		const char *packed = r->row[EVENTS_PACKED].text;
		struct packed_last last = { 0, 0 };

		while (is_usable(r) && call_unpack(&packed, &one, &last)) {
			struct coll_match key = key_of(r, &one);
			struct matched_call of = { r, &one, match_find(m, &key) };

			if (of.match->count == range->members && !of.match->twice)
				TRY(visit(self, &of, err));
		}
	}
	return ST_OK;
}
