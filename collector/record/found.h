/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found.h - the logs and rings that a run has left in a folder.
 */
#ifndef COLLECTOR_RECORD_FOUND_H
#define COLLECTOR_RECORD_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct found {
	char **names; /* sorted */
	size_t count, cap;
};

void found_init(struct found *f);
void found_release(struct found *f);
/* The logs of this host in the folder; none where there is no folder. */
void found_look(struct found *f, const char *folder, const char *host);
/*
 * Turns the rings of this host whose processes have ended into logs in `folder` if `save` is set,
 * and removes them.  `pid` ended with wait status `status`; pid 0: no process is known to have
 * ended.  Returns how many could not be saved, and are left.
 */
unsigned found_rings(const char *rings, const char *host, const char *folder, bool save, pid_t pid,
		     int status);
bool found_holds(const struct found *f, const char *name);

#endif
