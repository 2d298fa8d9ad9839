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

/* It is not known yet whether the host gap is backward, and whether a backward follows in this
 * mark. */
#define PHASE_GAP          255u
#define PHASE_FORWARD_ONLY 254u
#define PHASE_PENDING      254u /* these two */
#define PHASE_IDS          254u /* ids of phases: the others */

struct open_range {
	uint64_t end_ns;
	uint32_t value; /* a phase, a name or a node */
	uint32_t named; /* in `paths`: the node of the innermost that is no Python function; or 0 */
};
struct open_stack { /* ends descend from the bottom to the top */
	struct open_range *items;
	size_t count, cap;
};
struct open_queue { /* ends ascend from the head on */
	struct open_range *items;
	size_t head, end, cap;
};

/* Of the numbers that autograd gave to operators of a thread the latest, by their low bits. */
struct forward_ops {
	struct forward_op {
		uint64_t number;
		uint32_t node; /* of the operator that started last with it; 0: none */
	} * items;
	size_t cap; /* a power of two, or 0 */
};

struct host_thread { /* one per track */
	uint32_t process;
	uint32_t host; /* the thread itself; for an allocator track the thread that used it; or 0 */
	uint8_t type;
	bool runs_autograd;
	bool is_engine;         /* by its name, it is a thread of autograd's engine */
	bool runs_loop;         /* has ranges that only the thread of a training loop has */
	bool waits;             /* for the GPU: it has synchronising calls */
	bool is_candidate;      /* could be the step thread of a process without marks */
	uint32_t events, order; /* of a candidate: its events so far, and its place among them */
	uint64_t open_ns, open_until_ns;        /* of these, other than Python functions */
	struct open_stack urgent, mapped;       /* phases: validation and checkpoint; the others */
	struct open_stack paths, named, python; /* their nodes: all, without Python, Python alone */
	uint32_t root;                          /* the node of a thread on which nothing is open */
	struct forward_ops forwards;
	uint64_t backward_number, backward_until_ns; /* of the last backward operator joined */
	uint64_t plain_ns; /* when a node last had an operator that is not to be differentiated */
};

enum mark_source { MARKS_NONE, MARKS_STEP, MARKS_RANGE };

/* What the step thread does at one instant. */
struct host_state {
	uint8_t phase; /* PHASE_GAP: backward if autograd threads run again, else other;
			* PHASE_FORWARD_ONLY: forward if autograd runs before the mark ends, else
			* validation */
	bool inferred;
	uint64_t until_ns; /* it stays so until then if nothing begins; UINT64_MAX: no limit */
};

struct host_process {
	uint32_t step_thread; /* a track; 0: none */
	uint8_t marks;        /* enum mark_source */
	bool is_undecided;    /* several threads may still be the step thread */
	bool launches;        /* the candidates launch, all equally often */
	uint32_t begun;       /* candidates that have had an event */
	uint8_t grammar;      /* of names that mark steps here: the least of the file */

	uint64_t mark_begin_ns, mark_end_ns; /* of the mark that began last */
	uint32_t mark_step;                  /* its number + 1; 0: there was none */
	uint64_t next_number;                /* for a mark without a number */

	struct open_queue unmapped;  /* annotations on the step thread: names */
	uint64_t busy_until_ns;      /* greatest end of operators and calls on the step thread */
	uint64_t engine_until_ns;    /* of these, of operators of autograd */
	uint64_t data_until_ns;      /* of Python functions that get input; 0 once kernels follow */
	uint64_t saves_until_ns;     /* of Python functions that save the model */
	uint64_t validates_until_ns; /* of those that validate it */
	bool has_numbers; /* autograd's: what it does not number there is without gradients ... */
	bool is_without_gradient; /* ... as the latest layer on the step thread and all since */
	uint64_t backward_at; /* when operators of autograd last began on any thread, + 1; 0: never
			       */
	/* Of the mark that began last: too many events waited for its backward; the mark before had
	 * one, or there was none, so that this one has one, too, then. */
	bool gave_up, expects_backward;
	uint64_t work_ns; /* when the step thread last put kernels on a GPU or ran autograd */
	uint64_t active_until_ns;        /* greatest end of work on the autograd threads */
	bool busy_begins, active_begins; /* at the instant whose events are being entered */

	bool has_begun, is_stale; /* stale: something began after `now` was computed */
	struct host_state now;
	struct phase_interval current; /* its end is not known yet */
	uint64_t last_end_ns;

	struct phase_pending { /* by phase - PHASE_PENDING */
		/* Events, by number; each one's tag is the number of the next. */
		uint32_t first, last, count;
		size_t interval, intervals; /* place of the first, and number */
	} pending[2];
	uint32_t pass;       /* the pass in which an interval of this process had to stay */
	uint64_t forward_ns; /* when its last operator to be differentiated began */
};

struct name_info { /* what the rules say about a name, asked once: matching is slow */
	bool step_known : 1, mapped_known : 1, pushed_known : 1, autograd_known : 1;
	bool function_known : 1, kernels_known : 1, is_step : 1, is_autograd : 1, puts_kernels : 1;
	uint8_t mapped;   /* phase of an annotation of this name, or PHASE_NONE */
	uint8_t function; /* phase of a Python function of this name, or PHASE_NONE */
	uint8_t pushed;   /* phase of one that was pushed through tacho.h */
	uint8_t phase;    /* the phase of its own that it got as an unmapped annotation; 0: none */
	uint8_t grammar;  /* of a server's step; 0: of another mark */
	uint64_t number;  /* of the step */
	uint32_t module;  /* the node where a module of this name ran first; 0: not yet */
};

struct host {
	struct trace *trace;
	const struct name_rules *rules;
	struct host_thread *threads;    /* by track */
	struct host_process *processes; /* by process */
	struct name_info *names;        /* by name */
	uint8_t *has_forward;           /* by schema: 1 no, 2 yes, 0 not asked */
	uint8_t *has_scope;             /* by schema, private to scope.c */
	struct map forward_threads; /* by process and autograd's number of a thread: its track */
	uint32_t thread_count, process_count, name_count, schema_count; /* highest ids */
	uint32_t undecided;              /* processes without a step thread yet */
	uint32_t phase_names[PHASE_IDS]; /* of phases that are annotations */
	unsigned phase_count;            /* those of the rules included */
};

uint32_t host_path(struct host *h, struct host_thread *t, uint64_t at_ns); /* of what begins */
/* Finds step threads and autograd threads from the trace's descriptors. */
enum status host_init(struct host *h, struct trace *trace, const struct name_rules *rules,
		      struct error *err);
void host_release(struct host *h);
/* `number` may be NULL and keeps its value where the name has none. */
bool host_name_is_step(struct host *h, uint32_t name, uint64_t *number);
/* Whether a range of this name does nothing but mark a step: a server's says the phase, too. */
bool host_name_only_marks(struct host *h, uint32_t name);
bool host_is_mark(struct host *h, const struct event *e);
/* Makes the event's thread the step thread if that was open and this event decides it. */
void host_decide(struct host *h, const struct event *e);
/* Enters a call of some length. */
void host_enter_call(struct host *h, struct host_process *p, const struct host_thread *t,
		     const struct event *e);
/* The step thread's state at t, after all that begins at t was entered (DEFINITIONS.md 4). */
struct host_state host_state_at(struct host *h, struct host_process *p, uint64_t t);
/* Enters a range of some length on a host thread. */
enum status host_enter(struct host *h, struct host_process *p, struct host_thread *t,
		       const struct event *e, struct error *err);

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

/* The innermost range that is open at t, or NULL; forgets the ranges that have ended. */
static inline const struct open_range *open_last(struct open_stack *s, uint64_t t)
{
	while (s->count && s->items[s->count - 1].end_ns <= t)
		s->count--;
	return s->count ? &s->items[s->count - 1] : NULL;
}

/* The phase that the thread's own ranges give, or PHASE_NONE; *until_ns is the range's end. */
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

/* An operator or a call: on the step thread it ends a host gap, on an autograd thread it is
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

/* Row 0 is shared by all names out of range, so nothing may be cached in it. */
static inline struct name_info *host_name_info(const struct host *h, uint32_t name)
{
	return &h->names[name <= h->name_count ? name : 0];
}
/* Whether the operator says which thread ran its forward: then it is that one's backward. */
bool host_has_forward(struct host *h, uint32_t schema);
/* Whether an operator makes its thread an autograd thread, by its name or its sequence number. */
bool host_is_autograd(struct host *h, uint32_t name, uint32_t schema);

/* ---- scope.c ---- */

/* The path of GPU work that was launched at `parent`, 0 where that is not known: by what it says
 * itself, else the same. */
uint32_t scope_path(struct host *h, const struct event *e, uint32_t process, uint32_t parent);

/* ---- autograd.c ---- */

/* Moves the path of a range that begins on a host thread below the forward that it belongs to. */
void autograd_enter(struct host *h, struct host_process *p, struct host_thread *t, struct event *e);
/* The operator or module was entered, and `node` is its own. */
enum status autograd_entered(struct host *h, struct host_thread *t, const struct event *e,
			     uint32_t node, struct error *err);
