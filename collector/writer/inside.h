/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer/inside.h - the inside of the writer: writer.c has the thread and the windows, writer/log.c
 * the log and its rows, writer/save.c what a flight recorder needs.  Nobody else includes this.
 */
#ifndef COLLECTOR_WRITER_INSIDE_H
#define COLLECTOR_WRITER_INSIDE_H

#include "collector/step_cost.h"
#include "collector/store.h"
#include "collector/trigger.h"
#include "collector/writer.h"
#include "schemas/buf.h"
#include "schemas/log_writer.h"

#include <pthread.h>

enum { WATCHES = 8, TOLD = 32 };

/* What watches know of the process. */
struct told {
	char *key, *text;
	bool is_json;
};

/* Of a flight recorder. */
struct saver {
	struct trigger trigger;
	struct lane *stepper;       /* whose steps count; lanes are never freed */
	uint64_t steps_seen;        /* of it */
	struct trigger_fired fired; /* what is to be saved for */
	bool pending;
	enum trigger_kind asked;    /* before this round began: so all that was before is in it */
	uint64_t due_ns;            /* CLOCK_MONOTONIC */
	uint64_t put_before, saved_bytes, failed;
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
	bool renewed;      /* tables of this batch are in the ring */
	bool outgrown;     /* the ring has no room for the tables: begin anew */
	uint64_t drained_ns; /* what had ended by then has been taken */
	struct saver saver;
	struct step_cost steps;
	uint64_t flushed_ns;
	uint64_t disk_bytes; /* of logs that are closed: one limit for all of them */

	/* The window that is open, if one is. */
	bool recording;
	struct window got;
	const char *by; /* how it was begun by hand; NULL: by the configuration */
	uint32_t window_row; /* of the trace; 0: none yet */
	uint64_t cost_ns, cpu_ns;
};

/* The row of the window that is open, made or brought up to date. */
void writer_put_window(struct writer *w);
void writer_put_anchor(struct writer *w);
/* All that was put is in the store; `now_ns` is CLOCK_MONOTONIC. */
void writer_flush_log(struct writer *w, uint64_t now_ns);
/* With its END block; nothing where no log is open.  A ring is removed. */
void writer_close_log(struct writer *w);
/* No row will come for now: as close, but a ring stays to be saved. */
void writer_rest_log(struct writer *w);
/* What was asked for, at the begin of a round; whether a ring is to be saved, at its end. */
void writer_listen(struct writer *w);
void writer_look(struct writer *w);
/* The last round is over. */
void writer_look_last(struct writer *w, bool died);

#endif
