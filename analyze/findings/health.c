/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about GPUs that are slower than they could be, by the table `health`. */
#include "analyze/findings/rule.h"
#include "analyze/report/health/health.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUSY_LEAST = 5 };   /* samples: fewer say nothing of a run */
#define BELOW_BASE    0.97 /* of the clock that a GPU keeps by default */
#define BELOW_PEERS   0.95 /* of the middle one of a job's GPUs */
#define LIMITED_LEAST 0.2  /* of busy samples */

/* "GPU 3 of rank 1" */
enum { GPU_TEXT = 64 };
static const char *gpu_text(const union value *row, char out[GPU_TEXT])
{
	if (row[0].u64 == NO_U64)
		snprintf(out, GPU_TEXT, "GPU %llu", (unsigned long long)row[HEALTH_DEVICE].u64);
	else
		snprintf(out, GPU_TEXT, "GPU %llu of rank %llu",
			 (unsigned long long)row[HEALTH_DEVICE].u64,
			 (unsigned long long)row[0].u64);
	return out;
}

static double clock_of(const union value *row)
{
	return row[HEALTH_BUSY].u64 >= BUSY_LEAST
		       ? (double)row[HEALTH_CLOCK_SUM].u64 / (double)row[HEALTH_BUSY].u64
		       : NAN;
}

/* Compute that runs at `share` of the clock that it could have; the rest waits for it. */
static bool saves_compute(const struct facts *f, struct finding *out, double share)
{
	return rule_saves(out, f->compute_ns * (1 - share));
}

static bool below_base(const struct facts *f, struct finding *out)
{
	struct table *t = tables_find(f->tables, "health");
	const union value *row, *worst = NULL;
	double least = BELOW_BASE;
	char gpu[GPU_TEXT], a[NUMBER_TEXT], b[NUMBER_TEXT], c[NUMBER_TEXT];

	for (size_t i = 0; (row = table_at(t, i)); i++) {
		double share = clock_of(row) / (double)row[HEALTH_BASE].u64;

		if (!row[HEALTH_BASE].u64 || !(share < least))
			continue;
		least = share;
		worst = row;
	}
	if (!worst)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%s runs at %s MHz under load, below its base clock of %s MHz (maximum %s MHz).",
		 gpu_text(worst, gpu), round_text(a, clock_of(worst)),
		 count_text(b, worst[HEALTH_BASE].u64), count_text(c, worst[HEALTH_MOST].u64));
	rule_brief(out, "%s of %s MHz", a, b);
	return saves_compute(f, out, least);
}

static bool held_down(const struct facts *f, struct finding *out)
{
	static const struct {
		size_t column;
		const char *by, *advice;
	} causes[] = {
		{ HEALTH_HARDWARE, "the board (power brake, voltage)",
		  "check the power supply, the cables and the server's log; replace the GPU if it "
		  "persists" },
		{ HEALTH_HEAT, "heat",
		  "check the fans, the airflow and the room temperature of that host" },
		{ HEALTH_POWER, "the power limit",
		  "check nvidia-smi -q -d POWER and raise the limit if it was lowered; at the "
		  "default limit this is normal for dense work" },
	};
	struct table *t = tables_find(f->tables, "health");
	const union value *row, *worst = NULL;
	double most = LIMITED_LEAST;
	size_t by = 0;
	char gpu[GPU_TEXT], a[NUMBER_TEXT], b[NUMBER_TEXT], d[NUMBER_TEXT];

	for (size_t i = 0; (row = table_at(t, i)); i++)
		for (size_t c = 0; c < sizeof(causes) / sizeof(causes[0]); c++) {
			double share =
				(double)row[causes[c].column].u64 / (double)row[HEALTH_BUSY].u64;

			if (row[HEALTH_BUSY].u64 < BUSY_LEAST || !(share > most))
				continue;
			most = share;
			worst = row;
			by = c;
		}
	if (!worst || !worst[HEALTH_MOST].u64)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%s is throttled by %s for %.0f %% of its busy time: it runs at %s of %s MHz, "
		 "with at most %llu C and %s W.",
		 gpu_text(worst, gpu), causes[by].by, most * 100, round_text(a, clock_of(worst)),
		 count_text(b, worst[HEALTH_MOST].u64),
		 (unsigned long long)worst[HEALTH_HOTTEST].u64,
		 count_text(d, worst[HEALTH_DRAWN].u64));
	rule_brief(out, "%.0f %% of the time", most * 100);
	out->advice = causes[by].advice;
	return saves_compute(f, out, clock_of(worst) / (double)worst[HEALTH_MOST].u64);
}

/* Each generation of PCIe carries twice what the one before does. */
static double link_speed(uint64_t width, uint64_t generation)
{
	return ldexp((double)width, (int)(generation < 16 ? generation : 16));
}

static bool slow_slot(const struct facts *f, struct finding *out)
{
	struct table *t = tables_find(f->tables, "health");
	const union value *row, *worst = NULL;
	double least = 1;
	char gpu[GPU_TEXT];

	for (size_t i = 0; (row = table_at(t, i)); i++) {
		double share =
			link_speed(row[HEALTH_WIDTH].u64, row[HEALTH_GENERATION].u64) /
			link_speed(row[HEALTH_WIDTH_MAX].u64, row[HEALTH_GENERATION_MAX].u64);

		if (row[HEALTH_BUSY].u64 < BUSY_LEAST || !row[HEALTH_WIDTH].u64 ||
		    !row[HEALTH_WIDTH_MAX].u64 || !(share < least))
			continue;
		least = share;
		worst = row;
	}
	if (!worst)
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%s uses %llu lanes of PCIe %llu, but it and its slot support %llu lanes of PCIe "
		 "%llu; copies take %.0f times as long as they could.",
		 gpu_text(worst, gpu), (unsigned long long)worst[HEALTH_WIDTH].u64,
		 (unsigned long long)worst[HEALTH_GENERATION].u64,
		 (unsigned long long)worst[HEALTH_WIDTH_MAX].u64,
		 (unsigned long long)worst[HEALTH_GENERATION_MAX].u64, 1 / least);
	rule_brief(out, "%llu of %llu lanes", (unsigned long long)worst[HEALTH_WIDTH].u64,
		   (unsigned long long)worst[HEALTH_WIDTH_MAX].u64);
	return rule_saves(out, f->exposed_copy_ns * (1 - least));
}

static bool slow_gpu(const struct facts *f, struct finding *out)
{
	enum { GPUS = 4096 };
	struct table *t = tables_find(f->tables, "health");
	const union value *row, *worst = NULL;
	double *clocks = malloc(GPUS * sizeof(*clocks)), middle = NAN;
	size_t count = 0;
	char gpu[GPU_TEXT], a[NUMBER_TEXT], b[NUMBER_TEXT], c[NUMBER_TEXT];

	for (size_t i = 0; clocks && (row = table_at(t, i)); i++) {
		double mhz = clock_of(row);

		if (isnan(mhz) || count == GPUS)
			continue;
		clocks[count++] = mhz;
		if (!worst || mhz < clock_of(worst))
			worst = row;
	}
	if (count > 1) {
		qsort(clocks, count, sizeof(*clocks), compare_double);
		middle = clocks[count / 2]; /* of two the faster one */
	}
	free(clocks);
	if (!worst || !(clock_of(worst) < BELOW_PEERS * middle))
		return false;
	snprintf(out->evidence, FINDING_TEXT,
		 "%s runs at %s MHz; the median of the job's %s GPUs is %s MHz, so the others wait "
		 "for it.",
		 gpu_text(worst, gpu), round_text(a, clock_of(worst)), count_text(c, count),
		 round_text(b, middle));
	rule_brief(out, "%s of %s MHz", a, b);
	return saves_compute(f, out, clock_of(worst) / middle);
}

const struct rule rules_health[] = {
	{ "clock_below_base", "a GPU works below its base clock",
	  "health.sm_clock_mhz health.sm_clock_base_mhz", below_base,
	  "check nvidia-smi -q -d CLOCK,PERFORMANCE for a locked clock, a power limit or heat",
	  .needs_trust = false },
	{ "throttled", "a GPU is throttled",
	  "health.power_samples health.heat_samples health.hardware_samples", held_down,
	  "find the cause of throttling", .needs_trust = false },
	{ "slow_slot", "a GPU's link is narrower or slower than it could be",
	  "health.pcie_width health.pcie_generation", slow_slot,
	  "reseat the GPU or use another slot; check the firmware's PCIe settings",
	  .needs_trust = false },
	{ "slow_gpu", "one GPU of the job has a lower clock than the others", "health.sm_clock_mhz",
	  slow_gpu,
	  "check that GPU's power limit, temperature and board; exclude its host from the job",
	  .family = FAMILY_UNBALANCED, .needs_trust = false },
	{ .name = NULL },
};
