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
	uint64_t bytes, rows; /* `rows` with those that it counts as lost */
};

/* The flight recorder's part. */
struct saver {
	struct trigger trigger;
	struct thread_state *stepper; /* whose steps count; thread states are never freed */
	uint64_t steps_taken;         /* how many of its steps were taken */
	struct trigger_fired fired;   /* why it is to be saved */
	bool pending;
	enum trigger_kind asked; /* the request before this round began, so that everything before
				    it is saved */
	uint64_t due_ns;         /* CLOCK_MONOTONIC */
	uint64_t put_before, saved_bytes, failed;
	/* Logs of slow steps, by their places in the trigger: one that is longer takes one's place.
	 */
	struct saved_slow {
		char *path; /* NULL: none */
		uint64_t bytes;
	} slow[TRIGGER_KEEP_MAX];
	uint64_t not_saved,
		longest_ns; /* slow steps that were not saved, and the longest of them */
};

struct writer {
	const struct config *config;
	uint32_t pid; /* of the program */
	const char *command;
	bool is_last; /* the program is gone */
	bool clips;   /* rows begin where the log does, as another log is about the time before */
	const struct probe_type **probes; /* those whose open() succeeded */
	size_t probe_count;
	bool opened, begun;                   /* begin() of the probes was called */
	const struct writer_program *program; /* NULL: it is dead from the start */

	/* The open log, if there is one. */
	uint64_t log_number;
	struct trace *trace;
	struct log_writer *log;
	struct store *store;
	struct buf blocks;
	uint32_t process;
	struct process about;
	uint64_t ignored; /* ignored calls that the log has */
	struct process_attribute process_attribute[ATTRIBUTES];
	size_t attribute_count;
	bool attributes_changed; /* attributes are newer than the log's */
	bool broken, full;       /* broken: no log can be opened; full: no more fits in */
	bool renewed;            /* the ring has got all tables during this batch */
	bool outgrown;           /* the tables have outgrown the ring, which must begin anew */
	uint64_t drained_until;  /* tick: what ended later stays in its ring until the next round */
	uint64_t drained_ns;     /* everything that ended before this time has been taken */
	struct saver saver;
	struct step_cost steps;
	uint64_t flushed_ns, anchored_ns;
	uint64_t rows_waiting;          /* for their block, since then */
	struct closed_log *closed_logs; /* the oldest first */
	size_t closed_count, closed_cap;
	uint64_t disk_bytes; /* of them; all share one limit */
	uint64_t rows;       /* put into the open log */
	uint64_t removed;    /* rows of logs that were removed, which no log has counted yet */
	uint64_t
		rotated_ns; /* when the open log has taken the place of one that was large enough */

	struct session_change latest; /* that was taken */
	/* The window that is open, if one is. */
	bool recording;
	uint64_t closed; /* number of the latest whose rows are all put */
	struct window got;
	enum session_by by;
	uint32_t window_row; /* row number in the trace; 0: none yet */
	uint64_t cost_ns, cpu_ns;
};

/* Adds or updates the row of the open window. */
void writer_put_window(struct writer *w);
void writer_put_anchor(struct writer *w);
/*
 * Commits that what probes have put is stored, or that nothing of it will be, in one step for a
 * reader outside.  `closes`: only the log's END is to come.
 */
void writer_has_stored(struct writer *w, bool closes);
/* Stores everything that was put; `now_ns` is CLOCK_MONOTONIC. */
void writer_flush_log(struct writer *w, uint64_t now_ns);
/* Ends the log with its END block; does nothing where no log is open.  A ring is removed. */
void writer_close_log(struct writer *w);
/* Forgets what probes have set of the process: after the last log only. */
void writer_free_attributes(struct writer *w);
/* Closes a log that is large enough, and removes the oldest ones that are over --max-disk. */
void writer_rotate(struct writer *w);
/* No rows are expected for now: closes the log, but keeps a ring so that it can be saved. */
void writer_rest_log(struct writer *w);
/* At the begin of a round: takes requests; at its end: decides whether to save the ring. */
void writer_listen(struct writer *w);
void writer_look(struct writer *w);
/* The program died: its ring stays, for tacho-record to save. */
void writer_leave_ring(struct writer *w);
/* After the last round. */
void writer_look_last(struct writer *w, bool died);
