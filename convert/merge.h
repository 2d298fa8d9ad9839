/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - several ordered streams become one, in slices below a low-water mark.
 *
 *	run 0   ....eeee e|ee
 *	run 1      ..e  e |  e e          | the mark: the earliest of all promises
 *	run 2        eeeee|eeee           promise of a run: nothing before this will still come -
 *	not open          |[block         the begin of its last resident event, or of its first
 *	                                  one while it is not open yet
 *
 * All resident events before the mark are final: they are gathered, put in buckets by time, set
 * right inside a bucket, and handed out as one batch.  One event costs about the same with 2 runs
 * and with 64 (a tree of losers grows with the logarithm and mispredicts); buckets that fill
 * unevenly fall back to a merge sort, so a hostile file costs n log n, not n squared.
 * Memory is the resident events; `vary` of an event stays where the run has it, which is why a
 * run may be refilled only after its slice was given back, that is, on the next call.
 *
 * Used three times: blocks of one log (source_log), sorted runs of a spool, inputs of a run.
 */
#ifndef CONVERT_MERGE_H
#define CONVERT_MERGE_H

#include "convert/source.h"

struct run {
	struct event *events; /* [at, count) are resident and in order; borrowed */
	size_t at, count;
	uint64_t promise_ns;  /* when nothing is resident: not before this; UINT64_MAX: ended */
	/* Of merge_slice() itself, zero when a run is filled: */
	size_t until, heap;
	uint64_t last_begin_ns, last_end_ns; /* of events[count - 1] */
};

/*
 * Move the next slice to out[0..cap), cap >= all that is resident.  The key is (begin, end
 * descending, index of the run), so the order is total and the run that sets the mark is always
 * drained: every call makes progress.  Returns the length and the run to fill next in *lowest;
 * 0 with *lowest == count: all have ended.
 */
size_t merge_slice(struct run *runs, size_t count, struct event *out, size_t cap, size_t *lowest);

/* From an input's clock to the run's: t + offset + drift * (t - origin), rounded, monotonic. */
struct clock_fit {
	int64_t offset_ns;
	double drift; /* seconds per second; |drift| < 1e-3, else it is refused */
	uint64_t origin_ns, error_ns; /* error: residual after the fit, for the reader */
};
uint64_t clock_fit_at(const struct clock_fit *fit, uint64_t t_ns);

/*
 * A source over `count` sources, which it owns from here on, even on failure.  `fits` (one each,
 * or NULL) are copied; they come from convert/align.h, which reads anchors from the tables and,
 * for the refinement by collective ends, makes a pass of its own over the inputs beforehand.
 * Memory is a window of at least MERGE_WINDOW events of each input's batch, so 4 MiB for 1,024; of
 * more than 64, which are merged in groups of 32 first, twice that.
 *
 * An input that fails has ended; the others are read to their ends, then the first fault is given
 * once in place of ST_END.  A single source without a fit is handed back as it is.
 */
enum { MERGE_WINDOW = 64 };

enum status merge_open(struct source **out, struct source **inputs, const struct clock_fit *fits,
		       size_t count, const struct budget *budget, struct error *err);

#endif
