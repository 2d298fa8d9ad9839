/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main/size.h - outputs under --max-size.  Of the roof.
 *
 * The output is written in full and events are counted by level on the way.  Where a file came out
 * too large it is thrown away, a level is chosen from what was written, and the input is read
 * again, until the file has between 60 and 100 % of the bytes it may: two or three attempts, seven
 * at most.  A size is that of one file as its viewer unpacks it.
 */
#ifndef CONVERT_MAIN_SIZE_H
#define CONVERT_MAIN_SIZE_H

#include "convert/detail.h"

#include <stdatomic.h>
#include <stdbool.h>

struct buf;

enum { SIZE_ATTEMPTS = 7, SIZE_NONE = UINT16_MAX /* level of a process that nobody writes now */ };

struct size_file { /* what became of a process's largest file; [0] of a file of all */
	uint64_t bytes, most; /* of the last attempt; the bound that it is nearest to */
	uint64_t first_bytes;           /* of the first attempt */
	struct detail_left left, first; /* as the count foretold them */
	struct size_bound { /* what is known of levels; bytes 0: nothing */
		uint64_t bytes;
		unsigned fine;
	} large, fits; /* the last that was too large, the first that was not */
	bool is_settled; /* `fits` is as near as it gets */
};
struct size_run { /* zeroed: no bound */
	bool is_on;
	unsigned attempt; /* from 1; 0: not begun */
	struct detail_count *count;
	uint16_t *levels; /* by process, in parts of DETAIL_FINE */
	size_t name_bytes;
	struct detail_request request; /* of the next attempt */
	struct size_file *files;
	uint32_t process_count;
	struct detail_totals totals; /* of what was written */
	uint64_t highest_floor_ns;
	uint64_t summed; /* of the last files: losses that were asked for */
	char copy_path[32]; /* of standard input's copy; empty: none */
	int copy_fd;
	_Atomic uint64_t copied; /* bytes of it so far, for the progress line */
};

/* Before an input is opened. */
enum status size_path(struct size_run *s, const char **path, const char *scratch,
		      struct error *err);
/* When the tables of the input are known: another attempt. */
enum status size_begin(struct size_run *s, const struct trace *trace, struct error *err);
enum status size_put(void *self, const struct event *events, size_t count, struct error *err);
/* A file was written; `most` 0: no bound. */
void size_note(struct size_run *s, uint32_t process, uint64_t bytes, uint64_t most);
/* Whether files noted since size_begin() are too large, and the next attempt is worth it. */
enum status size_again(struct size_run *s, bool *again, struct error *err);
/* What was written stays: `detail` may be NULL. */
void size_keep(struct size_run *s, const struct source *detail);
void size_end(struct size_run *s); /* of these files; the next may begin */
void size_release(struct size_run *s);
/* "1000 events: 200 kept, ..."; nothing where nothing was merged. */
void size_account(const struct size_run *s, struct buf *out);

#endif
