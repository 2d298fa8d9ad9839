/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - places of findings, and parts of the facts and the verdict. */
#pragma once

#include "analyze/engine/report.h"
#include "analyze/findings/rule.h"
#include "analyze/replay/edit.h"
#include "schemas/base/vec.h"

/* Where in the model the work or idle time of a finding is. */

enum { WHERE_TEXT = 640, PLACES_SHOWN = 3 };
#define PLACE_LEAST 0.02 /* share of a rule's time below which a place is not named */
/* Writes "14.1 of 31.7 ms in layer3.*.bn (resnet.py:91) · 5.2 in loss · 12.4 in 41 more", per step
 * and GPU, in the unit of the savings; "" if no place is known, or if the rule is about something
 * else. */
enum status places_text(const struct facts *f, const struct rule *rule, const struct finding *of,
			char out[WHERE_TEXT], struct error *err);

/* Computes the facts that all rules use, except gaps, replay, lead and tail. */
struct facts facts_take(struct tables *all);
/* Returns advice for the data loader that the trace shows; NULL: the trace shows none. */
const char *facts_loader_advice(const struct facts *f);

/* Globs of places that findings ask about; they are the first globs of each input. */
enum { REPLAYED_PLACES = 2 };
extern const char *const replayed_places[REPLAYED_PLACES];

/* For a job without a GPU: verdict_of_cpu() returns the family that saves most, except `but`, and
 * how much; verdict_tell_cpu() writes the verdict from the findings. */
enum family verdict_of_cpu(const struct found *all, size_t count, enum family but, double *ns);
enum status verdict_tell_cpu(const struct facts *f, const struct found *all, size_t count,
			     struct error *err);
