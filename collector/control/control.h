/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the socket of a recorded process that tacho-record --ctl PID connects to.
 *
 *	tacho-record ----"status"----> control thread ----> session
 *	             <--"ok\n..."-----
 *
 * One packet is sent each way, then the connection ends.  The socket has an abstract name, so there
 * is no file to clean up.  The peer must be the same user, or root.  A client that sends nothing,
 * or nonsense, does not delay others: it is dropped after a second, or when many others wait.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

enum {
	CONTROL_ASK = 64,     /* longest request */
	CONTROL_REPLY = 4096, /* longest reply */
};

/* ---- for both sides ---- */

/*
 * Returns the length of the socket's address for process `pid` of our PID namespace; *owner (may be
 * NULL) is set to the user of the process.  The name contains the user, the process's PID namespace
 * and its number there, so that containers with a common network do not collide.  Returns 0 if
 * there is no such process, or if we must not inspect it.
 */
socklen_t control_address(int pid, struct sockaddr_un *out, uid_t *owner);

/* ---- in the recorder ---- */

/* Starts the thread, if the socket for the recorded process can be created.  Call it once. */
void control_start(pid_t pid);

/* ---- in tacho-record ---- */

/*
 * Sends "start", "stop", "save" or "status" to process `pid`; `reply` is the text after the first
 * line.  ST_ABSENT: there is no such process, or nothing is recorded in it.
 */
enum status control_ask(int pid, const char *what, char reply[CONTROL_REPLY + 1],
			struct error *err);
