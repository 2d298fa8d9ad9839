/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.h - which process of a job this is, from what launchers set.  Pure: the environment is
 * handed in.
 *
 * To add a launcher: a row of the table in rank.c.
 */
#ifndef COLLECTOR_CONFIG_RANK_H
#define COLLECTOR_CONFIG_RANK_H

#include "schemas/base/status.h"

#include <stdbool.h>

#define RANK_UNKNOWN UINT32_MAX
struct rank {
	uint32_t rank;        /* RANK_UNKNOWN */
	uint32_t world_size;  /* 0: unknown */
	const char *launcher; /* constant text; "" */
};

/* The first row of the table whose variable holds a number. */
struct rank rank_find(char *const *envp);

/*
 * "all"; "main" is rank 0, or a process that has no rank; "0,4-7" are ranks.  A process without a
 * rank counts as rank 0.
 */
enum status rank_is_wanted(const char *ranks, uint32_t rank, bool *wanted, struct error *err);

/* The value of a variable, or NULL. */
const char *rank_variable(char *const *envp, const char *name);

#endif
