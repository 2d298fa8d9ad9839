/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of more steps than tables have rows. */
#include "analyze/engine/engine.h"

#include "analyze/report/report_list.h"
#include "convert/stage/step_list.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 100000, SLOW_STEP = 91001, PERIOD_US = 1000, SLOW_US = 700 };

/* All steps have the same begin to begin, and so walls of 900 to 909 us; one loads data longer. */
static unsigned wall_us(unsigned step)
{
	return step == SLOW_STEP ? 909 + SLOW_US : 900 + step % 10;
}

static void put_range(FILE *f, const char *cat, const char *name, uint64_t at_us, unsigned us,
		      unsigned id)
{
	fprintf(f,
		"{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":9,\"tid\":%d,\"ts\":%llu,"
		"\"dur\":%u,\"args\":{\"device\":0,\"stream\":7,\"correlation\":%u}},\n",
		cat, name, strcmp(cat, "kernel") ? 9 : 7, (unsigned long long)at_us, us, id);
}

static void make_steps(const char *path)
{
	FILE *f = fopen(path, "w");
	uint64_t at = 1000;
	char name[32];

	if (!CHECK(f != NULL))
		return;
	fprintf(f, "{\"distributedInfo\":{\"rank\":0,\"world_size\":1},\"traceEvents\":[\n");
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned data = 300 + (i == SLOW_STEP ? SLOW_US : 0);

		snprintf(name, sizeof(name), "ProfilerStep#%u", i);
		put_range(f, "user_annotation", name, at, wall_us(i), 0);
		put_range(f, "user_annotation", "load_batch", at, data, 0);
		put_range(f, "cpu_op", "aten::mm", at + data, 200, 0);
		put_range(f, "cuda_runtime", "cudaLaunchKernel", at + data + 10, 5, i + 1);
		put_range(f, "kernel", "gemm", at + data + 30, 250, i + 1);
		at += PERIOD_US + (i == SLOW_STEP ? SLOW_US : 0);
	}
	fprintf(f,
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":9,\"args\":{\"name\":\"p\"}}]}");
	fclose(f);
}

static uint64_t cell(struct tables *all, const char *table, size_t row, const char *column)
{
	struct table *t = tables_find(all, table);

	return row < table_count(t) ? table_at(t, row)[table_column(t, column)].u64 : NO_U64;
}

static bool has_row_of_step(struct tables *all, uint64_t step, uint64_t wall_ns)
{
	for (size_t i = 0; i < table_count(tables_find(all, "steps")); i++)
		if (cell(all, "steps", i, "step") == step)
			return cell(all, "steps", i, "wall_ns") == wall_ns;
	return false;
}

/* Whether that step's row says that it took so much more than the median one for data. */
static bool grew(struct tables *all, uint64_t step, uint64_t more_ns)
{
	struct table *t = tables_find(all, "slow_steps");

	for (size_t i = 0; i < table_count(t); i++)
		if (cell(all, "slow_steps", i, "step") == step &&
		    !strcmp(table_at(t, i)[table_column(t, "what")].text, "phase") &&
		    !strcmp(table_at(t, i)[table_column(t, "name")].text, "data"))
			return cell(all, "slow_steps", i, "grew_ns") == more_ns;
	return false;
}

/* The length of the critical path of the median or the slowest step, if it is that step. */
static uint64_t path_of(struct tables *all, const char *which, uint64_t step)
{
	struct table *t = tables_find(all, "critical");
	uint64_t sum = 0;

	for (size_t i = 0; i < table_count(t); i++)
		if (!strcmp(table_at(t, i)[table_column(t, "which")].text, which) &&
		    (step == NO_U64 || cell(all, "critical", i, "step") == step))
			sum += cell(all, "critical", i, "ns");
	return sum;
}

void test_engine_long_run(void)
{
	static const struct report_type *const reports[] = { &report_slow, &report_findings,
							     &report_phases, &report_critical,
							     NULL };
	uint64_t sum_ns = 0, rows;
	struct folder s;
	struct engine_request how = {
		.count = 1,
		.reports = reports,
		.memory_bytes = 64 << 20,
		.threads = 1,
		.per_step = true,
	};
	struct engine_outcome outcome;
	struct name_rules *rules = NULL;
	struct tables *all = NULL;
	struct error err = { 0 };
	char *path;

	folder_make(&s);
	path = (char *)(uintptr_t)folder_path(&s, "long.json");
	make_steps(path);
	how.paths = &path;
	CHECK_OK(name_rules_new(&rules, NULL, 0, &err), &err);
	how.rules = rules;
	CHECK_OK(engine_run(&all, &how, &outcome, &err), &err);
	for (unsigned i = 0; i < STEPS; i++)
		sum_ns += wall_us(i) * 1000u;
	if (all) {
		rows = table_count(tables_find(all, "steps"));
		CHECK(rows > STEPS_KEPT / 2 && rows <= STEPS_KEPT + STEPS_LONGEST + 1);
		CHECK_U64(cell(all, "steps_summed", 0, "steps"), STEPS - rows);
		CHECK_U64(cell(all, "step_stats", 0, "counted"), STEPS);
		CHECK_U64(cell(all, "step_stats", 0, "sum_ns"), sum_ns);
		CHECK_U64(cell(all, "step_stats", 0, "min_ns"), 900000);
		CHECK_U64(cell(all, "step_stats", 0, "max_ns"), wall_us(SLOW_STEP) * 1000u);
		CHECK_U64(cell(all, "step_stats", 0, "slow"), 1);
		CHECK_F64((double)cell(all, "step_stats", 0, "median_ns"), 904500, 9045);
		CHECK(has_row_of_step(all, SLOW_STEP, wall_us(SLOW_STEP) * 1000u));
		CHECK(has_row_of_step(all, STEPS - 1, wall_us(STEPS - 1) * 1000u));
		CHECK(grew(all, SLOW_STEP, SLOW_US * 1000u));
		CHECK_U64(path_of(all, "slowest", SLOW_STEP), wall_us(SLOW_STEP) * 1000u);
		CHECK_F64((double)path_of(all, "median", NO_U64), 904500, 500);
		/* Cells of the first steps are kept apart, and with those of the others they are
		 * the span. */
		struct table *cells = tables_find(all, "cells");
		CHECK(table_count(cells) >= STEPS_KEPT && table_count(cells) <= STEPS_KEPT + 2);
		CHECK_U64(tables_sum(all, "cells", "compute_ns"), STEPS * 250000ull);
		CHECK_U64(tables_sum(all, "cells", "compute_ns") +
				  tables_sum(all, "cells", "idle_ns"),
			  cell(all, "gpus", 0, "span_ns"));
	}
	tables_free(all);
	name_rules_free(rules);
	folder_remove(&s);
}
