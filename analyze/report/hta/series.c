/* SPDX-License-Identifier: Apache-2.0 */
/* HTA's time series: lengths of queues, and the bandwidth of copies that run. */
#include "analyze/report/hta/hta.h"
#include "schemas/base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A point of a series; without titles they are in no page. */
#define KEY_OF_SERIES(X)                                                                           \
	X(SERIES_DEVICE = RANK_KEYS, "device", NULL, U64, KEY, "the device's number in its process")
#define POINT_KEYS(X, place)                                                                       \
	X(place, "at_ns", NULL, U64, KEY, "since the Unix epoch")                                  \
	X(place##_PLACE, "place", NULL, U64, KEY, "of those at the same time, from 0")

#define LENGTH_STREAM_KEY(X)                                                                       \
	X(LENGTH_STREAM = HTA_STREAM, "stream", NULL, U64, KEY, "its number on the device")
#define LENGTH_COLUMN(X)                                                                           \
	X(LENGTH, "queue_length", NULL, U64, MAX, "launched and not begun, from then on")
enum {
	LENGTH_STREAM_KEY(COLUMN_PLACE) POINT_KEYS(COLUMN_PLACE, LENGTH_AT)
		LENGTH_COLUMN(COLUMN_PLACE)
};
const struct table_type table_hta_queue_series = {
	.name = "hta_queue_length_time_series",
	.under = &table_ranks,
	.columns = COLUMNS(RANK_COLUMNS,
			   KEY_OF_SERIES(COLUMN_ROW) LENGTH_STREAM_KEY(COLUMN_ROW)
				   POINT_KEYS(COLUMN_ROW, LENGTH_AT) LENGTH_COLUMN(COLUMN_ROW)),
};

#define RATE_NAME_KEY(X) X(RATE_NAME = HTA_STREAM, "name", NULL, TEXT, KEY, "direction")
#define RATE_COLUMN(X)                                                                             \
	X(RATE, "memory_bw_bytes_per_s", NULL, U64, MAX,                                           \
	  "of those that run from then on, added up: as recorded, else bytes / duration")
enum { RATE_NAME_KEY(COLUMN_PLACE) POINT_KEYS(COLUMN_PLACE, RATE_AT) RATE_COLUMN(COLUMN_PLACE) };
const struct table_type table_hta_rate_series = {
	.name = "hta_memory_bw_time_series",
	.under = &table_ranks,
	.columns = COLUMNS(RANK_COLUMNS,
			   KEY_OF_SERIES(COLUMN_ROW) RATE_NAME_KEY(COLUMN_ROW)
				   POINT_KEYS(COLUMN_ROW, RATE_AT) RATE_COLUMN(COLUMN_ROW)),
};

const struct table_type table_hta_rates = {
	.name = "hta_memory_bw_summary",
	.under = &table_ranks,
	.columns = COLUMNS(RANK_COLUMNS,
			   HTA_DEVICE_KEY(COLUMN_ROW) HTA_BANDWIDTH_COLUMNS(COLUMN_ROW)
				   HTA_STATS_COLUMNS(COLUMN_ROW, "_bytes_per_s", F64, U64, MAX)
					   HTA_LEFT_OUT_COLUMN(COLUMN_ROW, )),
};

enum { POINTS_MOST = 1 << 17 /* of a series of an input */, NAMES_MOST = 16, NAME_BYTES = 16 };

/* HTA's word for a copy: the first eleven letters of its name say the direction. */
static void name_of(const struct accumulator *f, const struct hta_event *e, char out[NAME_BYTES])
{
	const char *name = trace_text(f->trace, e->name, NULL);

	if (!strncmp(name, "Memset", 6))
		snprintf(out, NAME_BYTES, "Memset");
	else if (!strncmp(name, "Memcpy", 6))
		snprintf(out, NAME_BYTES, "%.11s", name);
	else
		snprintf(out, NAME_BYTES, "Memcpy Unknown");
}

/* One point more of `t`; *left: so many may still be added. */
static enum status put_point(struct accumulator *f, const struct table_type *t, uint32_t process,
			     union value *keys, size_t at, uint64_t at_ns, uint64_t value,
			     size_t *left, struct error *err)
{
	union value *row;

	if (!*left)
		return ST_OK;
	--*left;
	keys[at + 1].u64 = keys[at].u64 == at_ns ? keys[at + 1].u64 + 1 : 0;
	keys[at].u64 = at_ns;
	TRY(acc_row(f, t->name, process, keys, &row, err));
	row[at + 2].u64 = value;
	return ST_OK;
}

enum status hta_put_queue(struct accumulator *f, const struct hta_slice *of,
			  const struct hta_edge *edges, const uint64_t *lengths, size_t count,
			  size_t *left, struct error *err)
{
	union value keys[LENGTH + 1];
	uint32_t process = hta_keys(f, of, keys);

	keys[LENGTH_STREAM].u64 = of->events[0].stream;
	keys[LENGTH_AT].u64 = NO_U64;
	for (size_t i = 0; i < count; i++)
		TRY(put_point(f, &table_hta_queue_series, process, keys, LENGTH_AT, edges[i].at_ns,
			      lengths[i], left, err));
	return ST_OK;
}

/* As HTA has it: a copy of no length takes a microsecond. */
#define NO_LENGTH_NS 1000u
#define RATE_MOST    1e15 /* no machine's */

/* In GB/s; NAN: the file has none. */
static double rate_recorded(const struct accumulator *f, const struct event *e)
{
	const struct arg_schema *schema = trace_get_schema(f->trace, e->schema);
	double rate = NAN;

	for (size_t i = 0; schema && e->args && i < schema->arg_count; i++) {
		const struct attr *a = &schema->args[i];

		if (strcmp(trace_text(f->trace, a->key, NULL), "bandwidth") != 0)
			continue;
		if (a->type == ATTR_F64)
			memcpy(&rate, &e->args[i], sizeof(rate));
		else if (a->type == ATTR_U64) /* JSON that has no fraction */
			rate = (double)e->args[i];
	}
	return rate;
}

uint64_t hta_rate_of(const struct accumulator *f, const struct event *e)
{
	uint64_t ns = e->end_ns - e->begin_ns;
	double rate = rate_recorded(f, e) * 1e9;

	if (!(rate >= 0 && rate < RATE_MOST))
		rate = (double)e->bytes * 1e9 / (double)(ns ? ns : NO_LENGTH_NS);
	return rate < RATE_MOST ? (uint64_t)llround(rate) : 0;
}

size_t hta_rates(const struct hta_event *events, size_t count, struct hta_rate *rates)
{
	size_t points = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t ns = events[i].end_ns - events[i].begin_ns;
		int64_t rate = (int64_t)events[i].rate;

		ns = ns ? ns : NO_LENGTH_NS;
		rates[points++] = (struct hta_rate){ events[i].begin_ns, rate };
		rates[points++] = (struct hta_rate){ events[i].begin_ns + ns, -rate };
	}
	/* what ends comes first */
	SORT_BY(rates, points, UP(struct hta_rate, at_ns), UP(struct hta_rate, change));
	for (size_t i = 1; i < points; i++)
		rates[i].change += rates[i - 1].change;
	return points;
}

/* Of a GPU: the copies of each direction together. */
enum status hta_put_rates(struct accumulator *f, const struct hta_slice *gpu, struct error *err)
{
	struct hta *s = f->state;
	char names[NAMES_MOST][NAME_BYTES], name[NAME_BYTES];
	size_t count = 0, left = POINTS_MOST, k;

	for (size_t i = 0; i < gpu->count; i++) {
		if (gpu->events[i].class != HTA_MEMORY)
			continue;
		name_of(f, &gpu->events[i], name);
		for (k = 0; k < count && strcmp(names[k], name) != 0; k++)
			;
		if (k == count && count < NAMES_MOST)
			memcpy(names[count++], name, NAME_BYTES);
	}
	for (k = 0; k < count; k++) {
		struct hta_slice of = { s->copies, 0 };

		for (size_t i = 0; i < gpu->count; i++) {
			if (gpu->events[i].class != HTA_MEMORY)
				continue;
			name_of(f, &gpu->events[i], name);
			if (!strcmp(names[k], name))
				of.events[of.count++] = gpu->events[i];
		}
		union value keys[RATE + 1], *row;
		uint32_t process = hta_keys(f, &of, keys);
		size_t points = hta_rates(of.events, of.count, s->rates), before = left, some = 0;
		keys[RATE_NAME].text = names[k];
		keys[RATE_AT].u64 = NO_U64;
		for (size_t i = 0; i < points; i++) {
			uint64_t value = (uint64_t)s->rates[i].change;

			TRY(put_point(f, &table_hta_rate_series, process, keys, RATE_AT,
				      s->rates[i].at_ns, value, &left, err));
			if (value)
				s->values[some++] = value;
		}
		if (!some)
			continue;
		struct hta_stats stats = hta_describe(s->values, some);
		TRY(acc_row(f, table_hta_rates.name, process, keys, &row, err));
		row[BW_SUM].u64 += stats.sum;
		row[BW_LEFT_OUT].u64 += points - (before - left);
		hta_put_stats(row + BW_STATS, &stats);
	}
	return ST_OK;
}
