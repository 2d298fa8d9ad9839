/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the one recorder of a process: its state, its windows, its threads.
 *
 *	 program's threads                 writer thread
 *	 step, push, pop ---- rings -----> takes rings, makes rows and blocks
 *	       \--- session_feed() ---> window machine ---> changes, in order
 *
 * The hot path reads one word. 0 means off; otherwise it has the bits MODE_* and a generation,
 * which every change moves, so a thread knows by one comparison with its own copy that nothing has
 * changed.  All else here is behind one lock, which is taken when something begins, ends or is
 * asked for, and never for each event.
 *
 * The writer thread starts when the program makes its first event while a window can come.  A
 * process without events (a shell, a data-loader worker) has neither thread nor file.
 */
#ifndef COLLECTOR_SESSION_SESSION_H
#define COLLECTOR_SESSION_SESSION_H

#include "collector/config/config.h"
#include "collector/session/thread_state.h"
#include "collector/schedule/window.h"

struct buf;
struct probe_type;
struct writer;

enum { MODE_ARMED = 1, MODE_RECORD = 2, MODE_BITS = 2 };

#define HIDDEN __attribute__((visibility("hidden")))
extern _Atomic uint32_t session_word HIDDEN;
extern _Atomic uint64_t session_step
	HIDDEN; /* steps with lower numbers do not matter to the session */
extern _Atomic uint32_t session_range HIDDEN; /* id of the name that a window waits for; 0: none */

/*
 * A child that was forked, or spawned by multiprocessing, is assumed to be a data-loader worker and
 * is not recorded until it makes a step, uses a GPU or begins a window by hand.
 */
extern _Atomic bool session_works HIDDEN;
void session_stop_working(void);

/*
 * What the session needs of the writer thread, which stands above it (store/writer.h).  start() is
 * called under the session's lock; wait() and quit() return false when `limit_ns` is over.
 */
struct writer_hooks {
	struct writer *(*start)(const struct config *config,
				const struct probe_type *const *probes);
	void (*wake)(struct writer *w); /* async-signal-safe */
	bool (*wait)(struct writer *w, bool close, uint64_t limit_ns);
	bool (*quit)(struct writer *w, uint64_t limit_ns);
};
/*
 * Once, in the constructor.  `probes` ends with NULL; all arguments are borrowed for good.  Starts
 * nothing but the window machine.
 */
void session_init(struct config *config, const struct probe_type *const *probes,
		  const struct writer_hooks *writer);
/*
 * In a process that has adopted the arena of one that is dead, and its clock: session_span() and
 * session_close_threads() are about its latest window.
 */
void session_adopt(struct config *config);
const struct config *session_config(void);
const struct probe_type *const *session_probes(void);

/*
 * The state of this thread, up to date with session_word; NULL: there is none.  With `make`, a
 * thread without a state gets one, and the writer is started.
 */
struct thread_state *session_thread(bool make);

static inline uint32_t session_word_now(void)
{
	return atomic_load_explicit(&session_word, memory_order_relaxed);
}
/* The same, faster, for a thread whose state agrees with `word` already. */
static inline struct thread_state *session_thread_at(uint32_t word, bool make)
{
	struct thread_state *thread = thread_mine;

	if (LIKELY(thread && GET_RELAXED(thread->own->agreed_word) == word))
		return thread;
	return session_thread(make);
}
/* The range for which a window waits begins or ends; its name is an id of texts.h. */
void session_feed_range(enum window_event event, uint32_t name);

/* Feeds the window machine at tick `now`. */
void session_feed(enum window_event event, uint64_t now, uint64_t number, const char *name);
/* A step begins that matters by session_step. */
void session_step_begins(struct thread_state *thread, uint64_t number, uint64_t now);
/* Begins a window by hand, even if recording is not enabled; `by` is how, a constant text. */
void session_start(const char *by);
/* Begins a window, or ends the open one. */
void session_toggle(const char *by);
bool session_is_recording(void);
/* Appends lines of "key value". */
void session_put_status(struct buf *out);
/* Requests a memory sample of this instant. */
void session_sample(uint64_t now);

/* Waits until the writer has processed everything before this call, at most `limit_ns`. */
bool session_flush(uint64_t limit_ns);
/* The same, and closes the log if no window is open. */
bool session_close_log(uint64_t limit_ns);
/* The process ends: closes the last window and the log, within `limit_ns`.  Once. */
void session_exit(uint64_t limit_ns);

/* pthread_atfork() */
void session_before_fork(void);
void session_forked_parent(void);
void session_forked_child(void);

/* ---- for the writer thread ---- */

enum change_kind {
	CHANGE_WARMUP, /* the schedule's warmup, or the steps before a window without one */
	CHANGE_BEGIN,
	CHANGE_END,
	CHANGE_CANCEL, /* a warmup without a window */
};
struct session_change {
	enum change_kind kind;
	uint64_t window; /* number, from 1 */
	uint64_t at;     /* tick */
	bool cut_short;
	const char *by; /* how it was begun by hand; NULL: by the configuration */
	bool final; /* at an end: no other window will come by the configuration, so close the log
		     */
};
/* Acts on the signals that came. */
void session_take_signals(void);
/* Takes the oldest change; false: there is none. */
bool session_next_change(struct session_change *out);
/* Whether a begin of a window is among them. */
bool session_has_begin(void);
/* The number of windows that are over; it has changed when session_word has. */
extern _Atomic uint64_t session_over HIDDEN;
/* Begin and end of a window, in ticks; end 0: still open. */
struct tick_span session_span(uint64_t window);
/* When time alone will change the state, on CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t session_next_ns(void);
/* Takes the tick of a sample that was requested. */
bool session_next_sample(uint64_t *at);
/* Threads have ended whose rings others need. */
bool session_wants_rings(void);
/* A window is open, or its warmup.  Any thread. */
bool session_is_active(void);
/* Samples and inputs that came too fast, and starts and stops that made no sense. */
uint64_t session_ignored(void);

/* All threads, newest first; go on with thread_next(). */
struct thread_state *session_threads(void);
/*
 * Calls put() for each range that was open in the windows up to `window` on threads that have not
 * seen their end.  put() runs under the lock, so it should only note the records.
 */
void session_close_threads(uint64_t window, thread_put_fn put, void *arg);

/* Sums over all threads, for tacho_total(). */
void session_total(uint32_t name, uint64_t *count, uint64_t *ticks);
void session_reset_totals(void);

#endif
