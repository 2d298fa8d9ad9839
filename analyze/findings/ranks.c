/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about windows, steps, memory and ranks. */
#include "analyze/findings/rule.h"

#include "analyze/report/frontier/frontier.h"
#include "analyze/report/shared.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- steps ------------------------------------------------------------------------------ */

struct wall {
	uint64_t ns, step;
};

/* Returns the counted steps of the first rank, shortest first; NULL: out of memory. */
static struct wall *walls_take(const struct facts *f, size_t *count)
{
	struct table *t = tables_find(f->tables, "steps");
	size_t rows = t ? table_count(t) : 0;
	struct wall *walls = calloc(rows + 1, sizeof(*walls));

	*count = 0;
	if (!walls)
		return NULL;
	for (size_t i = 0; i < rows; i++) {
		const union value *row = table_at(t, i);

		if (row[0].u64 != table_at(t, 0)[0].u64 || row[2].u64 != table_at(t, 0)[2].u64)
			break;
		if (row[table_column(t, "counted")].u64 != 1)
			continue;
		walls[*count].ns = row[table_column(t, "wall_ns")].u64;
		walls[(*count)++].step = row[table_column(t, "step")].u64;
	}
	SORT_BY(walls, *count, UP(struct wall, ns));
	return walls;
}

static bool slow_steps(const struct facts *f, struct finding *out)
{
	size_t kept, slow = 0;
	RELEASED_BY(vec_release) struct wall *walls = walls_take(f, &kept);
	double over = 0;
	char a[SPAN_TEXT], b[SPAN_TEXT], n[NUMBER_TEXT], m[NUMBER_TEXT];

	if (!walls || kept < 5)
		return false;
	struct table *stats = tables_find(f->tables, "step_stats");
	struct table *summed = tables_find(f->tables, "steps_summed");
	size_t count = (size_t)table_at(stats, 0)[table_column(stats, "counted")].u64;
	double median = (double)(walls[(kept - 1) / 2].ns + walls[kept / 2].ns) / 2;
	if (count > kept) { /* in a long run the other steps have no rows */
		const union value *row = table_at(summed, 0);

		median = (double)table_at(stats, 0)[table_column(stats, "median_ns")].u64;
		slow = (size_t)row[table_column(summed, "slow")].u64;
		over = (double)row[table_column(summed, "over_ns")].u64;
	}
	for (size_t i = kept; i && (double)walls[i - 1].ns > 1.5 * median; i--, slow++)
		over += (double)walls[i - 1].ns - median;
	rule_tell(
		out,
		"%s of %s steps %s over 1.5 times the median %s; the slowest is step %llu with %s.",
		count_text(n, slow), count_text(m, count), slow == 1 ? "takes" : "take",
		span_beside(a, median, (double)walls[kept - 1].ns),
		(unsigned long long)walls[kept - 1].step, span_text(b, (double)walls[kept - 1].ns));
	rule_brief(out, "%s of %s steps, the worst %s", n, m, b);
	return slow && rule_saves(out, over / (double)count);
}

/* Returns the cause with most time of a part, such as "host:other". */
static const char *most_of(const struct facts *f, const char *part, double *most)
{
	const char *cause = "";

	*most = 0;
	for (size_t i = 0; i < f->gap_count; i++) {
		const char *one = f->gaps[i].cause;
		double ns = facts_gaps(f, (struct gap_query){ .cause = one, .part = part }).ns;

		if (ns <= *most || !family_of_cause(one))
			continue;
		*most = ns;
		cause = one;
	}
	return cause;
}

/* Returns the family of a cause, or NONE if the cause does not bound a step. */
static enum family family_beside_steps(const struct facts *f, const char *cause)
{
	enum family family = family_of_cause(cause);

	return f->has_steps || family == FAMILY_HOST ? FAMILY_NONE : family;
}

static bool late_start(const struct facts *f, struct finding *out)
{
	char a[SPAN_TEXT], b[SPAN_TEXT], c[SPAN_TEXT], name[CUT_TEXT];
	double most;

	if (f->lead_ns < LATE_SHARE * f->window_ns)
		return false;
	const char *cause = most_of(f, "lead", &most);
	out->family = family_beside_steps(f, cause);
	rule_brief(out, "%s, most of it %s", span_text(a, f->lead_ns), cut_text(name, cause, 16));
	rule_tell(out,
		  "%s of the window's %s%s pass before the first GPU event; %s of that is %.60s.",
		  span_beside(a, f->lead_ns, f->window_ns), span_text(b, f->window_ns),
		  f->has_steps ? " a step" : "", span_beside(c, most, f->window_ns), cause);
	if (!strcmp(cause, "dispatch"))
		out->advice = "the GPU was behind when the window opened: synchronize before the "
			      "window, or start it earlier";
	else if (!strcmp(cause, "data"))
		out->advice = "warm up the loader before the window, or record later steps";
	return rule_saves(out, f->lead_ns);
}

static bool long_tail(const struct facts *f, struct finding *out)
{
	char a[SPAN_TEXT], b[SPAN_TEXT];
	double most;

	if (f->tail_ns < LATE_SHARE * f->window_ns)
		return false;
	const char *cause = most_of(f, "tail", &most);
	out->family = family_beside_steps(f, cause);
	rule_brief(out, "%s after the last GPU event", span_text(a, f->tail_ns));
	rule_tell(out, "%s of the window's %s%s pass after the last GPU event.",
		  span_beside(a, f->tail_ns, f->window_ns), span_text(b, f->window_ns),
		  f->has_steps ? " a step" : "");
	return rule_saves(out, f->tail_ns);
}

/* ---- memory ----------------------------------------------------------------------------- */

/* Returns the row of GPU allocator memory with the highest peak; NULL: none. */
static const union value *memory_of(const struct facts *f, struct table **table)
{
	struct table *t = *table = tables_find(f->tables, "memory");
	const union value *best = NULL;
	const union value *row;

	for (size_t i = 0; (row = table_at(t, i)); i++) {
		if (row[RANK_KEYS].u64 == NO_U64 || strcmp(row[RANK_KEYS + 1].text, "allocator"))
			continue;
		if (!best || row[table_column(t, "peak_bytes")].u64 >
				     best[table_column(t, "peak_bytes")].u64)
			best = row;
	}
	return best;
}

/* Has no bound on time: a leak ends the run. */
static bool memory_leak(const struct facts *f, struct finding *out)
{
	struct table *t;
	const union value *row = memory_of(f, &t);
	char bytes[NUMBER_TEXT];

	if (!row || row[table_column(t, "leak")].u64 != 1)
		return false;
	bytes_text(bytes, row[table_column(t, "slope_bytes_per_step")].f64);
	rule_tell(out, "Memory that is still allocated at the end of a step grows by %s each step.",
		  bytes);
	rule_brief(out, "+%s each step", bytes);
	out->saving_ns = 0;
	return true;
}

/* Returns a number of bytes; 0: unknown. */
static double amount_of(const union value *row, const struct table *t, const char *column)
{
	uint64_t bytes = row[table_column(t, column)].u64;

	return bytes == NO_U64 ? 0 : (double)bytes;
}

static bool fragmentation(const struct facts *f, struct finding *out)
{
	struct table *t;
	const union value *row = memory_of(f, &t);

	if (!row || row[table_column(t, "absolute")].u64 != 1)
		return false;
	double peak = (double)row[table_column(t, "peak_bytes")].u64;
	double reserved = amount_of(row, t, "reserved_bytes");
	if (reserved < 1.3 * peak || reserved - peak < 1073741824.0)
		return false;
	rule_tell(out, "The allocator reserves %.2f GiB, but at most %.2f GiB were allocated.",
		  reserved / 1073741824, peak / 1073741824);
	rule_brief(out, "%.2f GiB reserved, %.2f allocated", reserved / 1073741824,
		   peak / 1073741824);
	out->saving_ns = 0;
	return true;
}

static bool headroom(const struct facts *f, struct finding *out)
{
	struct table *t;
	const union value *row = memory_of(f, &t);
	double idle = facts_wait(f, (struct gap_query){ .cause = NULL }).ns;

	/* more work per launch helps only if launches are what the GPU waits for */
	if (f->bound != FAMILY_HOST || !row || row[table_column(t, "absolute")].u64 != 1)
		return false;
	double peak = (double)row[table_column(t, "peak_bytes")].u64;
	double total = amount_of(row, t, "total_bytes");
	if (total <= 0 || peak > 0.5 * total || idle < 0.2 * f->window_ns)
		return false;
	rule_tell(out,
		  "The peak uses %.2f of the GPU's %.2f GiB, and the GPU is not busy for %.0f %% "
		  "of the window.",
		  peak / 1073741824, total / 1073741824, 100 * idle / f->window_ns);
	rule_brief(out, "%.2f of %.2f GiB used", peak / 1073741824, total / 1073741824);
	out->saving_ns = 0;
	return true;
}

/* ---- ranks ------------------------------------------------------------------------------ */

static bool imbalance(const struct facts *f, struct finding *out)
{
	struct spread spread;
	char a[SPAN_TEXT], b[SPAN_TEXT], c[SPAN_TEXT], n[MANY_TEXT];

	if (!facts_spread(f, &spread) || spread.rank == NO_U64 || !spread.apart)
		return false;
	rule_tell(out,
		  "In the same %s rank %llu takes %s a step and the average rank %s, so the others "
		  "wait for it; %s of the difference is in %s.",
		  many_text(n, (double)spread.names, "kernel"), (unsigned long long)spread.rank,
		  span_text(a, spread.most_ns), span_beside(b, spread.mean_ns, spread.most_ns),
		  span_beside(c, spread.apart_ns, spread.most_ns), spread.apart);
	rule_brief(out, "rank %llu takes %s, mean %s", (unsigned long long)spread.rank, a, b);
	return rule_saves(out, spread.most_ns - spread.mean_ns);
}

/* Returns what the rank has most of beyond the mean on the critical path; NULL: it is not on that
 * path. */
static const union value *frontier_most(const struct facts *f, uint64_t rank, double *over_ns)
{
	struct table *t = tables_find(f->tables, "frontier");
	const union value *most = NULL;

	*over_ns = 0;
	for (size_t i = 0; t && i < table_count(t); i++) {
		const union value *row = table_at(t, i);
		double over = (double)row[FRONTIER_PER_STEP].u64 - (double)row[FRONTIER_MEAN].u64;

		if (row[0].u64 != rank || over <= *over_ns)
			continue;
		*over_ns = over;
		most = row;
	}
	return most;
}

/* Adds the kind of time that makes the rank late, and advice for it. */
static void tell_frontier(const struct facts *f, uint64_t rank, struct finding *out)
{
	static const struct {
		const char *kind, *advice;
	} advice[] = {
		{ "compute", "compare that rank's work (batch, sequence lengths, experts), then "
			     "its GPU's clocks, power and temperature" },
		{ "data",
		  "compare that rank's input: loader workers, files, disk and CPUs of its host" },
		{ "host:", "compare that rank's host: other jobs, NUMA binding, GC, logging on "
			   "this rank only" },
	};
	double over_ns;
	const union value *row = frontier_most(f, rank, &over_ns);
	size_t i;
	char a[SPAN_TEXT];

	if (!row || over_ns < 1000)
		return;
	const char *kind = row[FRONTIER_KIND].text;
	if (!strcmp(kind, "compute") || !strncmp(kind, "exposed_", 8))
		rule_tell(out,
			  " Compared with the mean rank it spends most extra time in %s launched "
			  "in %.40s: %s a step.",
			  kind, row[FRONTIER_PHASE].text, span_text(a, over_ns));
	else
		rule_tell(out,
			  " Compared with the mean rank its GPU is idle longer, mostly because of "
			  "%.60s: %s a step.",
			  kind, span_text(a, over_ns));
	for (i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
		if (!strncmp(kind, advice[i].kind, strlen(advice[i].kind)))
			out->advice = advice[i].advice;
}

/* Returns how many steps the rank finished last. */
static size_t steps_last(const struct facts *f, const union value *rank)
{
	struct table *t = tables_find(f->tables, "stragglers");
	const union value *row, *last = NULL;
	size_t count = 0;

	for (size_t i = 0; (row = table_at(t, i)); i++) {
		if (memcmp(&row[STRAGGLER_RANK], rank, RANK_KEYS * sizeof(*row)) != 0)
			continue;
		count += !last || last[STRAGGLER_STEP].u64 != row[STRAGGLER_STEP].u64;
		last = row;
	}
	return count;
}

/* Adds that less is saved if other ranks are late too. */
static void tell_others(const struct waiting *w, double per_rank, struct finding *out)
{
	char one[SPAN_TEXT], all[SPAN_TEXT];

	rule_tell(out,
		  " Without its delay beyond the next late rank, %s a step would be saved; with "
		  "all ranks equally early, up to %s.",
		  span_beside(one, w->saving_ns / per_rank, w->most_excess_ns / per_rank),
		  span_text(all, w->most_excess_ns / per_rank));
}

/* Names the rank for which the others wait longest. If it is a single late step of several,
 * slow_steps reports that. */
static bool straggler(const struct facts *f, struct finding *out)
{
	struct waiting w = waiting_of(f->tables);
	double per_rank = f->ranks ? (double)f->settled_steps / (double)f->ranks : 1;
	char made[SPAN_TEXT], all[SPAN_TEXT];
	char n[NUMBER_TEXT], m[NUMBER_TEXT];

	if (!w.culprit || w.culprit[0].u64 == NO_U64)
		return false;
	if (per_rank >= 3 && steps_last(f, w.culprit) < 2)
		return false;
	unsigned long long rank = w.culprit[0].u64;
	span_beside(made, w.made_wait_ns / per_rank, w.wait_ns / per_rank);
	span_text(all, w.wait_ns / per_rank);
	rule_tell(out,
		  "Rank %llu comes last in %s of %s collectives: the other ranks together wait %s "
		  "a step for it, of %s of waiting in total.",
		  rank, count_text(n, w.times_last), count_text(m, w.matched), made, all);
	if (w.saving_ns < NEAR_SHARE * w.most_excess_ns)
		tell_others(&w, per_rank, out);
	rule_brief(out, "rank %llu, %s of %s waited", rank, made, all);
	tell_frontier(f, rank, out);
	return rule_saves(out, w.saving_ns / per_rank);
}

enum { LARGE_BYTES = 4 << 20 /* below, latency dominates */ };
#define SLOW_SHARE 0.25 /* of the links' peak rate */

/* Large collectives that are much slower than the GPU's links. For matched ones only the transfer
 * counts. */
static bool slow_link(const struct facts *f, struct finding *out)
{
	struct table *t = tables_find(f->tables, "comm");
	const union value *row, *worst = NULL;
	double sum_ns = 0, worst_ns = 0;
	bool is_matched = false;
	char a[SPAN_TEXT], bytes[NUMBER_TEXT];

	for (size_t i = 0; (row = table_at(t, i)); i++) {
		double share = row[COMM_BUS].f64 / row[COMM_LINK].f64; /* NAN: unknown */
		uint64_t wait_ns = row[COMM_MATCHED].u64 ? row[COMM_EXPOSED_WAIT].u64 : 0;
		double ns = (double)(row[COMM_EXPOSED].u64 - wait_ns) * (1 - share);

		if (row[COMM_BYTES].u64 == NO_U64 || row[COMM_BYTES].u64 < LARGE_BYTES ||
		    !(share < SLOW_SHARE))
			continue;
		sum_ns += ns;
		if (ns <= worst_ns)
			continue;
		worst_ns = ns;
		worst = row;
		is_matched = row[COMM_MATCHED].u64 != 0;
	}
	if (!worst)
		return false;
	rule_tell(out,
		  "%.20s of %s among %llu ranks reaches %s%.1f GB/s, but the GPU's links carry "
		  "%.0f GB/s in one direction; all such collectives expose %s a step%s.",
		  worst[COMM_OPERATION].text, bytes_text(bytes, (double)worst[COMM_BYTES].u64),
		  (unsigned long long)worst[COMM_RANKS].u64, is_matched ? "" : "at least ",
		  worst[COMM_BUS].f64, worst[COMM_LINK].f64, span_text(a, facts_per_gpu(f, sum_ns)),
		  is_matched ? "" : ", including waits for other ranks");
	rule_brief(out, "%.1f of %.0f GB/s", worst[COMM_BUS].f64, worst[COMM_LINK].f64);
	return rule_saves(out, facts_per_gpu(f, sum_ns));
}

const struct rule rules_ranks[] = {
	{ "straggler", "the others wait for one rank",
	  "waits.saving_ns waits.made_wait_ns frontier.ns", straggler,
	  "check that rank's work, its host (other jobs, NUMA, GC, input), and its GPU's clocks "
	  "and temperature",
	  .family = FAMILY_UNBALANCED },
	{ "slow_link", "collectives far below the link bandwidth",
	  "comm.bus_gb_per_s comm.link_gb_per_s comm.exposed_ns", slow_link,
	  "record all ranks to separate waiting from transfer; then check the transport (P2P, SHM, "
	  "NET) and channels with NCCL_DEBUG=INFO, and nvidia-smi topo -m or rocm-smi --showtopo",
	  .family = FAMILY_COMM, .needs_trust = true },
	{ "slow_steps", "some steps are much slower", "steps.wall_ns", slow_steps,
	  "see --report slow for what grew; typical causes are evaluation, checkpoints and slow "
	  "loader workers",
	  .needs_no_gpu = true },
	{ "late_start", "the GPU starts late in the window", "gpus.lead_ns", late_start,
	  "warm up before the window, or record later steps", .needs_trust = true },
	{ "long_tail", "the GPU ends early in the window", "gpus.tail_ns", long_tail,
	  "end the window at the end of a step; the time at the end is host work",
	  .needs_trust = true },
	{ "imbalance", "one rank computes longer", "kernels.total_ns", imbalance,
	  "balance the work: batch by sequence length, shard tables by load",
	  .family = FAMILY_UNBALANCED },
	{ "memory_leak", "memory grows from step to step", "memory.slope_bytes_per_step",
	  memory_leak,
	  "store losses as numbers (.item() every N steps, detach()), not as tensors that keep "
	  "their graph",
	  .family = FAMILY_NONE },
	{ "fragmentation", "the allocator holds memory that it cannot use", "memory.reserved_bytes",
	  fragmentation,
	  "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; keep shapes constant",
	  .family = FAMILY_NONE },
	{ "headroom", "free memory for a larger batch", "memory.peak_bytes gpus.not_busy_ns",
	  headroom, "use a larger batch: the same launches do more work", .needs_trust = true },
	{ .name = NULL },
};
