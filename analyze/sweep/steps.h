/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep/steps.h - the steps of a process, from the marks on its step thread (DEFINITIONS.md 3).
 *
 * Marks are added as they come.  Whether the gap after one joins its step depends on the median of
 * all, so `end_ns`, `joins` and `is_counted` are known after steps_resolve() only; until then a
 * fold keeps what falls into a step and what falls into the gap after it apart.
 */
#ifndef ANALYZE_SWEEP_STEPS_H
#define ANALYZE_SWEEP_STEPS_H

#include "convert/step.h"

struct step_row {
	uint64_t number;
	uint64_t begin_ns, mark_end_ns, end_ns; /* end_ns: of the step */
	bool joins;       /* the gap up to the next mark, if there is one, belongs to it */
	bool is_settling; /* the first of a window that we recorded */
	bool is_cut;      /* an end of its mark is not in the window, or records in it are missing */
	bool is_out;      /* not asked for: it only says where the one before ends */
	bool is_counted;  /* in shares, means and quantiles */
};
struct step_list { /* zeroed: empty */
	struct step_row *rows; /* by begin */
	size_t count, cap;
	bool is_inferred; /* no mark: one row, the window */
	bool repeats;     /* a number does not come after that of the row before */
};

/* The row of a mark, to which its caller adds is_settling and is_out. */
enum status steps_put(struct step_list *l, const struct step_mark *m, struct step_row **row,
		      struct error *err);
enum status steps_resolve(struct step_list *l, struct error *err);
/* What a cut leaves of them, at last: which gaps join is a matter of whole marks. */
void steps_clip(struct step_list *l, uint64_t from_ns, uint64_t to_ns);
/* Without a mark that is not out: the window is one step, number 0. */
enum status steps_infer(struct step_list *l, uint64_t begin_ns, uint64_t end_ns,
			struct error *err);
void steps_release(struct step_list *l);

/*
 * The row that an instant falls into or after, at or behind *at, which moves on; count: before
 * the first.  For instants that ascend.
 */
size_t steps_at(const struct step_list *l, uint64_t at_ns, size_t *at);
/* The row that an instant falls into or after, whatever was asked for before; count: none. */
size_t steps_begun(const struct step_list *l, uint64_t at_ns);
/* The last row with this number, or count. */
size_t steps_find(const struct step_list *l, uint64_t number);

#endif
