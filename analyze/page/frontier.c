/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/ranks.h"

#include <stdio.h>
#include <string.h>

static enum token token_of_kind(const char *phase, const char *kind)
{
	if (!strcmp(kind, "exposed_comm"))
		return TOKEN_COMM;
	if (!strcmp(kind, "compute"))
		return TOKEN_COMPUTE;
	if (!strcmp(kind, "exposed_copy") || !strcmp(kind, "data"))
		return TOKEN_DATA;
	return strncmp(kind, "host:", 5) ? TOKEN_OTHER : token_of_phase(phase);
}

static struct frontier_row row_of(const struct view *v, size_t i)
{
	uint64_t rank = view_cell(v, i, "rank").u64;
	const char *phase = view_cell(v, i, "phase").text, *kind = view_cell(v, i, "kind").text;
	struct frontier_row row = {
		.who = "together", .phase = phase ? phase : "", .kind = kind ? kind : "",
		.ns = (double)view_cell(v, i, "ns_per_step").u64,
		.mean_ns = (double)view_cell(v, i, "mean_ns_per_step").u64,
	};

	row.token = token_of_kind(row.phase, row.kind);
	if (rank != NO_U64)
		snprintf(row.who, sizeof(row.who), "rank %llu", (unsigned long long)rank);
	else if (view_cell(v, i, "pid").u64 != NO_U64)
		snprintf(row.who, sizeof(row.who), "pid %llu",
			 (unsigned long long)view_cell(v, i, "pid").u64);
	return row;
}

void frontier_rows_take(const struct page *p, struct frontier_rows *all)
{
	struct view v = page_view(p, "frontier"), total = page_view(p, "frontier_total");
	double parts[FRONTIER_LINES + 1];
	int tenths[FRONTIER_LINES + 1];
	size_t i, at;

	*all = (struct frontier_rows){ .count = 0 };
	if (!total.count || !v.count)
		return;
	all->steps = view_cell(&total, 0, "steps").u64;
	all->left_out = view_cell(&total, 0, "left_out").u64;
	all->step_ns = (double)view_cell(&total, 0, "ns_per_step").u64;
	all->named = percent_of(view_cell(&total, 0, "named_ns").u64,
				view_cell(&total, 0, "ns").u64);
	for (i = 0; i < v.count; i++) {
		struct frontier_row row = row_of(&v, i);

		at = v.count > FRONTIER_LINES + 1 && i >= FRONTIER_LINES ? FRONTIER_LINES : i;
		if (at < i || at == all->count - 1) {
			all->rows[at].ns += row.ns;
			all->rows[at].mean_ns += row.mean_ns;
			continue;
		}
		all->rows[all->count++] = row;
		if (at == FRONTIER_LINES && v.count > FRONTIER_LINES + 1) {
			all->more = v.count - FRONTIER_LINES;
			snprintf(all->rows[at].who, NUMBER_TEXT, "%zu more", all->more);
			all->rows[at].phase = all->rows[at].kind = "";
			all->rows[at].token = TOKEN_DIM;
		}
	}
	for (i = 0; i < all->count; i++)
		parts[i] = all->rows[i].ns;
	percents(parts, all->count, all->step_ns, all->count - 1, tenths);
	for (i = 0; i < all->count; i++)
		all->rows[i].tenths = tenths[i];
}

const char *frontier_text(const struct frontier_rows *all, char out[FRONTIER_TEXT])
{
	struct time_unit unit = time_unit_of(all->step_ns, 2);
	char ms[NUMBER_TEXT], steps[NUMBER_TEXT];

	snprintf(out, FRONTIER_TEXT, "A step of the job is %s %s, over %s steps: from collective "
		 "to collective the time of the rank that comes last. One is named for %.0f %% of "
		 "it.%s",
		 time_text(ms, all->step_ns, &unit), unit.name, count_text(steps, all->steps),
		 all->named, all->left_out ? " Not all collectives were kept." : "");
	return out;
}

char *frontier_over_text(char out[NUMBER_TEXT], double over_ns, const struct time_unit *unit)
{
	char number[NUMBER_TEXT];
	bool is_some;

	time_text(number, over_ns < 0 ? -over_ns : over_ns, unit);
	is_some = *number >= '0' && *number <= '9';
	snprintf(out, NUMBER_TEXT, "%s%.40s", !is_some ? "" : over_ns < 0 ? "-" : "+", number);
	return out;
}
