/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_files.h - a small trace to write with a sink, and what the sink made of it.
 */
#ifndef TESTS_UNIT_SINK_FILES_H
#define TESTS_UNIT_SINK_FILES_H

#include "convert/sink/sink.h"
#include "schemas/base/buf.h"

/* A trace under construction; a failed call is a failed check.  Zeroed by sink_run_make(). */
struct sink_run {
	struct trace *trace;
	uint32_t process;
	struct event events[64];
	size_t count;
};

/* A process of our own: host "node", pid 100, rank 3 of 4. */
void sink_run_make(struct sink_run *run);
void sink_run_release(struct sink_run *run);

uint32_t run_name(struct sink_run *run, const char *text);
uint32_t run_thread(struct sink_run *run, uint64_t tid);
uint32_t run_stream(struct sink_run *run, uint32_t device, uint64_t stream);
uint32_t run_pool(struct sink_run *run, uint32_t device);
uint32_t run_counter(struct sink_run *run, uint32_t device, const char *name);
struct attr run_text(struct sink_run *run, const char *key, const char *text);
struct attr run_number(struct sink_run *run, const char *key, uint64_t number);
uint32_t run_schema(struct sink_run *run, const struct attr *consts, size_t const_count,
		    const struct attr *args, size_t arg_count);
/* What a Kineto import is known by, and its top-level keys. */
void run_import(struct sink_run *run, const struct attr *keys, size_t count);
/* The next event: begin and end in us after 1,700,000,000 s. */
struct event *run_event(struct sink_run *run, unsigned kind, uint32_t track, const char *name,
			double begin_us, double end_us);

/* What the sink wrote of the events, to `out` (initialised here).  False: a failed check. */
bool sink_run_write(struct sink_run *run, const struct sink_type *type, bool all_args,
		    struct buf *out);

#endif
