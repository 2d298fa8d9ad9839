/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - converts elements of any program's Chrome JSON to events in a spool.
 *
 * Each pid is a process, each of its tids a thread, and everything with a duration a range.  The
 * halves of a pair (B and E, b and e, S and F) may be anywhere in the file, so they go through a
 * spool of their own and are matched in time order.
 */
#pragma once

#include "convert/source/chrome/pairs.h"
#include "convert/source/kineto/tracks.h"

struct chrome_import { /* exists while the source opens */
	struct import to;
	struct spool *pairs; /* NULL: no pairs so far; closed with the importer */
	struct budget budget;
	struct kineto_args args;
	struct kineto_document document;
	struct kineto_tracks tracks;
	struct buf key;      /* scratch memory */
	struct import attrs; /* constants of the whole file */
	uint64_t base_ns;
};
