/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the one collector of a process: its state, its windows, its lanes.
 *
 *	 program's threads                 writer thread
 *	 step, push, pop --- lanes ------> takes rings, makes rows and blocks
 *	       \--- session_feed() ---> window machine ---> changes, in order
 *
 * The hot path looks at one word.  0 is off; else bits MODE_* and a generation that moves with
 * every change, so one comparison with the lane's own copy tells "nothing has changed".  All else
 * here is behind one lock, taken when something begins, ends or is asked for, never per event.
 *
 * The writer thread is started when the program first makes an event while a window can come, so a
 * process that never does (a shell, a data-loader worker) has neither thread nor file.
 */
#ifndef COLLECTOR_SESSION_H
#define COLLECTOR_SESSION_H

#include "collector/config.h"
#include "collector/lane.h"
#include "collector/window.h"

struct buf;
struct watch_type;

enum { MODE_ARMED = 1, MODE_RECORD = 2, MODE_BITS = 2 };

#define HIDDEN __attribute__((visibility("hidden")))
extern _Atomic uint32_t session_word HIDDEN;
extern _Atomic uint64_t session_step HIDDEN;  /* steps below do not matter to the session */
extern _Atomic uint32_t session_range HIDDEN; /* the name that a window waits for; 0 none */

/*
 * A child that was forked, or spawned by multiprocessing, is taken for a worker (of a data loader)
 * and left alone, as if off, until it steps, uses a GPU or begins a window by hand.
 */
extern _Atomic bool session_works HIDDEN;
void session_stop_working(void);

/*
 * Once, in the constructor.  `watches` ends with NULL; all is borrowed for good.  Starts nothing
 * but the window machine.
 */
void session_init(const struct config *config, const struct watch_type *const *watches);
const struct config *session_config(void);
const struct watch_type *const *session_watches(void);

/*
 * The lane of this thread, in agreement with session_word; NULL when there can be none.  `make`: a
 * thread without one gets one, and the writer is started.
 */
struct lane *session_lane(bool make);

/* An input of the window machine at tick `now`; `l` is the caller's lane or NULL. */
void session_feed(enum window_event event, uint64_t now, uint64_t number, const char *name);
/* A step that session_step says matters. */
void session_step_begins(struct lane *l, uint64_t number, uint64_t now);
/* A window by hand, also where nothing was enabled; `by` says how, a constant. */
void session_start(const char *by);
/* Begins one, or ends the one that is open. */
void session_toggle(const char *by);
bool session_is_recording(void);
/* Lines of "key value", for people and scripts. */
void session_tell_status(struct buf *out);
/* Ask for a memory sample of this instant. */
void session_sample(uint64_t now);

/* Waits until the writer has dealt with all that was before, at most `limit_ns`. */
bool session_flush(uint64_t limit_ns);
/* The same, and if no window is open the log is closed. */
bool session_close_log(uint64_t limit_ns);
/* The process ends: the last window is closed, the log too.  At most `limit_ns`; once. */
void session_exit(uint64_t limit_ns);

/* pthread_atfork() */
void session_before_fork(void);
void session_forked_parent(void);
void session_forked_child(void);

/* ---- for the writer thread ---- */

enum change_kind {
	CHANGE_WARMUP, /* of the schedule, or one step's before a window that has none */
	CHANGE_BEGIN,
	CHANGE_END,
	CHANGE_CANCEL, /* a warm-up that came to nothing */
};
struct session_change {
	enum change_kind kind;
	uint64_t window; /* counts from 1 */
	uint64_t at;     /* tick */
	bool cut_short;
	const char *by;  /* how it was begun by hand; NULL: by the configuration */
	bool final;      /* end: no other window will come unless asked for: close the log */
};
/* Acts on what signals asked for. */
void session_take_signals(void);
/* The oldest change that was not taken; false: none. */
bool session_next_change(struct session_change *out);
/* Windows that are over: it has moved when session_word has. */
extern _Atomic uint64_t session_over HIDDEN;
/* Begin and end of a window, in ticks; end 0: still open. */
struct lane_span session_span(uint64_t window);
/* When time alone will change something, CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t session_next_ns(void);
/* The tick of a sample that was asked for. */
bool session_next_sample(uint64_t *at);
/* A window is open, or warms up.  Any thread. */
bool session_is_warm(void);
/* Samples and window inputs that came too fast, and starts and stops that made no sense. */
uint64_t session_ignored(void);

/* All lanes, newest first; follow lane->next. */
struct lane *session_lanes(void);
/*
 * What was open in the windows up to `window` on lanes whose owner did not come by since: calls
 * put() for each record, under the lock, so it only notes them.
 */
void session_close_lanes(uint64_t window, lane_put_fn put, void *arg);

/* Sums over all threads; for tacho_total(). */
void session_total(uint32_t name, uint64_t *count, uint64_t *ticks);
void session_reset_totals(void);

#endif
