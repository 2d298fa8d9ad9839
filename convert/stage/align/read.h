/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - reads the ends of all-reduces and barriers from one input of a host, and fits two clocks
 * to each other.  Only one thread may use it.
 */
#pragma once

#include "convert/spool/merge.h"
#include "convert/name/rules.h"

struct ended {        /* the end of a collective on one host */
	uint64_t key; /* equal keys on two hosts: the same collective */
	uint64_t end_ns;
};
struct aligned {
	struct clock_fit fit; /* error_ns: median of the remaining deviations */
	size_t pairs;
	uint64_t span_ns; /* from the first pair to the last */
};
enum {
	ALIGN_PAIRS = 3,        /* least number for an offset */
	ALIGN_DRIFT_PAIRS = 20, /* least number for a drift, over at least ALIGN_DRIFT_NS */
};
#define ALIGN_DRIFT_NS 10000000000u
/* Fits the clock of `of` to that of `to`.  Both lists are in order of key, and no key comes twice.
 */
enum status align_pairs(const struct ended *of, size_t of_count, const struct ended *to,
			size_t to_count, struct aligned *out, struct error *err);
/* Returns the greatest deviation of REALTIME - MONOTONIC among a process's anchors from their
 * median, in ns, or UINT64_MAX if there are fewer than two anchors. */
uint64_t align_anchor_error(const struct trace *t, uint32_t process);

/* Lists the collectives of an input in order of key, up to a fixed number; no key comes twice.  The
 * caller frees *out. */
enum status align_read(const char *path, const struct name_rules *rules,
		       const struct budget *budget, struct ended **out, size_t *count,
		       struct error *err);
