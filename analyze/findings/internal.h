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
 * else.  `operators`: of a job without a GPU the kind that it is about, or "". */
enum status places_text(const struct facts *f, const struct rule *rule, const struct finding *of,
			char out[WHERE_TEXT], struct error *err);

/* What all rules go by; gaps, replay, lead and tail are still to come. */
struct facts facts_take(struct tables *all);
/* What makes input faster with the loader that the trace shows, if any; NULL: it is not known. */
const char *facts_loader_advice(const struct facts *f);

/* Places that findings are about; the first of the globs in each input. */
enum { REPLAYED_PLACES = 2 };
extern const char *const replayed_places[REPLAYED_PLACES];

/* Of a job without a GPU: its bound, by what the findings save, and what they say of it. */
enum family verdict_of_cpu(const struct found *all, size_t count, enum family but, double *ns);
enum status verdict_tell_cpu(const struct facts *f, const struct found *all, size_t count,
			     struct error *err);
