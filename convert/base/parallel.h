/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.h - does work ahead on other cores and returns it in the order in which it was given, so
 * that results do not depend on the number of threads.
 *
 * The caller owns the jobs.  Each has its own input, result, error and memory, so two jobs never
 * need a lock.  One thread gives and takes jobs; any worker thread may do them.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct ahead;
typedef void (*ahead_work)(void *self, void *job);

/*
 * If `threads` is 0, ahead_give() does the work itself.  It is no error if the system provides
 * fewer threads.  At most `depth` jobs may be given and not yet taken.
 */
enum status ahead_open(struct ahead **out, unsigned threads, size_t depth, ahead_work work,
		       void *self, struct error *err);
bool ahead_is_full(const struct ahead *a);
void ahead_give(struct ahead *a, void *job); /* not when it is full */
/* Returns the oldest job when it is done, or NULL if none is left.  Instead of only waiting, the
 * caller works on the next jobs. */
void *ahead_take(struct ahead *a);
/* The same without working: for jobs that one worker thread has to do in order. */
void *ahead_wait(struct ahead *a);
/* Waits for jobs in progress and drops those that have not begun.  Accepts NULL. */
void ahead_close(struct ahead *a);

unsigned ahead_cores(void); /* that this process may use; at least 1, at most 64 */
