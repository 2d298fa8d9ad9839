/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step/host.h - inside of the stage `step`: what is open on the host, now.
 *
 * An event is open at t while begin <= t < end; one of length 0 is open never.  Only what can
 * still decide something is kept, so proper nesting is not assumed and nothing is searched:
 *
 *	open_stack  the open range that begins last: what a new one outlives goes
 *	open_line   the open range that began first: a new one that ends before is not kept
 *
 * and of what only has to be open or not (ops and calls of S, work of autograd threads) the
 * greatest end is enough.  Used by step.c alone.
 */
#ifndef CONVERT_STEP_HOST_H
#define CONVERT_STEP_HOST_H

#include "convert/step.h"

#define PHASE_PENDING 255u /* whether its hole is backward is not known yet */

struct open_range {
	uint64_t end_ns;
	uint32_t value; /* a phase, or a name */
};
struct open_stack { /* ends fall from the bottom to the top */
	struct open_range *items;
	uint32_t count, cap;
};
struct open_line { /* ends rise from the head on */
	struct open_range *items;
	uint32_t head, end, cap;
};

struct host_thread { /* one per track */
	uint32_t process;
	uint32_t host; /* the thread itself; of a memory pool the thread that used it; or 0 */
	uint8_t home;
	bool runs_autograd;
	bool is_candidate;      /* may be S of a process without marks */
	uint32_t events, order; /* of candidates: how many were held, and who began first */
	struct open_stack urgent; /* validation, checkpoint: phases */
	struct open_stack mapped; /* other phases */
	struct open_stack named, python; /* names: who owns a launch */
};

/* What S does at one instant. */
struct moment {
	uint8_t phase; /* PHASE_PENDING: backward if autograd threads move again, else other */
	bool inferred;
	uint64_t until_ns; /* the same till then if nothing begins; UINT64_MAX: no bound */
};

struct host_process {
	uint32_t thread; /* S, a track; 0: none */
	uint8_t marks;   /* enum mark_source */
	bool tentative;  /* of several threads it is not known yet */
	bool launches;   /* candidates do, equally often */
	uint32_t begun;  /* candidates that had an event */

	uint64_t mark_end_ns; /* of the mark begun last */
	uint64_t near_ns;     /* that and a hundredth of its length */
	uint32_t mark_step;   /* its number + 1; 0: none came */
	uint64_t next_number; /* for a mark without one */

	struct open_line unmapped; /* annotations on S: names */
	uint64_t busy_until_ns;    /* greatest end of ops and calls on S */
	uint64_t active_until_ns;  /* the same of all autograd threads */
	bool busy_begins, active_begins; /* at the instant that is being gathered */

	bool has_begun, is_stale; /* stale: something began since `now` was made */
	struct moment now;
	struct stretch current; /* end_ns unused */
	uint64_t last_end_ns;

	uint32_t waits_first, waits_last; /* held events whose phase is pending, chained by tag */
	uint32_t waits;                   /* how many */
	size_t pending_first; /* where the first stretch is that is pending; see step.c */
	size_t pending_count;
	uint32_t pass; /* of step_settle: marks a process whose later stretches stay */
};

enum mark_source { MARKS_NONE, MARKS_STEP, MARKS_RANGE };

struct name_answer { /* what the rules say of a name, asked when it is needed: matching is slow */
	bool step_known, mapped_known, pushed_known;
	bool is_step;
	uint8_t mapped; /* phase of an annotation of this name, or PHASE_NONE */
	uint8_t pushed; /* of a phase pushed through tacho.h */
	uint8_t row;    /* its own row, once it was outermost on S; 0 none yet */
	uint64_t number; /* of a step, as the rules have it */
};

#define PHASE_ROWS 255u /* ids of phases: all but PHASE_PENDING */

struct host {
	struct trace *trace;
	const struct name_rules *rules;
	struct host_thread *threads;    /* by track */
	struct host_process *processes; /* by process */
	struct name_answer *answers;    /* by name */
	uint32_t thread_count, process_count, name_count; /* highest ids */
	uint32_t undecided; /* processes that are tentative */
	uint32_t rows[PHASE_ROWS]; /* names of the annotation rows */
	unsigned row_count;        /* phases in all, the rules' included */
};

/* Tables from the trace; finds S and the autograd threads from its sites. */
enum status host_init(struct host *h, struct trace *trace, const struct name_rules *rules,
		      struct error *err);
void host_release(struct host *h);

/* Ids out of range belong to the empty row 0. */
static inline struct host_thread *host_thread(const struct host *h, uint32_t track)
{
	return &h->threads[track <= h->thread_count ? track : 0];
}

/* Only these can be marks, whatever the rules say. */
static inline bool event_may_be_mark(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX;
	return e->kind == KIND_STEP;
}

/* Its number in *number, as it was, where it is none; NULL: not asked for. */
bool host_name_is_step(struct host *h, uint32_t name, uint64_t *number);
/* `is_pushed`: through tacho.h. */
uint8_t host_name_phase(struct host *h, uint32_t name, bool is_pushed);
uint8_t host_row(struct host *h, uint32_t name);
bool host_is_mark(struct host *h, const struct event *e);
/* S is the thread of this event, if that was open and this one can tell. */
void host_decide(struct host *h, const struct event *e);
/* No more is held: what is known has to do, though a first mark may still come. */
void host_settle(struct host *h);

enum status open_push(struct open_stack *s, struct open_range range, struct error *err);
enum status open_append(struct open_line *l, struct open_range range, struct error *err);

/* The range that decides at t, or NULL; forgets what ended. */
static inline const struct open_range *open_last(struct open_stack *s, uint64_t t)
{
	while (s->count && s->items[s->count - 1].end_ns <= t)
		s->count--;
	return s->count ? &s->items[s->count - 1] : NULL;
}

static inline const struct open_range *open_first(struct open_line *l, uint64_t t)
{
	while (l->head < l->end && l->items[l->head].end_ns <= t)
		l->head++;
	return l->head < l->end ? &l->items[l->head] : NULL;
}

/* Phase that this thread's own ranges give, or PHASE_NONE; until_ns is the end of the range. */
static inline uint8_t thread_phase(struct host_thread *t, uint64_t at, uint64_t *until_ns)
{
	const struct open_range *range = open_last(&t->urgent, at);

	if (!range)
		range = open_last(&t->mapped, at);
	if (!range)
		return PHASE_NONE;
	*until_ns = range->end_ns;
	return (uint8_t)range->value;
}

/* Name of the innermost range that is open. */
static inline uint32_t thread_owner(struct host_thread *t, uint64_t at)
{
	const struct open_range *range = open_last(&t->named, at);

	if (!range)
		range = open_last(&t->python, at);
	return range ? range->value : 0;
}

/* The spans of a profiler and its records of itself are nothing that S did. */
static inline bool event_counts(const struct event *e, const struct host_thread *t)
{
	if (t->home != HOME_THREAD)
		return event_is_gpu_work(e);
	if (e->kind == KIND_RANGE)
		return e->subkind != RANGE_PROFILER;
	return e->kind == KIND_API || e->kind == KIND_STEP || e->kind == KIND_JIT;
}

/* What S or the process's GPUs did: `e` moves its begin and end. */
static inline void host_extend(struct host_process *p, const struct host_thread *t,
			       const struct event *e)
{
	if (!event_counts(e, t))
		return;
	if (!p->has_begun) {
		p->has_begun = true;
		p->is_stale = true;
		p->current = (struct stretch){ .begin_ns = e->begin_ns, .process = t->process };
	}
	if (e->end_ns > p->last_end_ns)
		p->last_end_ns = e->end_ns;
}

/* An op or a call: on S no hole any more, on an autograd thread activity. */
static inline void host_work(struct host_process *p, const struct host_thread *t,
			     const struct event *e)
{
	bool is_s = e->track == p->thread;
	uint64_t *until_ns = is_s ? &p->busy_until_ns : &p->active_until_ns;

	if ((!is_s && !t->runs_autograd) || e->end_ns <= *until_ns)
		return;
	if (*until_ns <= e->begin_ns)
		*(is_s ? &p->busy_begins : &p->active_begins) = true;
	*until_ns = e->end_ns;
	p->is_stale = true;
}

/* S at t, all that begins at t being entered (analyze/DEFINITIONS.md 4). */
struct moment host_moment(struct host *h, struct host_process *p, uint64_t t);
/* Enters a range of some length on a host thread. */
enum status host_enter(struct host *h, struct host_process *p, struct host_thread *t,
		       const struct event *e, struct error *err);

#endif
