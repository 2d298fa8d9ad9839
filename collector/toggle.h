/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toggle.h - SIGUSR1, for --window signal: the first begins a window, the next ends it, and so on.
 *
 * Only where the program left the signal at its default.  The handler counts and wakes the writer;
 * what came before there was a writer is not lost.  The child of a fork keeps the handler, so that
 * a signal to the whole job does not end its workers.
 */
#ifndef COLLECTOR_TOGGLE_H
#define COLLECTOR_TOGGLE_H

#include <stdint.h>

struct writer;

/* Installs the handler if nobody else has one. */
void toggle_watch(void);
/* Who is to be woken; NULL: nobody. */
void toggle_wake(struct writer *w);
/* Signals that came since the last call. */
uint32_t toggle_take(void);
void toggle_forked(void);

#endif
