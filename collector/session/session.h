/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the recording of one process: its state, its windows, its threads.
 *
 *	 program's threads                 writer
 *	 step, push, pop ---- rings -----> takes rings, makes rows and blocks
 *	       \--- session_feed() ---> window machine ---> changes, in order
 *
 * Rings and state lie in the arena.  The writer (store/writer.h) runs in a process of the
 * recorder's, which maps the arena as well; the program has no thread, no descriptor and no signal
 * handler for it.  Where CUPTI or NCCL must be asked in the program it has one thread, the helper
 * (helper/helper.h).  Where no recorder can be had nothing is recorded.
 *
 * The hot path reads one word.  0 means off; otherwise it has the bits MODE_* and a generation,
 * which every change increments.  So one comparison with its own copy tells a thread that nothing
 * has changed.  One lock protects all else here; it is taken when a window or thread begins or ends
 * and for requests, never for each event.
 *
 * Under tacho-record the arena is made and handed to the recorder before main(), if a window is
 * possible: later the program may have forbidden the system calls for it.  Elsewhere it is made at
 * the program's first event.  A process without events (a shell, a data-loader worker) has neither
 * writer nor log.
 */
#pragma once

#include "collector/config/config.h"
#include "collector/session/thread_state.h"
#include "collector/schedule/window.h"

struct buf;

enum { MODE_ARMED = 1, MODE_RECORD = 2, MODE_BITS = 2 };

#define HIDDEN __attribute__((visibility("hidden")))
struct session_words {
	_Atomic uint32_t word;
	_Atomic uint32_t range; /* id of the name that a window waits for; 0: none */
	_Atomic uint64_t step;  /* steps with lower numbers do not matter to the session */
	/* The number of windows that have ended.  It changes no later than `word`. */
	_Atomic uint64_t over;
};
extern struct session_words *_Atomic session_words HIDDEN;
static inline struct session_words *session_words_now(void)
{
	return atomic_load_explicit(&session_words, memory_order_relaxed);
}

/* How a window was started by hand. */
/* clang-format off */
#define SESSION_BY(X) X(CONFIG, "") X(PROGRAM, "tacho_start()") X(CONTROL, "tacho-record --ctl start") \
	X(SIGNAL, "SIGUSR1")
/* clang-format on */
enum session_by {
#define X(name, text) BY_##name,
	SESSION_BY(X)
#undef X
};
const char *session_by_text(enum session_by by);

/*
 * A child that was forked, or spawned by multiprocessing, is assumed to be a data-loader worker and
 * is not recorded until it makes a step, uses a GPU or begins a window by hand.
 */
extern _Atomic bool session_works HIDDEN;
void session_stop_working(void);

/* The helper thread's functions, which the session cannot call directly (helper/helper.h). */
struct session_helper {
	/* Called without the session's locks when windows change.  Returns whether CUPTI must be
	 * called in this process. */
	bool (*is_needed)(void);
	/* Starts the helper.  Called under the session's lock.  Returns false if it is out of
	 * memory. */
	bool (*start)(const struct config *config);
	/* Called under the session's lock, after start(), when the word has changed. */
	void (*changed)(void);
};
/*
 * Initializes the session.  Call it once, in the library's constructor; the arguments are borrowed
 * forever.  It starts only the window machine.
 */
void session_init(struct config *config, const struct session_helper *helper);
/* Replaces session_init() after arena_stay_out(): the first event only counts the process. */
void session_stay_out(void);
/*
 * Adopts the session of a dead process, whose arena and clock this process has adopted:
 * session_span() and session_close_threads() then refer to that process's windows.  Returns the
 * first window that is not wholly in a log.  The last window ends with the process: now if
 * `died_now` is set, otherwise at the latest known time of the process.
 */
uint64_t session_adopt(struct config *config, bool died_now);
/* Shares the session of a live process, whose arena this process has adopted. */
void session_join(struct config *config, uint32_t program);
/* Sets the pid of the writer, so that the program can check that it is alive. */
void session_runs_as(uint32_t pid);
/* Returns "/proc/self", or the path of the process whose session was joined. */
const char *session_proc(void);
/* Makes the program start a helper at its next event, because CUPTI must be called there. */
void session_needs_helper(void);
/* Makes every thread check at its next event whether a helper is needed. */
void session_look_again(void);
const struct config *session_config(void);

/*
 * Returns the state of this thread, up to date with the session's word, or NULL if it has none.
 * With `make`, a thread without a state gets one; the first one introduces the process to the
 * recorder.
 */
struct thread_state *session_thread(bool make);

static inline uint32_t session_word_now(void)
{
	return atomic_load_explicit(&session_words_now()->word, memory_order_relaxed);
}
/* Does the same as session_thread(), faster for a thread whose state already agrees with `word`. */
static inline struct thread_state *session_thread_at(uint32_t word, bool make)
{
	struct thread_state *thread = thread_mine;

	if (LIKELY(thread && GET_RELAXED(thread->own->agreed_word) == word))
		return thread;
	return session_thread(make);
}
/*
 * Returns the state of this thread after session_thread_at() has returned NULL, because the
 * session's lock could not be taken, as in a handler that interrupts its holder.  Its ranges must
 * begin and end nevertheless, or later ends would be those of other ranges; nothing is recorded.
 * NULL: the thread has no state.
 */
struct thread_state *session_thread_unlocked(void);
/* Feeds the begin or end of the range that a window waits for; its name is an id of texts.h. */
void session_feed_range(enum window_event event, uint32_t name);

/* Feeds the window machine at tick `now`. */
void session_feed(enum window_event event, uint64_t now, uint64_t number, const char *name);
/* Handles the begin of a step that `session_words.step` does not exclude. */
void session_step_begins(struct thread_state *thread, uint64_t number, uint64_t now);
/* Begins a window by hand, even if recording is not enabled. */
void session_start(enum session_by by);
/* Begins a window, or ends the open one. */
void session_toggle(void);
bool session_is_recording(void);
/* Appends lines of "key value". */
void session_put_status(struct buf *out);
/* Requests a memory sample at tick `now`.  Makes a system call. */
void session_sample(uint64_t now);

/* Waits until the writer has processed everything before this call.  Returns false if `limit_ns`
 * has passed. */
bool session_flush(uint64_t limit_ns);
/* Does the same as session_flush(), and closes the log if no window is open. */
bool session_close_log(uint64_t limit_ns);
/*
 * Makes and introduces the arena with all that the first events of this thread need, so that no
 * event of it makes a system call.  False: nothing is to be recorded yet, or it failed, which is
 * left to the first event.
 */
bool session_prepare(void);
/* Call it once, when the process ends: closes the last window and the log within `limit_ns`. */
void session_exit(uint64_t limit_ns);

/*
 * Handlers for pthread_atfork().  They return false if a handler of the program forks over a thread
 * that is changing the state; then the child is not recorded.
 */
bool session_before_fork(void);
bool session_forked_parent(void);
bool session_forked_child(void);
/* The same in the child of a bare clone(), at its first event. */
bool session_cloned_child(void);

/* ---- for the writer ---- */

/* Returns whether the program has had an event, so that the arena has everything that a writer
 * needs. */
bool session_has_begun(void);
/* Returns whether the program waits for a round of the writer. */
bool session_is_asked(void);
/* Wakes the writer.  It is async-signal-safe. */
void session_wake_writer(void);
/*
 * Notes work for the writer, which finds it within 10 ms.  Makes no system call, unless there is a
 * helper, because recording of a GPU must not begin late.
 */
void session_note_work(void);
/* Sleeps until woken, until `limit_ns` (UINT64_MAX: no limit) has passed, or until a signal
 * arrives. */
void session_sleep(uint64_t limit_ns);
struct session_asked {
	uint64_t round;
	bool waited; /* the program waits for this round */
	bool close;  /* the log must be closed */
	bool quit;   /* this is the last round */
};
/* Returns whether the last round was requested. */
bool session_quits(void);
struct session_asked session_round_begins(void);
void session_round_ends(const struct session_asked *asked);

enum change_kind {
	CHANGE_WARMUP, /* the schedule's warmup, or the steps before a window without one */
	CHANGE_BEGIN,
	CHANGE_END,
	CHANGE_CANCEL, /* a warmup that no window followed */
};
struct session_change {
	enum change_kind kind;
	uint64_t window; /* number, from 1 */
	uint64_t at;     /* tick */
	bool cut_short;
	enum session_by by;
	bool final; /* at an end: the configuration has no other window, so the log can be closed */
};
/* Handles the signals that were counted since the last call. */
void session_take_signals(void);
/* Removes the oldest change and returns it, or false if there is none. */
bool session_next_change(struct session_change *out);
/* Returns whether the pending changes contain the begin of a window. */
bool session_has_begin(void);
/* Returns begin and end of a window, in ticks; end 0: it is still open. */
struct tick_span session_span(uint64_t window);
/* Returns the time on CLOCK_MONOTONIC at which the state will change without an event; UINT64_MAX:
 * never. */
uint64_t session_next_ns(void);
/* Removes the tick of a requested sample and returns it, or false if there is none. */
bool session_next_sample(uint64_t *at);
/* Returns whether new threads need the rings of threads that have ended. */
bool session_wants_rings(void);
/* Returns whether a window or its warmup is open.  Any thread may call it. */
bool session_is_active(void);
/*
 * Returns the number of ignored calls: samples and inputs that came too fast, or after the writer's
 * death, and meaningless starts and stops.
 */
uint64_t session_ignored(void);

/* Returns the newest thread state; thread_next() returns the others. */
struct thread_state *session_threads(void);
/*
 * Calls put() for each range that was open in the windows up to `window`, on threads that have not
 * noticed their end. put() runs under the lock, so it should only note the records.
 */
void session_close_threads(uint64_t window, thread_put_fn put, void *arg);
/* Counts a record that the writer puts on behalf of a thread, until the next commit. */
void session_note_late(void);

/* Returns sums over all threads, for tacho_total(). */
void session_total(uint32_t name, uint64_t *count, uint64_t *ticks);
void session_reset_totals(void);
