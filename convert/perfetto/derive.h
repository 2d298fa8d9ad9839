/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto/derive.h - rows that no event is in: what each GPU did, how busy it was, how much work
 * waited for it, how much memory was taken.
 *
 * Made from the events as they pass, in their order, with a state that does not grow with their
 * number: a few words for each GPU, at most the last 1,024 launches for each process.
 *
 *	GPU time       compute > exposed comm > exposed copy, as the reports have them; idle where it
 *	               is long enough to be seen
 *	GPU busy       share of each millisecond
 *	Queue length   calls whose work has not begun, the most in each millisecond
 *	Memory ...     what the allocator said, or the sum of what it gave and took
 */
#ifndef CONVERT_PERFETTO_DERIVE_H
#define CONVERT_PERFETTO_DERIVE_H

#include "convert/perfetto/rows.h"
#include "schemas/event.h"

enum gpu_class { CLASS_COMPUTE, CLASS_COMM, CLASS_COPY, CLASS_IDLE, CLASS_COUNT };

struct perfetto_queue { /* calls of a process whose work has not begun, and begins of work */
	struct perfetto_call *calls;   /* a ring, NULL: there were none */
	struct perfetto_start *starts; /* a ring */
	uint64_t first_call, end_call, first_start, end_start;
	uint32_t call_room, start_room;
};
struct perfetto_gauge { /* a counter of one value for each millisecond */
	struct perfetto_row *row;
	uint64_t bin_ns;     /* where the millisecond began that is being filled */
	uint64_t sum, now;   /* of a share: ns in it; of a count: the most in it, and now */
	uint64_t last;       /* what was written */
	bool any;
};
struct perfetto_state { /* of one GPU; what each event needs is on one cache line */
	_Alignas(PERFETTO_LINE) uint64_t at_ns;
	uint64_t until_ns[CLASS_IDLE]; /* known up to at_ns; classes run until then */
	uint64_t begin_ns; /* of the stretch that is open, which ends at at_ns */
	struct perfetto_row *time;
	uint8_t class;     /* of the stretch; CLASS_COUNT: there is none */
	_Alignas(PERFETTO_LINE) struct perfetto_gauge queue;
	_Alignas(PERFETTO_LINE) struct perfetto_gauge busy;
};
struct perfetto_memory { /* of one GPU, or of a process's host */
	struct perfetto_row *allocated, *reserved;
	uint64_t bytes;
};

struct perfetto_derive {
	struct perfetto_rows *rows;
	struct perfetto_file *file;
	struct perfetto_state *states;  /* index: GPU */
	struct perfetto_memory *memory; /* index: GPU; behind them processes */
	struct perfetto_queue *queues;  /* index: process */
	uint64_t names[CLASS_COUNT], tokens[CLASS_COUNT]; /* numbers of the texts; 0: not yet */
	uint32_t total, total_reserved; /* names of what an allocator says; 0 none */
};

enum status perfetto_derive_init(struct perfetto_derive *d, struct perfetto_rows *rows,
				 struct error *err);
void perfetto_derive_release(struct perfetto_derive *d); /* accepts a zeroed one */

/* Work of GPU `gpu` (1 + its place); a call that launches; memory taken or given back. */
enum status perfetto_derive_work(struct perfetto_derive *d, uint32_t gpu, enum gpu_class class,
				 const struct event *e, struct error *err);
enum status perfetto_derive_launch(struct perfetto_derive *d, uint32_t process,
				   const struct event *e, struct error *err);
enum status perfetto_derive_memory(struct perfetto_derive *d, const struct event *e,
				   bool *has_place, struct error *err);
/*
 * Ask the memory for what an event of a process, and of GPU `gpu` (0: none), will need: where its
 * state stands, after that what this points to, and at last the call of its correlation.
 */
void perfetto_derive_near(const struct perfetto_derive *d, uint32_t process, uint32_t gpu);
void perfetto_derive_near_call(const struct perfetto_derive *d, uint32_t process, uint32_t gpu,
			       uint64_t correlation);
enum status perfetto_derive_end(struct perfetto_derive *d, struct error *err);

/* Whether a call by this name gives a GPU something to do. */
bool perfetto_launches(const char *api);

/* ---- of perfetto/queue.c ---- */

void perfetto_queue_release(struct perfetto_queue *q); /* accepts a zeroed one */
enum status perfetto_queue_call(struct perfetto_derive *d, struct perfetto_queue *q,
				const struct event *e, struct error *err);
enum status perfetto_queue_work(struct perfetto_derive *d, struct perfetto_queue *q, uint32_t gpu,
				const struct event *e, struct error *err);
void perfetto_queue_near(const struct perfetto_queue *q, uint64_t correlation);
enum status perfetto_queue_end(struct perfetto_derive *d, struct perfetto_queue *q,
			       struct error *err);

/* The count of a gauge is now another. */
enum status perfetto_gauge_set(struct perfetto_derive *d, struct perfetto_gauge *g, uint64_t at_ns,
			       uint64_t count, struct error *err);
/* A sample of a counter. */
enum status perfetto_put_sample(struct perfetto_rows *rows, struct perfetto_row *row,
				uint64_t at_ns, double value, bool *has_place, struct error *err);
/* A slice of a row of our own. */
enum status perfetto_put_span(struct perfetto_rows *rows, struct perfetto_row *row, uint64_t name,
			      uint64_t category, uint64_t begin_ns, uint64_t end_ns,
			      struct error *err);

#endif
