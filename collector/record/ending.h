/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending.h - the last lines of tacho-record: what was recorded and the command that shows it, or
 * why nothing was.
 */
#ifndef COLLECTOR_RECORD_ENDING_H
#define COLLECTOR_RECORD_ENDING_H

#include "collector/session/seen.h"

#include <stdbool.h>

struct buf;
struct config;
struct found;

struct ending {
	const struct config *config;
	const char *name; /* by which we were called */
	const char *note; /* ends the first line */
	bool had_folder;  /* the folder for logs could be used at the start */
	unsigned rings_left;
	struct seen seen; /* what the processes have counted that came to an exit() */
};
/* To stderr: of the logs those that are in `after` and not in `before`. */
void ending_print(const struct ending *e, const struct found *before, const struct found *after);

/* Appends why nothing will be written to a disk that is too small; false: it is large enough. */
bool ending_put_disk(const struct config *c, struct buf *out);

#endif
