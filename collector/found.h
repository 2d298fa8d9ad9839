/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found.h - the logs that a run left behind, for tacho-record's last line.
 *
 * Logs are told by their block headers and tables only, so a log of any size takes a moment.
 */
#ifndef COLLECTOR_FOUND_H
#define COLLECTOR_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct found {
	char **names; /* sorted */
	size_t count;
};

void found_init(struct found *f);
void found_release(struct found *f);
/* The logs of this host in the folder; none where there is no folder. */
void found_look(struct found *f, const char *folder, const char *host);
/*
 * The rings of this host that processes left behind which are gone: each becomes a log in `folder`
 * if `save`, and is removed.  `pid` ended with wait status `status`; pid 0: nobody's is known.
 */
void found_rings(const char *rings, const char *host, const char *folder, bool save, pid_t pid,
		 int status);
/* To stderr: what is in `after` and not in `before`; `note` ends the line. */
void found_tell(const struct found *before, const struct found *after, const char *folder,
		const char *note);

#endif
