/* SPDX-License-Identifier: Apache-2.0 */
/* The report `health`: the state of GPUs while they worked, from the counters of --kinds health. */
#include "analyze/report/health/health.h"

#include "schemas/base/vec.h"

#include <math.h>

static RANK_TABLE_TYPE(health, &table_ranks, HEALTH_COLUMNS);

/* Counters by name (collector/probe/health/gpu.h). */
/* clang-format off */
#define FIGURES(X)                                                                                 \
	X(sm_clock) X(gpu_utilization) X(clock_limits) X(temperature) X(power) X(pcie_width)       \
	X(pcie_generation) X(xid_errors) X(ecc_uncorrected) X(sm_clock_base) X(sm_clock_max)       \
	X(power_limit) X(pcie_width_max) X(pcie_generation_max)
/* clang-format on */
enum figure {
#define X(name) AT_##name,
	FIGURES(X)
#undef X
		FIGURE_COUNT,
};
static const char *const figures[] = {
#define X(name) #name,
	FIGURES(X)
#undef X
};

/* One GPU of a process, and its counters at the instant that is being read. */
struct place {
	uint32_t process, device;
	uint64_t at_ns;
	double now[FIGURE_COUNT];
	bool has[FIGURE_COUNT];
};
struct health {
	struct place *places;
	size_t count, cap;
	/* by track: enum figure + 1; 255: another counter; 0: not cached */
	uint8_t *figure_of_track;
	size_t track_cap;
};
enum { OTHER = 255, BUSY_PERCENT = 50 };

static enum status find_place(struct health *h, const struct track *k, struct place **out,
			      struct error *err)
{
	for (size_t i = h->count; i-- > 0;) {
		*out = &h->places[i];
		if ((*out)->process == k->process && (*out)->device == k->device)
			return ST_OK;
	}
	TRY(vec_reserve(&h->places, &h->cap, h->count + 1, err));
	*out = &h->places[h->count++];
	**out = (struct place){ .process = k->process, .device = k->device };
	return ST_OK;
}

static uint64_t whole(const struct place *p, enum figure f)
{
	return p->has[f] && p->now[f] > 0 && p->now[f] < 1e15 ? (uint64_t)(p->now[f] + 0.5) : 0;
}

/* Adds the counters of a complete instant. */
static enum status take(struct accumulator *f, struct place *p, struct error *err)
{
	/* NVML's clocks event reasons */
	enum { POWER = 0x4 | 0x80, HEAT = 0x20 | 0x40, HARDWARE = 0x8 };
	uint64_t limits = whole(p, AT_clock_limits);
	union value keys[RANK_KEYS + 1], *row;

	keys[HEALTH_DEVICE].u64 = p->device;
	TRY(acc_row(f, "health", p->process, keys, &row, err));
	cell_raise(&row[HEALTH_BASE], whole(p, AT_sm_clock_base));
	cell_raise(&row[HEALTH_MOST], whole(p, AT_sm_clock_max));
	cell_raise(&row[HEALTH_LIMIT], whole(p, AT_power_limit));
	cell_raise(&row[HEALTH_WIDTH_MAX], whole(p, AT_pcie_width_max));
	cell_raise(&row[HEALTH_GENERATION_MAX], whole(p, AT_pcie_generation_max));
	cell_raise(&row[HEALTH_XID], whole(p, AT_xid_errors));
	cell_raise(&row[HEALTH_ECC], whole(p, AT_ecc_uncorrected));
	if (!p->has[AT_sm_clock])
		return ST_OK;
	row[HEALTH_SAMPLES].u64++;
	if (p->has[AT_gpu_utilization] && p->now[AT_gpu_utilization] < BUSY_PERCENT)
		return ST_OK; /* an idle GPU lowers its clock and its link */
	row[HEALTH_BUSY].u64++;
	row[HEALTH_CLOCK_SUM].u64 += whole(p, AT_sm_clock);
	row[HEALTH_POWER].u64 += (limits & POWER) != 0;
	row[HEALTH_HEAT].u64 += (limits & HEAT) != 0;
	row[HEALTH_HARDWARE].u64 += (limits & HARDWARE) != 0;
	cell_raise(&row[HEALTH_HOTTEST], whole(p, AT_temperature));
	cell_raise(&row[HEALTH_DRAWN], whole(p, AT_power));
	cell_raise(&row[HEALTH_WIDTH], whole(p, AT_pcie_width));
	cell_raise(&row[HEALTH_GENERATION], whole(p, AT_pcie_generation));
	return ST_OK;
}

static enum status figure_of(struct accumulator *f, uint32_t track, uint8_t *figure,
			     struct error *err)
{
	struct health *h = f->state;

	TRY(vec_reserve(&h->figure_of_track, &h->track_cap, track + (size_t)1, err));
	uint8_t *known = &h->figure_of_track[track];
	if (!*known) {
		const struct track *k = trace_get_track(f->trace, track);
		const char *name = trace_text(f->trace, k->name, NULL);

		*known = OTHER;
		for (uint8_t i = 0; i < FIGURE_COUNT && k->device != NO_ID; i++)
			if (k->type == TRACK_COUNTER && !strcmp(name, figures[i]))
				*known = (uint8_t)(i + 1);
	}
	*figure = *known;
	return ST_OK;
}

static enum status health_put(struct accumulator *f, const struct sorted_batch *w,
			      struct error *err)
{
	for (size_t i = 0; i < w->by[BATCH_MEMORY].count; i++) {
		const struct event *e = w->by[BATCH_MEMORY].items[i];
		const struct track *k = trace_get_track(f->trace, e->track);
		struct place *p;
		uint8_t figure;

		if (e->kind != KIND_COUNTER || !acc_wants(f, k->process))
			continue;
		TRY(figure_of(f, e->track, &figure, err));
		if (figure == OTHER)
			continue;
		TRY(find_place(f->state, k, &p, err));
		if (p->at_ns && p->at_ns != e->begin_ns) {
			TRY(take(f, p, err));
			memset(p->has, 0, sizeof(p->has));
		}
		p->at_ns = e->begin_ns;
		p->now[figure - 1] = e->value;
		p->has[figure - 1] = true;
	}
	return ST_OK;
}

static enum status health_end(struct accumulator *f, struct error *err)
{
	struct health *h = f->state;

	for (size_t i = 0; i < h->count; i++)
		if (h->places[i].at_ns)
			TRY(take(f, &h->places[i], err));
	return ST_OK;
}

static enum status health_finish(struct tables *all, struct error *err)
{
	struct table *t = tables_find(all, "health");
	union value *row;

	for (size_t i = 0; (row = table_at(t, i)); i++)
		row[HEALTH_CLOCK].f64 = row[HEALTH_BUSY].u64 ? (double)row[HEALTH_CLOCK_SUM].u64 /
								       (double)row[HEALTH_BUSY].u64
							     : NAN;
	return ST_OK;
}

const struct report_type report_health = {
	.name = "health",
	.help = "clocks, limits and links of the GPUs under load (--kinds health)",
	.tables = TABLES(&table_health),
	.state_size = sizeof(struct health),
	.owned = OWNED(offsetof(struct health, places), offsetof(struct health, figure_of_track)),
	.put = health_put,
	.end = health_end,
	.finish = health_finish,
};
