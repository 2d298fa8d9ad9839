/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - begins and ends, in order of time, to events.
 *
 * A begin in the spool is an event of subkind PAIR_BEGIN, an end one of PAIR_END.  Those with
 * `number` 0 nest on their thread; another number is what they belong to (a name of "category,
 * id").  What belongs to an id overlaps the rest of its process, so it gets a thread of its own,
 * the first that has nothing open.
 */
#ifndef CONVERT_SOURCE_CHROME_PAIRS_H
#define CONVERT_SOURCE_CHROME_PAIRS_H

#include "schemas/base/status.h"

struct chrome_import;

enum { PAIR_BEGIN = 0, PAIR_END = 1 };

/* Puts all of j->pairs by import_put().  An end without a begin is counted as damaged; what has no
 * end lasts to the last time of the file. */
enum status chrome_pairs_match(struct chrome_import *j, struct error *err);

#endif
