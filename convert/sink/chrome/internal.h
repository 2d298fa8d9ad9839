/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the parts of a Chrome JSON file: the keys before the events, the rows that name
 * processes and threads, and the arguments of events.
 *
 * Keys are spaced (`"rank": 0`) and distributedInfo is on a separate line before the events,
 * because HTA finds the rank by a pattern in each line.
 */
#pragma once

#include "convert/sink/chrome/text_fast.h"
#include "convert/stage/collective.h"
#include "schemas/model/trace.h"

struct chrome_file {
	const struct trace *trace; /* borrowed */
	uint32_t process;
	bool is_native;    /* recorded by Tacho, not imported from a Kineto file */
	uint64_t base_ns;  /* times are written relative to this; 0: to the epoch */
	uint64_t first_ns; /* begin of the first event */
};

/* Returns the description of a process's file; base_ns follows from `first_ns`. */
struct chrome_file chrome_file(const struct trace *trace, uint32_t process, uint64_t first_ns);

/* Appends everything up to the bracket that opens the events. */
void chrome_put_head(struct buf *b, const struct chrome_file *f);
/* Appends the rows with letter M, separated by commas, after the head.  Fails only with ST_MEMORY.
 */
enum status chrome_put_metas(struct buf *b, const struct chrome_file *f, struct error *err);

/* Returns the pid under which a viewer shows a track: that of GPU streams is their device. */
int64_t chrome_pid(const struct trace *trace, const struct track *k);
/* Appends microseconds, with a fraction only if it is not 0. */
void chrome_put_us(struct buf *b, uint64_t ns);
/* Appends a time in microseconds relative to the file's base; it may be negative. */
void chrome_put_time(struct buf *b, const struct chrome_file *f, uint64_t at_ns);

/*
 * The writer of "args".  Unless the trace is an import, it adds what Kineto computes (memory
 * bandwidth, blocks per SM, External id 0).  If `all_args` is set, fields that Kineto does not
 * write get their own names.
 */
struct chrome_args {
	const struct trace *trace; /* borrowed */
	bool is_import, all_args;
	bool has_operators;   /* communication kernels name their operator by External id */
	struct arg_list list; /* arguments of `kind` and `schema`, the last event's; both 0: none */
	uint32_t schema;
	uint8_t kind;
	struct buf path; /* scratch */
};
/*
 * Appends `, "args": {...}` to `b`, or nothing if there are none.  Notes the positions of the
 * values in `notes`, which belongs to `b`.
 */
enum status chrome_put_args(struct chrome_args *a, struct buf *b, const struct event *e,
			    struct chrome_notes *notes, struct error *err);

/* Returns PyTorch's name of the operator that an NCCL kernel belongs to, or NULL if the event is no
 * such kernel. */
const char *chrome_collective(const struct trace *t, const struct event *e);
/* Appends that operator at the time and place of the launch, unless the launch is within such an
 * operator. */
void chrome_put_operator(struct buf *b, const struct chrome_file *f, const struct event *e,
			 const struct launch *from, struct collectives *collectives);
