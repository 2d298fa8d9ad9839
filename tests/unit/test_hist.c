/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/hist.h"

#include "tests/unit/events.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

enum { VALUES = 5000 };

static int compare_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Lengths as kernels have them: from nothing to minutes. */
static void values_make(uint64_t *values, size_t count, uint64_t seed)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t r = random_u64(&seed);

		values[i] = (r >> 8) >> (r % 52);
	}
}

void test_hist_few_are_exact(void)
{
	static const uint64_t values[] = { 7, 900, 3, 3, 1000000007, 12, 0, 55 };
	struct hist *h = NULL;
	size_t i;

	CHECK_OK(hist_new(&h, NULL), NULL);
	CHECK_U64(hist_median(h), 0);
	for (i = 0; i < 8; i++)
		CHECK_OK(hist_put(h, values[i], NULL), NULL);
	CHECK_U64(hist_count(h), 8);
	CHECK_U64(hist_at(h, 0), 0);
	CHECK_U64(hist_at(h, 1), 3);
	CHECK_U64(hist_at(h, 6), 900);
	CHECK_U64(hist_at(h, 7), 1000000007);
	CHECK_U64(hist_at(h, 8), 0);
	CHECK_U64(hist_median(h), 9); /* of 7 and 12, rounded down */
	hist_free(h);
}

void test_hist_error_is_bounded(void)
{
	uint64_t *values = malloc(VALUES * sizeof(*values));
	struct hist *h = NULL;
	size_t i, wrong = 0;

	if (!CHECK(values != NULL))
		return;
	CHECK_OK(hist_new(&h, NULL), NULL);
	values_make(values, VALUES, 4711);
	for (i = 0; i < VALUES; i++)
		hist_put(h, values[i], NULL);
	qsort(values, VALUES, sizeof(*values), compare_u64);
	for (i = 0; i < VALUES; i++) {
		double got = (double)hist_at(h, i), want = (double)values[i];

		wrong += got < want * 0.992 - 0.5 || got > want * 1.008 + 0.5;
	}
	CHECK_U64(wrong, 0);
	CHECK_U64(hist_count(h), VALUES);
	hist_free(h);
	free(values);
}

/* However values are spread over partial histograms, and in whatever order those meet. */
void test_hist_merges_alike(void)
{
	uint64_t values[300];
	struct hist *whole = NULL, *parts[7], *sum = NULL;
	size_t i, k, wrong = 0;

	values_make(values, 300, 99);
	CHECK_OK(hist_new(&whole, NULL), NULL);
	CHECK_OK(hist_new(&sum, NULL), NULL);
	for (k = 0; k < 7; k++)
		CHECK_OK(hist_new(&parts[k], NULL), NULL);
	for (i = 0; i < 300; i++) {
		hist_put(whole, values[i], NULL);
		hist_put(parts[i < 250 ? i % 3 : 3 + i % 4], values[i], NULL);
	}
	for (k = 7; k; k--) {
		CHECK_OK(hist_merge(sum, parts[k - 1], NULL), NULL);
		hist_free(parts[k - 1]);
	}
	for (i = 0; i < 300; i++)
		wrong += hist_at(sum, i) != hist_at(whole, i);
	CHECK_U64(wrong, 0);
	CHECK_U64(hist_count(sum), 300);
	hist_free(whole);
	hist_free(sum);
}
