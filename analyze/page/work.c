/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/work.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *pa, const void *pb)
{
	const struct kernel_row *a = pa, *b = pb;

	return strcmp(a->name, b->name);
}

static int compare_time(const void *pa, const void *pb)
{
	const struct kernel_row *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Rows of one name become one. */
static void join(struct kernel_rows *all)
{
	size_t i, to = 0;

	qsort(all->rows, all->count, sizeof(*all->rows), compare_names);
	for (i = 0; i < all->count; i++) {
		struct kernel_row *last = to ? &all->rows[to - 1] : NULL, row = all->rows[i];

		if (!last || strcmp(last->name, row.name) != 0) {
			all->rows[to++] = row;
			continue;
		}
		last->calls += row.calls;
		last->total_ns += row.total_ns;
		last->max_ns = row.max_ns > last->max_ns ? row.max_ns : last->max_ns;
		last->median_ns = NO_U64;
	}
	all->count = to;
}

enum status kernel_rows_take(const struct page *p, struct kernel_rows *all, struct error *err)
{
	struct view v = page_view(p, "kernels");
	size_t i;

	*all = (struct kernel_rows){ .count = v.count };
	all->rows = calloc(v.count + 1, sizeof(*all->rows));
	if (!all->rows)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < v.count; i++)
		all->rows[i] = (struct kernel_row){
			.name = view_cell(&v, i, "name").text,
			.class = view_text(&v, i, "class"),
			.calls = view_cell(&v, i, "count").u64,
			.total_ns = view_cell(&v, i, "total_ns").u64,
			.max_ns = view_cell(&v, i, "max_ns").u64,
			.median_ns = view_cell(&v, i, "median_ns").u64,
		};
	join(all);
	qsort(all->rows, all->count, sizeof(*all->rows), compare_time);
	return ST_OK;
}

void kernel_rows_release(struct kernel_rows *all)
{
	free(all->rows);
}

struct kernel_sums kernel_sums_of(const struct kernel_rows *all, size_t from)
{
	struct kernel_sums sums = { 0, 0 };

	for (; from < all->count; from++) {
		sums.calls += all->rows[from].calls;
		sums.total_ns += all->rows[from].total_ns;
	}
	return sums;
}

void kernel_name(const struct kernel_row *rows, size_t i, unsigned width, char out[KERNEL_NAME])
{
	char other[KERNEL_NAME];
	unsigned alike = 1;
	size_t k, len;

	name_short(rows[i].name, width, out, KERNEL_NAME);
	for (k = 0; k < i; k++) {
		name_short(rows[k].name, width, other, sizeof(other));
		alike += !strcmp(out, other);
	}
	if (alike == 1)
		return;
	len = name_short(rows[i].name, width - 3, out, KERNEL_NAME);
	snprintf(out + len, KERNEL_NAME - len, " #%u", alike);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

size_t copy_rows_take(const struct view *v, struct copy_row *rows, size_t cap)
{
	size_t count = 0, i, k;

	for (i = 0; i < v->count; i++) {
		struct copy_row row = { .direction = view_cell(v, i, "direction").text,
					.from = view_cell(v, i, "from").text,
					.to = view_cell(v, i, "to").text };

		for (k = 0; k < count; k++)
			if (same_text(rows[k].direction, row.direction) &&
			    same_text(rows[k].from, row.from) && same_text(rows[k].to, row.to))
				break;
		if (k == cap)
			k = cap - 1; /* more directions than there are: the last row has them */
		else if (k == count)
			rows[count++] = row;
		rows[k].count += view_cell(v, i, "count").u64;
		rows[k].bytes += view_cell(v, i, "bytes").u64;
		rows[k].total_ns += view_cell(v, i, "total_ns").u64;
		rows[k].exposed_ns += view_cell(v, i, "exposed_ns").u64;
	}
	return count;
}

const char *copy_row_label(const struct copy_row *r, char out[COPY_LABEL])
{
	const char *memory = NULL;
	char word[16];
	size_t i;

	if (same_text(r->direction, "DtoD")) {
		snprintf(out, COPY_LABEL, "DtoD on the GPU");
		return out;
	}
	if (r->from && r->to)
		memory = strcmp(r->from, "Device") != 0 ? r->from : r->to;
	if (!memory || same_text(memory, "Device")) {
		snprintf(out, COPY_LABEL, "%s", r->direction ? r->direction : "?");
		return out;
	}
	for (i = 0; memory[i] && i + 1 < sizeof(word); i++)
		word[i] = (char)tolower((unsigned char)memory[i]);
	word[i] = '\0';
	snprintf(out, COPY_LABEL, "%.16s %.12s", r->direction, word);
	return out;
}
