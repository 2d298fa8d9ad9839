/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/detail/parts.h"

enum {
	LINK_BYTES_PER_NS = 32, /* of a fast link to the host: a large copy counts as long */
	CELL_OCTAVES = 4,
	STRETCH_OCTAVES = 2, /* of cells: a stretch of time has one level */
};

static unsigned octave(uint64_t v)
{
	return v ? 63 - (unsigned)__builtin_clzll(v) : 0;
}

unsigned detail_class(uint64_t ns)
{
	unsigned o = octave(ns);

	return o < 2 ? (unsigned)ns : 4 * (o - 1) + (unsigned)((ns >> (o - 2)) & 3);
}

uint64_t detail_floor_ns(unsigned level)
{
	return level < 4 ? level : (uint64_t)(4 + level % 4) << (level / 4 - 1);
}

uint64_t detail_length(const struct event *e)
{
	uint64_t ns = e->end_ns - e->begin_ns;

	if (e->kind == KIND_STEP ||
	    (e->kind == KIND_RANGE && (e->subkind == RANGE_PHASE || e->subkind == RANGE_PROFILER)))
		return UINT64_MAX;
	if (e->kind == KIND_MEMCPY && e->bytes / LINK_BYTES_PER_NS > ns)
		return e->bytes / LINK_BYTES_PER_NS;
	return ns;
}

static unsigned floor_octave(unsigned level)
{
	return level < 4 ? level / 2 : level / 4 + 1;
}

unsigned detail_cell_shift(unsigned level)
{
	unsigned shift = floor_octave(level) + CELL_OCTAVES;

	return shift < 63 ? shift : 63;
}

/* Multiples of the golden ratio spread evenly, however few there are. */
unsigned detail_level_at(unsigned fine, uint64_t ns)
{
	unsigned level = fine / DETAIL_FINE, part = fine % DETAIL_FINE;
	unsigned shift = detail_cell_shift(level + 1) + STRETCH_OCTAVES;
	uint32_t share;

	if (!part)
		return level;
	share = (uint32_t)(ns >> (shift < 63 ? shift : 63)) * 0x9E3779B9u;
	return share / (UINT32_MAX / DETAIL_FINE + 1) < part ? level + 1 : level;
}

unsigned detail_cell_class(uint64_t a_ns, uint64_t b_ns)
{
	unsigned o = octave(a_ns ^ b_ns);

	if (o < CELL_OCTAVES || a_ns == b_ns)
		return 0;
	o -= CELL_OCTAVES; /* levels whose floor_octave() is at most this */
	return o < 2 ? 2 * o + 2 : 4 * o;
}
