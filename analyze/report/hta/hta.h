/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hta.h - the figures of Holistic Trace Analysis (HTA 0.6.1), by its definitions.
 *
 * A view for people who compare: names and denominators are HTA's, its defects are not
 * (tests/oracle/check_compat.py names each).  It keeps every GPU event of an input, so it has a
 * ceiling.  What is here is pure: events of one GPU in, figures out; memory is the caller's.
 */
#pragma once

#include "analyze/engine/report.h"

extern const struct report_type report_compat_hta;

enum hta_class { HTA_COMPUTE = 1, HTA_COMM = 2, HTA_MEMORY = 4, HTA_MIXES = 8 };

struct hta_event {
	uint64_t begin_ns, end_ns, launch_begin_ns, launch_end_ns, correlation, stream, order;
	uint64_t rate;             /* of a copy: bytes a second */
	uint32_t gpu, name, class; /* class: enum hta_class */
	bool has_launch, is_graph;
};

/* A series, as pandas describes it; ns or lengths of a queue. */
struct hta_stats {
	uint64_t count, sum, min, max;
	uint64_t quartiles[3]; /* times four, which makes them whole numbers */
	uint64_t std;          /* of a sample, rounded; NO_U64 below two */
};
/* Sorts `values`. */
struct hta_stats hta_describe(uint64_t *values, size_t count);

/* Exclusive time of each mixture of classes, by mask; mixes[0]: idle.  `edges` holds 2n. */
struct hta_edge {
	uint64_t at_ns;
	int8_t step;
	uint32_t class;
};
void hta_mixes(const struct hta_event *events, size_t count, struct hta_edge *edges,
	       uint64_t mixes[HTA_MIXES]);

enum hta_wait { HTA_HOST_WAIT, HTA_KERNEL_WAIT, HTA_OTHER_WAIT, HTA_WAITS };
/* Gaps of one kind in events of one stream, in order of begin; how many.  `gaps` holds `count`. */
size_t hta_gaps(const struct hta_event *events, size_t count, enum hta_wait kind, uint64_t *gaps);

/* Launched and not begun, after each change: of one stream; how many.  Both hold 2n. */
size_t hta_queue(const struct hta_event *events, size_t count, struct hta_edge *edges,
		 uint64_t *lengths);

/* Bytes a second of the copies that run after each change; how many.  `rates` holds 2n. */
enum { HTA_NO_LENGTH_NS = 1000 }; /* as HTA has it: of a copy of no length */
struct hta_rate {
	uint64_t at_ns;
	int64_t change; /* and in the end the sum so far */
};
size_t hta_rates(const struct hta_event *events, size_t count, struct hta_rate *rates);
