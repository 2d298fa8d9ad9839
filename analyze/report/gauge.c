/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/gauge.h"

#include "schemas/hash.h"

#include <stdlib.h>
#include <string.h>

static enum status no_memory(struct error *err)
{
	return fail(err, ST_MEMORY, NOWHERE, "no memory for the memory of a report");
}

void gauge_release(struct gauge *g)
{
	free(g->steps);
	free(g->live);
	free(g->owners);
	free(g->owner_of_name);
	free(g->at_peak);
}

/* ---- steps ------------------------------------------------------------------------------ */

static enum status steps_reach(struct gauge *g, size_t count, struct error *err)
{
	size_t cap = g->step_cap ? g->step_cap : 64;
	struct gauge_step *wider;

	if (count <= g->step_cap)
		return ST_OK;
	while (cap < count)
		cap *= 2;
	wider = realloc(g->steps, cap * sizeof(*wider));
	if (!wider)
		return no_memory(err);
	g->steps = wider;
	g->step_cap = cap;
	return ST_OK;
}

/* Steps before the first sample stay empty: min over max. */
static enum status steps_carry(struct gauge *g, size_t count, struct error *err)
{
	struct gauge_step carried = { g->level, g->level };

	if (!g->samples)
		carried = (struct gauge_step){ UINT64_MAX, 0 };
	TRY(steps_reach(g, count, err));
	while (g->step_count < count)
		g->steps[g->step_count++] = carried;
	return ST_OK;
}

static void step_put(struct gauge_step *s, uint64_t bytes)
{
	s->min_bytes = bytes < s->min_bytes ? bytes : s->min_bytes;
	s->max_bytes = bytes > s->max_bytes ? bytes : s->max_bytes;
}

/* ---- curve ------------------------------------------------------------------------------ */

/* Two stretches become one. */
static void curve_halve(struct gauge *g)
{
	size_t i, count = (g->curve_count + 1) / 2;

	for (i = 0; i < count; i++) {
		uint64_t a = g->curve[2 * i];
		uint64_t b = 2 * i + 1 < g->curve_count ? g->curve[2 * i + 1] : 0;

		g->curve[i] = a > b ? a : b;
	}
	g->curve_count = count;
	g->curve_ns *= 2;
}

static void curve_put(struct gauge *g, uint64_t bytes, uint64_t at_ns)
{
	uint64_t off_ns = at_ns > g->first_ns ? at_ns - g->first_ns : 0;
	size_t at;

	if (!g->curve_ns)
		return;
	while (off_ns / g->curve_ns >= GAUGE_CURVE)
		curve_halve(g);
	at = (size_t)(off_ns / g->curve_ns);
	while (g->curve_count <= at)
		g->curve[g->curve_count++] = g->level;
	if (bytes > g->curve[at])
		g->curve[at] = bytes;
}

/* ---- owners ----------------------------------------------------------------------------- */

static enum status names_reach(struct gauge *g, uint32_t name, struct error *err)
{
	size_t cap = g->name_cap ? g->name_cap : 256;
	uint32_t *wider;

	if (name < g->name_cap)
		return ST_OK;
	while (cap <= name)
		cap *= 2;
	wider = realloc(g->owner_of_name, cap * sizeof(*wider));
	if (!wider)
		return no_memory(err);
	memset(wider + g->name_cap, 0, (cap - g->name_cap) * sizeof(*wider));
	g->owner_of_name = wider;
	g->name_cap = cap;
	return ST_OK;
}

static enum status owners_reach(struct gauge *g, struct error *err)
{
	size_t cap = g->owner_cap ? g->owner_cap * 2 : 64;
	struct gauge_owner *wider;

	if (g->owner_count < g->owner_cap)
		return ST_OK;
	wider = realloc(g->owners, cap * sizeof(*wider));
	if (!wider)
		return no_memory(err);
	g->owners = wider;
	wider = realloc(g->at_peak, cap * sizeof(*wider));
	if (!wider)
		return no_memory(err);
	g->at_peak = wider;
	g->owner_cap = cap;
	return ST_OK;
}

static enum status owner_find(struct gauge *g, uint32_t name, uint32_t *index, struct error *err)
{
	*index = 0;
	TRY(names_reach(g, name, err));
	if (!g->owner_of_name[name]) {
		TRY(owners_reach(g, err));
		g->owners[g->owner_count++] = (struct gauge_owner){ .name = name };
		g->owner_of_name[name] = (uint32_t)g->owner_count;
	}
	*index = g->owner_of_name[name] - 1;
	return ST_OK;
}

static struct gauge_live *live_find(struct gauge *g, uint64_t address)
{
	size_t mask = g->live_cap - 1, at = (size_t)hash_word(0, address) & mask;

	while (g->live[at].bytes && g->live[at].address != address)
		at = (at + 1) & mask;
	return &g->live[at];
}

static enum status live_grow(struct gauge *g, struct error *err)
{
	size_t cap = g->live_cap ? g->live_cap * 2 : 1024, old = g->live_cap, i;
	struct gauge_live *before = g->live;

	if (g->live_count * 2 < g->live_cap || g->live_cap == (size_t)GAUGE_LIVE * 2)
		return ST_OK;
	g->live = calloc(cap, sizeof(*g->live));
	if (!g->live) {
		g->live = before;
		return no_memory(err);
	}
	g->live_cap = cap;
	for (i = 0; i < old; i++)
		if (before[i].bytes)
			*live_find(g, before[i].address) = before[i];
	free(before);
	return ST_OK;
}

/* What stood behind it and could not be found without it moves up. */
static void live_remove(struct gauge *g, struct gauge_live *place)
{
	size_t mask = g->live_cap - 1, hole = (size_t)(place - g->live), at = hole, home;

	g->live_count--;
	for (;;) {
		g->live[hole].bytes = 0;
		do {
			at = (at + 1) & mask;
			if (!g->live[at].bytes)
				return;
			home = (size_t)hash_word(0, g->live[at].address) & mask;
		} while (((at - home) & mask) < ((at - hole) & mask));
		g->live[hole] = g->live[at];
		hole = at;
	}
}

static void live_give(struct gauge *g, uint64_t address)
{
	struct gauge_live *place = g->live_cap ? live_find(g, address) : NULL;

	if (!place || !place->bytes)
		return;
	g->owners[place->owner].bytes -= place->bytes;
	live_remove(g, place);
}

enum status gauge_take(struct gauge *g, uint64_t address, uint64_t bytes, uint32_t owner,
		       struct error *err)
{
	struct gauge_live *place;
	uint32_t index;

	if (!bytes)
		return ST_OK;
	live_give(g, address); /* its end was not seen */
	TRY(live_grow(g, err));
	if (g->live_count >= GAUGE_LIVE)
		return ST_OK;
	TRY(owner_find(g, owner, &index, err));
	place = live_find(g, address);
	*place = (struct gauge_live){ address, bytes, index };
	g->live_count++;
	g->owners[index].bytes += bytes;
	return ST_OK;
}

/* The owners of a peak are those at the first fall after it. */
static void keep_owners(struct gauge *g)
{
	if (!g->rising)
		return;
	g->rising = false;
	g->at_peak_count = g->owner_count;
	if (g->owner_count)
		memcpy(g->at_peak, g->owners, g->owner_count * sizeof(*g->owners));
}

void gauge_give(struct gauge *g, uint64_t address)
{
	keep_owners(g);
	live_give(g, address);
}

/* ---- levels ----------------------------------------------------------------------------- */

enum status gauge_put(struct gauge *g, uint64_t bytes, const struct gauge_at *at,
		      struct error *err)
{
	if (!g->samples) {
		g->first_ns = at->at_ns;
		g->level = bytes;
		g->all = (struct gauge_step){ bytes, bytes };
	}
	step_put(&g->all, bytes);
	if (at->has_step) {
		TRY(steps_carry(g, at->step_row + 1, err));
		step_put(&g->steps[at->step_row], bytes);
	}
	curve_put(g, bytes, at->at_ns);
	g->samples++;
	if (g->reserved_bytes > g->most_reserved_bytes)
		g->most_reserved_bytes = g->reserved_bytes;
	if (bytes < g->level)
		keep_owners(g);
	g->level = bytes;
	if (g->samples > 1 && bytes <= g->peak.bytes)
		return ST_OK;
	g->rising = true;
	g->peak = (struct gauge_peak){
		.bytes = bytes, .at_ns = at->at_ns, .reserved_bytes = g->reserved_bytes,
		.step_row = at->step_row, .has_step = at->has_step, .phase = at->phase,
	};
	return ST_OK;
}

enum status gauge_end(struct gauge *g, size_t step_count, struct error *err)
{
	keep_owners(g);
	return steps_carry(g, step_count, err);
}
