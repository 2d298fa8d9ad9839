/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - reads from one input of a host when all-reduces and barriers ended, and how two clocks
 * differ.  Only one thread may use it.
 */
#pragma once

#include "convert/spool/merge.h"
#include "convert/name/rules.h"

struct ended {        /* a collective, as one host saw it */
	uint64_t key; /* equal: the same */
	uint64_t end_ns;
};
struct aligned {
	struct clock_fit fit; /* error_ns: the median deviation that is left */
	size_t pairs;
	uint64_t span_ns; /* from the first pair to the last */
};
enum {
	ALIGN_PAIRS = 3,        /* fewer say nothing */
	ALIGN_DRIFT_PAIRS = 20, /* so many, over so long, say how a clock drifts */
};
#define ALIGN_DRIFT_NS 10000000000u
/* Both lists are in order of key, each key once.  The fit maps the clock of `of` to that of `to`.
 */
enum status align_pairs(const struct ended *of, size_t of_count, const struct ended *to,
			size_t to_count, struct aligned *out, struct error *err);
/* Returns the greatest deviation of REALTIME - MONOTONIC of a process's anchors from their median,
 * or UINT64_MAX for fewer than two anchors. */
uint64_t align_anchor_error(const struct trace *t, uint32_t process);

/* Lists them in order of key, each once, up to a ceiling; the caller frees *out. */
enum status align_read(const char *path, const struct name_rules *rules,
		       const struct budget *budget, struct ended **out, size_t *count,
		       struct error *err);
