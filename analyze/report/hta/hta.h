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
struct hta { /* the state of the report */
	struct hta_event *events;
	size_t count, cap;
	/* for what is computed of a slice: copies of its events, and twice as many of the others */
	struct hta_event *copies;
	struct hta_edge *edges;
	struct hta_rate *rates;
	uint64_t *values;
	size_t points_left; /* of queues' lengths */
};
/* The process; fills the device's key. */
uint32_t hta_keys(struct accumulator *f, const struct hta_slice *of, union value *keys);

#define HTA_STATS_COLUMNS(X, unit, mean_type, type, combine)                                       \
	X(STATS_COUNT, "count", "count", U64, SUM, "values")                                       \
	X(STATS_MIN, "min" unit, "min", U64, MAX, "the least")                                     \
	X(STATS_P25, "p25" unit, "25%", type, combine, "a quarter is less")                        \
	X(STATS_P50, "p50" unit, "50%", type, combine, "the half is less")                         \
	X(STATS_P75, "p75" unit, "75%", type, combine, "three quarters are less")                  \
	X(STATS_MAX, "max" unit, "max", U64, MAX, "the most")                                      \
	X(STATS_STD, "std" unit, "std", type, combine, "standard deviation of a sample")           \
	X(STATS_MEAN, "mean" unit, "mean", mean_type, DERIVED, "sum / count")
enum { HTA_STATS_COLUMNS(COLUMN_PLACE, "", U64, U64, MAX) HTA_STATS };
/* The keys of all tables below ranks. */
#define HTA_DEVICE_KEY(X)                                                                          \
	X(HTA_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "the device's number in its process")
#define HTA_STREAM_KEY(X) X(HTA_STREAM, "stream", "stream", U64, KEY, "its number on the device")
enum { HTA_DEVICE_KEY(COLUMN_PLACE) HTA_STREAM_KEY(COLUMN_PLACE) HTA_STREAM_KEYS };
#define HTA_BANDWIDTH_COLUMNS(X)                                                                   \
	X(BW_NAME = HTA_STREAM, "name", "name", TEXT, KEY, "Memset, or Memcpy and its direction")  \
	X(BW_SUM, "sum", NULL, U64, SUM, "of the points of the series, those of 0 aside")
#define HTA_LEFT_OUT_COLUMN(X, place)                                                              \
	X(place, "points_left_out", NULL, U64, SUM, "of the series, which has a ceiling")
enum {
	HTA_BANDWIDTH_COLUMNS(COLUMN_PLACE) BW_STATS,
	HTA_LEFT_OUT_COLUMN(COLUMN_PLACE, BW_LEFT_OUT = BW_STATS + HTA_STATS)
};
void hta_put_stats(union value *row, const struct hta_stats *s);
extern const struct table_type table_hta_queue_series, table_hta_rate_series, table_hta_rates;
/* Of a copy or fill: what the file says, else bytes / length. */
uint64_t hta_rate_of(const struct accumulator *f, const struct event *e);
/* Of a stream, after hta_queue(); *left: points that may still be added. */
enum status hta_put_queue(struct accumulator *f, const struct hta_slice *of,
			  const struct hta_edge *edges, const uint64_t *lengths, size_t count,
			  size_t *left, struct error *err);
enum status hta_put_rates(struct accumulator *f, const struct hta_slice *gpu, struct error *err);
