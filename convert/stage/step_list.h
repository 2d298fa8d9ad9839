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
	uint64_t begin_ns, mark_end_ns, end_ns; /* end_ns: of the step */
	bool joins;       /* the gap up to the next mark, if there is one, belongs to the step */
	bool is_settling; /* the first step of a window that we recorded */
	bool is_cut;      /* its mark reaches out of the window, or records in it are missing */
	bool is_out;      /* not wanted: the row only ends the step before */
	bool is_counted;  /* in shares, means and quantiles */
	bool is_kept;     /* it has rows of its own in tables: steps_keep() */
	bool is_extra;    /* kept in addition to every Nth: one of the longest, or the last */
};
enum { STEPS_KEPT = 1 << 13, STEPS_LONGEST = 64 };
struct step_number {
	uint64_t number;
	size_t row;
};
struct step_list {             /* zeroed: empty */
	struct step_row *rows; /* by begin */
	size_t count, cap;
	bool is_inferred;              /* there is no mark: the one row is the window */
	bool repeats;                  /* a number is not greater than that of the row before */
	struct step_number *by_number; /* all rows, if numbers repeat: steps_keep() */
	size_t stride;                 /* every Nth step is kept; 1: all, 0: not decided */
};

/*
 * Steps whose details a report no longer keeps.  steps_drop() decides it in a long run, while marks
 * still come: the longest steps so far, those about the median and the latest keep theirs.
 */
struct steps_dropped { /* zeroed: none.  The owner frees `rows` */
	bool *rows;    /* by row of the list */
	size_t count;
};
enum status steps_drop(const struct step_list *l, struct steps_dropped *d, struct error *err);
static inline bool steps_is_dropped(const struct steps_dropped *d, size_t row)
{
	return row < d->count && d->rows[row];
}

/* Adds a mark.  *row (may be NULL) is valid until the next put; its owner sets is_settling and
 * is_out. */
enum status steps_put(struct step_list *l, const struct step_mark *m, struct step_row **row,
		      struct error *err);
/* A gap of at most 1 % of the median mark joins the step before it. */
enum status steps_resolve(struct step_list *l, struct error *err);
/* Clips resolved steps to the time span that the user asked for. */
void steps_clip(struct step_list *l, uint64_t from_ns, uint64_t to_ns);
/* If no mark is wanted, the window becomes one step, number 0. */
enum status steps_infer(struct step_list *l, uint64_t begin_ns, uint64_t end_ns, struct error *err);
/*
 * Decides which steps have rows, so that tables of long runs are bounded: all if there are up to
 * STEPS_KEPT, otherwise every Nth wanted step (N is a power of two), the longest and the last.
 * Call it after steps_infer().
 */
enum status steps_keep(struct step_list *l, struct error *err);
void steps_release(struct step_list *l);

/* Returns the last row that begins at or before an instant, or count if there is none.  The search
 * begins at *at, which it moves, so it is fast for ascending instants. */
size_t steps_at(const struct step_list *l, uint64_t at_ns, size_t *at);
/* The same by bisection, without *at. */
size_t steps_begun(const struct step_list *l, uint64_t at_ns);
/* Returns the last row with this number, or count.  Call it after steps_keep(). */
size_t steps_find(const struct step_list *l, uint64_t number);
