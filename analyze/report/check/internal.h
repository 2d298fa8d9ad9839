/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - shared by check.c, judge.c and rules.c. rules.c counts for check.c what PyTorch's
 * validator of traces checks, and has the verdicts about it for judge.c.
 */
#pragma once

#include "analyze/report/check/check.h"

/* Makes the state of rules.c for one input. NULL: out of memory. */
struct rules *rules_new(const struct trace *t);
void rules_free(struct rules *r);
/* Counts one event in the facts `at` of its process, which are indexed by enum fact. */
void rules_put(struct rules *r, const struct batch *b, const struct event *e, uint32_t process,
	       uint64_t *at);

enum { TEXT_MAX = 1024 };
struct judge { /* the checks of one rank */
	struct tables *all;
	struct table *checks;
	const union value *facts, *trust, *ranks;
	uint64_t count;
	char text[TEXT_MAX];
	struct error *err;
};

static inline uint64_t fact(const struct judge *j, enum fact which)
{
	return j->facts[which].u64;
}

/* Stores the sentence and the count in *j, and returns the verdict. */
__attribute__((format(printf, 4, 5))) enum verdict conclude(struct judge *j, enum verdict v,
							    uint64_t count, const char *fmt, ...);
#define good(j, ...)    conclude(j, VERDICT_GOOD, 0, __VA_ARGS__)
#define unknown(j, ...) conclude(j, VERDICT_UNKNOWN, 0, __VA_ARGS__)
/* Returns a figure of the rank's row in `trust`. */
uint64_t trusted(const struct judge *j, const char *column);
bool is_part(const struct judge *j);
enum verdict judge_order(struct judge *j);
enum verdict judge_waits(struct judge *j);
enum verdict judge_stream_syncs(struct judge *j);
enum verdict judge_comms(struct judge *j);
enum verdict judge_sequences(struct judge *j);
