/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - a tool's messages, its progress line and its summary of events at the end. */
#pragma once

#include "schemas/base/buf.h"
#include "schemas/base/status.h"
#include "schemas/model/trace.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Lines of a tool on standard error.
 *
 * Names of files and texts of traces are not trusted and may contain control characters for the
 * terminal; all these functions replace them with utf8_tame().
 */

/* Prints "TOOL: text" as one line. */
void say(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints "TOOL: skipped 3 FIFOs, ..." unless `count` is 0; `one` and `several` are its singular and
 * plural. */
void say_passed_over(const char *tool, size_t count, const char *one, const char *several);
/* Prints "TOOL: file: byte 44: text"; `file` may be NULL. */
void say_error(const char *tool, const char *file, const struct error *err);

/*
 * The progress line of a long run: how much of the input has been read and how fast, events, events
 * per second, time left.  This code only formats the text; a tool's main.c writes it if standard
 * error is a terminal.  A separate thread calls it, so that it also updates during long calls.
 */

struct progress {          /* zero except for begin_ns: nothing was shown yet */
	uint64_t begin_ns; /* begin of the run, on the caller's clock */
	uint64_t shown_ns; /* time of the last line; 0: none */
};

struct progress_now {
	uint64_t now_ns;
	uint64_t events;                /* number of events so far */
	uint64_t done_bytes, all_bytes; /* compressed bytes of the input; all 0: unknown */
	double share;                   /* share of the work that is done, 0 to 1; 0: unknown */
};

/*
 * Appends the line, which begins with a carriage return to replace the previous one, if the run is
 * older than a second and the last line older than a fifth of a second.  Returns whether it did.
 */
bool progress_line(struct progress *p, const struct progress_now *now, struct buf *out);
/* Appends what erases the line, if one was shown. */
void progress_end(struct progress *p, struct buf *out);

struct progress_hooks { /* both are called on the ticker's thread */
	void (*look)(void *self, struct progress_now *now); /* sets all but now_ns */
	void (*show)(void *self, const char *text);
};
struct progress_ticker;
/* Starts the thread.  Returns NULL if there is no thread or memory; the run continues without a
 * progress line. */
struct progress_ticker *progress_start(const struct progress_hooks *hooks, void *self);
void progress_stop(struct progress_ticker *t); /* erases the line; accepts NULL */

/*
 * The summary of a run: events in, events out, and why the two differ.
 */

struct account { /* zeroed at first */
	uint64_t events_in, events_out;
	uint64_t unknown_kind; /* unknown kinds that the output contains, as far as it can */
	uint64_t left_out;     /* events that the output format cannot contain */
	bool has_arrows;       /* the output draws the events that LOSS_DERIVED counts */
	uint64_t lost[LOSS_END];
	uint64_t lost_all; /* total as trace_lost_total() counts it */
};

/* Adds the numbers of events that reading a trace found and lost.  Call it once, at the end. */
void account_add(struct account *a, struct trace *t);
/* Appends "35 events in, 35 out (21 flow events ...)"; `output` is the format that cannot contain
 * `left_out` events. */
void account_put(const struct account *a, const char *output, struct buf *out);
