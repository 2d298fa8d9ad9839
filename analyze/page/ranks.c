/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
}

/* ---- collectives ------------------------------------------------------------------------ */

static int compare_keys(const struct comm_row *a, const struct comm_row *b)
{
	int order = strcmp(a->group, b->group);

	order = order ? order : strcmp(a->operation, b->operation);
	order = order ? order : strcmp(a->type, b->type);
	return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int compare_rows(const void *pa, const void *pb)
{
	return compare_keys(pa, pb);
}

static int compare_time(const void *pa, const void *pb)
{
	const struct comm_row *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return compare_keys(a, b);
}

static struct comm_row row_of(const struct view *v, size_t i)
{
	uint64_t wait_ns = view_cell(v, i, "wait_ns").u64;
	double algorithm = view_cell(v, i, "algorithm_gb_per_s").f64;
	double bus = view_cell(v, i, "bus_gb_per_s").f64;
	struct comm_row row = {
		.group = view_text(v, i, "group"),
		.operation = view_text(v, i, "operation"),
		.type = view_text(v, i, "type"),
		.bytes = view_cell(v, i, "size_bytes").u64,
		.ranks = view_cell(v, i, "group_size").u64,
		.calls = view_cell(v, i, "count").u64,
		.matched = view_cell(v, i, "matched").u64,
		.total_ns = view_cell(v, i, "total_ns").u64,
		.exposed_ns = view_cell(v, i, "exposed_ns").u64,
		.wait_ns = wait_ns == NO_U64 ? 0 : (double)wait_ns,
	};

	/* weighted by the calls, until the mean is taken */
	row.algorithm = isnan(algorithm) ? 0 : algorithm * (double)row.calls;
	row.bus = isnan(bus) ? 0 : bus * (double)row.calls;
	return row;
}

static void add(struct comm_row *to, const struct comm_row *from)
{
	to->calls += from->calls;
	to->matched += from->matched;
	to->total_ns += from->total_ns;
	to->exposed_ns += from->exposed_ns;
	to->wait_ns += from->wait_ns;
	to->algorithm += from->algorithm;
	to->bus += from->bus;
	to->ranks = from->ranks > to->ranks ? from->ranks : to->ranks;
}

enum status comm_rows_take(const struct page *p, struct comm_rows *all, struct error *err)
{
	struct view v = page_view(p, "comm");
	size_t i, to = 0;

	all->count = 0;
	all->rows = calloc(v.count + 1, sizeof(*all->rows));
	if (!all->rows)
		return no_memory(err);
	for (i = 0; i < v.count; i++)
		all->rows[i] = row_of(&v, i);
	if (v.count)
		qsort(all->rows, v.count, sizeof(*all->rows), compare_rows);
	for (i = 0; i < v.count; i++) {
		if (to && !compare_keys(&all->rows[to - 1], &all->rows[i]))
			add(&all->rows[to - 1], &all->rows[i]);
		else
			all->rows[to++] = all->rows[i];
	}
	all->count = to;
	for (i = 0; i < to; i++) {
		all->rows[i].algorithm /= (double)all->rows[i].calls;
		all->rows[i].bus /= (double)all->rows[i].calls;
	}
	if (to)
		qsort(all->rows, to, sizeof(*all->rows), compare_time);
	return ST_OK;
}

char *comm_size_text(char out[NUMBER_TEXT], uint64_t bytes)
{
	if (bytes != NO_U64)
		return bytes_text(out, (double)bytes);
	snprintf(out, NUMBER_TEXT, "?");
	return out;
}

/* ---- waiting ---------------------------------------------------------------------------- */

static double per_step(const struct view *v, size_t i, const char *column, double steps)
{
	uint64_t ns = view_cell(v, i, column).u64;

	return ns == NO_U64 ? 0 : (double)ns / steps;
}

/* Whom it waited for longest: rows come in that order. */
static uint64_t waited_for(const struct page *p, size_t rank)
{
	struct view v = page_of_rank(p, "waits_for", rank);

	return v.count ? view_cell(&v, 0, "for_rank").u64 : NO_U64;
}

static bool wait_take(const struct page *p, size_t rank, struct wait_row *row)
{
	struct view v = page_of_rank(p, "waits", rank);
	uint64_t steps = view_cell(&p->ranks, rank, "complete_steps").u64;
	double per = steps ? (double)steps : 1;
	uint64_t last;

	if (!v.count)
		return false;
	last = view_cell(&v, 0, "times_last").u64;
	*row = (struct wait_row){
		.rank = rank, .collectives = view_cell(&v, 0, "collectives").u64,
		.matched = view_cell(&v, 0, "matched").u64, .last = last == NO_U64 ? 0 : last,
		.wait_ns = per_step(&v, 0, "wait_ns", per),
		.exposed_ns = per_step(&v, 0, "exposed_wait_ns", per),
		.late_ns = per_step(&v, 0, "late_ns", per),
		.made_ns = per_step(&v, 0, "made_wait_ns", per),
	};
	return true;
}

static int compare_late(const void *pa, const void *pb)
{
	const struct wait_row *a = pa, *b = pb;

	if (a->late_ns != b->late_ns)
		return a->late_ns > b->late_ns ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

enum { WORST = 3 };

enum status wait_rows_take(const struct page *p, struct wait_rows *all, struct error *err)
{
	struct view groups = page_view(p, "groups");
	size_t i;

	*all = (struct wait_rows){ .rows = calloc(p->ranks.count + 1, sizeof(*all->rows)) };
	if (!all->rows)
		return no_memory(err);
	for (i = 0; i < p->ranks.count; i++) {
		struct wait_row *row = &all->rows[all->count];

		if (!wait_take(p, i, row))
			continue;
		if (row->collectives > all->collectives)
			all->collectives = row->collectives;
		all->most_ns = row->wait_ns > all->most_ns ? row->wait_ns : all->most_ns;
		if (row->matched > all->matched)
			all->matched = row->matched;
		all->count++;
	}
	if (all->count > RANK_LINES)
		qsort(all->rows, all->count, sizeof(*all->rows), compare_late);
	all->shown = all->count > RANK_LINES ? WORST : all->count;
	all->latest = all->count;
	for (i = 0; i < all->count; i++)
		if (all->rows[i].late_ns > 0 && (all->latest == all->count ||
		    all->rows[i].late_ns > all->rows[all->latest].late_ns))
			all->latest = i;
	for (i = 0; i < all->shown; i++)
		all->rows[i].for_rank = waited_for(p, all->rows[i].rank);
	for (i = 0; i < groups.count && !all->why; i++)
		all->why = view_cell(&groups, i, "unmatched_because").text;
	return ST_OK;
}

bool late_text(const struct page *p, const struct wait_rows *all, char out[LATE_TEXT])
{
	const struct wait_row *r = &all->rows[all->latest];
	struct time_unit unit;
	char rank[NUMBER_TEXT], last[NUMBER_TEXT], of[NUMBER_TEXT], late[NUMBER_TEXT];

	if (all->latest == all->count)
		return false;
	unit = time_unit_of(r->late_ns, 1);
	snprintf(out, LATE_TEXT,
		 "%s came last in %s of %s collectives, %s %s %s after the next",
		 rank_text(p, r->rank, rank), count_text(last, r->last), count_text(of, r->matched),
		 time_text(late, r->late_ns, &unit), unit.name,
		 p->has_steps ? "per step" : "in all");
	return true;
}

bool matched_text(const struct wait_rows *all, char out[LATE_TEXT])
{
	char matched[NUMBER_TEXT], of[NUMBER_TEXT];

	if (!all->collectives)
		return false;
	snprintf(out, LATE_TEXT, "%s of %s collectives matched between ranks%s%.100s%s",
		 count_text(matched, all->matched), count_text(of, all->collectives),
		 all->why ? ": " : "", all->why ? all->why : "",
		 all->latest == all->count ? "; nobody is blamed" : "");
	return true;
}
