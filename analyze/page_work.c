/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page_work.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct kernel_sums kernel_sums_of(const struct view *v, size_t from)
{
	struct kernel_sums sums = { 0, 0 };

	for (; from < v->count; from++) {
		sums.calls += view_cell(v, from, "count").u64;
		sums.total_ns += view_cell(v, from, "total_ns").u64;
	}
	return sums;
}

void kernel_name(const struct view *v, size_t i, unsigned width, char out[KERNEL_NAME])
{
	char other[KERNEL_NAME];
	unsigned alike = 1;
	size_t k, len;

	name_short(view_cell(v, i, "name").text, width, out, KERNEL_NAME);
	for (k = 0; k < i; k++) {
		name_short(view_cell(v, k, "name").text, width, other, sizeof(other));
		alike += !strcmp(out, other);
	}
	if (alike == 1)
		return;
	len = name_short(view_cell(v, i, "name").text, width - 3, out, KERNEL_NAME);
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
