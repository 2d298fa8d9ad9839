/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - definitions for the helper's thread and its writer, which runs on that thread. */
#pragma once

#include "collector/helper/helper.h"
#include "collector/store/writer.h"

/* The writer in the program, which numbers rows and passes them on to the recorder. */
struct writer {
	const struct config *config;
	struct helper *shared;
	struct trace *trace;              /* assigns the ids of names, tracks and other rows */
	uint32_t sent[TRACE_TABLE_COUNT]; /* number of rows of each table that were passed on */
	uint64_t log;                     /* number of windows so far; each begins without names */
	bool has_row, broken; /* broken: a table row found no space; until the next window */
	bool stuck;           /* the recorder made no space for long, so do not wait for it */
};

/* Discards all ids at the begin of a window. */
void helper_reset(struct writer *w);
void helper_put_anchor(struct writer *w, uint64_t cupti_ns);
