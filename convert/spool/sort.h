/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool/sort.h - the order of the events in memory; inside of the spool.
 */
#ifndef CONVERT_SPOOL_SORT_H
#define CONVERT_SPOOL_SORT_H

#include "schemas/event.h"

/* Events stand in chunks, so that they never move and memory grows with them. */
enum { SPOOL_CHUNK_SHIFT = 8, SPOOL_CHUNK = 1 << SPOOL_CHUNK_SHIFT };

struct key {
	uint64_t begin_ns;
	uint32_t index; /* of the event; keys come in with indexes ascending */
	uint32_t group;
};

struct chunk {
	struct event events[SPOOL_CHUNK];
	uint32_t groups[SPOOL_CHUNK];
};

static inline struct event *chunk_event(struct chunk *const *chunks, size_t index)
{
	return &chunks[index >> SPOOL_CHUNK_SHIFT]->events[index & (SPOOL_CHUNK - 1)];
}

static inline uint32_t *chunk_group(struct chunk *const *chunks, size_t index)
{
	return &chunks[index >> SPOOL_CHUNK_SHIFT]->groups[index & (SPOOL_CHUNK - 1)];
}

/* By group, begin, end descending, index.  `spare` has room for as many. */
void keys_sort(struct key *keys, struct key *spare, size_t count, struct chunk *const *chunks);

#endif
