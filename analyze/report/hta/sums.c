/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/hta/hta.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

enum { KERNEL_WAIT_NS = 30000 /* HTA's value */ };

/* Returns a quartile times 4, interpolated between the two nearest values as in pandas. */
static uint64_t quartile(const uint64_t *values, size_t count, size_t number)
{
	size_t low = (count - 1) * number / 4, part = (count - 1) * number % 4;

	return 4 * values[low] + (part ? part * (values[low + 1] - values[low]) : 0);
}

struct hta_stats hta_describe(uint64_t *values, size_t count)
{
	struct hta_stats s = { .count = count, .std = NO_U64 };
	double squares = 0;

	if (!count)
		return s;
	qsort(values, count, sizeof(*values), compare_u64);
	for (size_t i = 0; i < count; i++)
		s.sum += values[i];
	double mean = (double)s.sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += ((double)values[i] - mean) * ((double)values[i] - mean);
	if (count > 1)
		s.std = (uint64_t)llround(sqrt(squares / (double)(count - 1)));
	s.min = values[0];
	for (size_t i = 0; i < 3; i++)
		s.quartiles[i] = quartile(values, count, i + 1);
	s.max = values[count - 1];
	return s;
}

/* At equal times begins come before ends. */
static int compare_edges(const void *pa, const void *pb)
{
	const struct hta_edge *a = pa, *b = pb;

	if (a->at_ns != b->at_ns)
		return a->at_ns > b->at_ns ? 1 : -1;
	return b->step - a->step;
}

void hta_mixes(const struct hta_event *events, size_t count, struct hta_edge *edges,
	       uint64_t mixes[HTA_MIXES])
{
	int64_t open[3] = { 0, 0, 0 };
	uint64_t last_ns = 0;

	for (size_t i = 0; i < HTA_MIXES; i++)
		mixes[i] = 0;
	for (size_t i = 0; i < count; i++) {
		edges[2 * i] = (struct hta_edge){ events[i].begin_ns, 1, events[i].class };
		edges[2 * i + 1] = (struct hta_edge){ events[i].end_ns, -1, events[i].class };
	}
	qsort(edges, 2 * count, sizeof(*edges), compare_edges);
	for (size_t i = 0; i < 2 * count; i++) {
		unsigned mask = (open[0] ? HTA_COMPUTE : 0u) | (open[1] ? HTA_COMM : 0u) |
				(open[2] ? HTA_MEMORY : 0u);

		if (i)
			mixes[mask] += edges[i].at_ns - last_ns;
		last_ns = edges[i].at_ns;
		open[(edges[i].class == HTA_COMPUTE ? 0
		      : edges[i].class == HTA_COMM  ? 1
						    : 2)] += edges[i].step;
	}
}

size_t hta_gaps(const struct hta_event *events, size_t count, enum hta_wait kind, uint64_t *gaps)
{
	size_t found = 0;

	for (size_t i = 1; i < count; i++) {
		const struct hta_event *e = &events[i];
		uint64_t before_ns = events[i - 1].end_ns;
		uint64_t gap_ns = e->begin_ns > before_ns ? e->begin_ns - before_ns : 0;
		enum hta_wait is = e->has_launch && e->launch_begin_ns > before_ns ? HTA_HOST_WAIT
				   : gap_ns < KERNEL_WAIT_NS                       ? HTA_KERNEL_WAIT
										   : HTA_OTHER_WAIT;

		if (is == kind)
			gaps[found++] = gap_ns;
	}
	return found;
}

size_t hta_queue(const struct hta_event *events, size_t count, struct hta_edge *edges,
		 uint64_t *lengths)
{
	int64_t length = 0;
	size_t points = 0;

	for (size_t i = 0; i < count; i++) {
		if (!events[i].has_launch)
			continue;
		edges[points++] = (struct hta_edge){ events[i].launch_begin_ns, 1, 0 };
		edges[points++] = (struct hta_edge){ events[i].begin_ns, -1, 0 };
	}
	qsort(edges, points, sizeof(*edges), compare_edges);
	for (size_t i = 0; i < points; i++) {
		length += edges[i].step;
		lengths[i] = length > 0 ? (uint64_t)length : 0;
	}
	return points;
}

size_t hta_rates(const struct hta_event *events, size_t count, struct hta_rate *rates)
{
	size_t points = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t ns = events[i].end_ns - events[i].begin_ns;
		int64_t rate = (int64_t)events[i].rate;

		ns = ns ? ns : HTA_NO_LENGTH_NS;
		rates[points++] = (struct hta_rate){ events[i].begin_ns, rate };
		rates[points++] = (struct hta_rate){ events[i].begin_ns + ns, -rate };
	}
	/* ends come first */
	SORT_BY(rates, points, UP(struct hta_rate, at_ns), UP(struct hta_rate, change));
	for (size_t i = 1; i < points; i++)
		rates[i].change += rates[i - 1].change;
	return points;
}
