/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - a recorder for this process alone, where tacho-record has not started one.
 *
 *	program --clone--> a child that nobody waits for --clone--> tacho-record, the recorder
 *
 * The recorder is nobody's child by the time the program runs on: wait(-1) does not return it, and
 * no SIGCHLD comes.  What is not so: as process 1 of a container the program becomes the parent of
 * every orphan, so wait(-1) waits for the recorder too, which ends after the program.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The first argument of tacho-record as such a recorder; the second is the program's number. */
#define SPAWN_ARGUMENT "--record-for"
enum { SPAWN_ARENA = 3, SPAWN_PIDFD = 4 }; /* its descriptors; the second may be missing */

/* Where the recorder is: beside the library at `library`, or in bin/ beside its lib/. */
bool spawn_find(const char *library);
/* Starts the recorder with the arena; its process number, or 0: it could not be started. */
pid_t spawn_recorder(int arena);
