/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hta.h - the figures of Holistic Trace Analysis (HTA 0.6.1), by its definitions.
 *
 * A view for comparison: names and denominators are HTA's, its defects are not
 * (tests/oracle/check_compat.py lists each). It keeps every GPU event of an input, so it has a
 * ceiling. The functions below are pure: they compute figures from the events of one GPU, in memory
 * of the caller.
 */
#pragma once

#include "analyze/engine/report.h"

extern const struct report_type report_compat_hta;

enum hta_class { HTA_COMPUTE = 1, HTA_COMM = 2, HTA_MEMORY = 4, HTA_MIXES = 8 };

struct hta_event {
	uint64_t begin_ns, end_ns, launch_begin_ns, launch_end_ns, correlation, stream, order;
	uint64_t rate;             /* bytes per second of a copy */
	uint32_t gpu, name, class; /* class: enum hta_class */
	bool has_launch, is_graph;
};

/* A series as pandas describes it: ns or lengths of a queue. */
struct hta_stats {
	uint64_t count, sum, min, max;
	uint64_t quartiles[3]; /* times 4, so that they are integers */
	uint64_t std;          /* of a sample, rounded; NO_U64 for fewer than two values */
};
/* Computes statistics. Sorts `values`. */
struct hta_stats hta_describe(uint64_t *values, size_t count);

/* Computes the exclusive time of each combination of classes, by mask; mixes[0] is idle. `edges`
 * has space for 2 * count items. */
struct hta_edge {
	uint64_t at_ns;
	int8_t step;
	uint32_t class;
};
void hta_mixes(const struct hta_event *events, size_t count, struct hta_edge *edges,
	       uint64_t mixes[HTA_MIXES]);

enum hta_wait { HTA_HOST_WAIT, HTA_KERNEL_WAIT, HTA_OTHER_WAIT, HTA_WAITS };
/* Fills `gaps` (space for `count`) with the gaps of one kind between events of one stream, which
 * are in order of begin. Returns their number. */
size_t hta_gaps(const struct hta_event *events, size_t count, enum hta_wait kind, uint64_t *gaps);

/* Fills `lengths` with the number of launched works of a stream that have not begun, after each
 * change. Returns their number. Both arrays have space for 2 * count items. */
size_t hta_queue(const struct hta_event *events, size_t count, struct hta_edge *edges,
		 uint64_t *lengths);

/* Fills `rates` (space for 2 * count) with the bytes per second of the running copies after each
 * change. Returns their number. */
enum { HTA_NO_LENGTH_NS = 1000 }; /* HTA's duration for copies of length 0 */
struct hta_rate {
	uint64_t at_ns;
	int64_t change; /* change; in the result the sum up to here */
};
size_t hta_rates(const struct hta_event *events, size_t count, struct hta_rate *rates);
