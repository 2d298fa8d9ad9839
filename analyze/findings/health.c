/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about GPUs that are slower than they could be, from the table `health`. */
#include "analyze/findings/rule.h"
#include "analyze/report/health/health.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUSY_LEAST = 5 };   /* fewer busy samples prove nothing */
#define BELOW_BASE    0.97 /* share of the default clock */
#define BELOW_PEERS   0.95 /* share of the median clock of a job's GPUs */
#define LIMITED_LEAST 0.2  /* share of busy samples */

/* Writes "GPU 3 of rank 1". */
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

/* Reasons for a low clock. The one with most busy samples of a GPU is reported. */
static const struct {
	size_t column;
	const char *by, *advice;
} limits[] = {
	{ HEALTH_HARDWARE, "the board (power brake, voltage)",
	  "check the power supply, the cables and the server's log; replace the GPU if it "
	  "persists" },
	{ HEALTH_HEAT, "heat",
	  "check the fans, the airflow and the room temperature of that host" },
	{ HEALTH_POWER, "the power limit",
	  "check nvidia-smi -q -d POWER and raise the limit if it was lowered; at the default "
	  "limit this is normal for dense work" },
};

static size_t limit_of(const union value *row)
{
	size_t most = 0;

	for (size_t i = 1; i < sizeof(limits) / sizeof(limits[0]); i++)
		most = row[limits[i].column].u64 > row[limits[most].column].u64 ? i : most;
	return most;
}

static double limited(const union value *row)
{
	return (double)row[limits[limit_of(row)].column].u64 / (double)row[HEALTH_BUSY].u64;
}

/* Returns a relative speed: each generation of PCIe doubles it. */
static double link_speed(uint64_t width, uint64_t generation)
{
	return ldexp((double)width, (int)(generation < 16 ? generation : 16));
}

enum speed { LINK, OF_BASE, OF_MOST, OF_MIDDLE /* pairs of an actual and a possible speed */ };

/* Returns the share of the possible speed that a GPU has; NAN: it is not slow, or that is
 * unknown. */
static double share_of(const union value *row, enum speed speed, double middle_mhz)
{
	double most = limited(row) > LIMITED_LEAST ? (double)row[HEALTH_MOST].u64 : 0;
	double could[] = {
		[LINK] = link_speed(row[HEALTH_WIDTH_MAX].u64, row[HEALTH_GENERATION_MAX].u64),
		[OF_BASE] = BELOW_BASE * (double)row[HEALTH_BASE].u64,
		[OF_MOST] = most,
		[OF_MIDDLE] = BELOW_PEERS * middle_mhz,
	};
	double is = speed == LINK ? link_speed(row[HEALTH_WIDTH].u64, row[HEALTH_GENERATION].u64)
				  : clock_of(row);
	double below = speed == OF_BASE ? BELOW_BASE : speed == OF_MIDDLE ? BELOW_PEERS : 1;

	return is > 0 && is < could[speed] ? is / could[speed] * below : NAN;
}

/* Returns the time of a rank's copies between host and GPU that overlaps neither compute nor
 * communication. */
static double host_copies_ns(const struct facts *f, const union value *rank)
{
	struct table *t = tables_find(f->tables, "copies");
	size_t of = table_column(t, "direction"), exposed = table_column(t, "exposed_ns");
	const union value *row;
	double ns = 0;

	for (size_t i = 0; (row = table_at(t, i)); i++)
		if (!memcmp(row, rank, RANK_KEYS * sizeof(*row)) &&
		    (!strcmp(row[of].text, "HtoD") || !strcmp(row[of].text, "DtoH")))
			ns += (double)row[exposed].u64;
	return ns;
}

struct slow {
	const union value *row; /* NULL: no GPU is slow */
	double share, saves_ns; /* shares and time of a step */
};

/* Finds the GPU whose own work would be shortened most, as a share of a step. Other GPUs wait for
 * it, so their work does not matter. */
static struct slow find_slow(const struct facts *f, enum speed speed, double middle_mhz)
{
	struct table *health = tables_find(f->tables, "health");
	struct table *gpus = tables_find(f->tables, "gpus");
	struct slow worst = { .row = NULL };
	const union value *gpu;

	for (size_t i = 0; table_count(health) && (gpu = table_at(gpus, i)); i++) {
		const char *column = speed == LINK ? "exposed_copy_ns" : "compute_ns";
		double ns = (double)gpu[table_column(gpus, column)].u64;
		union value *row;

		if (table_have(health, gpu, &row, NULL) != ST_OK)
			continue;
		double share = share_of(row, speed, middle_mhz);
		if (speed == LINK)
			ns = fmin(ns, host_copies_ns(f, gpu));
		double saves_ns = ns * (1 - share) * f->step_ns /
				  (double)gpu[table_column(gpus, "window_ns")].u64;
		if (row[HEALTH_BUSY].u64 >= BUSY_LEAST && saves_ns > worst.saves_ns)
			worst = (struct slow){ row, share, saves_ns };
	}
	return worst;
}

static bool below_base(const struct facts *f, struct finding *out)
{
	struct slow slow = find_slow(f, OF_BASE, 0);
	const union value *worst = slow.row;
	char gpu[GPU_TEXT], a[NUMBER_TEXT], b[NUMBER_TEXT], c[NUMBER_TEXT];

	if (!worst)
		return false;
	rule_tell(out,
		  "%s runs at %s MHz under load, below its base clock of %s MHz (maximum %s MHz).",
		  gpu_text(worst, gpu), round_text(a, clock_of(worst)),
		  count_text(b, worst[HEALTH_BASE].u64), count_text(c, worst[HEALTH_MOST].u64));
	rule_brief(out, "%s of %s MHz", a, b);
	return rule_saves(out, slow.saves_ns);
}

static bool held_down(const struct facts *f, struct finding *out)
{
	struct slow slow = find_slow(f, OF_MOST, 0);
	const union value *worst = slow.row;
	char gpu[GPU_TEXT], a[NUMBER_TEXT], b[NUMBER_TEXT], d[NUMBER_TEXT];

	if (!worst)
		return false;
	rule_tell(out,
		  "%s is throttled by %s for %.0f %% of its busy time: it runs at %s of %s MHz, "
		  "with at most %llu C and %s W.",
		  gpu_text(worst, gpu), limits[limit_of(worst)].by, limited(worst) * 100,
		  round_text(a, clock_of(worst)), count_text(b, worst[HEALTH_MOST].u64),
		  (unsigned long long)worst[HEALTH_HOTTEST].u64,
		  count_text(d, worst[HEALTH_DRAWN].u64));
	rule_brief(out, "%.0f %% of the time", limited(worst) * 100);
	out->advice = limits[limit_of(worst)].advice;
	return rule_saves(out, slow.saves_ns);
}

static bool slow_slot(const struct facts *f, struct finding *out)
{
	struct slow slow = find_slow(f, LINK, 0);
	const union value *worst = slow.row;
	char gpu[GPU_TEXT];

	if (!worst)
		return false;
	rule_tell(out,
		  "%s uses %llu lanes of PCIe %llu, but it and its slot support %llu lanes of PCIe "
		  "%llu; copies take %.0f times as long as they could.",
		  gpu_text(worst, gpu), (unsigned long long)worst[HEALTH_WIDTH].u64,
		  (unsigned long long)worst[HEALTH_GENERATION].u64,
		  (unsigned long long)worst[HEALTH_WIDTH_MAX].u64,
		  (unsigned long long)worst[HEALTH_GENERATION_MAX].u64, 1 / slow.share);
	rule_brief(out, "%llu of %llu lanes", (unsigned long long)worst[HEALTH_WIDTH].u64,
		   (unsigned long long)worst[HEALTH_WIDTH_MAX].u64);
	return rule_saves(out, slow.saves_ns);
}

static bool slow_gpu(const struct facts *f, struct finding *out)
{
	struct table *t = tables_find(f->tables, "health");
	double *clocks = malloc((table_count(t) + 1) * sizeof(*clocks)), middle = NAN;
	struct slow slow = { .row = NULL };
	const union value *row;
	size_t count = 0;
	char gpu[GPU_TEXT], a[NUMBER_TEXT], b[NUMBER_TEXT], c[NUMBER_TEXT];

	for (size_t i = 0; clocks && (row = table_at(t, i)); i++) {
		clocks[count] = clock_of(row);
		count += !isnan(clocks[count]);
	}
	if (count > 1) {
		qsort(clocks, count, sizeof(*clocks), compare_double);
		middle = clocks[count / 2]; /* the faster one of two */
		slow = find_slow(f, OF_MIDDLE, middle);
	}
	free(clocks);
	if (!slow.row)
		return false;
	rule_tell(out,
		  "%s runs at %s MHz; the median of the job's %s GPUs is %s MHz, so the others "
		  "wait for it.",
		  gpu_text(slow.row, gpu), round_text(a, clock_of(slow.row)), count_text(c, count),
		  round_text(b, middle));
	rule_brief(out, "%s of %s MHz", a, b);
	return rule_saves(out, slow.saves_ns);
}

const struct rule rules_health[] = {
	{ "clock_below_base", "a GPU works below its base clock",
	  "health.sm_clock_mhz health.sm_clock_base_mhz", below_base,
	  "check nvidia-smi -q -d CLOCK,PERFORMANCE for a locked clock, a power limit or heat",
	  .family = FAMILY_NONE },
	{ "throttled", "a GPU is throttled",
	  "health.power_samples health.heat_samples health.hardware_samples", held_down,
	  "find the cause of throttling", .family = FAMILY_NONE },
	{ "slow_slot", "a GPU's link is narrower or slower than it could be",
	  "health.pcie_width health.pcie_generation", slow_slot,
	  "reseat the GPU or use another slot; check the firmware's PCIe settings",
	  .family = FAMILY_NONE },
	{ "slow_gpu", "one GPU of the job has a lower clock than the others", "health.sm_clock_mhz",
	  slow_gpu,
	  "check that GPU's power limit, temperature and board; exclude its host from the job",
	  .family = FAMILY_UNBALANCED },
	{ .name = NULL },
};
