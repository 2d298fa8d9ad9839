/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - internals of the writer: writer.c has the thread and the windows, writer_log.c the
 * log and its rows, writer_save.c the flight recorder.
 */
#pragma once

#include "collector/session/session.h"
#include "collector/session/signals.h"
#include "collector/session/step_cost.h"
#include "collector/store/store.h"
#include "collector/schedule/trigger.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"
#include "schemas/log/writer.h"

enum { ATTRIBUTES = 32 };

/* An attribute of the process, which a probe has set. */
struct process_attribute {
	char *key, *text;
	bool is_json;
};

/* A closed log of the process. */
struct closed_log {
	char *path;
	uint64_t bytes, rows; /* `rows` includes rows that the log counts as lost */
};

/* State of the flight recorder. */
struct saver {
	struct trigger trigger;
	struct thread_state *stepper; /* thread whose steps count; thread states are never freed */
	uint64_t steps_taken;         /* number of its steps that were processed */
	struct trigger_fired fired;   /* why the ring will be saved */
	bool pending;
	enum trigger_kind asked; /* a request made before this round began, so that everything
				  * before the request is saved */
	uint64_t due_ns;         /* time to save, CLOCK_MONOTONIC */
	uint64_t put_before, saved_bytes, failed;
	/* Logs of slow steps, by their places in the trigger.  The log of a longer step replaces
	 * that of a shorter one. */
	struct saved_slow {
		char *path; /* NULL: none */
		uint64_t bytes;
	} slow[TRIGGER_KEEP_MAX];
	uint64_t not_saved,
		longest_ns; /* slow steps that were not saved: their number, and the longest */
};

struct writer {
	const struct config *config;
	uint32_t pid; /* pid of the program */
	const char *command;
	bool is_last; /* the program has ended or died */
	bool clips;   /* rows are clipped to the log's begin: another log covers the time before */
	const struct probe_type **probes; /* probes whose open() succeeded */
	size_t probe_count;
	bool opened, begun;                   /* begun: begin() of the probes was called */
	const struct writer_program *program; /* NULL: the program is already dead */

	/* The open log, if there is one. */
	uint64_t log_number;
	struct trace *trace;
	struct log_writer *log;
	struct store *store;
	struct buf blocks;
	uint32_t process;
	struct process about;
	uint64_t ignored; /* number of ignored calls in the log */
	struct process_attribute process_attribute[ATTRIBUTES];
	size_t attribute_count;
	bool attributes_changed; /* attributes changed since they were written to the log */
	bool broken, full; /* broken: no log can be opened; full: the log can hold no more rows */
	bool renewed;      /* the ring received all tables during this batch of blocks */
	bool outgrown;     /* the tables no longer fit into the ring, which must begin anew */
	uint64_t drained_until; /* tick: records that ended later stay in their rings until the next
				 * round */
	uint64_t drained_ns;    /* all records that ended before this time were taken */
	struct saver saver;
	struct step_cost steps;
	uint64_t flushed_ns, anchored_ns;
	uint64_t rows_waiting;          /* rows in unfinished blocks since flushed_ns */
	struct closed_log *closed_logs; /* ordered from the oldest */
	size_t closed_count, closed_cap;
	uint64_t disk_bytes; /* bytes of these logs, which share one limit */
	uint64_t rows;       /* rows that were put into the open log */
	uint64_t removed;    /* rows of removed logs that no log has counted yet */
	uint64_t rotated_ns; /* when the open log replaced one that was large enough */
	char *first;         /* path of the first log that was replaced in this window, or NULL */
	uint32_t parts;      /* number of logs of this window */

	struct session_change latest; /* the latest change that was processed */
	/* The open window, if there is one. */
	bool recording;
	uint64_t closed; /* number of the latest window all of whose rows were put */
	struct window got;
	enum session_by by;
	uint32_t window_row; /* row number in the trace; 0: none yet */
	uint64_t cost_ns, cpu_ns;
};

/* Adds or updates the row of the open window. */
void writer_put_window(struct writer *w);
void writer_put_anchor(struct writer *w);
/*
 * Tells readers of the arena, in one atomic step, that the rows that probes have put are stored, or
 * will never be.  `closes`: only the log's END is still to come.
 */
void writer_has_stored(struct writer *w, bool closes);
/* Stores all rows that were put; `now_ns` is CLOCK_MONOTONIC. */
void writer_flush_log(struct writer *w, uint64_t now_ns);
/* Ends the log with its END block, or does nothing if no log is open.  A ring is removed. */
void writer_close_log(struct writer *w);
/* Frees the attributes that probes have set, and the list of logs.  Call it only after the last
 * log. */
void writer_free_attributes(struct writer *w);
/* Adds what is known of a hang, if there was one, to the process in the log. */
void writer_note_hang(struct writer *w);
/* Closes the log because no rows are expected for now, but keeps a ring so that it can be saved. */
void writer_rest_log(struct writer *w);
/* writer_listen() takes requests at the begin of a round; writer_look() decides at its end whether
 * to save the ring. */
void writer_listen(struct writer *w);
void writer_look(struct writer *w);
/* Keeps the ring of a program that died, so that tacho-record can save it. */
void writer_leave_ring(struct writer *w);
/* Takes requests and saves the ring after the last round. */
void writer_look_last(struct writer *w, bool died);
