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
	bool is_native;    /* recorded by us, not imported from a Kineto file */
	uint64_t base_ns;  /* times are written relative to it; 0: to the epoch */
	uint64_t first_ns; /* begin of the first event */
};

/* Describes the file of a process; base_ns follows from first_ns. */
struct chrome_file chrome_file(const struct trace *trace, uint32_t process, uint64_t first_ns);

/* Appends all up to the bracket that opens the events. */
void chrome_put_head(struct buf *b, const struct chrome_file *f);
/* Rows of letter M, each but the first after a comma; the head stands before.  ST_MEMORY only. */
enum status chrome_put_metas(struct buf *b, const struct chrome_file *f, struct error *err);

/* The pid under which a viewer shows a track: GPU streams stand under their device. */
int64_t chrome_pid(const struct trace *trace, const struct track *k);
/* Microseconds, with a fraction only where there is one. */
void chrome_put_us(struct buf *b, uint64_t ns);
/* The same relative to the file's base, below 0 where it is before it. */
void chrome_put_time(struct buf *b, const struct chrome_file *f, uint64_t at_ns);

/*
 * Unless it is an import, what Kineto computes is added (memory bandwidth, blocks per SM, External
 * id 0).  `all_args`: fields that Kineto does not write stand under their own names.
 */
struct chrome_args {
	const struct trace *trace; /* borrowed */
	bool is_import, all_args;
	bool has_operators;   /* kernels that communicate name theirs by External id */
	struct arg_list list; /* of the last event's kind and schema; kind 0, schema 0: none */
	uint32_t schema;
	uint8_t kind;
	struct buf path; /* scratch */
};
/*
 * Appends `, "args": {...}` to `b`, or nothing where there is none; notes in `notes`, which is of
 * `b`, where the values stand.
 */
enum status chrome_put_args(struct chrome_args *a, struct buf *b, const struct event *e,
			    struct chrome_notes *notes, struct error *err);

/* PyTorch's name of the operator that a kernel of NCCL is of; NULL: the event is none. */
const char *chrome_collective(const struct trace *t, const struct event *e);
/* Appends that operator where the launch was, unless the launch is within one. */
void chrome_put_operator(struct buf *b, const struct chrome_file *f, const struct event *e,
			 const struct launch *from, struct collectives *collectives);
