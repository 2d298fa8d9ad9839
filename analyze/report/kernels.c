/* SPDX-License-Identifier: Apache-2.0 */
/* The report `kernels`: kernels by name (DEFINITIONS.md 8), including communication. */
#include "analyze/engine/report.h"

#include "analyze/engine/hist.h"

#define KERNEL_COLUMNS(X)                                                                          \
	X(KERNEL_NAME = RANK_KEYS, "name", NULL, TEXT, KEY, "name of the kernel, as in the file")  \
	X(KERNEL_SHORT, "short", "kernel", TEXT, DERIVED, "readable name")                         \
	X(KERNEL_CLASS, "class", "class", TEXT, MAX,                                               \
	  "compute, comm, or graph: a graph launch recorded as a whole")                           \
	X(KERNEL_COUNT, "count", "calls", U64, SUM, "kernels that began")                          \
	X(KERNEL_TOTAL, "total_ns", "total", U64, SUM, "total duration, overlaps counted twice")   \
	X(KERNEL_PCT, "pct", "%", F64, DERIVED, "share of the sum of kernel time",                 \
	  .of = "kernel time")                                                                     \
	X(KERNEL_MIN, "min_ns", "min", U64, MIN, "duration of the shortest call")                  \
	X(KERNEL_MEDIAN, "median_ns", "median", U64, DERIVED, "median duration, within 1 %")       \
	X(KERNEL_MAX, "max_ns", "max", U64, MAX, "duration of the longest call")                   \
	X(KERNEL_LENGTHS, "lengths", NULL, HIST, HIST, "histogram of the durations")
static RANK_TABLE(kernels, &table_ranks, KERNEL_COLUMNS, .by = "total_ns");

struct kernels {
	struct name_rows rows;
};

static enum status row_make(struct accumulator *f, uint32_t process, const struct event *e,
			    union value **row, struct error *err)
{
	union value keys[RANK_KEYS + 1];
	const char *class = "compute";

	if (e->kind == KIND_GRAPH)
		class = "graph";
	else if (sweep_communicates(f->sweep, e->name))
		class = "comm";
	keys[KERNEL_NAME].text = trace_text(f->trace, e->name, NULL);
	TRY(acc_row(f, "kernels", process, keys, row, err));
	if ((*row)[KERNEL_LENGTHS].hist)
		return ST_OK;
	TRY(acc_text(f, "kernels", &(*row)[KERNEL_CLASS], class, err));
	(*row)[KERNEL_LENGTHS].hist = table_hist(tables_find(f->tables, "kernels"), err);
	return (*row)[KERNEL_LENGTHS].hist ? ST_OK : ST_MEMORY;
}

static enum status kernels_put(struct accumulator *f, const struct sorted_batch *w,
			       struct error *err)
{
	const struct batch_events *kernels = &w->by[BATCH_KERNELS];
	struct kernels *k = f->state;
	union value *row, **place;

	for (size_t i = 0; i < kernels->count; i++) {
		const struct event *e = kernels->items[i];
		uint64_t ns = e->end_ns - e->begin_ns;

		TRY(acc_name_row(f, &k->rows, e, &place, err));
		if (!*place)
			TRY(row_make(f, k->rows.process, e, place, err));
		row = *place;
		row[KERNEL_COUNT].u64++;
		row[KERNEL_TOTAL].u64 += ns;
		row[KERNEL_MIN].u64 = earlier(row[KERNEL_MIN].u64, ns);
		cell_raise(&row[KERNEL_MAX], ns);
		TRY(hist_put(row[KERNEL_LENGTHS].hist, ns, err));
	}
	return ST_OK;
}

enum { SHORT_COLUMNS = 61, SHORT_BYTES = 4 * SHORT_COLUMNS };

static enum status kernels_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "kernels");
	char name[SHORT_BYTES];
	union value *row;

	finish_shares(all, "kernels", RANK_KEYS, KERNEL_TOTAL, KERNEL_PCT);
	for (size_t i = 0; (row = table_at(t, i)); i++) {
		row[KERNEL_MEDIAN].u64 = hist_median(row[KERNEL_LENGTHS].hist);
		name_short(row[KERNEL_NAME].text, SHORT_COLUMNS, name, sizeof(name));
		row[KERNEL_SHORT].text = table_text(t, name, err);
		if (!row[KERNEL_SHORT].text)
			return ST_CEILING;
	}
	return ST_OK;
}

const struct report_type report_kernels = {
	.name = "kernels",
	.help = "kernels by name: calls, time, shortest, median, longest",
	.tables = TABLES(&table_kernels),
	.state_size = sizeof(struct kernels),
	.owned = OWNED(offsetof(struct kernels, rows.rows)),
	.put = kernels_put,
	.finish = kernels_finish,
};
