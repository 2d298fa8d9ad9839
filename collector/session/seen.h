/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen.h - one page that tacho-record shares with the processes it records, so that it can say why
 * nothing was recorded.  They open it by the path in TACHO_SEEN, /proc/PID/fd/N, when they begin.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct seen {
	uint64_t steps; /* of processes that have ended by exit() */
	uint64_t slow;  /* slow steps that were not saved; the longest, and its number: */
	uint64_t longest_ns, longest_step;
	bool is_known;    /* false: there is no page, and all is 0 */
	uint64_t loaded;  /* programs that began with the library */
	uint64_t refused; /* processes that could not be recorded; why the latest could not: */
	uint64_t refusal, limit; /* enum arena_refusal, and the limit in its way */
};

/* In tacho-record, before the command starts: makes the page and sets the variable. */
void seen_make(void);
struct seen seen_read(void);

/* In a recorded process: at its begin, and at its end. */
void seen_open(const char *path);
void seen_add_steps(uint64_t steps);
/* This process cannot be recorded. */
void seen_add_refused(void);
/* A slow step was not saved. */
void seen_add_slow(uint64_t step, uint64_t took_ns);
