/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - recent activity of threads, for gaps that end later. Only cause.c and gap.c use it.
 *
 * Two kinds of lists, both in the order of begin, both pruned at the old end:
 *
 * 	spans   intervals with one cause; queried for what covers [a, b), in time order
 * 	ranges  names; queried for the innermost that covers most of [a, b)
 *
 * Searches use the greatest end so far in the first, and links to the last earlier range that ends
 * later in the second, so neither assumes that intervals nest.
 */
#pragma once

#include "schemas/base/sort.h"
#include "schemas/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct span {
	uint64_t begin_ns, end_ns;
	uint64_t since_ns; /* used only for gaps that end at this instant or later */
	uint64_t reach_ns; /* greatest end up to and including this span */
	uint32_t name, track;
};
struct spans {
	struct span *items;
	size_t count, cap;
};

struct range {
	uint64_t begin_ns, end_ns;
	uint32_t name, node; /* node: its node in the calling-context tree */
	uint32_t outer;      /* index + 1 of the last earlier range that ends later; 0: none */
};
struct ranges {
	struct range *items;
	size_t count, cap;
};

/* Calls that launch kernels, in the order of their begins. Those before `head` are finished. */
struct kernel_call {
	uint64_t begin_ns, end_ns, correlation;
	uint32_t name, track;
	bool has_work; /* some of its work has begun */
};
struct kernel_calls {
	struct kernel_call *items;
	size_t head, count, cap;
};

struct call_frame {                     /* the Python frame of a launch */
	uint64_t begin_ns, correlation; /* begin and correlation of the launching call */
	uint32_t python;
};
struct frames { /* a ring */
	struct call_frame *items;
	size_t count, cap, first;
};

/* Limits for pruning. */
struct keep {
	uint64_t unsettled_ns; /* spans and ranges that ended before this are not needed */
	uint64_t forgotten_ns; /* latest end of what was dropped although it may be needed */
	uint32_t most;         /* limit of items in a list */
};

/* Inserts a span at its place by begin. A span that changes no result is left out. */
enum status spans_put(struct spans *s, const struct span *one, struct keep *k, struct error *err);
/* Returns the index of the first span that may end after `at_ns`, or `count`. */
static inline size_t spans_find(const struct spans *s, uint64_t at_ns)
{
	size_t at = s->count;

	if (s->count && s->items[s->count - 1].reach_ns > at_ns) { /* seldom */
		SEARCH(at, 0, s->count, s->items[at].reach_ns <= at_ns);
	}
	return at;
}

/* Appends a range that begins no earlier than the last one. Sets its `outer`. */
enum status ranges_put(struct ranges *r, struct range one, struct keep *k, struct error *err);
/* The result is valid until the next ranges_put(); NULL: none. */
const struct range *ranges_find(const struct ranges *r, uint64_t begin_ns, uint64_t end_ns);

/* Appends a call that begins no earlier than the last one. */
enum status kernel_calls_put(struct kernel_calls *a, const struct kernel_call *call,
			     struct error *err);
/* Notes that work of the call with this thread, begin and correlation has begun. */
void kernel_calls_note_work(struct kernel_calls *a, uint64_t begin_ns, uint32_t track,
			    uint64_t correlation);
/* Returns, of the calls that began between `after_ns` and `before_ns`, the one that ended first, or
 * NULL; *lost is the first such call without work. Earlier calls are dropped, so `after_ns` must
 * never descend. */
const struct kernel_call *kernel_calls_find(struct kernel_calls *a, uint64_t after_ns,
					    uint64_t before_ns, const struct kernel_call **lost);

enum status frames_put(struct frames *f, const struct call_frame *one, struct error *err);
uint32_t frames_find(const struct frames *f, uint64_t begin_ns, uint64_t correlation);
