/* SPDX-License-Identifier: Apache-2.0 */
/*
 * derive.h - rows that are computed from events: what each GPU did, how busy it was, how much work
 * waited for it, and how much memory was in use.
 *
 * They are computed as events pass in order.  The state does not grow with the number of events: it
 * has a few words for each GPU and at most the last 1,024 launches for each process.
 *
 *	GPU time       compute > exposed comm > exposed copy, as in the reports; idle time if it is
 *	               long enough to be visible
 *	GPU busy       busy share of each millisecond
 *	Queue length   number of calls whose work has not begun; the maximum in each millisecond
 *	Memory ...     the allocator's own total, or the sum of allocations and frees
 */
#pragma once

#include "convert/sink/perfetto/internal.h"

struct perfetto_queue;
struct perfetto_gauge { /* a counter of one value for each millisecond */
	struct perfetto_row *row;
	uint64_t bin_ns;   /* begin of the current millisecond */
	uint64_t sum, now; /* share: busy ns; count: its maximum; current count */
	uint64_t last;     /* value that was written last */
	bool any;
};
struct perfetto_state { /* state of one GPU */
	uint64_t at_ns;
	uint64_t until_ns[CLASS_IDLE]; /* end of the work of each class, as known at at_ns */
	uint64_t begin_ns;             /* begin of the open interval, which ends at at_ns */
	struct perfetto_row *time;
	uint8_t class; /* class of that interval; CLASS_COUNT: there is none */
	struct perfetto_gauge queue;
	struct perfetto_gauge busy;
};
struct perfetto_memory { /* memory of one GPU, or of a process on the host */
	struct perfetto_row *allocated, *reserved;
	uint64_t bytes;
};

struct perfetto_derive {
	struct perfetto_rows *rows;
	struct perfetto_state *states;                        /* by GPU */
	struct perfetto_memory *memory;                       /* by GPU, then by process */
	struct perfetto_queue *queues;                        /* by process */
	uint64_t names[CLASS_COUNT], categories[CLASS_COUNT]; /* numbers of texts; 0: not written */
	uint32_t total, total_reserved; /* argument names of allocator totals; 0: none */
};

enum status perfetto_derive_init(struct perfetto_derive *d, struct perfetto_rows *rows,
				 struct error *err);
void perfetto_derive_release(struct perfetto_derive *d); /* accepts a zeroed one */

/* Adds a call that may launch work. */
enum status perfetto_derive_call(struct perfetto_derive *d, uint32_t process, const struct event *e,
				 struct error *err);
/* Adds work of a GPU; `gpu` is its index + 1. */
enum status perfetto_derive_work(struct perfetto_derive *d, uint32_t gpu, enum gpu_class class,
				 const struct event *e, struct error *err);
/* Adds an allocation or a free.  *has_place is set to whether its counter could be written. */
enum status perfetto_derive_memory(struct perfetto_derive *d, const struct event *e,
				   bool *has_place, struct error *err);
enum status perfetto_derive_end(struct perfetto_derive *d, struct error *err);
