/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tacho.h - mark steps, phases and ranges of a training program; libtacho records them.
 *
 *	tacho_step();                            at the top of the loop: the next step begins
 *	tacho_phase_push("forward"); ...         innermost first, on the thread that pushed
 *	tacho_phase_pop();
 *
 * Link with -ltacho, or dlopen() it, or preload it with tacho-record.  What is recorded, and when,
 * is decided outside of the program (tacho-record, TACHO_ variables); without that every call is
 * one load and a return.  Any function may be called at any time, in any order, on any thread, as
 * often as one likes: what makes no sense changes nothing and is counted.  No call fails, prints,
 * ends or blocks the program; where a call waits at all, its comment says how long.
 *
 * Times are taken by the calls themselves, in nanoseconds of the Unix epoch.  Texts are UTF-8,
 * NUL-terminated, copied at the first use and cut at TACHO_NAME_MAX bytes.  No function may be
 * called in a signal handler.
 *
 * Stable: functions are only added.  Plain C with plain types, for any language that calls C.
 */
#ifndef TACHO_H
#define TACHO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TACHO_API
#define TACHO_API __attribute__((visibility("default")))
#endif

enum { TACHO_NAME_MAX = 4095 };

enum tacho_state {
	TACHO_OFF = 0,       /* nothing is kept, and nothing will be unless tacho_start() is called */
	TACHO_ARMED = 1,     /* no window is open: steps, open ranges and totals are kept in memory */
	TACHO_RECORDING = 2, /* a window is open */
};
/* One of enum tacho_state; of the process. */
TACHO_API int tacho_state(void);
/* "0.1.0", of the library that was loaded; never NULL. */
TACHO_API const char *tacho_version(void);

/*
 * A window by hand.  start: nothing when one is open; the variables say where the log goes, and
 * TACHO_ENABLED=0 makes start do nothing.  stop: the window ends and the log is complete and
 * closed when the call returns, but it waits two seconds at most.
 */
TACHO_API void tacho_start(void);
TACHO_API void tacho_stop(void);

/*
 * The next step begins here, on this thread, and the one before ends.  Steps count from 0, on each
 * thread, but only while the library is armed or recording: with a window from the variables
 * (delay= too) from the program's start on, without one from tacho_start() on, and not after the
 * last window.  Who knows the number (from the program, after a restart from a checkpoint) gives
 * it instead; counting goes on from there.
 */
TACHO_API void tacho_step(void);
TACHO_API void tacho_step_number(uint64_t number);
/*
 * The step that is open on this thread was none, and leaves no trace: for a caller that is told of a
 * step's end alone, begins the next one there, and then hears that there is none.
 */
TACHO_API void tacho_step_cancel(void);
/* The epoch is over: its last step ends, and so does a window that was counted in steps or time. */
TACHO_API void tacho_epoch_end(void);
/* Validation begins: the same. */
TACHO_API void tacho_validation_begin(void);

/*
 * Phases say what part of a step this is ("data", "forward", "backward", "optimizer",
 * "validation", "checkpoint", or any other word): reports share out the step's time among them.
 * Ranges are for everything else.  Both nest, also in one another, up to 64 deep; a pop ends the
 * innermost one of this thread, whichever of the two it is.
 */
TACHO_API void tacho_phase_push(const char *name);
TACHO_API void tacho_phase_pop(void);
TACHO_API void tacho_range_push(const char *name);
TACHO_API void tacho_range_pop(void);

/*
 * The number of a name, the same in all threads for the life of the process: pushing a number is
 * the faster way.  0 when there are too many names; pushing 0 keeps the nesting, and no more.
 */
TACHO_API uint32_t tacho_name(const char *name);
TACHO_API void tacho_phase_push_id(uint32_t name);
TACHO_API void tacho_range_push_id(uint32_t name);
/*
 * A range with a class of schemas/event.h (3: a Python function, 8: a garbage collection): for
 * those who translate from other tools.
 */
TACHO_API void tacho_range_push_class(uint32_t name, unsigned range_class);

/* A sample of a quantity at this instant: loss, tokens, samples.  Inside a window only. */
TACHO_API void tacho_counter(const char *name, double value);
TACHO_API void tacho_counter_id(uint32_t name, double value);
/* An instant with a name. */
TACHO_API void tacho_mark(const char *name);
/* Ask for one sample of host and device memory; it is taken a moment later, on another thread. */
TACHO_API void tacho_memory_sample(void);

/*
 * What was counted while armed or recording, one line for each name that ended a range:
 * "forward: avg=0.0012s, total=1.23s, count=1000".  Writes at most `size` bytes with the NUL;
 * returns the length that the whole text has, as snprintf does.
 */
TACHO_API size_t tacho_summary(char *text, size_t size);
/* The figures of one name, all threads together; seconds.  Either pointer may be NULL. */
TACHO_API void tacho_total(uint32_t name, double *seconds, uint64_t *count);
/* All totals back to zero. */
TACHO_API void tacho_summary_reset(void);

/* What was recorded so far is in the file when this returns; waits two seconds at most. */
TACHO_API void tacho_flush(void);
/*
 * With a flight recorder (--ring): saves what it holds as a log; waits two seconds at most.  Else
 * nothing.
 */
TACHO_API void tacho_save(void);
/* For tacho-record --doctor: what works in this process.  Returns as tacho_summary(). */
TACHO_API size_t tacho_doctor(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
