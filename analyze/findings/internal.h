/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what findings say of a place and of replays. */
#pragma once

#include "analyze/engine/report.h"
#include "analyze/findings/rule.h"
#include "analyze/replay/edit.h"

/* Where in the model the work or idle time of a finding is. */

enum { WHERE_TEXT = 640, PLACES_SHOWN = 3 };
#define PLACE_LEAST 0.02 /* of a rule's time: a place with less is not named */
/* "14.1 of 31.7 ms in layer3.*.bn (resnet.py:91) · 5.2 in loss · 12.4 in 41 more", per step and
 * GPU, in the unit of the savings; "" where no place is known, or where the rule is about something
 * else. */
enum status places_text(const struct facts *f, const struct rule *rule, char out[WHERE_TEXT],
			struct error *err);

/*
 * What steps take with edits, by the replay of the ranks whose points are kept.
 *
 * Answers are means over these ranks of their median step, the first left out; they are remembered.
 * One thread.
 */

struct replay_answer {
	double step_ns, saves_ns; /* saves_ns: at least 0 */
	double changed_ns;        /* of a step, what the edits scaled away of own time and work */
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
