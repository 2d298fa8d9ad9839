/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/log/window.h"

#include <stdlib.h>
#include <string.h>

enum { CORE = 4, RARE = 3 }; /* columns of log_rows that stand by themselves */

struct log_window {
	struct log_rows rows;
	uint32_t mask, end;
	struct log_words vary[]; /* behind them the words */
};

uint32_t log_window_need(const uint16_t *order, uint32_t count)
{
	uint32_t need = 0, first = 0, end = 0;
	uint64_t *seen = calloc(count / 64 + 1, sizeof(*seen));

	if (!seen)
		return count;
	for (uint32_t i = 0; i < count; i++) {
		if (order[i] >= end)
			end = order[i] + 1u;
		if (end - first > need)
			need = end - first;
		seen[order[i] / 64] |= UINT64_C(1) << (order[i] % 64);
		while (first < end && seen[first / 64] >> (first % 64) & 1)
			first++;
	}
	free(seen);
	return need;
}

/* Column `i` of rows: the core, what is rare, what varies. */
static struct log_words column_of(const struct log_rows *r, unsigned i)
{
	const uint64_t *const core[CORE] = {r->begins, r->lengths, r->sites, r->joins};
	const struct log_words *const rare[RARE] = {&r->amounts, &r->flags, &r->orders};

	if (i < CORE)
		return (struct log_words){core[i], UINT32_MAX};
	return i < CORE + RARE ? *rare[i - CORE] : r->vary[i - CORE - RARE];
}

static void column_set(struct log_window *w, unsigned i, struct log_words words)
{
	const uint64_t **const core[CORE] = {&w->rows.begins, &w->rows.lengths, &w->rows.sites,
					     &w->rows.joins};
	struct log_words *const rare[RARE] = {&w->rows.amounts, &w->rows.flags, &w->rows.orders};

	if (i < CORE)
		*core[i] = words.at;
	else if (i < CORE + RARE)
		*rare[i - CORE] = words;
	else
		w->vary[i - CORE - RARE] = words;
}

static unsigned column_count(const struct log_rows *r)
{
	return CORE + RARE + r->vary_count;
}

struct log_window *log_window_new(const struct log_rows *chunk, uint32_t need)
{
	uint32_t room = 1, columns = 0;
	struct log_window *w;
	uint64_t *words;

	while (room < need)
		room *= 2;
	for (unsigned i = 0; i < column_count(chunk); i++)
		columns += column_of(chunk, i).mask != 0;
	w = malloc(sizeof(*w) + chunk->vary_count * sizeof(*w->vary) +
		   (size_t)columns * room * sizeof(*words));
	if (!w)
		return NULL;
	w->rows = *chunk;
	w->rows.vary = w->vary;
	w->mask = room - 1;
	w->end = 0;
	words = (uint64_t *)(w->vary + chunk->vary_count);
	for (unsigned i = 0; i < column_count(chunk); i++) {
		struct log_words from = column_of(chunk, i);

		column_set(w, i, from.mask ? (struct log_words){words, w->mask} : from);
		words += from.mask ? room : 0;
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
