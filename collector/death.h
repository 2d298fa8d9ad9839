/* SPDX-License-Identifier: Apache-2.0 */
/*
 * death.h - SIGTERM, where the program left it at its default.
 *
 * The handler notes it and wakes the writer; the writer closes the log and calls death_go_on(),
 * which dies of the same signal.  Should that take longer than two seconds, or a second SIGTERM
 * come, the process dies at once.  A program that has a handler, or sets one later, keeps it.
 */
#ifndef COLLECTOR_DEATH_H
#define COLLECTOR_DEATH_H

#include <stdbool.h>

struct writer;

/* Installs the handler if nobody else has one.  Again is nothing. */
void death_watch(struct writer *w);
/* SIGTERM came.  Any thread. */
bool death_came(void);
/* Writer thread, all done: ends the process as if nobody had looked. */
void death_go_on(void);
/* The child of a fork has no writer: the default again. */
void death_forked(void);
/* The process ends another way. */
void death_unwatch(void);

#endif
