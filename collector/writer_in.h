/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_in.h - the inside of the writer: writer.c has the thread and the windows, writer_log.c
 * the log and its rows.  Nobody else includes this.
 */
#ifndef COLLECTOR_WRITER_IN_H
#define COLLECTOR_WRITER_IN_H

#include "collector/store.h"
#include "collector/writer.h"
#include "schemas/buf.h"
#include "schemas/log_writer.h"

#include <pthread.h>

enum { WATCHES = 8, TOLD = 24 };

/* What watches know of the process. */
struct told {
	char *key, *text;
	bool is_json;
};

struct writer {
	const struct config *config;
	const struct watch_type *watches[WATCHES];
	size_t watch_count;
	bool opened, begun; /* the watches */
	pthread_t thread;
	_Atomic uint32_t bell; /* a futex: not 0 when there is something to do */

	/*
	 * What others ask for and wait for.  No lock and no condition: exit() may be called by a
	 * signal handler over a thread that is in the middle of a wait, and waits here again.
	 */
	_Atomic uint64_t asked, done; /* rounds */
	_Atomic bool close_asked, quit, finished;
	_Atomic uint32_t news; /* a futex: moves when `done` or `finished` does */

	/* The thread's own: the log that is open, if one is. */
	uint64_t log_number;
	struct trace *trace;
	struct log_writer *log;
	struct store *store;
	struct buf blocks;
	uint32_t process;
	struct process about;
	uint64_t ignored;  /* calls, as far as told */
	struct told told[TOLD];
	size_t told_count;
	bool told_more;    /* than the log has */
	bool broken, full; /* no log can be had; no more fits in */
	uint64_t flushed_ns;

	/* The window that is open, if one is. */
	bool recording;
	struct window got;
	bool by_hand;
	uint32_t window_row; /* of the trace; 0: none yet */
	uint64_t cost_ns, cpu_ns;
};

/* The row of the window that is open, made or brought up to date. */
void writer_put_window(struct writer *w);
void writer_put_anchor(struct writer *w);
/* All that was put is in the store; `now_ns` is CLOCK_MONOTONIC. */
void writer_flush_log(struct writer *w, uint64_t now_ns);
/* With its END block; nothing where no log is open. */
void writer_close_log(struct writer *w);

#endif
