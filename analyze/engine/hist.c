/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/hist.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum {
	OCTAVE_BITS = 6, /* HIST_PER_OCTAVE = 1 << OCTAVE_BITS */
	ROUND_TO = 32,   /* buckets are allocated in multiples of this */
};
_Static_assert(1 << OCTAVE_BITS == HIST_PER_OCTAVE, "buckets of an octave");

struct hist {
	uint64_t count;
	uint64_t exact[HIST_EXACT]; /* sorted, while count <= HIST_EXACT */
	uint64_t *buckets;          /* counts of buckets [first, first + held) */
	size_t first, held;
};

/* Returns the bucket of a value. Values below HIST_PER_OCTAVE have a bucket each. */
static size_t bucket_of(uint64_t value)
{
	if (value < HIST_PER_OCTAVE)
		return (size_t)value;
	int octave = 63 - __builtin_clzll(value) - OCTAVE_BITS;
	return (size_t)octave * HIST_PER_OCTAVE + (size_t)(value >> octave);
}

enum status hist_new(struct hist **out, struct error *err)
{
	*out = calloc(1, sizeof(**out));
	return *out ? ST_OK : fail_memory(err);
}

void hist_free(struct hist *h)
{
	if (!h)
		return;
	free(h->buckets);
	free(h);
}

/* Allocates buckets [low, high]. */
static enum status hist_reach(struct hist *h, size_t low, size_t high, struct error *err)
{
	uint64_t *wider;

	if (h->held && low >= h->first && high < h->first + h->held)
		return ST_OK;
	size_t first = low - low % ROUND_TO;
	size_t end = high - high % ROUND_TO + ROUND_TO;
	if (h->held && h->first < first)
		first = h->first;
	if (h->held && h->first + h->held > end)
		end = h->first + h->held;
	TRY(vec_new(&wider, end - first, err));
	if (h->held)
		memcpy(wider + (h->first - first), h->buckets, h->held * sizeof(*wider));
	free(h->buckets);
	h->buckets = wider;
	h->first = first;
	h->held = end - first;
	return ST_OK;
}

static void exact_put(struct hist *h, uint64_t value)
{
	size_t at = (size_t)h->count++;

	while (at && h->exact[at - 1] > value) {
		h->exact[at] = h->exact[at - 1];
		at--;
	}
	h->exact[at] = value;
}

/* Moves the exact values into buckets. */
static enum status hist_spread(struct hist *h, struct error *err)
{
	TRY(hist_reach(h, bucket_of(h->exact[0]), bucket_of(h->exact[h->count - 1]), err));
	for (size_t i = 0; i < h->count; i++)
		h->buckets[bucket_of(h->exact[i]) - h->first]++;
	return ST_OK;
}

enum status hist_put(struct hist *h, uint64_t value, struct error *err)
{
	size_t bucket = bucket_of(value);

	if (h->count < HIST_EXACT) {
		exact_put(h, value);
		return ST_OK;
	}
	if (!h->held)
		TRY(hist_spread(h, err));
	if (bucket - h->first >= h->held) /* unsigned: also true if `bucket` is below `first` */
		TRY(hist_reach(h, bucket, bucket, err));
	h->buckets[bucket - h->first]++;
	h->count++;
	return ST_OK;
}

enum status hist_merge(struct hist *into, const struct hist *from, struct error *err)
{
	if (!from->held) {
		for (size_t i = 0; i < from->count; i++)
			TRY(hist_put(into, from->exact[i], err));
		return ST_OK;
	}
	if (!into->held && into->count)
		TRY(hist_spread(into, err));
	TRY(hist_reach(into, from->first, from->first + from->held - 1, err));
	for (size_t i = 0; i < from->held; i++)
		into->buckets[from->first + i - into->first] += from->buckets[i];
	into->count += from->count;
	return ST_OK;
}

/* ---- bytes ------------------------------------------------------------------------------ */

void hist_encode(const struct hist *h, struct buf *out)
{
	size_t last = 0, used = 0;

	buf_put_varint(out, h->count);
	for (size_t i = 0; !h->held && i < h->count; i++)
		buf_put_varint(out, h->exact[i]);
	for (size_t i = 0; i < h->held; i++)
		used += h->buckets[i] != 0;
	if (h->held)
		buf_put_varint(out, used);
	for (size_t i = 0; i < h->held; i++) {
		if (!h->buckets[i])
			continue;
		buf_put_varint(out, h->first + i - last);
		buf_put_varint(out, h->buckets[i]);
		last = h->first + i;
	}
}

static enum status not_one(struct error *err)
{
	return fail(err, ST_FORMAT, NOWHERE, "a histogram is inconsistent");
}

enum status hist_decode(struct hist *h, struct bytes *in, struct error *err)
{
	uint64_t count = take_varint(in);

	if (count > HIST_EXACT) {
		uint64_t used = take_varint(in), left = count, bucket = 0, i;
		for (i = 0; i < used && left; i++) {
			uint64_t step = take_varint(in);
			uint64_t held = take_varint(in);
			if (in->is_truncated || step > bucket_of(UINT64_MAX) - bucket || !held ||
			    held > left || (i && !step))
				return not_one(err);
			bucket += step;
			TRY(hist_reach(h, (size_t)bucket, (size_t)bucket, err));
			h->buckets[bucket - h->first] = held;
			left -= held;
		}
		h->count = count;
		return i < used || left ? not_one(err) : ST_OK;
	}
	for (uint64_t i = 0; i < count; i++)
		exact_put(h, take_varint(in));
	return in->is_truncated ? not_one(err) : ST_OK;
}

size_t hist_bytes(const struct hist *h)
{
	return sizeof(*h) + h->held * sizeof(*h->buckets);
}

/* ---- quantiles -------------------------------------------------------------------------- */

uint64_t hist_count(const struct hist *h)
{
	return h ? h->count : 0;
}

uint64_t hist_at(const struct hist *h, uint64_t rank)
{
	size_t i;

	if (rank >= hist_count(h))
		return 0;
	if (!h->held)
		return h->exact[rank];
	for (i = 0; i < h->held && rank >= h->buckets[i]; i++)
		rank -= h->buckets[i];
	/* Return the middle of the bucket. */
	size_t bucket = h->first + i;
	if (bucket < 2 * HIST_PER_OCTAVE)
		return bucket;
	size_t octave = bucket / HIST_PER_OCTAVE - 1;
	return ((uint64_t)(bucket % HIST_PER_OCTAVE + HIST_PER_OCTAVE) << octave) +
	       ((1ULL << octave) >> 1);
}

uint64_t hist_median(const struct hist *h)
{
	if (!hist_count(h))
		return 0;
	uint64_t low = hist_at(h, (h->count - 1) / 2);
	uint64_t high = hist_at(h, h->count / 2);
	return low + (high - low) / 2;
}
