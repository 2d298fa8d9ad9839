/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.h - which activity kinds of CUPTI a window needs: one table, switched on and off.
 *
 * The result of Enable decides what a library can do: a kind that it does not know or refuses is
 * noted, never fatal.  Only the thread that has CUPTI (cupti/trace.h).
 */
#ifndef COLLECTOR_PROBE_CUPTI_KINDS_H
#define COLLECTOR_PROBE_CUPTI_KINDS_H

#include "collector/probe/cupti/lib.h"

struct buf;

struct cupti_choice {
	uint32_t kinds_mask; /* bits of enum kind */
	bool memory;         /* allocations and pools too */
	bool graph_level;    /* one event for a graph, none for its nodes */
};
struct cupti_kinds {
	bool asked[CUPTI_KINDS], on[CUPTI_KINDS];
	int results[CUPTI_KINDS]; /* of Enable, where asked */
	unsigned asked_count, on_count;
	bool work_asked, work_on; /* kernels, copies or graphs */
	int refusal;              /* why nothing worth it is recorded; CUPTI_OK: it is */
};

/* Something that CUPTI can give is chosen. */
bool cupti_kinds_any(const struct cupti_choice *choice);
void cupti_kinds_enable(const struct cupti_lib *lib, const struct cupti_choice *choice,
			struct cupti_kinds *out);
/* Those that are on, whatever another tool has done to them meanwhile. */
void cupti_kinds_enable_again(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* Disables the kinds that are on; the struct is not changed. */
void cupti_kinds_disable(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* The number of our kinds that another tool has switched off; 0 where the library cannot say. */
unsigned cupti_kinds_gone(const struct cupti_lib *lib, const struct cupti_kinds *k);
/* {"on": [10, 1], "off": {"54": 21}} */
void cupti_kinds_put_json(const struct cupti_kinds *k, struct buf *out);

#endif
