/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - creates ranges from begins and ends that are separate events in a file.
 *
 * A separate spool sorts both by time.  In it a begin is an event of subkind PAIR_BEGIN whose real
 * subkind, plus 1, is in `path`, and an end has PAIR_END.  Pairs with `step` 0 nest on their track.
 * Another number identifies the pair.  If it has PAIR_NESTS, pairs nest and stay on their track;
 * otherwise it is an id whose ranges may overlap others, so it gets the first separate thread that
 * has nothing open.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/json/scan.h"

enum { PAIR_BEGIN = 0, PAIR_END = 1 };
#define PAIR_NESTS 0x80000000u

/* Matches all of `pairs` and puts the ranges with import_put().  An end without a begin is counted
 * as damage; a begin without an end lasts until the last time of the file. */
enum status chrome_pairs_match(struct import *to, struct spool *pairs, struct error *err);
/* Adds arguments of the end that the begin does not have to the begin, as constants. */
enum status chrome_pair_args(struct trace *t, struct event *begin, const struct event *end,
			     struct error *err);
/* Returns the enum range_class of a category of any writer. */
uint8_t chrome_range_class(const struct json *cat);
