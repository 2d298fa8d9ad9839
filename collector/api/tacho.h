/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tacho.h - mark steps, phases and ranges of a training program; libtacho records them.
 *
 *	tacho_step();                            at the top of the loop: the next step begins
 *	tacho_phase_push("forward"); ...         nested, on the thread that pushed
 *	tacho_phase_pop();
 *
 * Link with -ltacho, load the library with dlopen(), or run the program under tacho-record.  What
 * is recorded, and when, is configured outside of the program (tacho-record, TACHO_ variables);
 * without a configuration each call is one load and a return.  Any function may be called at any
 * time, in any order and on any thread: a call that makes no sense changes nothing and is counted.
 * No call fails, prints, ends or blocks the program; the comment of a call that waits states the
 * limit.
 *
 * The calls take the times themselves, in nanoseconds of the Unix epoch.  Texts are UTF-8 and
 * NUL-terminated; they are copied at their first use and truncated to TACHO_NAME_MAX bytes.  No
 * function may be called in a signal handler.
 *
 * The interface is stable: functions are only added.  It has plain C types, for any language that
 * can call C.
 */
#ifndef COLLECTOR_API_TACHO_H
#define COLLECTOR_API_TACHO_H

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
	TACHO_OFF = 0,   /* nothing is recorded, unless tacho_start() is called */
	TACHO_ARMED = 1, /* no window is open: steps, open ranges and totals are kept in memory */
	TACHO_RECORDING = 2, /* a window is open */
};
/* Returns the state of the process, one of enum tacho_state. */
TACHO_API int tacho_state(void);
/* Returns the version of the loaded library, such as "0.1.0"; never NULL. */
TACHO_API const char *tacho_version(void);

/*
 * Begin and end a window by hand.  tacho_start() does nothing while a window is open or with
 * TACHO_ENABLED=0; the TACHO_ variables determine the place of the log.  tacho_stop() returns when
 * the log is complete and closed, or after two seconds.
 */
TACHO_API void tacho_start(void);
TACHO_API void tacho_stop(void);

/*
 * Begins the next step on this thread and ends the previous one.  Steps count from 0 on each thread
 * while the library is armed or recording: with a window from the variables from the start of the
 * program, otherwise from tacho_start(), and in both cases until the last window has ended.  A
 * program that has its own step number, for instance after a restart from a checkpoint, passes it;
 * counting continues from there.
 */
TACHO_API void tacho_step(void);
TACHO_API void tacho_step_number(uint64_t number);
/*
 * Discards the step that is open on this thread.  This is for callers that are only notified at the
 * end of a step: they begin the next step there, and may then find that there is none.
 */
TACHO_API void tacho_step_cancel(void);
/* Marks the end of an epoch: ends its last step, and a window that was counted in steps or time. */
TACHO_API void tacho_epoch_end(void);
/* Marks the begin of validation: ends the step and the window in the same way. */
TACHO_API void tacho_validation_begin(void);

/*
 * Phases name the part of a step that runs ("data", "forward", "backward", "optimizer",
 * "validation", "checkpoint", or any other word); reports divide the time of a step among them.
 * Ranges are for all other intervals.  Both nest in each other, up to 64 levels; a pop ends the
 * innermost one of this thread, of either kind.
 */
TACHO_API void tacho_phase_push(const char *name);
TACHO_API void tacho_phase_pop(void);
TACHO_API void tacho_range_push(const char *name);
TACHO_API void tacho_range_pop(void);

/*
 * Returns the number of a name, which is the same on all threads until the process ends; pushing a
 * number is faster than pushing a text.  Returns 0 if there are too many names; pushing 0 keeps
 * only the nesting.
 */
TACHO_API uint32_t tacho_name(const char *name);
TACHO_API void tacho_phase_push_id(uint32_t name);
TACHO_API void tacho_range_push_id(uint32_t name);
/*
 * Begins a range with a class of schemas/model/event.h (3: a Python function, 8: a garbage
 * collection), for adapters of other tools.
 */
TACHO_API void tacho_range_push_class(uint32_t name, unsigned range_class);

/* Records a value at this instant, such as the loss or a number of tokens, if a window is open. */
TACHO_API void tacho_counter(const char *name, double value);
TACHO_API void tacho_counter_id(uint32_t name, double value);
/* Records an instant with a name. */
TACHO_API void tacho_mark(const char *name);
/* Requests one sample of host and device memory; another thread takes it a moment later. */
TACHO_API void tacho_memory_sample(void);

/*
 * Writes the totals that were counted while armed or recording, one line for each name of a range:
 * "forward: avg=0.0012s, total=1.23s, count=1000".  Writes at most `size` bytes with the NUL and
 * returns the length of the complete text, as snprintf() does.
 */
TACHO_API size_t tacho_summary(char *text, size_t size);
/* Gets the totals of one name over all threads, in seconds.  Either pointer may be NULL. */
TACHO_API void tacho_total(uint32_t name, double *seconds, uint64_t *count);
/* Sets all totals to zero. */
TACHO_API void tacho_summary_reset(void);

/* Returns when everything recorded so far is in the file, or after two seconds. */
TACHO_API void tacho_flush(void);
/*
 * Saves the content of a flight recorder (--ring) as a log, and waits at most two seconds.  Does
 * nothing without one.
 */
TACHO_API void tacho_save(void);
/* Describes what works in this process, for tacho-record --doctor.  Returns as tacho_summary()
 * does. */
TACHO_API size_t tacho_doctor(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
