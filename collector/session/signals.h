/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - the signals that are listened to inside of the program, and requests to save the
 * flight recorder's ring.
 *
 *	--window signal=USR1    the first one begins a window, the next one ends it, and so on
 *	--save-on signal=USR2   the ring is saved
 *
 * Signals are the program's: a handler is installed only where the user has named one, and the
 * program's handler that was there before runs as well.  Without a name the signal is sent to
 * tacho-record, which tells the recorder by its socket.  Handlers only count, and wake the writer,
 * which asks here what came.
 */
#pragma once

#include "collector/schedule/trigger.h"

/*
 * Installs the handler of the signal that toggles windows.  Signals that arrive before there is a
 * writer are counted.  The child of a fork keeps this handler, so that a signal to the whole job
 * does not end its workers.
 */
void signals_install_toggle(int number);
/* Installs the handler of the signal that saves the ring; 0: there is no such signal. */
void signals_install_save(int number);
/* Restores the previous handler of the signal that saves the ring, because the process ends. */
void signals_stop(void);

/* Returns how often the toggling signal arrived since the last call. */
uint32_t signals_take_toggles(void);

/*
 * Requests that the writer saves the ring in its next round; `kind` is COMMAND or SIGNAL.  Any
 * thread may call it; it is async-signal-safe.
 */
void trigger_ask(enum trigger_kind kind);
/* Returns the latest request since the last call.  Only for the writer thread. */
enum trigger_kind trigger_asked(void);
