/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_lttng.c - what a tracepoint of LTTng-UST costs the thread that meets it, for the events of
 * bench_hot.c and measured as there: best of many runs, ns per call.  One line of figures; whether
 * somebody records is up to who starts it (bench_lttng.sh).
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/bench.h"
#include "tests/bench/lttng_events.h"

#include <stdio.h>

/* A batch fits into a buffer of the thread's core; between two the consumer empties it. */
enum { BATCH = 8000, RUNS = 40, PAUSE_US = 15000 };

LOOP(run_ids, BATCH, lttng_ust_tracepoint(tacho_bench, push, 1);
     lttng_ust_tracepoint(tacho_bench, pop, 1))
LOOP(run_texts, BATCH, lttng_ust_tracepoint(tacho_bench, push_text, "forward");
     lttng_ust_tracepoint(tacho_bench, pop, 1))
LOOP(run_step, BATCH, lttng_ust_tracepoint(tacho_bench, step, i))
LOOP(run_value, BATCH, lttng_ust_tracepoint(tacho_bench, counter, 1, 1.0))

static const struct {
	double (*run)(void);
	double share; /* of a loop's round that makes one figure */
} rows[] = { { run_ids, 0.5 }, { run_texts, 0.5 }, { run_step, 1 }, { run_value, 1 } };

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf("%.2f ", rows[i].share * best_of(rows[i].run, RUNS, PAUSE_US));
	printf("\n");
	return 0;
}
