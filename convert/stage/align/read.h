/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - when all-reduces and barriers ended, by one input of a host, and how two clocks
 * differ by that.  One thread.
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
/* Both in order of key, each key once.  fit: from the clock of `of` to that of `to`. */
enum status align_pairs(const struct ended *of, size_t of_count, const struct ended *to,
			size_t to_count, struct aligned *out, struct error *err);
/* The greatest deviation of REALTIME - MONOTONIC of a process's anchors from their median;
 * UINT64_MAX: it has fewer than two. */
uint64_t align_anchor_error(const struct trace *t, uint32_t process);

/* In order of key, each once, no more than a ceiling; *out is the caller's, to be freed. */
enum status align_read(const char *path, const struct name_rules *rules,
		       const struct budget *budget, struct ended **out, size_t *count,
		       struct error *err);
