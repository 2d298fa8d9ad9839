/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - starts a recorder for this process alone, if tacho-record has not started one.
 *
 *	program --clone--> a short-lived child --clone--> tacho-record, the recorder
 *
 * The recorder is an orphan when the program continues: wait(-1) does not return it, and there is
 * no SIGCHLD.  There is one exception: as process 1 of a container the program becomes the parent
 * of every orphan, so wait(-1) also waits for the recorder, which ends after the program.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The first argument of tacho-record as such a recorder; the second is the program's number. */
#define SPAWN_ARGUMENT "--record-for"
enum { SPAWN_ARENA = 3, SPAWN_PIDFD = 4 }; /* its descriptors; the second may be missing */

/* Finds the recorder in the folder of the library at `library`, or in ../bin.  Returns whether it
 * was found. */
bool spawn_find(const char *library);
/* Starts the recorder with the arena; returns its process number, or 0 if it could not be
 * started. */
pid_t spawn_recorder(int arena);
