/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json/pairs.h - begins and ends, in order of time, to events.
 *
 * A begin in the spool is an event of subkind PAIR_BEGIN, an end one of PAIR_END; `number` 0: they
 * nest on their thread, else it says what they belong to (a name of "category, id").  What belongs
 * to an id overlaps the rest of its process, so it gets a row of its own, the first that is free.
 */
#ifndef CONVERT_JSON_PAIRS_H
#define CONVERT_JSON_PAIRS_H

#include "schemas/status.h"

struct json_trace;

enum { PAIR_BEGIN = 0, PAIR_END = 1, PAIR_INSTANT = 2 };

/* All of j->pairs through json_trace_put().  An end without a begin is counted as damaged; what has
 * no end lasts to the last time seen. */
enum status json_pairs_join(struct json_trace *j, struct error *err);

#endif
