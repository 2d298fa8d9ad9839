/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - merges several sources into one, in time order.
 *
 * A heap (schemas/base/heap.h) orders the inputs by their next event; the key is (begin, end
 * descending, number of the input), so the order is total.  Events are copied into the batch, but
 * event.args points into the input's batch.  Therefore the merge calls an input again only after
 * the caller is done with the batch, and a batch ends where an input needs a refill.
 *
 * Clocks of inputs differ by host.  A clock_fit, computed by convert/stage/align, maps an input's
 * times to the run's.
 */
#pragma once

#include "convert/source/source.h"

/* Maps an input's clock to the run's: t + offset + drift * (t - origin), rounded, monotonic. */
struct clock_fit {
	int64_t offset_ns;
	double drift;                 /* seconds per second; refused unless |drift| < 1e-3 */
	uint64_t origin_ns, error_ns; /* error: residual of the fit, for users */
};
uint64_t clock_fit_at(const struct clock_fit *fit, uint64_t t_ns);

/* An open input of a run that has several. */
struct run_input {
	struct source *source;
	const char *path;                    /* borrowed */
	uint32_t first_process, end_process; /* the range of processes that it added to the trace */
	bool epoch_known;
	struct clock_fit fit; /* zeroed: its clock is the run's */
};
/* Receives the error of an input that ended early or could not be opened. */
typedef void (*input_fault)(void *self, const char *path, const struct error *why);

/*
 * Creates a source of `count` inputs, which are copied, and takes ownership of their sources, even
 * on failure.  An input that fails ends there and its error goes to `fault`; the others continue.
 */
enum status merge_open(struct source **out, const struct run_input *inputs, size_t count,
		       input_fault fault, void *self, struct error *err);
