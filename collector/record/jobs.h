/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - tells something to all recorded processes below the command.
 */
#ifndef COLLECTOR_RECORD_JOBS_H
#define COLLECTOR_RECORD_JOBS_H

#include <sys/types.h>

/*
 * Sends a word of the control socket (control.h) to each process that descends from `root` and is
 * recorded.  It is done in a process of its own, which waits until there is one that listens, so
 * the caller goes on at once.
 */
void jobs_tell(pid_t root, const char *what);

#endif
