/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge.h - one amount of memory over time: its peak and who owned it, least and most of
 * each step, and a curve for a chart.
 *
 * Levels come in order of time.  Steps are rows of the process's step_list; a step without a
 * sample has the level that was carried into it.  Everything is bounded: GAUGE_LIVE allocations
 * are followed by address, what is beyond has no owner.
 */
#pragma once

#include "schemas/base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GAUGE_LIVE = 1 << 20, GAUGE_CURVE = 512 };

struct gauge_step {
	uint64_t min_bytes, max_bytes;
};
struct gauge_peak {
	uint64_t bytes, at_ns, reserved_bytes;
	size_t step_row;
	uint32_t phase;
	bool has_step;
};
struct gauge_owner { /* live bytes by the range that took them */
	uint32_t name;
	uint64_t bytes;
};
struct gauge_live { /* an allocation that was not given back yet */
	uint64_t bytes;
	uint32_t owner;     /* index of `owners` */
	uint32_t next_free; /* of an unused item */
};

struct gauge { /* zeroed: empty */
	uint64_t level, samples, first_ns;
	uint64_t reserved_bytes, most_reserved_bytes; /* said last; the most at any level */
	int64_t sum_bytes; /* the last total, and of what has come and gone since */
	struct gauge_peak peak;
	struct gauge_step all;    /* of all samples; empty before the first: least over most */
	struct gauge_step *steps; /* by step row */
	size_t step_count, step_cap;
	struct map live_of_address; /* number of the allocation in `live` */
	struct gauge_live *live;
	size_t live_count, live_cap;
	uint32_t free_live;                   /* first unused item of `live`, + 1; 0: none */
	struct gauge_owner *owners, *at_peak; /* at_peak: as `owners` at the peak */
	size_t owner_count, owner_cap, peak_cap, at_peak_count;
	uint32_t *owner_of_name; /* index + 1 */
	size_t name_cap;
	bool rising; /* since the last fall: the peak is new and its owners not kept */
	/* curve: the highest level in each of equal intervals from first_ns on */
	uint64_t curve_ns; /* width of an interval; 0: no curve is wanted */
	uint64_t curve[GAUGE_CURVE];
	size_t curve_count;
};

struct gauge_at { /* of a level */
	uint64_t at_ns;
	size_t step_row; /* of the step_list */
	bool has_step;
	uint32_t phase;
};

void gauge_release(struct gauge *g);
/* A level at an instant. */
enum status gauge_put(struct gauge *g, uint64_t bytes, const struct gauge_at *at,
		      struct error *err);
/* A range of the program took memory, or gave it back; before the level that follows from it. */
enum status gauge_take(struct gauge *g, uint64_t address, uint64_t bytes, uint32_t owner,
		       struct error *err);
void gauge_give(struct gauge *g, uint64_t address);
/* No more comes: steps up to `step_count` have the last level. */
enum status gauge_end(struct gauge *g, size_t step_count, struct error *err);
