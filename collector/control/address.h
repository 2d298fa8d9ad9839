/* SPDX-License-Identifier: Apache-2.0 */
/* address.h - the name of the control socket, which both sides must agree on.  No state. */
#ifndef COLLECTOR_CONTROL_ADDRESS_H
#define COLLECTOR_CONTROL_ADDRESS_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/*
 * The name of the socket for a process as this one sees it; *owner (may be NULL) is its user.  The
 * name holds the user, the PID namespace and the process number in there, so that containers with a
 * common network do not collide.  0: there is no such process, or it must not be inspected.
 */
socklen_t control_address(int pid, struct sockaddr_un *out, uid_t *owner);

#endif
