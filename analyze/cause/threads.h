/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - what threads did lately, for gaps that end later.  Part of cause.c and
 * gap.c; nobody else includes it.
 *
 * Two kinds of lists, both in the order of begin, both pruned from the old end:
 *
 *	spans   intervals with one cause; asked for what covers [a, b), in time order
 *	ranges  names; asked for the innermost that covers most of [a, b)
 *
 * The first finds its start by the greatest end so far, the second by links to the last one before
 * that ends later, so neither assumes that anything nests.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct span {
	uint64_t begin_ns, end_ns;
	uint64_t since_ns; /* counts for gaps that end at this instant or later */
	uint64_t reach_ns; /* greatest end of this and all before */
	uint32_t name, track;
};
struct spans {
	struct span *items;
	uint32_t count, cap;
};

struct range {
	uint64_t begin_ns, end_ns;
	uint32_t name, node; /* node: its own in the calling-context tree */
	uint32_t outer;      /* index + 1 of the last one before that ends later; 0 none */
};
struct ranges {
	struct range *items;
	uint32_t count, cap;
};

/* Calls that put kernels on a GPU, in the order of their begin; those before `head` are over. */
struct asked_call {
	uint64_t begin_ns, end_ns, correlation;
	uint32_t name, track;
	bool has_work; /* some of its work has begun */
};
struct asked {
	struct asked_call *items;
	uint32_t head, count, cap;
};

struct call_frame {                     /* the Python frame of a launch */
	uint64_t begin_ns, correlation; /* of the call */
	uint32_t python;
};
struct frames { /* a ring */
	struct call_frame *items;
	uint32_t count, cap, first;
};

/* What may be dropped, and where dropping begins to hurt. */
struct keep {
	uint64_t unsettled_ns; /* what ended before this is of no use */
	uint64_t forgotten_ns; /* grows: before this something useful was dropped */
	uint32_t most;         /* items of a list */
};

/* Anywhere in the list; what it adds nothing to is left out. */
enum status spans_put(struct spans *s, const struct span *one, struct keep *k, struct error *err);
/* The first that may reach beyond `at_ns`, or count. */
uint32_t spans_search(const struct spans *s, uint64_t at_ns);
static inline uint32_t spans_find(const struct spans *s, uint64_t at_ns)
{
	if (!s->count || s->items[s->count - 1].reach_ns <= at_ns)
		return s->count; /* the most often asked for: nothing since */
	return spans_search(s, at_ns);
}

/* Not earlier than the last one; `outer` is found here. */
enum status ranges_put(struct ranges *r, struct range one, struct keep *k, struct error *err);
/* Until the next is put; NULL: none. */
const struct range *ranges_find(const struct ranges *r, uint64_t begin_ns, uint64_t end_ns);

/* Not earlier than the last one. */
enum status asked_put(struct asked *a, const struct asked_call *call, struct error *err);
/* Work of the call on that thread which began then, with that correlation, has begun. */
void asked_work(struct asked *a, uint64_t begin_ns, uint32_t track, uint64_t correlation);
/* Of the calls that began after `after_ns` and before `before_ns` the one that ended first, or
 * NULL; *lost: the same of those without work.  The others before it are forgotten: `after_ns`
 * never descends. */
const struct asked_call *asked_find(struct asked *a, uint64_t after_ns, uint64_t before_ns,
				    const struct asked_call **lost);

enum status frames_put(struct frames *f, const struct call_frame *one, struct error *err);
uint32_t frames_find(const struct frames *f, uint64_t begin_ns, uint64_t correlation);
