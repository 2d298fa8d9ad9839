/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/align/read.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

struct pair {
	uint64_t at_ns;   /* time on the clock to be corrected */
	int64_t ahead_ns; /* how far the other clock is ahead */
};

static int compare_i64(const void *pa, const void *pb)
{
	const int64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

static int64_t median_of(int64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_i64);
	return values[(count - 1) / 2] + (values[count / 2] - values[(count - 1) / 2]) / 2;
}

/* Returns the median slope between pairs that lie half of all pairs apart.  That is as robust as
 * the median of all slopes, but takes one pass. */
static double drift_of(const struct pair *pairs, size_t count, double *slopes)
{
	size_t used = 0;

	for (size_t i = 0; i + count / 2 < count; i++) {
		const struct pair *a = &pairs[i], *b = &pairs[i + count / 2];

		if (b->at_ns > a->at_ns)
			slopes[used++] =
				(double)(b->ahead_ns - a->ahead_ns) / (double)(b->at_ns - a->at_ns);
	}
	if (!used)
		return 0;
	qsort(slopes, used, sizeof(*slopes), compare_double);
	return slopes[used / 2];
}

static void fit_pairs(struct pair *pairs, size_t count, int64_t *values, double *slopes,
		      struct aligned *out)
{
	struct clock_fit *fit = &out->fit;

	SORT_BY(pairs, count, UP(struct pair, at_ns));
	out->span_ns = pairs[count - 1].at_ns - pairs[0].at_ns;
	fit->origin_ns = pairs[0].at_ns;
	if (count >= ALIGN_DRIFT_PAIRS && out->span_ns >= ALIGN_DRIFT_NS)
		fit->drift = drift_of(pairs, count, slopes);
	if (!(fit->drift > -1e-3 && fit->drift < 1e-3)) /* no clock drifts that much */
		fit->drift = 0;
	for (size_t i = 0; i < count; i++)
		values[i] = pairs[i].ahead_ns -
			    (int64_t)((double)(pairs[i].at_ns - fit->origin_ns) * fit->drift);
	fit->offset_ns = median_of(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = llabs(values[i] - fit->offset_ns);
	fit->error_ns = (uint64_t)median_of(values, count);
}

enum status align_pairs(const struct ended *of, size_t of_count, const struct ended *to,
			size_t to_count, struct aligned *out, struct error *err)
{
	size_t most = of_count < to_count ? of_count : to_count, i = 0, k = 0;
	RELEASED_BY(vec_release) struct pair *pairs = NULL;
	RELEASED_BY(vec_release) int64_t *values = NULL;
	RELEASED_BY(vec_release) double *slopes = NULL;

	*out = (struct aligned){ .pairs = 0 };
	TRY(vec_new(&pairs, most + 1, err));
	TRY(vec_new(&values, most + 1, err));
	TRY(vec_new(&slopes, most + 1, err));
	while (i < of_count && k < to_count) {
		if (of[i].key != to[k].key) {
			of[i].key < to[k].key ? i++ : k++;
			continue;
		}
		pairs[out->pairs++] =
			(struct pair){ of[i].end_ns, (int64_t)(to[k].end_ns - of[i].end_ns) };
		i++;
		k++;
	}
	if (out->pairs >= ALIGN_PAIRS)
		fit_pairs(pairs, out->pairs, values, slopes, out);
	return ST_OK;
}

uint64_t align_anchor_error(const struct trace *t, uint32_t process)
{
	uint32_t rows = trace_count(t, TRACE_ANCHORS);
	int64_t *values = calloc((size_t)rows + 1, sizeof(*values)), median, most = 0;
	size_t count = 0;

	for (uint32_t i = 1; values && i <= rows; i++) {
		const struct anchor *a = trace_get_anchor(t, i);

		if (a->process == process && a->monotonic_ns)
			values[count++] = (int64_t)(a->realtime_ns - a->monotonic_ns);
	}
	if (count > 1) {
		median = median_of(values, count);
		most = median - values[0];
		if (values[count - 1] - median > most)
			most = values[count - 1] - median;
	}
	free(values);
	return count > 1 ? (uint64_t)most : UINT64_MAX;
}
