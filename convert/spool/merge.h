/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - several sources become one, in time order.
 *
 * A heap (schemas/base/heap.h) holds the inputs by their next event; the key is (begin, end
 * descending, number of the input), so the order is total.  Events are copied into the batch, but
 * event.args stays where the input has it.  An input may therefore be asked for more only after
 * the batch was given back, and a batch ends where an input has no more events at hand.
 *
 * Clocks of inputs differ by host.  A clock_fit, made by convert/stage/align, maps an input's
 * times to the run's.
 */
#ifndef CONVERT_SPOOL_MERGE_H
#define CONVERT_SPOOL_MERGE_H

#include "convert/source/source.h"

/* From an input's clock to the run's: t + offset + drift * (t - origin), rounded, monotonic. */
struct clock_fit {
	int64_t offset_ns;
	double drift;                 /* seconds per second; |drift| < 1e-3, else it is refused */
	uint64_t origin_ns, error_ns; /* error: residual after the fit, for the reader */
};
uint64_t clock_fit_at(const struct clock_fit *fit, uint64_t t_ns);

/*
 * A source over `count` sources, which it owns from here on, even on failure.  `fits` (one each,
 * or NULL) are copied.
 *
 * An input that fails has ended; the others are read to their ends, and then the first failure is
 * returned once in place of ST_END.  A single source without a fit is handed back as it is.
 */
enum status merge_open(struct source **out, struct source **inputs, const struct clock_fit *fits,
		       size_t count, struct error *err);

#endif
