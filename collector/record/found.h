/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found.h - finds the logs of a run, for tacho-record's last line.
 *
 * Only block headers and tables are read, so a large log takes no longer than a small one.
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
 * ended.
 */
void found_rings(const char *rings, const char *host, const char *folder, bool save, pid_t pid,
		 int status);
/* To stderr: what is in `after` and not in `before`; `note` ends the line. */
void found_print(const struct found *before, const struct found *after, const char *folder,
		 const char *note);

#endif
