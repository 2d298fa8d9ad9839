/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_list.h - the steps of a process, from the marks on its step thread (DEFINITIONS.md 3).
 *
 * Marks are added as they come.  Whether the gap after a mark joins its step depends on the median
 * length of all marks, so `end_ns`, `joins` and `is_counted` are valid only after steps_resolve().
 * Until then, sums by step must keep the gap after a mark apart.
 */
#pragma once

#include "convert/stage/context/context.h"

struct step_row {
	uint64_t number;
	uint64_t begin_ns, mark_end_ns, end_ns; /* end_ns: end of the step, see steps_resolve() */
	bool joins;       /* the gap up to the next mark, if there is one, belongs to the step */
	bool is_settling; /* first step of a window of our recorder */
	bool is_cut;      /* its mark crosses a border of the window, or records are missing */
	bool is_out;      /* filtered out: the row only ends the step before it */
	bool is_counted;  /* counts in shares, means and quantiles */
	bool is_kept;     /* has rows of its own in tables; see steps_keep() */
	bool is_extra;    /* kept although not an Nth: one of the longest, or the last */
};
enum { STEPS_KEPT = 1 << 13, STEPS_LONGEST = 64 };
struct step_number {
	uint64_t number;
	size_t row;
};
struct step_list {             /* zeroed: empty */
	struct step_row *rows; /* ordered by `begin_ns` */
	size_t count, cap;
	bool is_inferred;              /* there are no marks: one row stands for the window */
	bool repeats;                  /* some number is not greater than the previous row's */
	struct step_number *by_number; /* index by number, made by steps_keep() if numbers repeat */
	size_t stride;                 /* every Nth step is kept; 1: all; 0: not decided yet */
};

/*
 * Steps whose details a report no longer keeps.  A long run calls steps_drop() while marks still
 * come.  The longest steps so far, those around the median and the latest keep their details.
 */
struct steps_dropped { /* zeroed: no step is dropped.  The owner frees `rows` */
	bool *rows;    /* whether a row of the list is dropped */
	size_t count;
};
enum status steps_drop(const struct step_list *l, struct steps_dropped *d, struct error *err);
static inline bool steps_is_dropped(const struct steps_dropped *d, size_t row)
{
	return row < d->count && d->rows[row];
}

/* Adds a mark.  *row (`row` may be NULL) is valid until the next call; the caller sets its
 * is_settling and is_out. */
enum status steps_put(struct step_list *l, const struct step_mark *m, struct step_row **row,
		      struct error *err);
/* Sets `end_ns`, `joins` and `is_counted` of all rows.  A gap of at most 1 % of the median mark
 * joins the step before it. */
enum status steps_resolve(struct step_list *l, struct error *err);
/* Clips resolved steps to the time span that the user asked for. */
void steps_clip(struct step_list *l, uint64_t from_ns, uint64_t to_ns);
/* If no mark is wanted, adds the window as one step with number 0. */
enum status steps_infer(struct step_list *l, uint64_t begin_ns, uint64_t end_ns, struct error *err);
/*
 * Decides which steps have rows, so that tables of long runs are bounded: all steps if there are up
 * to STEPS_KEPT; otherwise every Nth wanted step (N is a power of two), the longest and the last.
 * Call it after steps_infer().
 */
enum status steps_keep(struct step_list *l, struct error *err);
void steps_release(struct step_list *l);

/* Returns the last row that begins at or before `at_ns`, or `count` if there is none.  The search
 * begins at *at and updates it, so it is fast for ascending instants. */
size_t steps_at(const struct step_list *l, uint64_t at_ns, size_t *at);
/* Returns the same row as steps_at(), by bisection. */
size_t steps_begun(const struct step_list *l, uint64_t at_ns);
/* Returns the last row with this number, or `count`.  Call it after steps_keep(). */
size_t steps_find(const struct step_list *l, uint64_t number);
