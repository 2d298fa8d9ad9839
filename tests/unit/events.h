/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - made-up events for tests of stages, sinks and reports.
 */
#ifndef TESTS_UNIT_EVENTS_H
#define TESTS_UNIT_EVENTS_H

#include "convert/source/source.h"

/*
 * A source over copies of `events`, which should be in order, in batches of `batch`; their vary
 * words stay borrowed.  ST_END follows, again and again.
 */
enum status array_source_open(struct source **out, const struct event *events, size_t count,
			      size_t batch);
/* The same, but after the last event it fails once with `fault`, and then ends. */
enum status array_source_fail(struct source **out, const struct event *events, size_t count,
			      size_t batch, enum status fault);
/* The same with launches, which are borrowed, and with the marks, which come with the first batch.
 */
enum status array_source_batch(struct source **out, const struct batch *all, size_t batch);
/* Sources of this file that are not closed yet. */
int array_sources_open(void);

/* All that `s` has left, from malloc(); vary words are gone with their batches.  NULL and a
 * failed check on an error. */
struct event *events_of(struct source *s, size_t *count);

/* The same numbers each time: state is any number but 0. */
uint64_t random_u64(uint64_t *state);

#endif
