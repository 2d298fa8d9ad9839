/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen.h - one page that tacho-record shares with the processes it records, so that it can explain
 * why nothing was recorded.  They open it when they begin, by the path /proc/PID/fd/N in
 * TACHO_SEEN.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct seen {
	uint64_t steps; /* steps of processes that have ended by exit() */
	uint64_t slow;  /* number of slow steps that were not saved; next: the longest */
	uint64_t longest_ns, longest_step;
	bool is_known;           /* false: there is no page, and all members are 0 */
	uint64_t loaded;         /* number of programs that loaded the library */
	uint64_t refused;        /* number of processes that could not be recorded */
	uint64_t refusal, limit; /* of the latest: enum arena_refusal, and the limit it hit */
};

/* Makes the page and sets the variable.  tacho-record calls it before the command starts. */
void seen_make(void);
struct seen seen_read(void);

/* A recorded process calls seen_open() when it begins, which returns whether there is a page, and
 * seen_add_steps() when it ends. */
bool seen_open(const char *path);
void seen_add_steps(uint64_t steps);
/* Counts this process as one that cannot be recorded. */
void seen_add_refused(void);
/* Counts a slow step that was not saved. */
void seen_add_slow(uint64_t step, uint64_t took_ns);
