/* SPDX-License-Identifier: Apache-2.0 */
/*
 * introduce.h - passes the arena of a recorded process to the recorder outside.
 *
 *	program   connects, sends one message with the arena's descriptor, closes both
 *	recorder  keeps the descriptor, and learns from the socket who the program is
 *
 * There is no answer, and neither side waits.  A process that is under more seccomp filters than
 * the recorder could be killed for the system calls that this takes, and is not recorded.  If
 * tacho-record has not started a recorder, or it cannot be reached, the program starts one for
 * itself (spawn.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define INTRODUCE_VARIABLE  "TACHO_SOCK" /* "@name,/path,pid:[7]", see introduce_to() */
#define INTRODUCE_PID_SPACE "/proc/self/ns/pid"
#define FILTERS_VARIABLE    "TACHO_FILTERS" /* seccomp_filters() of the recorder */

struct introduction {
	uint64_t magic; /* ARENA_MAGIC */
	uint32_t version, pid;
};

/* Converts a name in the form of the variable to an address; returns its length, or 0 if it is no
 * such name. */
socklen_t introduce_address(const char *name, struct sockaddr_un *out);
/*
 * Introduces every arena of this process to the recorder with this name, which is copied: an
 * abstract socket, one with a path, and the link INTRODUCE_PID_SPACE of the recorder.  If the name
 * is NULL or neither can be reached, starts the recorder in the library's folder, but not in
 * another PID namespace if `is_reported`: tacho-record learns that this process is not recorded.
 */
void introduce_to(const char *name, const char *library, bool is_reported);
/* Sends bytes with a descriptor, without waiting.  The other side gets -1 for a missing one. */
bool introduce_send(int to, const void *bytes, size_t len, int fd);
ssize_t introduce_receive(int from, void *bytes, size_t len, int flags, int *fd);
/* Returns whether tacho-record has started a recorder. */
bool introduce_is_awaited(void);
enum { FILTERS_STRICT = 1 << 20, FILTERS_UNKNOWN = -1 };
/* Returns the number of seccomp filters of the process with this folder ("/proc/self"). */
int seccomp_filters(const char *proc);
/* Returns whether the process has more filters than the recorder; false if either number is
 * unknown. */
bool seccomp_has_more(const char *proc, int recorder);
/* Returns the process number of the recorder that was started for this process, or 0. */
pid_t introduced_to(void);
