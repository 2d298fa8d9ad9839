/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GPUs before the host; an allocator knows more than a sample. */
static int importance(const struct memory_row *r)
{
	static const char *const order[] = { "allocator", "cuda", "in_use", "pinned" };
	int i = 0;

	while (i < 3 && strcmp(order[i], r->what) != 0)
		i++;
	return i + (r->device == NO_U64 ? 8 : 0);
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct memory_row *a = pa, *b = pb;

	if (importance(a) != importance(b))
		return importance(a) - importance(b);
	return a->peak_bytes > b->peak_bytes ? -1 : a->peak_bytes < b->peak_bytes;
}

/* Of an amount that is never nothing; 0: nobody told it. */
static uint64_t told(const struct view *v, size_t i, const char *column)
{
	uint64_t amount = view_cell(v, i, column).u64;

	return amount == NO_U64 ? 0 : amount;
}

static struct memory_row row_of(const struct page *p, const struct view *v, size_t i)
{
	struct view all = page_view(p, "memory_peaks"), peaks;
	struct memory_row r = {
		.cells = v->rows[i], .keys = table_keys(v->type),
		.what = view_cell(v, i, "what").text,
		.peak_phase = view_cell(v, i, "peak_phase").text,
		.device = view_cell(v, i, "device").u64,
		.peak_bytes = view_cell(v, i, "peak_bytes").u64,
		.reserved_bytes = told(v, i, "reserved_bytes"),
		.total_bytes = told(v, i, "total_bytes"),
		.spikes = view_cell(v, i, "spikes").u64,
		.leak = view_cell(v, i, "leak").u64,
		.slope = view_cell(v, i, "slope_bytes_per_step").f64,
		.absolute = view_cell(v, i, "absolute").u64 == 1,
	};

	peaks = view_below(&all, r.cells, r.keys);
	if (peaks.count) {
		r.peak_ns = view_cell(&peaks, 0, "at_ns").u64;
		r.at_peak_reserved_bytes = told(&peaks, 0, "reserved_bytes");
	}
	return r;
}

enum status memory_rows_take(const struct page *p, struct memory_rows *all, struct error *err)
{
	struct view v = page_view(p, "memory");
	size_t i;

	*all = (struct memory_rows){ .count = v.count };
	all->rows = calloc(v.count + 1, sizeof(*all->rows));
	if (!all->rows)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < v.count; i++)
		all->rows[i] = row_of(p, &v, i);
	if (v.count)
		qsort(all->rows, v.count, sizeof(*all->rows), compare_rows);
	return ST_OK;
}

void memory_rows_release(struct memory_rows *all)
{
	free(all->rows);
}

const char *memory_subject(const struct memory_row *r)
{
	bool host = r->device == NO_U64;

	if (!strcmp(r->what, "in_use"))
		return host ? "Resident memory of the process." : "In use on the GPU, sampled.";
	if (!strcmp(r->what, "pinned"))
		return "Pinned memory of the host.";
	if (!r->absolute)
		return host ? "Allocated on the host since the window opened."
			    : "Allocated on the GPU since the window opened; what was there before is "
			      "not in the file.";
	return host ? "Allocated on the host." : "Allocated on the GPU.";
}

/* Appends; what does not fit is left out. */
__attribute__((format(printf, 2, 3)))
static void add(char out[MEMORY_WORDS], const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list args;

	va_start(args, fmt);
	vsnprintf(out + len, MEMORY_WORDS - len, fmt, args);
	va_end(args);
}

const char *memory_sentence(const struct memory_row *r, uint64_t steps, char out[MEMORY_WORDS])
{
	char text[NUMBER_TEXT];

	out[0] = '\0';
	if (r->at_peak_reserved_bytes > r->peak_bytes)
		add(out, "%.0f %% of what the allocator holds is unused at the peak. ",
		    100 - 100.0 * (double)r->peak_bytes / (double)r->at_peak_reserved_bytes);
	if (r->total_bytes)
		add(out, "The GPU has %s. ", bytes_text(text, (double)r->total_bytes));
	if (r->spikes)
		add(out, "%llu steps take over 1.2 times the median step's. ",
		    (unsigned long long)r->spikes);
	if (r->leak == NO_U64)
		add(out, "Leak: cannot tell from %llu step%s, needs 20.", (unsigned long long)steps,
		    steps == 1 ? "" : "s");
	else if (r->leak)
		add(out, "It grows by %s each step: a leak.", bytes_text(text, r->slope));
	else
		add(out, "No leak: what a step leaves does not grow.");
	return out;
}

double memory_points(const char *points)
{
	double count = 0;

	for (; *points; points++)
		count += *points == ' ';
	return count;
}
