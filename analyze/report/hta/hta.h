/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hta.h - the figures of Holistic Trace Analysis (HTA 0.6.1), by its definitions.
 *
 * A view for people who compare: names and denominators are HTA's, its defects are not
 * (tests/oracle/check_compat.py names each).  It keeps every GPU event of an input, so it has a
 * ceiling.  What is here is pure: events of one GPU in, figures out; memory is the caller's.
 */
#ifndef ANALYZE_REPORT_HTA_HTA_H
#define ANALYZE_REPORT_HTA_HTA_H

#include "analyze/engine/report.h"

extern const struct report_type report_compat_hta;

enum hta_class { HTA_COMPUTE = 1, HTA_COMM = 2, HTA_MEMORY = 4, HTA_MIXES = 8 };

struct hta_event {
	uint64_t begin_ns, end_ns, launch_begin_ns, launch_end_ns, correlation, stream, order;
	uint64_t rate; /* of a copy: bytes a second */
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

/* Bytes a second of the copies that run after each change; how many.  Room for 2n. */
struct hta_rate {
	uint64_t at_ns;
	int64_t change; /* and in the end the sum so far */
};
size_t hta_rates(const struct hta_event *events, size_t count, struct hta_rate *rates);

/* ---- tables that are made of them -------------------------------------------------------- */

struct hta_slice { /* of one GPU; of one stream or one name */
	struct hta_event *events;
	size_t count;
};
struct hta_room { /* for what is computed of a slice: once, and twice its events */
	struct hta_event *events;
	struct hta_edge *edges;
	struct hta_rate *rates;
	uint64_t *values;
};
/* The process; fills the device's key. */
uint32_t hta_keys(struct accumulator *f, const struct hta_slice *of, union value *keys);

#define HTA_STATS_COLUMNS(unit, cell)                                                              \
	{ "count", "count", CELL_U64, SUM, NULL, "values" },                                       \
		{ "min" unit, "min", CELL_U64, MAX, NULL, "the least" },                           \
		{ "p25" unit, "25%", CELL_U64, MAX, NULL, "a quarter is less" },                   \
		{ "p50" unit, "50%", CELL_U64, MAX, NULL, "the half is less" },                    \
		{ "p75" unit, "75%", CELL_U64, MAX, NULL, "three quarters are less" },             \
		{ "max" unit, "max", CELL_U64, MAX, NULL, "the most" },                            \
		{ "std" unit, "std", CELL_U64, MAX, NULL, "standard deviation of a sample" },      \
	{                                                                                          \
		"mean" unit, "mean", cell, DERIVED, NULL, "sum / count"                            \
	}
enum {
	STATS_COUNT,
	STATS_MIN,
	STATS_P25,
	STATS_P50,
	STATS_P75,
	STATS_MAX,
	STATS_STD,
	STATS_MEAN,
	HTA_STATS
};
void hta_put_stats(union value *row, const struct hta_stats *s);
/* Sum / count, rounded if `is_whole`. */
void hta_finish_means(struct tables *all, const char *name, size_t sum, size_t stats,
		      bool is_whole);

extern const struct table_type table_hta_queue_series, table_hta_rate_series, table_hta_rates;
/* Of a copy or fill: what the file says, else bytes / length. */
uint64_t hta_rate_of(const struct accumulator *f, const struct event *e);
/* Of a stream, after hta_queue(); *left: points that there is room for. */
enum status hta_put_queue(struct accumulator *f, const struct hta_slice *of,
			  const struct hta_edge *edges, const uint64_t *lengths, size_t count,
			  size_t *left, struct error *err);
enum status hta_put_rates(struct accumulator *f, const struct hta_slice *gpu,
			  const struct hta_room *room, struct error *err);
void hta_finish_rates(struct tables *all);

int hta_by_stream(const void *a, const void *b);
int hta_by_name(const void *a, const void *b);

#endif
