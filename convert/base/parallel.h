/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.h - runs jobs in advance on other threads and returns them in the order in which they
 * were given, so that results do not depend on the number of threads.
 *
 * The caller owns the jobs.  Each has its own input, result, error and memory, so two jobs never
 * need a lock.  One thread gives and takes jobs; any worker thread may run them.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct ahead;
typedef void (*ahead_work)(void *self, void *job);

/*
 * Starts `threads` threads that call `work` for each job.  If `threads` is 0, ahead_give() runs the
 * job itself.  It is not an error if the system provides fewer threads.  At most `depth` jobs may
 * be given and not yet taken.
 */
enum status ahead_open(struct ahead **out, unsigned threads, size_t depth, ahead_work work,
		       void *self, struct error *err);
bool ahead_is_full(const struct ahead *a);
void ahead_give(struct ahead *a, void *job); /* must not be called if it is full */
/* Returns the oldest job once it is done, or NULL if none is left.  While it waits, the caller runs
 * the next jobs. */
void *ahead_take(struct ahead *a);
/* Like ahead_take(), but never runs a job: for jobs that one worker thread must run in order. */
void *ahead_wait(struct ahead *a);
/* Waits for jobs in progress and drops those that have not begun.  Accepts NULL. */
void ahead_close(struct ahead *a);

unsigned ahead_cores(void); /* usable by this process; 1 to 64 */
