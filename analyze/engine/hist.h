/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist.h - histogram of durations in bounded memory, whose quantiles can be merged.
 *
 * Up to HIST_EXACT values are kept as they are and their quantiles are exact.  From there on they
 * are counted in buckets of equal width within each power of two, HIST_PER_OCTAVE to one, so a
 * quantile is off by at most half a bucket: 0.8 %.  What a histogram holds depends only on which
 * values went in, never on their order or on how they were spread over partial histograms.
 */
#pragma once

#include "schemas/base/buf.h"

enum { HIST_EXACT = 16, HIST_PER_OCTAVE = 64 };

struct hist;

enum status hist_new(struct hist **out, struct error *err);
void hist_free(struct hist *h); /* accepts NULL */

enum status hist_put(struct hist *h, uint64_t value, struct error *err);
enum status hist_merge(struct hist *into, const struct hist *from, struct error *err);

/* Appends the histogram to `out`. Equal contents give equal bytes, in whatever order they were
 * put. */
void hist_encode(const struct hist *h, struct buf *out);
/* Reads into an empty histogram; ST_FORMAT: the bytes are no encoded histogram. */
enum status hist_decode(struct hist *h, struct bytes *in, struct error *err);
size_t hist_bytes(const struct hist *h); /* returns the bytes of memory in use */

/* Returns the number of values. Here and below NULL is an empty histogram. */
uint64_t hist_count(const struct hist *h);
/* Returns the value at `rank`, where 0 is the least and count - 1 the greatest; 0 if there is
 * none. */
uint64_t hist_at(const struct hist *h, uint64_t rank);
/* Returns the median; for an even count the mean of the middle two values, rounded down. */
uint64_t hist_median(const struct hist *h);
