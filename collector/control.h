/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - what tacho-record --ctl PID talks to: a socket of the recorded process.
 *
 *	tacho-record ----"status"----> control thread ----> session
 *	             <--"ok\n..."-----
 *
 * One packet each way, then the connection ends.  The socket has an abstract name, so there is no
 * file to clean up, whatever the process dies of; the peer must be the same user, or root.  The
 * thread has nothing but this to do: who connects and says nothing, or nonsense, holds up nobody
 * but the next one who connects, for a second.
 */
#ifndef COLLECTOR_CONTROL_H
#define COLLECTOR_CONTROL_H

#include "schemas/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	CONTROL_ASK = 64,     /* longest request */
	CONTROL_REPLY = 4096, /* longest reply */
};

/* ---- in the recorded process ---- */

/* Where it cannot be had there is none.  Once; under the session's lock. */
void control_start(void);
/* Ends the thread; waits a moment for it. */
void control_stop(void);
/* The child of a fork leaves the parent's socket alone. */
void control_forked(void);

/* ---- in tacho-record ---- */

/*
 * "start", "stop", "save" or "status" to process `pid`; the reply's text without its first word.
 * ST_ABSENT: there is no such process, or nothing is recorded in it.
 */
enum status control_ask(int pid, const char *what, char reply[CONTROL_REPLY + 1],
			struct error *err);

#endif
