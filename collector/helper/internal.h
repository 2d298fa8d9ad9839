/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the helper's thread and its writer share; both on that thread. */
#pragma once

#include "collector/helper/helper.h"
#include "collector/store/writer.h"

/* What stands for the writer in the program: it numbers rows, and hands them on. */
struct writer {
	const struct config *config;
	struct helper *shared;
	struct trace *trace;              /* gives each name, track ... its number */
	uint32_t sent[TRACE_TABLE_COUNT]; /* rows of each table that were handed on */
	uint64_t log;                     /* it counts windows: each begins with no names */
	bool has_row, broken;             /* broken: a name found no room, until the next window */
	bool stuck; /* the recorder made no room for long: it is not waited for */
};

/* A window begins: all ids are void. */
void helper_reset(struct writer *w);
void helper_put_anchor(struct writer *w, uint64_t cupti_ns);
