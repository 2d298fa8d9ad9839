/* SPDX-License-Identifier: Apache-2.0 */
/*
 * introduce.h - how a recorded process hands its arena to the recorder outside.
 *
 *	program   connects, sends one message with the arena's descriptor, closes both
 *	recorder  keeps the descriptor, and learns from the socket who the program is
 *
 * Nothing is answered and nothing waits.  A process that is under more seccomp filters than the
 * recorder may be killed by the system calls that this takes, and stays out.  Where tacho-record
 * has not started a recorder, or it cannot be reached, the program starts one for itself
 * (spawn.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define INTRODUCE_VARIABLE "TACHO_SOCK"    /* "@name": an abstract one */
#define FILTERS_VARIABLE   "TACHO_FILTERS" /* seccomp_filters() of the recorder */

struct introduction {
	uint64_t magic; /* ARENA_MAGIC */
	uint32_t version, pid;
};

/* The address of a name as in the variable; 0: it is none. */
socklen_t introduce_address(const char *name, struct sockaddr_un *out);
/*
 * Introduces every arena of this process to the recorder with this name, which is copied; where it
 * is NULL, or nobody has it, to one that is started from beside the library.
 */
void introduce_to(const char *name, const char *library);
/* Whether tacho-record has started a recorder. */
bool introduce_is_awaited(void);
enum { FILTERS_STRICT = 1 << 20, FILTERS_UNKNOWN = -1 };
/* The number of seccomp filters of the process with this folder ("/proc/self"). */
int seccomp_filters(const char *proc);
/* Whether it has more than the recorder; false where either is unknown. */
bool seccomp_has_more(const char *proc, int recorder);
/* The number of the recorder that was started for this process; 0: none was. */
pid_t introduced_to(void);
