/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - when to record: a pure state machine.  It has no clock, thread, file or allocation:
 * the same inputs give the same windows, so every schedule is tested in a few lines.
 *
 *	        begins                   warmup over               ends
 *	IDLE ------------> WARMUP --------------------> RECORD ------------> IDLE
 *	  any input is legal in any state; an input without meaning there is counted and ignored
 *
 * Windows never overlap.  Epoch end, validation begin, stop and exit end a running window early:
 * it is closed and marked `cut_short`. Only a window without bounds, and one begun by hand,
 * outlives an epoch.  The caller serialises.  The hot path does not call in here: it compares its
 * step with window_next_step().
 *
 * To add a trigger, add an input here and a row of the parser (window_spec.c).  To add another name
 * for one of these schedules, add a row to preset.h.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>

enum window_state { WINDOW_IDLE, WINDOW_WARMUP, WINDOW_RECORD };

enum window_event {
	WINDOW_STEP,        /* step `number` begins */
	WINDOW_TIME,        /* nothing but time passed */
	WINDOW_RANGE_BEGIN, /* range `name` opens, on any thread */
	WINDOW_RANGE_END,
	WINDOW_START,
	WINDOW_STOP, /* asked for: API, signal, control socket */
	WINDOW_EPOCH_END,
	WINDOW_VALIDATION_BEGIN,
	WINDOW_EXIT,
};
struct window_input {
	enum window_event event;
	uint64_t now_ns;  /* of a clock that does not step; where it does, it stands still */
	uint64_t wall_ns; /* since the Unix epoch, for at_ns; may step; 0: as now_ns */
	uint64_t number;
	const char *name; /* borrowed for the call; NULL but for ranges */
};

enum { WINDOW_RANGE_MAX = 64 };

/*
 * One spec; zero means "not used" for each, and all zero is one window that begins at once and
 * never ends ("all").  Steps and cycles count from 0.
 */
struct window_spec {
	uint64_t first_step, wait, warmup, active; /* steps; wait: cyclic only */
	uint64_t repeat;                /* windows; 0: for ever where there can be a second one */
	uint64_t every_steps, every_ns; /* a new window at the earliest this much after the last */
	uint64_t delay_ns, duration_ns; /* since start; length when not counted in steps */
	uint64_t at_ns;                 /* since the Unix epoch: the same second on all ranks */
	char range[WINDOW_RANGE_MAX];   /* window = this range */
	/* wait, warmup, active, and again (every_steps later if that is longer) */
	bool cyclic;
	bool on_demand; /* only START begins one */
	int signal;     /* on demand: of the program itself; 0: none, tacho-record is sent one */
};
/*
 * "all", "steps:10-20" (ten steps), "steps:10-", "steps:10", "schedule:wait=1,warmup=1,active=3,
 * repeat=2", "every=60m,first=10,steps=5", "delay=30s,for=10s", "at=2026-11-20T12:00:00Z,for=5s",
 * "nvtx=epoch_3", "signal", "signal=USR1".  Keys after "every=" may be combined where that makes
 * sense.
 */
enum status window_parse(struct window_spec *out, const char *text, struct error *err);

struct window_machine {
	struct window_spec spec;
	enum window_state state;
	uint64_t windows, scheduled; /* begun so far; those that the spec began */
	uint64_t ignored;            /* inputs that made no sense */
	uint64_t begin_ns;           /* of the latest */
	uint64_t begin_step;         /* of the latest that the spec began */
	bool cut_short;              /* of the last one that ended */
	bool by_hand;                /* the running one was begun by START */
	bool exited;
	bool missed; /* its second had passed when this process came */
	/* What is next: compared with each input. */
	uint64_t now_ns, wall_ns; /* of the last input */
	uint64_t next_ns;         /* IDLE: not before */
	uint64_t at_ns;           /* the same on the wall; 0: not used */
	uint64_t ranges;          /* running: awaited ranges that are open */
	uint64_t next_step;       /* IDLE: not before; UINT64_MAX: no step begins one */
	uint64_t record_step, end_step, end_ns; /* running: UINT64_MAX: does not */
	uint64_t origin;                        /* cyclic: step that the first wait counts from */
	bool has_origin;
};
void window_init(struct window_machine *w, const struct window_spec *spec, uint64_t now_ns);
/*
 * Feeds an input and returns the new state.  The caller acts on a change of state before the next
 * call.  Two changes at one instant (a window ends and the next begins) take two calls with the
 * same input: `again` asks for the second one.
 */
enum window_state window_feed(struct window_machine *w, const struct window_input *in, bool *again);
/* Until then a step, or the time, cannot change anything; UINT64_MAX: never. */
uint64_t window_next_step(const struct window_machine *w);
uint64_t window_next_ns(const struct window_machine *w);
/* The wall clock may step: window_next_ns() is to be asked again now and then. */
bool window_waits_for_wall(const struct window_machine *w);
/* IDLE for good, unless START is fed. */
bool window_is_done(const struct window_machine *w);
