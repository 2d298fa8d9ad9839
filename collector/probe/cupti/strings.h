/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strings.h - what must happen to a buffer before CUPTI's completion callback returns.
 *
 * Pointers in records die then, so every text becomes an id of names.h, in place: the pointer's
 * eight bytes hold the id.  Takes no memory; a lock only for a name that is new (names.h).
 */
#ifndef COLLECTOR_PROBE_CUPTI_STRINGS_H
#define COLLECTOR_PROBE_CUPTI_STRINGS_H

#include "collector/probe/cupti/lib.h"

/* What the buffer holds besides records that become events at once. */
enum names_mark {
	MARK_TABLES = 1,   /* devices, contexts, streams */
	MARK_EXTERNAL = 2, /* external correlation */
	MARK_EVENTS = 4,   /* CUDA events, which may have to wait for their time */
	MARK_EVEN =
		8, /* the library's iteration matches its record sizes, so we may step by them */
};

/* Program's threads.  Returns marks; *records gets the number of records. */
unsigned cupti_names_keep(const struct cupti_lib *lib, uint8_t *bytes, size_t valid,
			  uint64_t *records);
/*
 * Any thread.  For a buffer that is not kept: counts the records that would have become events, and
 * frees what CUPTI leaves to its client.
 */
uint64_t cupti_names_drop(const struct cupti_lib *lib, uint8_t *bytes, size_t valid);
/* Any thread.  In a copy of another client's buffer: that client frees what CUPTI leaves to it. */
void cupti_names_leave(const struct cupti_lib *lib, uint8_t *bytes, size_t valid);
/* Memory that CUPTI allocated for this record and leaves to its client; the pointer becomes 0. */
void cupti_names_free(const struct cupti_lib *lib, uint32_t kind, uint8_t *record);

#endif
