/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - descriptors of the log by the bytes of a record that its layout masks.
 *
 * Records of one descriptor differ only in what varies (times, correlation, values), so the masked
 * words of a record are the key of its descriptor.  State is static; writer thread only.
 */
#ifndef COLLECTOR_PROBE_CUPTI_CACHE_H
#define COLLECTOR_PROBE_CUPTI_CACHE_H

#include "collector/probe/cupti/layout.h"
#include "collector/probe/cupti/rows.h"

enum {
	CACHE_MAX = 8192,
	CACHE_SLOTS = 4 * CACHE_MAX,
	NO_ROW = 0, /* rows are numbered from 1; row 0 matches no record */
};

/* Descriptors of rows that are left out on purpose; those of the log are small numbers from 1. */
#define DESC_UNWANTED UINT32_MAX
#define DESC_NOISE    (UINT32_MAX - 1)

struct cache_row {
	const struct cupti_layout *p;
	uint32_t desc, track;
	_Alignas(16) uint64_t words[LAYOUT_WORDS]; /* the record's, masked */
};
struct cupti_cache {
	struct cache_row *rows;
	uint32_t count;
	uint32_t generation;         /* changes when rows are forgotten */
	uint32_t slots[CACHE_SLOTS]; /* row numbers by hash; 0: free */
	uint64_t log;                /* number of the log that the descriptors belong to */
	struct cupti_row_counts counts;
};
extern struct cupti_cache cupti_cache __attribute__((visibility("hidden")));

/* False: no log, or no memory.  Rows of another log are forgotten. */
bool cupti_cache_ready(struct writer *w);
void cupti_cache_clear(void);
/* The number of the record's row, added if it is new; NO_ROW: the log has reached a ceiling. */
uint32_t cupti_cache_find(struct writer *w, const struct cupti_layout *p, const uint8_t *record);

/* Four words at a time; records are aligned to eight bytes only. */
typedef uint64_t four_words __attribute__((vector_size(32), aligned(8), may_alias));

static inline __attribute__((always_inline)) bool
row_matches(const struct cache_row *row, const struct cupti_layout *p, const uint8_t *record)
{
	const four_words *r = (const four_words *)(const void *)record;
	const four_words *mask = (const four_words *)(const void *)p->mask;
	const four_words *words = (const four_words *)(const void *)row->words;
	four_words differs = { 0 };
	unsigned fours = p->words / 4u;

	if (row->p != p)
		return false;
#pragma GCC unroll 4
	for (unsigned i = 0; i < fours; i++)
		differs |= (r[i] & mask[i]) ^ words[i];
	return (differs[0] | differs[1] | differs[2] | differs[3]) == 0;
}

#endif
