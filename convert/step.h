/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - the stage that knows, for each instant, the step and the phase of the host.
 *
 * It finds the step thread S of each process, follows the ranges that are open on S and on the
 * threads that launch, and sets step, phase and owner (innermost range) of every host event at its
 * begin; the stage `link` above copies them from a launch to its GPU work.  What steps and phases
 * are: analyze/DEFINITIONS.md 3, 4.  Whether a hole of S is backward is known only when the autograd
 * threads move again or the hole ends, so events wait in a queue until the phase of their begin is
 * known: a few microseconds of trace in practice; past QUEUE_EVENTS the open end counts as `other`.
 *
 * What S did is also given as stretches that tile its time; a consumer gets those that became
 * final with each batch, and by then every event that begins before their end.  A long stretch
 * comes in pieces, one for each batch, or fewer where processes are many.
 */
#ifndef CONVERT_STEP_H
#define CONVERT_STEP_H

#include "convert/name_rules.h"
#include "convert/source.h"

/* Ids of phases in a run: those of the rules, then one for each unmapped outermost annotation by
 * name, up to 254; what is beyond shares the last. */
struct step_phase {
	const char *name; /* borrowed until the stage is closed */
	bool is_annotation; /* an unmapped annotation: a row of its own name */
};

/* With STEP_GAP in the events' step, where step_tell_near() was called: it begins within a
 * hundredth of the mark behind that (analyze/DEFINITIONS.md 1, cuts).  `cut` takes it away. */
#define STEP_NEAR 0x40000000u

struct stretch { /* begin < end; S of `process` is in this phase and step all the time */
	uint64_t begin_ns, end_ns;
	uint32_t process;
	uint32_t step;  /* as event.step: 0, number + 1, with STEP_GAP between two marks */
	uint8_t phase;
	bool inferred;  /* by rules 3 and 4, not by a name */
	bool begins_step; /* with a mark; numbers may come again */
};
/* A step mark of S. */
struct step_mark {
	uint64_t begin_ns, end_ns, number;
	uint32_t process;
	uint8_t flags; /* enum event_flag of the mark */
};

struct step_stage; /* a struct source */

/* Owns `below` from here on, even on failure. */
enum status step_open(struct source **out, struct source *below, struct trace *trace,
		      const struct name_rules *rules, struct error *err);

/*
 * What became final since somebody last looked (at either), per process in time order; borrowed
 * until the next next().  All consumers of a batch see the same.  After ST_END: the rest.  When
 * nobody looks, the oldest are forgotten.
 */
size_t step_stretches(const struct source *s, const struct stretch **out);
size_t step_marks(const struct source *s, const struct step_mark **out);

/* Whether the event marks a step, in whatever process; of one that was clipped too. */
bool step_is_mark(const struct source *s, const struct event *e);

void step_tell_near(struct source *s);

/* For a stage above that holds events back: it has given all that begin before `begin_ns`, and so
 * stretches and marks come no sooner.  0 from its open() on, UINT64_MAX after the last. */
bool step_is(const struct source *s);
enum status step_hold(struct source *s, uint64_t begin_ns, struct error *err);

/*
 * For a stage above that holds events back without a copy of its own, in place of next(): one more
 * pull, after which *ready of the oldest events of the queue are final.  It lends them, and drops
 * them (queue_lend(), then step_drop() of as many as it was the last to lend).
 */
struct event_queue;
struct event_queue *step_queue(struct source *s);
enum status step_extend(struct source *s, size_t *ready, struct error *err);
void step_drop(struct source *s);

/* For a stage above that reads all before it gives any: stretches wait for it; those shorter than
 * `shortest_ns` join the one before. */
void step_keep(struct source *s, uint64_t shortest_ns);

/* Rows of annotations appear while events come: names and count are final after ST_END. */
unsigned step_phase_count(const struct source *s);
struct step_phase step_phase(const struct source *s, unsigned id);
/* The step thread of a process, 0 when it has no host thread; of several that could be it the one
 * is known from the first batch on. */
uint32_t step_thread(const struct source *s, uint32_t process);
/* Whether a range of this name marks a step: one answer for all who ask. */
bool step_is_named(const struct source *s, uint32_t name);

#endif
