/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - when to record, as a pure state machine.  It has no clock, thread, file or allocation:
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
	WINDOW_TIME,        /* only time has passed */
	WINDOW_RANGE_BEGIN, /* range `name` opens, on any thread */
	WINDOW_RANGE_END,
	WINDOW_START,
	WINDOW_STOP, /* requested by the API, a signal or the control socket */
	WINDOW_EPOCH_END,
	WINDOW_VALIDATION_BEGIN,
	WINDOW_EXIT,
};
struct window_input {
	enum window_event event;
	uint64_t now_ns;  /* of a monotonic clock; time stands still if it steps back */
	uint64_t wall_ns; /* since the Unix epoch, for at_ns; may step; 0: same as now_ns */
	uint64_t number;
	const char *name; /* name of a range, borrowed for the call; otherwise NULL */
};

enum { WINDOW_RANGE_MAX = 64 };

/*
 * A specification of windows.  Zero means "not used" for each member, and all zero is one window
 * that begins at once and never ends ("all").  Steps and cycles count from 0.
 */
struct window_spec {
	uint64_t first_step, wait, warmup, active; /* numbers of steps; wait: cyclic only */
	uint64_t repeat; /* number of windows; 0: unlimited if a second one is possible */
	uint64_t every_steps, every_ns; /* least distance between the begins of two windows */
	uint64_t delay_ns, duration_ns; /* delay after start; length if not counted in steps */
	uint64_t at_ns;                 /* since the Unix epoch: the same second on all ranks */
	char range[WINDOW_RANGE_MAX];   /* record during this range */
	/* Repeat wait, warmup and active, or every_steps if that is longer. */
	bool cyclic;
	bool on_demand; /* only START begins a window */
	int signal;     /* on demand: signal to the program; 0: none, only to tacho-record */
};
/*
 * Parses "all", "steps:10-20" (ten steps), "steps:10-", "steps:10",
 * "schedule:wait=1,warmup=1,active=3,repeat=2", "every=60m,first=10,steps=5", "delay=30s,for=10s",
 * "at=2026-11-20T12:00:00Z,for=5s", "nvtx=epoch_3", "signal", "signal=USR1".  Keys after "every="
 * may be combined where that makes sense.
 */
enum status window_parse(struct window_spec *out, const char *text, struct error *err);

struct window_machine {
	struct window_spec spec;
	enum window_state state;
	uint64_t windows, scheduled; /* windows begun so far: all, and those begun by the spec */
	uint64_t ignored;            /* inputs that had no meaning in their state */
	uint64_t begin_ns;           /* begin of the latest window */
	uint64_t begin_step;         /* begin of the latest window that the spec began */
	bool cut_short;              /* the last window ended early */
	bool by_hand;                /* the running window was begun by START */
	bool exited;
	bool missed; /* the at= time had passed when this process started */
	/* Limits that are compared with each input. */
	uint64_t now_ns, wall_ns; /* times of the last input */
	uint64_t next_ns;         /* IDLE: earliest begin of the next window */
	uint64_t at_ns;           /* the same on the wall clock; 0: not used */
	uint64_t ranges;          /* running: number of open ranges with the awaited name */
	uint64_t next_step;       /* IDLE: step of the next window; UINT64_MAX: none */
	uint64_t record_step, end_step, end_ns; /* running; UINT64_MAX: no limit */
	uint64_t origin;                        /* cyclic: step from which the first wait counts */
	bool has_origin;
};
void window_init(struct window_machine *w, const struct window_spec *spec, uint64_t now_ns);
/*
 * Feeds an input and returns the new state.  The caller acts on a change of state before the next
 * call.  Two changes at one instant (a window ends and the next begins) take two calls with the
 * same input: `again` asks for the second one.
 */
enum window_state window_feed(struct window_machine *w, const struct window_input *in, bool *again);
/* Return the next step, or time, that can change the state; UINT64_MAX: none can. */
uint64_t window_next_step(const struct window_machine *w);
uint64_t window_next_ns(const struct window_machine *w);
/* Returns whether the next window depends on the wall clock, which may step, so that
 * window_next_ns() must be called again from time to time. */
bool window_waits_for_wall(const struct window_machine *w);
/* Returns whether no window will begin any more unless START is fed. */
bool window_is_done(const struct window_machine *w);
