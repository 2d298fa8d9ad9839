/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - what a tool tells while it runs: messages, how far it is, the account at the end. */
#pragma once

#include "schemas/base/buf.h"
#include "schemas/base/status.h"
#include "schemas/model/trace.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Lines of a tool on standard error.
 *
 * Names of files and texts of traces come from anywhere, and a terminal obeys some of them: they
 * are tamed here (utf8_tame()), so that no line has to think of it.
 */

/* "TOOL: text", one line. */
void say(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "TOOL: passed over 3 FIFOs, ..."; nothing where there are none. */
void say_passed_over(const char *tool, size_t count, const char *one, const char *several);
/* "TOOL: file: byte 44: text"; `file` may be NULL. */
void say_error(const char *tool, const char *file, const struct error *err);

/*
 * The line that a terminal shows while a long run goes on: how much of the input is
 * read and how fast, events, events per second, time left.  It makes texts; a tool's main.c writes
 * them, and only to a terminal.  A thread of its own makes them, so that long calls are covered
 * too.
 */

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

/*
 * The account of a run: events in, events out, and why the two differ.
 */

struct account { /* zeroed: nothing yet */
	uint64_t events_in, events_out;
	uint64_t unknown_kind; /* in the output, as far as it can hold them */
	uint64_t left_out;     /* that the output has no place for and was not meant for */
	uint64_t lost[LOSS_END];
	uint64_t lost_all; /* without what only was left out or moved (trace_lost_total) */
};

/* What the reading of a trace found and lost; once, at its end. */
void account_add(struct account *a, struct trace *t);
/* "35 events in, 35 out (21 arrows ...)"; `output` is what has no place for the left out. */
void account_put(const struct account *a, const char *output, struct buf *out);
