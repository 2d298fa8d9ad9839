/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.h - work done ahead on other cores, taken back in the order in which it was given: what
 * comes out does not depend on the number of threads.
 *
 * Jobs are the caller's: each carries its own input, result, error and memory, so that work on two
 * of them needs no lock.  One thread gives and takes; any thread of the crew works.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct ahead;
typedef void (*ahead_work)(void *self, void *job);

/*
 * `threads` 0: work is done inside ahead_give().  Fewer threads than asked for, where the system
 * gives no more, is no error.  At most `depth` jobs are given and not yet taken.
 */
enum status ahead_open(struct ahead **out, unsigned threads, size_t depth, ahead_work work,
		       void *self, struct error *err);
bool ahead_is_full(const struct ahead *a);
void ahead_give(struct ahead *a, void *job); /* not when it is full */
/* The oldest, done; NULL: none is left.  Better than to wait for it is to work on the next, ... */
void *ahead_take(struct ahead *a);
/* ... but not where jobs can only be done one after the other: then a crew of one is best left
 * alone with them, and does them in order. */
void *ahead_wait(struct ahead *a);
/* Waits for jobs at work; those not begun never are.  Accepts NULL. */
void ahead_close(struct ahead *a);

unsigned ahead_cores(void); /* that this process may use; at least 1, at most 64 */
