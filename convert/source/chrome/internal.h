/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - from elements of Chrome JSON, whoever wrote it, to events in a spool.
 *
 * Each pid is a process, each tid of it a thread, and what has a duration is a range.  Pairs (B and
 * E, b and e, S and F) may be anywhere in the file, so they wait in a spool of their own and are
 * matched in order of time.
 */
#ifndef CONVERT_SOURCE_CHROME_INTERNAL_H
#define CONVERT_SOURCE_CHROME_INTERNAL_H

#include "convert/source/kineto/tracks.h"

struct chrome_import { /* used while the source opens */
	struct import to;
	struct spool *pairs; /* NULL: there was none; closed with the importer */
	struct budget budget;
	struct kineto_args args;
	struct kineto_document document;
	struct kineto_tracks tracks;
	struct buf key;      /* scratch */
	struct import attrs; /* constants of the file as a whole */
	uint64_t base_ns;
};

/*
 * pairs.c: a begin in the spool of pairs is an event of subkind PAIR_BEGIN, an end one of PAIR_END.
 * Those with `number` 0 nest on their thread; another number is what they belong to (a name of
 * "category, id").  What belongs to an id overlaps the rest of its process, so it gets a thread of
 * its own, the first that has nothing open.
 */
enum { PAIR_BEGIN = 0, PAIR_END = 1 };

/* Puts all of j->pairs by import_put().  An end without a begin is counted as damaged; what has
 * no end lasts to the last time of the file. */
enum status chrome_pairs_match(struct chrome_import *j, struct error *err);

#endif
