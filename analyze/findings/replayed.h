/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replayed.h - what steps take with edits, by the replay of the ranks whose points are kept.
 *
 * Answers are means over these ranks of their median step, the first left out; they are remembered.
 * One thread.
 */
#ifndef ANALYZE_FINDINGS_REPLAYED_H
#define ANALYZE_FINDINGS_REPLAYED_H

#include "analyze/engine/report.h"
#include "analyze/replay/edit.h"

struct replay_answer {
	double step_ns, saves_ns; /* saves_ns: at least 0 */
	/* false: nothing can be said by the replay.  There are no steps, or less than two; too much
	 * of them is not explained; the edits change nothing in half of the steps, as what they
	 * are about is somewhere else. */
	bool is_known;
};

/* Places that findings are about; the first of the globs in each input. */
enum { REPLAYED_PLACES = 2 };
extern const char *const replayed_places[REPLAYED_PLACES];

struct replayed;
enum status replayed_open(struct replayed **out, struct tables *all, struct error *err);
void replayed_close(struct replayed *r); /* accepts NULL */
/* Replays those sets of edits side by side that were not yet. */
enum status replayed_ask(struct replayed *r, const char *const *edits, size_t count,
			 struct error *err);
/* Of what was asked for. */
struct replay_answer replayed_answer(const struct replayed *r, const char *edits);
/* The step as it is; 0: nothing is replayed. */
double replayed_baseline(const struct replayed *r);

#endif
