/* SPDX-License-Identifier: Apache-2.0 */
/*
 * derive.h - rows that are computed from events: what each GPU did, how busy it was, how much work
 * waited for it, and how much memory was in use.
 *
 * They are computed as events pass in order.  The state does not grow with the number of events: it
 * has a few words for each GPU and at most the last 1,024 launches for each process.
 *
 *	GPU time       compute > exposed comm > exposed copy, as the reports have them; idle where
 *	               it is long enough to be seen
 *	GPU busy       share of each millisecond
 *	Queue length   calls whose work has not begun, the most in each millisecond
 *	Memory ...     what the allocator said, or the sum of what it gave and took
 */
#pragma once

#include "convert/sink/perfetto/internal.h"

struct perfetto_queue;
struct perfetto_gauge { /* a counter of one value for each millisecond */
	struct perfetto_row *row;
	uint64_t bin_ns;   /* where the millisecond began that is being filled */
	uint64_t sum, now; /* of a share: ns in it; of a count: the most in it, and now */
	uint64_t last;     /* what was written */
	bool any;
};
struct perfetto_state { /* of one GPU */
	uint64_t at_ns;
	uint64_t until_ns[CLASS_IDLE]; /* seen up to at_ns; classes run until then */
	uint64_t begin_ns;             /* of the open interval, which ends at at_ns */
	struct perfetto_row *time;
	uint8_t class; /* of that interval; CLASS_COUNT: there is none */
	struct perfetto_gauge queue;
	struct perfetto_gauge busy;
};
struct perfetto_memory { /* of one GPU, or of a process's host */
	struct perfetto_row *allocated, *reserved;
	uint64_t bytes;
};

struct perfetto_derive {
	struct perfetto_rows *rows;
	struct perfetto_state *states;  /* index: GPU */
	struct perfetto_memory *memory; /* index: GPU; behind them processes */
	struct perfetto_queue *queues;  /* index: process */
	uint64_t names[CLASS_COUNT], categories[CLASS_COUNT]; /* numbers of the texts; 0: not yet */
	uint32_t total, total_reserved; /* names of what an allocator says; 0 none */
};

enum status perfetto_derive_init(struct perfetto_derive *d, struct perfetto_rows *rows,
				 struct error *err);
void perfetto_derive_release(struct perfetto_derive *d); /* accepts a zeroed one */

/* A call that may launch work. */
enum status perfetto_derive_call(struct perfetto_derive *d, uint32_t process, const struct event *e,
				 struct error *err);
/* Work of GPU `gpu` (1 + its place). */
enum status perfetto_derive_work(struct perfetto_derive *d, uint32_t gpu, enum gpu_class class,
				 const struct event *e, struct error *err);
/* Memory that was taken or given back. */
enum status perfetto_derive_memory(struct perfetto_derive *d, const struct event *e,
				   bool *has_place, struct error *err);
enum status perfetto_derive_end(struct perfetto_derive *d, struct error *err);
