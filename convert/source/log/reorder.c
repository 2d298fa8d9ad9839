/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/log/internal.h"

#include <stdlib.h>
#include <string.h>

enum { CORE = 4, RARE = 3 }; /* columns that have their own members in log_rows */

struct log_window {
	struct log_rows rows;
	uint32_t mask, end;
	struct log_words args[]; /* followed by the values of all columns */
};

uint32_t log_window_need(const uint16_t *order, uint32_t count)
{
	uint32_t need = 0, first = 0, end = 0;
	uint64_t *present = calloc(count / 64 + 1, sizeof(*present));

	if (!present)
		return count;
	for (uint32_t i = 0; i < count; i++) {
		if (order[i] >= end)
			end = order[i] + 1u;
		if (end - first > need)
			need = end - first;
		present[order[i] / 64] |= UINT64_C(1) << (order[i] % 64);
		while (first < end && present[first / 64] >> (first % 64) & 1)
			first++;
	}
	free(present);
	return need;
}

/* Returns column `i`: first the core columns, then the rare ones, then the argument values. */
static struct log_words column_of(const struct log_rows *r, unsigned i)
{
	const uint64_t *const core[CORE] = { r->begins, r->lengths, r->descs, r->correlations };
	const struct log_words *const rare[RARE] = { &r->values, &r->flags, &r->orders };

	if (i < CORE)
		return (struct log_words){ core[i], UINT32_MAX };
	return i < CORE + RARE ? *rare[i - CORE] : r->args[i - CORE - RARE];
}

static void column_set(struct log_window *w, unsigned i, struct log_words words)
{
	const uint64_t **const core[CORE] = { &w->rows.begins, &w->rows.lengths, &w->rows.descs,
					      &w->rows.correlations };
	struct log_words *const rare[RARE] = { &w->rows.values, &w->rows.flags, &w->rows.orders };

	if (i < CORE)
		*core[i] = words.at;
	else if (i < CORE + RARE)
		*rare[i - CORE] = words;
	else
		w->args[i - CORE - RARE] = words;
}

static unsigned column_count(const struct log_rows *r)
{
	return CORE + RARE + r->arg_count;
}

struct log_window *log_window_new(const struct log_rows *chunk, uint32_t need)
{
	uint32_t cap = 1, columns = 0;
	struct log_window *w;
	uint64_t *words;

	while (cap < need)
		cap *= 2;
	for (unsigned i = 0; i < column_count(chunk); i++)
		columns += column_of(chunk, i).mask != 0;
	w = malloc(sizeof(*w) + chunk->arg_count * sizeof(*w->args) +
		   (size_t)columns * cap * sizeof(*words));
	if (!w)
		return NULL;
	w->rows = *chunk;
	w->rows.args = w->args;
	w->mask = cap - 1;
	w->end = 0;
	words = (uint64_t *)(w->args + chunk->arg_count);
	for (unsigned i = 0; i < column_count(chunk); i++) {
		struct log_words from = column_of(chunk, i);

		column_set(w, i, from.mask ? (struct log_words){ words, w->mask } : from);
		words += from.mask ? cap : 0;
	}
	log_window_put(w, chunk);
	return w;
}

void log_window_put(struct log_window *w, const struct log_rows *chunk)
{
	uint32_t at = w->end & w->mask, count = chunk->count;
	uint32_t first = count < w->mask + 1 - at ? count : w->mask + 1 - at;

	for (unsigned i = 0; i < column_count(chunk); i++) {
		struct log_words from = column_of(chunk, i);
		uint64_t *to = (uint64_t *)(uintptr_t)column_of(&w->rows, i).at;

		if (!from.mask)
			continue;
		memcpy(to + at, from.at, first * sizeof(*to));
		memcpy(to, from.at + first, (count - first) * sizeof(*to));
	}
	w->end += count;
}

const struct log_rows *log_window_rows(const struct log_window *w)
{
	return &w->rows;
}

uint32_t log_window_mask(const struct log_window *w)
{
	return w->mask;
}

uint32_t log_window_end(const struct log_window *w)
{
	return w->end;
}
