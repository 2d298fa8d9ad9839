/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_id.h - what tells one launch of a job from another: the same text in all ranks of a launch.
 *
 * It is made of what the scheduler or launcher calls the job, of the time at which the outermost
 * tacho-record began, and of the number of the restart.  The time is the same in all ranks only
 * where they are all below one tacho-record, so it is left out in ranks of several nodes.  No text
 * is better than one that would take the ranks of a launch apart.
 */
#ifndef COLLECTOR_CONFIG_RUN_ID_H
#define COLLECTOR_CONFIG_RUN_ID_H

#include <stdbool.h>

enum { RUN_ID_MAX = 160 };

/* Set by the outermost tacho-record, unless it is started once for each rank. */
#define RUN_STARTED_VARIABLE "TACHO_STARTED"

/* "" where nothing is known.  TACHO_RUN_ID, the user's own, goes before all. */
void run_id_find(char *const *envp, char out[RUN_ID_MAX]);

#endif
