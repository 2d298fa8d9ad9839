/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/kinds.h - which activity kinds of CUPTI a window needs: one table, switched on and off.
 *
 * The result of Enable decides what a library can do: a kind that it does not know or refuses is
 * noted, never fatal.  Only the thread that has CUPTI (cupti/trace.h).
 */
#ifndef COLLECTOR_CUPTI_KINDS_H
#define COLLECTOR_CUPTI_KINDS_H

#include "collector/cupti/lib.h"

struct buf;

struct cupti_choice {
	uint32_t kinds_mask; /* bits of enum kind */
	bool memory;         /* allocations and pools too */
	bool graph_level;    /* graphs as a whole, not their nodes */
};
struct cupti_kinds {
	bool asked[CUPTI_KINDS], on[CUPTI_KINDS];
	int results[CUPTI_KINDS]; /* of Enable, where asked */
	unsigned asked_count, on_count;
	bool work_asked, work_on; /* kernels, copies or whole graphs */
	int refusal; /* why nothing worth it is recorded; CUPTI_OK: it is */
};

/* Something that CUPTI can give is chosen. */
bool cupti_kinds_any(const struct cupti_choice *choice);
void cupti_kinds_enable(const struct cupti_lib *lib, const struct cupti_choice *choice,
			struct cupti_kinds *out);
/* Those that are on.  The struct keeps what it says. */
void cupti_kinds_disable(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* Kinds of ours that somebody else switched off; 0 where the library cannot say. */
unsigned cupti_kinds_gone(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* {"on": [10, 1], "off": {"54": 21}} */
void cupti_kinds_tell(const struct cupti_kinds *k, struct buf *out);

#endif
