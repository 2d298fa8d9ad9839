/* SPDX-License-Identifier: Apache-2.0 */
/* The report `ranks` (DEFINITIONS.md 7, imbalance): compute kernels with equal counts per step on
 * all ranks, and how much longer one rank takes for them. Waiting between ranks is in the tables of
 * `comm`, steps and phases are in those of their reports. */
#include "analyze/report/shared.h"

#include "analyze/report/frontier/frontier.h"
#include "analyze/report/report_list.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

#define BALANCE_COLUMNS(X)                                                                         \
	X(BALANCE_NAMES = RANK_KEYS, "names", "kernels", U64, DERIVED,                             \
	  "number of compute kernels, by name, with equal counts per step on all ranks")           \
	X(BALANCE_NS, "ns_per_step", "ms/step", U64, DERIVED,                                      \
	  "time per step of this rank in the kernels that are compared")                           \
	X(BALANCE_SHARE, "share_of_mean", "%", F64, DERIVED,                                       \
	  "ns_per_step / its mean over the ranks", .of = "mean of the ranks")
static RANK_TABLE(balance, &table_ranks, BALANCE_COLUMNS, .nest = NEST_OBJECT, .by = "ns_per_step",
		  .is_finished = true);

#define UNEVEN_COLUMNS(X)                                                                          \
	X(UNEVEN_NAME, "name", NULL, TEXT, KEY, "name of the kernel, as in the files")             \
	X(UNEVEN_SHORT, "short", "kernel", TEXT, DERIVED, "readable name")                         \
	X(UNEVEN_CALLS, "calls_per_step", "calls", F64, DERIVED, "per step, equal on all ranks")   \
	X(UNEVEN_MIN, "min_ns", "min", U64, DERIVED, "time per step of the rank that takes least") \
	X(UNEVEN_MEAN, "mean_ns", "mean", U64, DERIVED, "mean time per step over the ranks")       \
	X(UNEVEN_MAX, "max_ns", "max", U64, DERIVED, "time per step of the rank that takes most")  \
	X(UNEVEN_RANK, "max_rank", "rank", U64, DERIVED, "rank that takes most")                   \
	X(UNEVEN_OVER, "over_mean_ns", "over mean", U64, DERIVED,                                  \
	  "max - mean: upper bound of what perfect balance saves")
enum { UNEVEN_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_uneven = {
	.name = "imbalance",
	.by = "over_mean_ns",
	.is_finished = true,
	.columns = COLUMNS(UNEVEN_COLUMNS(COLUMN_ROW)),
};

struct kernel_ref {
	const union value *row; /* row of `kernels` */
	const char *name;       /* owned by the tables, so equal names have equal addresses */
	uint32_t rank;          /* index among the ranks with steps */
	double calls, ns;       /* per step */
};
struct balance {
	struct tables *all;
	struct kernel_ref *refs;
	size_t count, names;
	double *sums, *steps; /* indexed by rank */
	union value **ranks;
	size_t rank_count;
};

/* Lists the ranks with steps. Others have no figures per step and are not compared. */
static enum status ranks_take(struct balance *b, struct error *err)
{
	struct table *t = tables_find(b->all, "ranks");
	size_t steps = table_column(t, "window_steps"), count = table_count(t);

	TRY(vec_new(&b->sums, count, err));
	TRY(vec_new(&b->steps, count, err));
	TRY(vec_new(&b->ranks, count, err));
	for (size_t i = 0; i < count; i++) {
		union value *row = table_at(t, i);

		if (!row[steps].u64)
			continue;
		b->steps[b->rank_count] = (double)row[steps].u64;
		b->ranks[b->rank_count++] = row;
	}
	return ST_OK;
}

static bool is_rank(const union value *a, const union value *b)
{
	return !memcmp(a, b, RANK_KEYS * sizeof(*a));
}

static enum status refs_take(struct balance *b, struct error *err)
{
	struct table *t = tables_find(b->all, "kernels");
	size_t count = table_count(t), class = table_column(t, "class"), rank = 0;
	size_t calls = table_column(t, "count"), total = table_column(t, "total_ns");

	TRY(vec_new(&b->refs, count, err));
	for (size_t i = 0; i < count; i++) {
		union value *row = table_at(t, i);

		if (!i || !is_rank(row, table_at(t, i - 1))) {
			/* k is rank_count if the rank is not compared. */
			size_t k = 0;
			while (k < b->rank_count && !is_rank(b->ranks[k], row))
				k++;
			rank = k;
		}
		if (rank == b->rank_count || !row[class].text || !strcmp(row[class].text, "comm"))
			continue;
		b->refs[b->count++] = (struct kernel_ref){
			.row = row,
			.name = row[RANK_KEYS].text,
			.rank = (uint32_t)rank,
			.calls = (double)row[calls].u64 / b->steps[rank],
			.ns = (double)row[total].u64 / b->steps[rank],
		};
	}
	return ST_OK;
}

static bool is_even(const struct balance *b, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end; i++)
		if (fabs(b->refs[i].calls - b->refs[first].calls) > 1e-9)
			return false;
	return end - first == b->rank_count;
}

static enum status names_compare(struct balance *b, struct error *err)
{
	size_t end;

	SORT_BY(b->refs, b->count, UP(struct kernel_ref, name), UP(struct kernel_ref, rank));
	for (size_t first = 0; first < b->count; first = end) {
		for (end = first + 1; end < b->count && b->refs[end].name == b->refs[first].name;
		     end++)
			;
		if (!is_even(b, first, end))
			continue;
		b->names++;
		for (size_t i = first; i < end; i++)
			b->sums[b->refs[i].rank] += b->refs[i].ns;
		struct table *t = tables_find(b->all, "imbalance");
		size_t most = first, least = first;
		union value key = { .text = b->refs[first].name }, *row;
		double sum = 0;
		char name[256];
		for (size_t i = first; i < end; i++) {
			sum += b->refs[i].ns;
			most = b->refs[i].ns > b->refs[most].ns ? i : most;
			least = b->refs[i].ns < b->refs[least].ns ? i : least;
		}
		sum /= (double)(end - first);
		TRY(table_row(t, &key, &row, err));
		name_short(key.text, 61, name, sizeof(name));
		row[UNEVEN_SHORT].text = table_text(t, name, err);
		row[UNEVEN_CALLS].f64 = b->refs[first].calls;
		row[UNEVEN_MIN].u64 = (uint64_t)llround(b->refs[least].ns);
		row[UNEVEN_MEAN].u64 = (uint64_t)llround(sum);
		row[UNEVEN_MAX].u64 = (uint64_t)llround(b->refs[most].ns);
		row[UNEVEN_RANK].u64 = b->refs[most].row[0].u64;
		row[UNEVEN_OVER].u64 = (uint64_t)llround(b->refs[most].ns - sum);
		if (!row[UNEVEN_SHORT].text)
			return ST_CEILING;
	}
	return ST_OK;
}

static void balance_release(struct balance *b)
{
	free(b->refs);
	free(b->sums);
	free(b->steps);
	free(b->ranks);
}

static enum status ranks_finish(struct tables *all, struct error *err)
{
	RELEASED_BY(balance_release) struct balance b = { .all = all };

	TRY(ranks_take(&b, err));
	if (b.rank_count > 1) {
		struct table *t = tables_find(b.all, "balance");
		double mean = 0;
		union value *row;

		TRY(refs_take(&b, err));
		TRY(names_compare(&b, err));
		for (size_t i = 0; i < b.rank_count; i++)
			mean += b.sums[i] / (double)b.rank_count;
		for (size_t i = 0; i < b.rank_count && b.names; i++) {
			TRY(table_row(t, b.ranks[i], &row, err));
			row[BALANCE_NAMES].u64 = b.names;
			row[BALANCE_NS].u64 = (uint64_t)llround(b.sums[i]);
			row[BALANCE_SHARE].f64 = mean > 0 ? 100 * b.sums[i] / mean : NAN;
		}
	}
	return frontier_finish(all, err);
}

/* ---- for rules, the verdict and pages --------------------------------------------------- */

static double or_zero(uint64_t ns)
{
	return ns == NO_U64 ? 0 : (double)ns;
}

/* Returns the largest excess of a rank. Its rows are adjacent, one for each rank that it waited
 * for. The sum is limited to its exposed communication, because the excesses over two ranks
 * overlap. */
static double most_excess(struct tables *all)
{
	struct table *t = tables_find(all, "waits_for"), *waits = tables_find(all, "waits");
	size_t excess = t ? table_column(t, "exposed_excess_ns") : 0;
	const union value *row, *last = NULL;
	union value *own;
	double most = 0, sum = 0;

	for (size_t i = 0; t && (row = table_at(t, i)); i++, last = row) {
		sum = (last && is_rank(last, row) ? sum : 0) + (double)row[excess].u64;
		if (sum > most && table_have(waits, row, &own, NULL) == ST_OK)
			most = fmax(most, fmin(sum, or_zero(own[WAITS_ALL_EXPOSED].u64)));
	}
	return most;
}

struct waiting waiting_of(struct tables *all)
{
	struct table *t = tables_find(all, "waits");
	size_t count = t ? table_count(t) : 0;
	struct waiting w = { .ranks = count, .most_excess_ns = most_excess(all) };

	for (size_t i = 0; i < count; i++) {
		const union value *row = table_at(t, i);
		double saving = or_zero(row[WAITS_SAVING].u64);

		w.matched = row[WAITS_MATCHED].u64 > w.matched ? row[WAITS_MATCHED].u64 : w.matched;
		w.wait_ns += or_zero(row[WAITS_WAIT].u64);
		w.mean_exposed_wait_ns += or_zero(row[WAITS_EXPOSED].u64) / (double)count;
		if (saving <= w.saving_ns)
			continue;
		w.saving_ns = saving;
		w.late_ns = (double)row[WAITS_LATE].u64;
		w.made_wait_ns = (double)row[WAITS_MADE].u64;
		w.times_last = row[WAITS_LAST].u64;
		w.culprit = row;
	}
	return w;
}

const struct report_type report_ranks = {
	.name = "ranks",
	.help = "differences between ranks: which are slow, which wait",
	.tables = TABLES(&table_uneven, &table_balance, &table_frontier_total, &table_frontier,
			 &table_frontier_steps, &table_frontier_parts, &table_frontier_spans),
	.with = REPORTS(&report_kernels, &report_steps, &report_phases, &report_comm),
	.state_size = sizeof(struct frontier),
	.owned = OWNED(offsetof(struct frontier, gpus)),
	.put = frontier_put,
	.end = frontier_end,
	.release = frontier_release,
	.finish = ranks_finish,
};
