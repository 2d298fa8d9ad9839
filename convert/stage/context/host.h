/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the open ranges of host threads; a part of internal.h, which this folder's files
 * include.
 *
 * A range is open at t while begin <= t < end; one of length 0 is never open.  Ranges need not
 * nest.  To avoid searches, a stack keeps those that could become innermost, and a queue those that
 * could become outermost.
 */
#pragma once

#include "convert/stage/context/context.h"
#include "schemas/base/map.h"

/* A host gap that is or is not backward, and a forward that is or is not validation, because it is
 * not known whether a backward follows in this mark. */
#define PHASE_GAP          255u
#define PHASE_FORWARD_ONLY 254u
#define PHASE_PENDING      254u /* from here on phases are not decided yet */
#define PHASE_IDS          254u /* ids of phases are less than this */

struct open_range {
	uint64_t end_ns;
	uint32_t value; /* a phase, a name or a node */
	uint32_t named; /* in `paths`: node of the innermost non-Python range; or 0 */
};
struct open_stack { /* ends descend from the bottom to the top */
	struct open_range *items;
	size_t count, cap;
};
struct open_queue { /* ends ascend from the head on */
	struct open_range *items;
	size_t head, end, cap;
};

/* The latest forward operators of a thread, by the low bits of their autograd sequence numbers. */
struct forward_ops {
	struct forward_op {
		uint64_t number;
		uint32_t node; /* node of the latest operator with the number; 0: empty entry */
	} * items;
	size_t cap; /* a power of two, or 0 */
};

struct host_thread { /* one per track */
	uint32_t process;
	uint32_t host; /* the thread itself; for an allocator track its thread; or 0 */
	uint8_t type;
	bool runs_autograd;
	bool is_engine;                   /* its name is that of an autograd engine thread */
	bool runs_loop;                   /* has ranges that occur only in a training loop */
	bool waits;                       /* it has calls that wait for the GPU */
	bool is_candidate;                /* could be the step thread of a process without marks */
	uint32_t events, order;           /* of a candidate: events so far; order of first events */
	uint64_t open_ns, open_until_ns;  /* open time of a candidate */
	struct open_stack urgent, mapped; /* phases: validation and checkpoint; all others */
	struct open_stack paths, named, python; /* nodes: all; no Python; Python */
	uint32_t root;                          /* node of events while no range is open */
	struct forward_ops forwards;
	uint64_t backward_number, backward_until_ns; /* the latest backward operator */
	uint64_t plain_ns; /* last time a backward node was found not to be differentiated itself */
};

enum mark_source { MARKS_NONE, MARKS_STEP, MARKS_RANGE };

/* What the step thread does at an instant. */
struct host_state {
	uint8_t phase; /* PHASE_GAP: backward if autograd threads run again, else other;
			* PHASE_FORWARD_ONLY: forward if autograd runs before the mark ends, else
			* validation */
	bool inferred;
	uint64_t until_ns; /* lasts until then unless something begins */
};

struct host_process {
	uint32_t step_thread; /* track of the step thread; 0: none */
	uint8_t marks;        /* enum mark_source */
	bool is_undecided;    /* several threads may still be the step thread */
	bool launches;        /* the candidates launch work, all equally often */
	uint32_t begun;       /* number of candidates that have had an event */
	uint8_t grammar;      /* lowest grammar among the names that mark steps */

	uint64_t mark_begin_ns, mark_end_ns; /* the mark that began last */
	uint32_t mark_step;                  /* number of that mark + 1; 0: there was no mark */
	uint64_t next_number;                /* given to the next mark if it has no number */

	struct open_queue unmapped; /* names of open unmapped annotations on the step thread */
	uint64_t busy_until_ns;     /* greatest end of operators and calls on the step thread */
	uint64_t engine_until_ns;   /* greatest end of autograd's operators among them */
	uint64_t data_until_ns;  /* end of Python functions that load input; 0: kernels followed */
	uint64_t saves_until_ns; /* end of Python functions that save the model */
	uint64_t validates_until_ns; /* end of Python functions that validate it */
	bool has_numbers;            /* operators have autograd's numbers if gradients are on */
	bool is_without_gradient;    /* the latest layer on the step thread had no number */
	uint64_t backward_at; /* latest begin of an autograd operator on any thread + 1; 0: none */
	/* Both describe the latest mark.  gave_up: the queue filled with events that waited for its
	 * backward.  expects_backward: the mark before it had a backward, or there was no mark. */
	bool gave_up, expects_backward;
	uint64_t work_ns;         /* when the step thread last launched kernels or ran autograd */
	uint64_t active_until_ns; /* greatest end of work on the autograd threads */
	bool busy_begins, active_begins; /* work began at the current instant after a pause */

	bool has_begun, is_stale; /* stale: `now` must be computed again */
	struct host_state now;
	struct phase_interval current; /* the open interval, whose end is not known yet */
	uint64_t last_end_ns;

	struct phase_pending { /* by phase - PHASE_PENDING */
		/* Numbers of the events; the tag of each event is the number of the next one. */
		uint32_t first, last, count;
		size_t interval, intervals; /* index of the first in `closed`; count */
	} pending[2];
	uint32_t pass;       /* last pass in which an interval of this process had to stay */
	uint64_t forward_ns; /* begin of the latest operator to be differentiated */
};

struct name_info { /* cached results of the rules for a name: matching is slow */
	bool step_known : 1, mapped_known : 1, pushed_known : 1, autograd_known : 1;
	bool function_known : 1, kernels_known : 1, is_step : 1, is_autograd : 1, puts_kernels : 1;
	uint8_t mapped;   /* phase of an annotation of this name, or PHASE_NONE */
	uint8_t function; /* phase of a Python function of this name, or PHASE_NONE */
	uint8_t pushed;   /* phase of a range that was pushed through tacho.h */
	uint8_t phase;    /* id that it got as an unmapped annotation; 0: none */
	uint8_t grammar;  /* see name_rules_grammar() */
	uint64_t number;  /* number of the step */
	uint32_t module;  /* node where this module ran first; 0: it has not run */
};

struct host {
	struct trace *trace;
	const struct name_rules *rules;
	struct host_thread *threads;    /* by track */
	struct host_process *processes; /* by process */
	struct name_info *names;        /* by name */
	uint8_t *has_forward;           /* by schema; 0: not looked up; 1: no; 2: yes */
	uint8_t *has_scope;             /* by schema, private to scope.c */
	struct map forward_threads;     /* track, by process and autograd's thread number */
	uint32_t thread_count, process_count, name_count, schema_count; /* highest ids */
	uint32_t undecided;              /* number of processes whose step thread is undecided */
	uint32_t phase_names[PHASE_IDS]; /* names of phases that are annotations */
	unsigned phase_count;            /* includes the phases of the rules */
};

uint32_t host_path(struct host *h, struct host_thread *t, uint64_t at_ns); /* for an event */
/* Finds step threads and autograd threads from the trace's descriptors. */
enum status host_init(struct host *h, struct trace *trace, const struct name_rules *rules,
		      struct error *err);
void host_release(struct host *h);
/* Returns whether a range with this name marks a step.  *number (`number` may be NULL) is set to
 * its number, UINT64_MAX if the name has none. */
bool host_name_is_step(struct host *h, uint32_t name, uint64_t *number);
/* Returns whether a range with this name only marks a step.  A server's step name also gives the
 * phase. */
bool host_name_only_marks(struct host *h, uint32_t name);
bool host_is_mark(struct host *h, const struct event *e);
/* Chooses the event's thread as step thread, if it was undecided and this event decides it. */
void host_decide(struct host *h, const struct event *e);
/* Enters a call of nonzero length. */
void host_enter_call(struct host *h, struct host_process *p, const struct host_thread *t,
		     const struct event *e);
/* Returns the step thread's state at `t`.  All events that begin at `t` must be entered before
 * (DEFINITIONS.md 4). */
struct host_state host_state_at(struct host *h, struct host_process *p, uint64_t t);
/* Enters a range of nonzero length on a host thread. */
enum status host_enter(struct host *h, struct host_process *p, struct host_thread *t,
		       const struct event *e, struct error *err);

/* Ids out of range get the empty row 0. */
static inline struct host_thread *host_thread(const struct host *h, uint32_t track)
{
	return &h->threads[track <= h->thread_count ? track : 0];
}

/* Returns whether an event of this kind can be a mark at all; the rules decide by its name. */
static inline bool event_may_be_mark(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return e->subkind == RANGE_ANNOTATION || e->subkind == RANGE_NVTX;
	return e->kind == KIND_STEP;
}

/* Returns the innermost range that is open at `t`, or NULL.  Removes ranges that have ended. */
static inline const struct open_range *open_last(struct open_stack *s, uint64_t t)
{
	while (s->count && s->items[s->count - 1].end_ns <= t)
		s->count--;
	return s->count ? &s->items[s->count - 1] : NULL;
}

/* Returns the phase of the thread's own ranges, or PHASE_NONE.  *until_ns is set to the end of the
 * range. */
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

/* Enters an operator or a call: on the step thread it ends a host gap, on an autograd thread it is
 * backward work. */
static inline void host_work(struct host_process *p, const struct host_thread *t,
			     const struct event *e)
{
	bool is_step_thread = e->track == p->step_thread;
	uint64_t *until_ns = is_step_thread ? &p->busy_until_ns : &p->active_until_ns;

	if ((!is_step_thread && !t->runs_autograd) || e->end_ns <= *until_ns)
		return;
	if (*until_ns <= e->begin_ns)
		*(is_step_thread ? &p->busy_begins : &p->active_begins) = true;
	*until_ns = e->end_ns;
	p->is_stale = true;
}

/* Returns the cached facts about a name.  Row 0 is shared by all names out of range, so nothing may
 * be cached in it. */
static inline struct name_info *host_name_info(const struct host *h, uint32_t name)
{
	return &h->names[name <= h->name_count ? name : 0];
}
/* Returns whether operators with this schema contain the thread of their forward; these are
 * backward operators. */
bool host_has_forward(struct host *h, uint32_t schema);
/* Returns whether an operator runs on behalf of autograd, by its name or its schema. */
bool host_is_autograd(struct host *h, uint32_t name, uint32_t schema);

/* ---- scope.c ---- */

/* Returns the path of GPU work that was launched at `parent` (0: unknown): from the scope in its
 * own arguments, otherwise `parent`. */
uint32_t scope_path(struct host *h, const struct event *e, uint32_t process, uint32_t parent);

/* ---- autograd.c ---- */

/* Moves the path of a range that begins on a host thread below the forward operator that it belongs
 * to. */
void autograd_enter(struct host *h, struct host_process *p, struct host_thread *t, struct event *e);
/* Remembers `node`, which was just entered for an operator or module, so that its backward can be
 * found. */
enum status autograd_entered(struct host *h, struct host_thread *t, const struct event *e,
			     uint32_t node, struct error *err);
