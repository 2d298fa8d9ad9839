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
/* Live bytes of a call path or, in a memory snapshot, of a chain of functions. The value at an
 * earlier moment is saved at the first change after that moment. */
struct gauge_owner {
	uint32_t path, name; /* path 0: a chain of functions */
	uint64_t bytes;
	uint64_t peak_bytes, begin_bytes, first_bytes; /* values for gauge_owned() */
	uint64_t peaks;                                /* number of peaks at that time */
	size_t row;                                    /* step of `begin_bytes` */
	bool has_first;
};
struct gauge_live { /* an allocation that is not freed */
	uint64_t bytes;
	uint32_t owner;     /* index in `owners` */
	uint32_t next_free; /* next unused item + 1 */
};

struct gauge { /* all zero: empty */
	uint64_t level, samples, first_ns;
	uint64_t reserved_bytes, most_reserved_bytes; /* now; the maximum at any level */
	int64_t sum_bytes; /* the last total, plus allocations and minus frees since */
	struct gauge_peak peak;
	struct gauge_step all;    /* over all samples; before the first one least > most */
	struct gauge_step *steps; /* by step row */
	size_t step_count, step_cap;
	struct map live_of_address; /* index in `live` */
	struct gauge_live *live;
	size_t live_count, live_cap;
	uint32_t free_live; /* first unused item of `live`, + 1; 0: none */
	struct gauge_owner *owners;
	size_t owner_count, owner_cap;
	struct map owner_of; /* by path and name: index in `owners` */
	uint64_t peaks;      /* number of peaks whose owners were saved */
	size_t row;          /* step row of the last level, + 1; 0: before the first step */
	bool rising;         /* no fall since the peak, so its owners are not saved */
	/* the curve has the highest level in each of equal intervals since first_ns */
	uint64_t curve_ns; /* width of an interval; 0: no curve */
	uint64_t curve[GAUGE_CURVE];
	size_t curve_count;
};

struct gauge_at { /* where a level belongs */
	uint64_t at_ns;
	size_t step_row; /* row in step_list */
	bool has_step;
	uint32_t phase;
};

void gauge_release(struct gauge *g);
/* Sets the step of the following levels. */
void gauge_enter(struct gauge *g, const struct gauge_at *at);
/* Puts a level. */
enum status gauge_put(struct gauge *g, uint64_t bytes, const struct gauge_at *at,
		      struct error *err);
/* Note allocations and frees. Call them before the level that results. */
struct gauge_owned {
	uint64_t at_peak;
	uint64_t first, last; /* when the second and the last step began, if there are several */
};
enum status gauge_take(struct gauge *g, uint64_t address, uint64_t bytes, uint32_t path,
		       uint32_t name, struct error *err);
void gauge_give(struct gauge *g, uint64_t address);
/* Returns the bytes of an owner at certain moments; call it after gauge_end(). */
struct gauge_owned gauge_owned(const struct gauge *g, const struct gauge_owner *o);
/* Call it after the last level: steps without samples, up to `step_count`, get that level. */
enum status gauge_end(struct gauge *g, size_t step_count, struct error *err);

/* ---- memory_owners.c: rows of owners ---- */

#define MEMORY_KEYS(X)                                                                             \
	X(MEM_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY,                                       \
	  "device number; null: memory of the host")                                               \
	X(MEM_WHAT, "what", "of", TEXT, KEY,                                                       \
	  "source; allocator: a framework's; cuda, pinned: taken from CUDA; in_use: sampled")
enum { MEMORY_KEYS(COLUMN_PLACE) };
#define MEMORY_TABLE(id, above, LIST, ...)                                                         \
	const struct table_type table_##id = {                                                     \
		.name = #id,                                                                       \
		.under = above,                                                                    \
		.columns = COLUMNS(RANK_COLUMNS, MEMORY_KEYS(COLUMN_ROW) LIST(COLUMN_ROW)),        \
		__VA_ARGS__                                                                        \
	};                                                                                         \
	enum { LIST(COLUMN_PLACE) }
enum { MEMORY_OWNER_KEYS = MEM_WHAT + 4 };         /* the device, what, and the peak's keys */
extern const struct table_type table_memory_peaks; /* defined in memory.c */
extern const struct table_type table_memory_owners, table_memory_paths;
/* Call it once, after gauge_end(). `is_known`: the rest has no owner; otherwise its owner is
 * unknown. */
enum status memory_owners_end(struct accumulator *f, struct gauge *g, uint32_t process,
			      bool is_known, union value *keys, struct error *err);
void memory_owners_finish(struct tables *all);
