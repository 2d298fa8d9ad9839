/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_files.h - made-up runs for tests of the log: events of every kind, written, read, compared.
 */
#ifndef TESTS_UNIT_LOG_FILES_H
#define TESTS_UNIT_LOG_FILES_H

#include "convert/input/input.h"
#include "convert/source/source.h"
#include "schemas/base/buf.h"

struct log_run {
	struct trace *trace;
	struct event *events; /* in order */
	uint64_t *args;       /* that they point to */
	size_t count;
	size_t stray; /* rows are written in groups of so many, the last of each first */
};

/* The same run for the same seed.  `tables` > 0 adds that many rows to most tables. */
bool log_run_make(struct log_run *run, uint64_t seed, size_t count, unsigned tables);
void log_run_release(struct log_run *run);

/* The bytes of the whole file; `flush_every` events a flush, 0: none but the last. */
bool log_run_write(const struct log_run *run, size_t flush_every, bool with_end, struct buf *out);

/* The bytes as a file that is open; closed with input_close(). */
struct input *log_input(const void *bytes, size_t len);

/* What a log holds: a checked count of events that were the same, in the same order, when it is
 * read alone and when it is one of many. */
size_t log_run_compare(const struct log_run *run, const void *bytes, size_t len);

/* Read to the end: the last status.  *events: those given; their order is checked. */
enum status log_read(const void *bytes, size_t len, struct trace *trace, uint64_t *events,
		     struct error *err);

/* The same by a source that is one of many, and keeps as little as it can. */
enum status log_read_sparing(const void *bytes, size_t len, struct trace *trace, uint64_t *events,
			     struct error *err);

/* Whether two events of two traces say the same. */
bool log_same(const struct trace *a, const struct event *x, const struct trace *b,
	      const struct event *y);

/* A file of a row of blocks by hand: the payload as one block, its header made. */
void log_put_block(struct buf *out, unsigned kind, unsigned layout, unsigned rows,
		   const struct buf *payload, uint64_t begin_ns, uint64_t end_ns);

#endif
