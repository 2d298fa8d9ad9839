/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the writer drains probes, encodes rows as blocks, and hands blocks to the store.  It
 * runs in a process of the recorder.
 *
 *	probes --rows--> writer (trace, log_writer) --blocks--> store --> file
 *
 * A log is opened by the first row of a window, so a window without events leaves no file.  It is
 * closed with its END block when the last window is over, on request, and at exit; later rows open
 * a new log.  Blocks are closed when they are full, or after a second; if many rows wait, after
 * a tenth.
 *
 * The functions for probes exist twice: in the program the helper has its own (helper/writer.c),
 * which send rows to the recorder.  Only the thread that calls the probes may call them, except
 * writer_wake().
 */
#pragma once

#include "collector/session/thread_state.h"
#include "schemas/log/writer.h"
#include "schemas/model/trace.h"

struct config;
struct probe_type;
struct writer;

/* Wakes the thread that drains.  Any thread may call it; it is async-signal-safe. */
void writer_wake(struct writer *w);

/* What is known of a hang, for the log.  The recorder writes it at any time; the first byte of each
 * text comes last, so that a text is empty or whole. */
struct hang_texts {
	char state[1024];      /* the step, and what is open in it */
	char collective[64];   /* the collective in which the process waits; "": none */
	char stacks[15 << 10]; /* Python's, of the main thread first */
};

/* A program that is recorded from outside. */
struct writer_program {
	uint32_t pid;                  /* pid in the program's own namespace */
	const char *command;           /* its command line */
	const struct hang_texts *hang; /* NULL: hangs are not watched for */
	bool is_alone; /* if it dies, the writer saves its ring; otherwise tacho-record does */
	/* Called in each round; returns whether the program died, or its process runs another
	 * program now. */
	bool (*is_gone)(void);
};
/* Writes the logs of a program until it ends.  The calling process must have joined the program's
 * session. */
void writer_run(const struct config *config, const struct probe_type *const *probes,
		const struct writer_program *program);

/*
 * Writes a log of the records that a dead process left in its arena, if there are any, from window
 * `first` on, which session_adopt() returned.  `command` is the process's command line.  Returns
 * false if no log could be opened.
 */
bool writer_put_left(const struct config *config, const struct probe_type *const *probes,
		     uint64_t first, uint32_t pid, const char *command);

/* ---- for probes: ids belong to the open log, and are 0 when a ceiling is reached ---- */

/* Opens a log if rows can be put now.  Returns false if there is none; then all ids are 0. */
bool writer_ready(struct writer *w);
/* Returns whether a log is open. */
bool writer_has_log(const struct writer *w);
/* Closes the log if it is large enough, so that the next row opens another one. */
void writer_rotate(struct writer *w);
/* Returns the number of the log that rows go to, from 1; ids of another log are invalid. */
uint64_t writer_log(const struct writer *w);
/*
 * For a probe that keeps ids of a log: returns true if rows go to another log than number `*log`,
 * which is then updated.  All ids that the probe has kept are then invalid.
 */
static inline bool writer_log_changed(const struct writer *w, uint64_t *log)
{
	uint64_t before = *log;

	*log = writer_log(w);
	return *log != before;
}
uint32_t writer_name(struct writer *w, const char *text, size_t len);
/* The writer sets track->process. */
uint32_t writer_track(struct writer *w, const struct track *track);
uint32_t writer_schema(struct writer *w, const struct arg_schema *schema);
uint32_t writer_desc(struct writer *w, const struct event_desc *desc);
/* The writer sets device->process. */
uint32_t writer_device(struct writer *w, const struct device *device);
/*
 * Sets an attribute of the process, in this log and later ones, until it is set again.  Needs no
 * log.  `text` is copied.
 */
void writer_set_attribute(struct writer *w, const char *key, const char *text, bool is_json);
/* Sets the name of a track that has been added before. */
void writer_name_track(struct writer *w, uint32_t track, uint32_t name);
/* Puts a row; the members of `row` that its descriptor gives need not be set. */
void writer_put(struct writer *w, const struct event *row, uint32_t desc);
/* Does the same as writer_put(), but faster: `row` has the descriptor's track and kind, and
 * writer_ready() returned true. */
void writer_put_ready(struct writer *w, const struct event *row, uint32_t desc);
void writer_lose(struct writer *w, enum loss why, uint64_t count);
/* Adds time in ns that recording took on the program's threads. */
void writer_own_cost(struct writer *w, uint64_t ns);
/* Adds a reading of several clocks; the writer sets anchor->process. */
void writer_add_anchor(struct writer *w, const struct anchor *a);
/* Returns whether the program's threads are gone, so that no more records come. */
bool writer_is_last(const struct writer *w);
/* Returns whether another log covers the time before this window, so that rows are clipped to its
 * begin. */
bool writer_clips(const struct writer *w);
/* Returns the tick at which this drain began.  Records that ended later are not put, so that this
 * log and the next have no record in common. */
uint64_t writer_drains_until(const struct writer *w);
bool writer_wants(const struct writer *w, unsigned kind);
/* Returns when the open window began, or 0 if no window is open. */
uint64_t writer_window_begin(const struct writer *w);
