/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the line that a terminal shows while a long run goes on: how much of the input is
 * read and how fast, events, events per second, time left.  It makes texts; a tool's main.c writes
 * them, and only to a terminal.  A thread of its own makes them, so that long calls are covered
 * too.
 */
#ifndef CONVERT_BASE_PROGRESS_H
#define CONVERT_BASE_PROGRESS_H

#include "schemas/base/buf.h"

#include <stdbool.h>

struct progress {          /* zeroed but for begin_ns: nothing was shown yet */
	uint64_t begin_ns; /* of the run, on the caller's clock */
	uint64_t shown_ns; /* of the last line; 0: none */
};

struct progress_now {
	uint64_t now_ns;
	uint64_t events;                /* so far */
	uint64_t done_bytes, all_bytes; /* of the input, packed; all 0: unknown */
	double share;                   /* of the work that is done, 0 to 1; 0: unknown */
};

/*
 * Appends the line that replaces the one before (it begins with a carriage return), when the run
 * is older than a second and the last line older than a fifth of one.
 */
bool progress_line(struct progress *p, const struct progress_now *now, struct buf *out);
/* What takes the line away again; nothing when none was shown. */
void progress_end(struct progress *p, struct buf *out);

struct progress_hooks {                                     /* both are called on the thread */
	void (*look)(void *self, struct progress_now *now); /* all but now_ns */
	void (*show)(void *self, const char *text);
};
struct progress_ticker;
/* NULL: there is no thread or memory to be had, and the run is as good without. */
struct progress_ticker *progress_start(const struct progress_hooks *hooks, void *self);
void progress_stop(struct progress_ticker *t); /* takes the line away; accepts NULL */

#endif
