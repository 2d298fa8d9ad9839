/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - outputs under --max-size.
 *
 * The output is written in full first.  If a file came out too large it is thrown away, a threshold
 * for the level of detail (lod.h) is estimated, and the input is read again; from then on the
 * threshold is searched for by bisection, until the file has between 60 and 100 % of the bytes that
 * it may have.  That takes three attempts as a rule.  A size is that of one file as its viewer
 * unpacks it.
 */
#ifndef CONVERT_CLI_SIZE_H
#define CONVERT_CLI_SIZE_H

#include "convert/stage/lod/lod.h"

#include <stdatomic.h>
#include <stdbool.h>

struct buf;

enum {
	SIZE_ATTEMPTS = 10,
	SIZE_LENGTHS = 512, /* classes of durations: eight to an octave */
};

/* The search for one process's threshold; [0]: that of a file of all processes. */
struct size_file {
	uint64_t bytes, most; /* of the last attempt; the bound that it is nearest to, 0: none */
	struct size_attempt { /* bytes 0: there was none */
		uint64_t min_ns, bytes;
	} large, fits;   /* the highest threshold that was too low, the lowest that fitted */
	bool is_settled; /* `fits` is what the last attempt repeats */
	uint64_t counts[SIZE_LENGTHS]; /* events by their duration */
};
struct size_run { /* zeroed: no bound */
	bool is_on;
	unsigned attempt;           /* from 1; 0: not begun */
	const struct trace *trace;  /* of the first attempt */
	uint64_t *min_ns;           /* thresholds by process */
	struct lod_request request; /* of the next attempt */
	struct size_file *files;
	uint32_t process_count;
	struct lod_totals totals; /* of what was written */
	uint64_t summed;          /* of the last files: losses that were asked for */
	char copy_path[32];       /* of standard input's copy; empty: none */
	int copy_fd;
	_Atomic uint64_t copied; /* bytes of it so far, for the progress line */
};

/* Before an input is opened: standard input is copied, to be read more than once. */
enum status size_path(struct size_run *s, const char **path, const char *scratch,
		      struct error *err);
/* When the tables of the input are known: another attempt. */
enum status size_begin(struct size_run *s, const struct trace *trace, struct error *err);
/* Of the first attempt: counts events by their duration. */
enum status size_put(void *self, const struct batch *batch, struct error *err);
/* A file was written; `most` 0: no bound. */
void size_note(struct size_run *s, uint32_t process, uint64_t bytes, uint64_t most);
/* Whether files noted since size_begin() are too large, and the next attempt is worth it. */
enum status size_again(struct size_run *s, bool *again, struct error *err);
/* What was written stays: `lod` may be NULL. */
void size_keep(struct size_run *s, const struct source *lod);
void size_end(struct size_run *s); /* of these files; the next may begin */
void size_release(struct size_run *s);
/* "1000 events: 200 kept, ..."; nothing where nothing was merged. */
void size_account(const struct size_run *s, struct buf *out);

#endif
