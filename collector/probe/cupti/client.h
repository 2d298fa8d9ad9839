/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - this library as a client of CUPTI: load, start, flush, stop, and both callbacks.
 *
 *	start   subscribe, set attributes, register the callbacks, enable kinds
 *	stop    disable kinds, flush complete buffers, get the number of dropped records
 *	behind  a GPU still runs work of the window: flush complete buffers until none is out
 *	last    at the exit: wait for a moment, then force all buffers out, which lack times
 *
 * Two threads may call: the writer, and the program's own in cuInit(), where an open window must
 * begin before the first work.  A thread takes the turn before it calls CUPTI, and only the last
 * stop waits for it.  No lock is held over a call of CUPTI.  `report` collects messages for users;
 * probe.c writes them to the log.
 */
#pragma once

#include "collector/probe/cupti/internal.h"

struct config;

struct cupti_report {             /* messages for users; changed under the turn or by the writer */
	char problem[200];        /* reason why nothing is recorded; "": none */
	char other[CUPTI_PATH];   /* path of another copy of CUPTI that is loaded; "": none */
	uint64_t starts, refused; /* windows that started, and that CUPTI refused */
	bool clock_is_strange;
	bool no_thread_ids; /* thread ids are values of pthread_self() */
	bool graph_level;
	bool detaches;       /* CUPTI is detached from CUDA after the last window */
	uint64_t never_came; /* buffers that CUPTI did not give back */
	uint64_t foreign;    /* buffers that another tool had allocated */
	uint64_t taken_ns;   /* time without records until the kinds were enabled again */
	uint64_t behind_ns;  /* longest time that a GPU still worked after the end of a window */
	bool left_behind;    /* a GPU worked longer than the limit */
};
struct cupti_client {
	struct cupti_lib lib;
	struct cupti_kinds kinds; /* kinds of the last start */
	struct cupti_report report;
	uint64_t on_ns; /* CLOCK_MONOTONIC of the last start */
	bool is_loaded;
};
extern struct cupti_client cupti_client __attribute__((visibility("hidden")));

/*
 * Enables the kinds, or writes the reason why not to the report.  Returns false if another thread
 * has the turn; call again then.
 */
bool cupti_client_start(const struct config *config);
/* Loads the library and allocates buffers, the slow parts of a start, without enabling anything. */
void cupti_client_load(const struct config *config);
bool cupti_client_is_on(void);
/* Returns whether it was ever on in this process, so that there may be buffers, layouts and a
 * clock. */
bool cupti_client_was_on(void);
/* Returns a number that changes whenever the report has changed. */
unsigned cupti_client_report_version(void);
/* Writer only.  Makes CUPTI give back all buffers whose work is over. */
void cupti_client_flush(void);
/*
 * Writer only.  Ends recording.  `deadline_ns` is CLOCK_MONOTONIC: the process ends, and buffers
 * that are not back by then are forced out.  0: wait for nothing and force nothing;
 * cupti_client_is_behind() is called afterwards.
 */
void cupti_client_stop(uint64_t deadline_ns);
/*
 * Writer only, after a stop.  Returns true while work of the window is in progress on a GPU; call
 * again then.  After BEHIND_MAX_NS the rest stays with CUPTI; whenever it comes, its times assign
 * it to its window.
 */
bool cupti_client_is_behind(void);
/*
 * Writer only, when the rows of a window are put, so that its graphs are known.  Ends the
 * subscription, and also unloads CUPTI if the configuration demands it.
 */
void cupti_client_detach(void);
/*
 * Writer only.  Registers our callbacks and enables our kinds again, which has no effect unless
 * another tool has replaced them.
 */
void cupti_client_repair(void);
/* Writer only.  Switches recording of driver calls, if they were requested.  Returns false if that
 * is not possible now. */
bool cupti_client_record_driver(bool wanted);
/* For the end of the process: returns when none of our threads is in a call of CUPTI, or after
 * `limit_ns`. */
void cupti_client_await_quiet(uint64_t limit_ns);
/* Adds a time without records before cupti_client_repair() to the report. */
void cupti_client_note_taken(uint64_t ns);
/* Return the number of records since the last call that CUPTI dropped, or that found no buffer. */
uint64_t cupti_client_take_dropped(void);
uint64_t cupti_client_take_refused(void);
/*
 * Sets the function that CUPTI's callback calls when free buffers run low; it must be async-signal-
 * safe.  NULL: none.
 */
void cupti_client_on_low_buffers(void (*wake)(void));
/* Makes the next start record each graph launch as one event, without its nodes. */
void cupti_client_graph_level(void);

/* Resets the state in the child of a fork, where CUPTI belongs to the parent. */
void cupti_client_forked(void);
/* Returns whether CUPTI must not be called in this process. */
bool cupti_client_is_dead(void);
