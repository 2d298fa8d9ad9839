/* SPDX-License-Identifier: Apache-2.0 */
/* control_in.h - what both sides of the control socket must agree on: its name.  Pure of state. */
#ifndef COLLECTOR_CONTROL_IN_H
#define COLLECTOR_CONTROL_IN_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/*
 * The socket's name for a process as this one sees it; *owner (may be NULL) is its user.  The name
 * holds user, PID namespace and the number in there, so that containers that share a network do
 * not get in each other's way.  0: no such process, or not to be looked at.
 */
socklen_t control_address(int pid, struct sockaddr_un *out, uid_t *owner);

#endif
