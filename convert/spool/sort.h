/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool/sort.h - the order of the events in memory; inside of the spool.
 */
#ifndef CONVERT_SPOOL_SORT_H
#define CONVERT_SPOOL_SORT_H

#include <stddef.h>
#include <stdint.h>

struct key {
	uint64_t begin_ns;
	uint32_t row; /* place of the event's row; keys come in with places ascending */
	uint32_t group;
};

/* By group, begin, end descending, row.  `spare` has room for as many. */
void keys_sort(struct key *keys, struct key *spare, size_t count, const uint8_t *rows);

#endif
