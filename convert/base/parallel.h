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

struct job_queue;
typedef void (*job_queue_work)(void *self, void *job);

/*
 * Starts `threads` threads that call `work` for each job.  If `threads` is 0, job_queue_give() runs
 * the job itself.  It is not an error if the system provides fewer threads.  At most `depth` jobs
 * may be given and not yet taken.
 */
enum status job_queue_open(struct job_queue **out, unsigned threads, size_t depth,
			   job_queue_work work, void *self, struct error *err);
bool job_queue_is_full(const struct job_queue *a);
void job_queue_give(struct job_queue *a, void *job); /* must not be called if it is full */
/* Returns the oldest job once it is done, or NULL if none is left.  While it waits, the caller runs
 * the next jobs. */
void *job_queue_take(struct job_queue *a);
/* Like job_queue_take(), but never runs a job: for jobs that one worker thread must run in order.
 */
void *job_queue_wait(struct job_queue *a);
/* Waits for jobs in progress and drops those that have not begun.  Accepts NULL. */
void job_queue_close(struct job_queue *a);

unsigned usable_cores(void); /* usable by this process; 1 to 64 */
