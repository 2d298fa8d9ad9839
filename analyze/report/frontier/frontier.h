/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier.h - frontier accounting: whose time the job's time was (DEFINITIONS.md 7).
 *
 * The fold knows one rank: what its GPUs did between one collective and the next, by phase and by
 * class or cause.  Over all ranks the longest way through matched collectives is found, and each
 * stretch of it is the time of the rank that came last at its end.  No clock is compared.
 */
#ifndef ANALYZE_REPORT_FRONTIER_FRONTIER_H
#define ANALYZE_REPORT_FRONTIER_FRONTIER_H

#include "analyze/report/comm/collectives.h"

enum { SPANS_DEVICE = RANK_KEYS, SPANS_FROM, SPANS_PHASE, SPANS_KIND, SPANS_PACKED };
/* The row of windows has an empty phase and kind. */
extern const struct table_type table_frontier_spans;

/* Slots of a fold, whose state it is. */
struct frontier {
	struct front **gpus; /* of the sweep */
	size_t gpu_count;
	bool any; /* collective so far */
};
enum status frontier_put(struct accumulator *f, const struct sorted_batch *w, struct error *err);
enum status frontier_end(struct accumulator *f, struct error *err);
void frontier_release(struct accumulator *f);

enum { FRONTIER_PLACES = 1 << 14 /* of a GPU; more are not kept */ };
/* A number for each place: zeros at the end need not be written. */
struct packed_list {
	uint64_t last, zeros;
};
void list_put(struct buf *out, struct packed_list *l, uint64_t value);
/* false: the rest is zeros. */
bool list_take(const char **packed, struct packed_list *l, uint64_t *value);

enum {
	FRONTIER_PHASE = RANK_KEYS,
	FRONTIER_KIND,
	FRONTIER_KEYS,
	FRONTIER_NS = FRONTIER_KEYS,
	FRONTIER_PER_STEP,
	FRONTIER_SHARE,
	FRONTIER_MEAN
};
enum { FRONTIER_STEP_SYNC_POINTS = 1, FRONTIER_STEP_NS };
enum {
	FRONTIER_PART_RANK = 1,
	FRONTIER_PART_PHASE = 1 + RANK_KEYS,
	FRONTIER_PART_KIND,
	FRONTIER_PART_NS
};
enum {
	FRONTIER_TOTAL_STEPS,
	FRONTIER_TOTAL_SYNC_POINTS,
	FRONTIER_TOTAL_NS,
	FRONTIER_TOTAL_PER_STEP,
	FRONTIER_TOTAL_NAMED,
	FRONTIER_TOTAL_LEFT_OUT
};
extern const struct table_type table_frontier, table_frontier_steps, table_frontier_parts,
	table_frontier_total;
/* Fills those four. */
enum status frontier_finish(struct tables *all, struct error *err);

#endif
