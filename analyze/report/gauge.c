/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/gauge.h"

#include "schemas/base/vec.h"

#include <stdlib.h>

void gauge_release(struct gauge *g)
{
	free(g->steps);
	free(g->live);
	map_release(&g->live_of_address);
	free(g->owners);
	map_release(&g->owner_of);
}

/* ---- steps ------------------------------------------------------------------------------ */

/* Extends the steps. Steps before the first sample stay empty: least > most. */
static enum status steps_carry(struct gauge *g, size_t count, struct error *err)
{
	struct gauge_step carried = { g->level, g->level };

	if (!g->samples)
		carried = (struct gauge_step){ UINT64_MAX, 0 };
	TRY(vec_reserve(&g->steps, &g->step_cap, count, err));
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

static void curve_put(struct gauge *g, uint64_t bytes, uint64_t at_ns)
{
	uint64_t off_ns = at_ns > g->first_ns ? at_ns - g->first_ns : 0;

	if (!g->curve_ns)
		return;
	while (off_ns / g->curve_ns >= GAUGE_CURVE) {
		/* The curve is full: join pairs of intervals. */
		size_t count = (g->curve_count + 1) / 2;
		for (size_t i = 0; i < count; i++) {
			uint64_t a = g->curve[2 * i];
			uint64_t b = 2 * i + 1 < g->curve_count ? g->curve[2 * i + 1] : 0;

			g->curve[i] = a > b ? a : b;
		}
		g->curve_count = count;
		g->curve_ns *= 2;
	}
	size_t at = (size_t)(off_ns / g->curve_ns);
	while (g->curve_count <= at)
		g->curve[g->curve_count++] = g->level;
	if (bytes > g->curve[at])
		g->curve[at] = bytes;
}

/* ---- owners ----------------------------------------------------------------------------- */

static enum status owner_find(struct gauge *g, uint32_t path, uint32_t name, size_t *index,
			      struct error *err)
{
	bool is_new;
	uint64_t *at = map_put(&g->owner_of, (uint64_t)path << 32 | name, &is_new);

	if (!at)
		return fail_memory(err);
	if (is_new) {
		*at = g->owner_count;
		TRY(vec_reserve(&g->owners, &g->owner_cap, g->owner_count + 1, err));
		g->owners[g->owner_count++] = (struct gauge_owner){ .path = path, .name = name };
	}
	*index = *at;
	return ST_OK;
}

static void owner_add(struct gauge *g, size_t index, uint64_t bytes)
{
	struct gauge_owner *o = &g->owners[index];

	if (o->peaks != g->peaks)
		o->peak_bytes = o->bytes;
	if (o->row != g->row)
		o->begin_bytes = o->bytes;
	if (!o->has_first && g->row >= 2)
		o->first_bytes = o->bytes;
	o->peaks = g->peaks;
	o->row = g->row;
	o->has_first |= g->row >= 2;
	o->bytes += bytes;
}

struct gauge_owned gauge_owned(const struct gauge *g, const struct gauge_owner *o)
{
	return (struct gauge_owned){
		.at_peak = o->peaks == g->peaks ? o->peak_bytes : o->bytes,
		.first = o->has_first ? o->first_bytes : o->bytes,
		.last = o->row == g->step_count ? o->begin_bytes : o->bytes,
	};
}

static void live_give(struct gauge *g, uint64_t address)
{
	uint64_t *at = map_find(&g->live_of_address, address);

	if (!at)
		return;
	struct gauge_live *live = &g->live[*at];
	owner_add(g, live->owner, 0 - live->bytes);
	live->next_free = g->free_live; /* index + 1; 0: none */
	g->free_live = (uint32_t)*at + 1;
	map_remove(&g->live_of_address, address);
}

enum status gauge_take(struct gauge *g, uint64_t address, uint64_t bytes, uint32_t path,
		       uint32_t name, struct error *err)
{
	size_t index = 0;

	if (!bytes)
		return ST_OK;
	live_give(g, address); /* its free was not recorded */
	if (g->live_of_address.count >= GAUGE_LIVE)
		return ST_OK;
	TRY(owner_find(g, path, name, &index, err));
	uint64_t *at = map_put(&g->live_of_address, address, NULL);
	if (!at)
		return fail_memory(err);
	uint32_t place = g->free_live;
	if (place) {
		g->free_live = g->live[place - 1].next_free;
	} else {
		TRY(vec_reserve(&g->live, &g->live_cap, g->live_count + 1, err));
		place = (uint32_t)++g->live_count;
	}
	*at = place - 1;
	g->live[*at] = (struct gauge_live){ .bytes = bytes, .owner = (uint32_t)index };
	owner_add(g, index, bytes);
	return ST_OK;
}
/* The owners of a peak are those at the first fall after it. */
static void keep_owners(struct gauge *g)
{
	g->peaks += g->rising;
	g->rising = false;
}

void gauge_give(struct gauge *g, uint64_t address)
{
	keep_owners(g);
	live_give(g, address);
}

/* ---- levels ----------------------------------------------------------------------------- */

void gauge_enter(struct gauge *g, const struct gauge_at *at)
{
	g->row = at->has_step ? at->step_row + 1 : 0;
}

enum status gauge_put(struct gauge *g, uint64_t bytes, const struct gauge_at *at, struct error *err)
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
		.bytes = bytes,
		.at_ns = at->at_ns,
		.reserved_bytes = g->reserved_bytes,
		.step_row = at->step_row,
		.has_step = at->has_step,
		.phase = at->phase,
	};
	return ST_OK;
}

enum status gauge_end(struct gauge *g, size_t step_count, struct error *err)
{
	keep_owners(g);
	return steps_carry(g, step_count, err);
}
