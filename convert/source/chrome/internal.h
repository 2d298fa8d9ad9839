/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - turns elements of any program's Chrome JSON into events in a spool.
 *
 * Each pid is a process, each tid of it a thread, and what has a duration is a range.  Pairs (B and
 * E, b and e, S and F) may be anywhere in the file, so they wait in a spool of their own and are
 * matched in order of time.
 */
#pragma once

#include "convert/source/chrome/pairs.h"
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
