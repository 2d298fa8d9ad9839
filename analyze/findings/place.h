/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where in the model the work or idle time of a finding is. */
#ifndef ANALYZE_FINDINGS_PLACE_H
#define ANALYZE_FINDINGS_PLACE_H

#include "analyze/findings/rule.h"

enum { WHERE_TEXT = 640, PLACES_SHOWN = 3 };
#define PLACE_LEAST 0.02 /* of a rule's time: a place with less is not named */
/* "14.1 of 31.7 ms in layer3.*.bn (resnet.py:91) · 5.2 in loss · 12.4 in 41 more", per step and
 * GPU, in the unit of the savings; "" where no place is known, or where the rule is about something
 * else. */
enum status places_text(const struct facts *f, const struct rule *rule, char out[WHERE_TEXT],
			struct error *err);

#endif
