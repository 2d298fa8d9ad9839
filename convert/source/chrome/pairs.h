/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - begins and ends that stand apart in a file, made into ranges.
 *
 * Both wait in a spool of their own, which gives them in order of time.  There a begin is an event
 * of subkind PAIR_BEGIN whose own subkind, plus 1, is in `path`, and an end one of PAIR_END.  Those
 * with `step` 0 nest on their track; another number is what they belong to.  With PAIR_NESTS in it
 * they nest and stay on their track; without, the number is an id, whose ranges overlap the rest of
 * their process, so that it gets a thread of its own, the first that has nothing open.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/json/scan.h"

enum { PAIR_BEGIN = 0, PAIR_END = 1 };
#define PAIR_NESTS 0x80000000u

/* Puts all of `pairs` by import_put().  An end without a begin is counted as damaged; what has no
 * end lasts to the last time of the file. */
enum status chrome_pairs_match(struct import *to, struct spool *pairs, struct error *err);
/* Adds arguments of the end that the begin does not have to the begin, as constants. */
enum status chrome_pair_args(struct trace *t, struct event *begin, const struct event *end,
			     struct error *err);
/* enum range_class of a category, whoever wrote it. */
uint8_t chrome_range_class(const struct json *cat);
