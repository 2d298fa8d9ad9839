/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_hta.h - the figures of Holistic Trace Analysis (HTA 0.6.1), by its definitions.
 *
 * A view for people who compare: names and denominators are HTA's, its defects are not
 * (tests/oracle/check_compat.py names each).  It keeps every GPU event of an input, so it has a
 * ceiling.  What is here is pure: events of one GPU in, figures out; memory is the caller's.
 */
#ifndef ANALYZE_COMPAT_HTA_H
#define ANALYZE_COMPAT_HTA_H

#include "analyze/report.h"

extern const struct report_type report_compat_hta;

enum hta_class { HTA_COMPUTE = 1, HTA_COMM = 2, HTA_MEMORY = 4, HTA_MIXES = 8 };

struct hta_event {
	uint64_t begin_ns, end_ns, launch_begin_ns, launch_end_ns, correlation, stream, order;
	uint32_t gpu, name;
	uint8_t class;
	bool has_launch, is_graph;
};

/* A series, as pandas describes it; ns or lengths of a queue. */
struct hta_stats {
	uint64_t count, sum, min, p25, p50, p75, max;
	uint64_t std; /* of a sample, rounded; NO_U64 below two */
};
/* Sorts `values`. */
struct hta_stats hta_describe(uint64_t *values, size_t count);

/* Exclusive time of each mixture of classes, by mask; mixes[0]: idle.  `edges` has room for 2n. */
struct hta_edge {
	uint64_t at_ns;
	int8_t step;
	uint8_t class;
};
void hta_mixes(const struct hta_event *events, size_t count, struct hta_edge *edges,
	       uint64_t mixes[HTA_MIXES]);

enum hta_wait { HTA_HOST_WAIT, HTA_KERNEL_WAIT, HTA_OTHER_WAIT, HTA_WAITS };
/* Gaps of one kind in events of one stream, in order of begin; how many.  `gaps` has room. */
size_t hta_gaps(const struct hta_event *events, size_t count, enum hta_wait kind, uint64_t *gaps);

/* Launched and not begun, after each change: of one stream; how many.  Room for 2n of both. */
size_t hta_queue(const struct hta_event *events, size_t count, struct hta_edge *edges,
		 uint64_t *lengths);

struct hta_launches {
	uint64_t count, cpu_ns, gpu_ns, delay_ns, short_count, cpu_outliers, delay_outliers;
};
void hta_launch_add(struct hta_launches *sums, const struct hta_event *e);

int hta_by_stream(const void *a, const void *b);
int hta_by_name(const void *a, const void *b);

#endif
