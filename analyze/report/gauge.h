/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge.h - one level of memory over time: its peak and the peak's owners, minimum and maximum of
 * each step, and a curve for a chart.
 *
 * Levels come in order of time.  Steps are rows of the process's step_list; a step without a
 * sample has the level of the step before.  Memory is bounded: at most GAUGE_LIVE allocations are
 * tracked by address; further ones have no owner.
 */
#pragma once

#include "analyze/engine/report.h"
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
/*
 * The live bytes of a call path, or in a memory snapshot of a chain of functions.  The value at an
 * earlier moment is saved when it first changes after that moment.
 */
struct gauge_owner {
	uint32_t path, name; /* path: 0 of functions */
	uint64_t bytes;
	uint64_t peak_bytes, begin_bytes, first_bytes; /* see gauge_owned() */
	uint64_t peaks;                                /* peaks before `peak_bytes` was kept */
	size_t row;                                    /* step of `begin_bytes` */
	bool has_first;
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
	uint32_t free_live; /* first unused item of `live`, + 1; 0: none */
	struct gauge_owner *owners;
	size_t owner_count, owner_cap;
	struct map owner_of; /* by path and name: its place in `owners` */
	uint64_t peaks;      /* whose owners were kept */
	size_t row;          /* 1 + the step row of the last level; 0: before the first */
	bool rising;         /* since the last fall: the peak is new and its owners not kept */
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
/* The next levels are in that step. */
void gauge_enter(struct gauge *g, const struct gauge_at *at);
/* Puts a level at an instant. */
enum status gauge_put(struct gauge *g, uint64_t bytes, const struct gauge_at *at,
		      struct error *err);
/* Notes an allocation or a free; call it before the level that results from it. */
struct gauge_owned {
	uint64_t at_peak;
	uint64_t first, last; /* when the second step began, and the last; of two or more */
};
enum status gauge_take(struct gauge *g, uint64_t address, uint64_t bytes, uint32_t path,
		       uint32_t name, struct error *err);
void gauge_give(struct gauge *g, uint64_t address);
/* After gauge_end(). */
struct gauge_owned gauge_owned(const struct gauge *g, const struct gauge_owner *o);
/* Call it after the last level: steps up to `step_count` then have that level. */
enum status gauge_end(struct gauge *g, size_t step_count, struct error *err);

/* ---- memory_owners.c: the rows of who took it ---- */

#define MEMORY_KEYS(X)                                                                             \
	X(MEM_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY,                                       \
	  "the device's number; null: the host")                                                   \
	X(MEM_WHAT, "what", "of", TEXT, KEY,                                                       \
	  "allocator: a framework's; cuda, pinned: taken from CUDA; in_use: sampled")
enum { MEMORY_KEYS(COLUMN_PLACE) };
#define MEMORY_TABLE(id, above, LIST, ...)                                                         \
	const struct table_type table_##id = {                                                     \
		.name = #id,                                                                       \
		.under = above,                                                                    \
		.columns = COLUMNS(RANK_COLUMNS, MEMORY_KEYS(COLUMN_ROW) LIST(COLUMN_ROW)),        \
		__VA_ARGS__                                                                        \
	};                                                                                         \
	enum { LIST(COLUMN_PLACE) }
enum { MEMORY_OWNER_KEYS = MEM_WHAT + 4 }; /* and those of the peak, which is in keys, and a text */
extern const struct table_type table_memory_peaks; /* of memory.c */
extern const struct table_type table_memory_owners, table_memory_paths;
/* Call it once, after gauge_end().  `is_known`: the rest has no owner; else it is unknown. */
enum status memory_owners_end(struct accumulator *f, struct gauge *g, uint32_t process,
			      bool is_known, union value *keys, struct error *err);
void memory_owners_finish(struct tables *all);
