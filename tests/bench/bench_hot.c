/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_hot.c - what a call of tacho.h costs the thread that makes it, by state of the collector,
 * beside an empty call and the clocks.  Prints a table; best of several runs, ns per call.
 */
#include "tests/bench/bench.h"

#include "collector/api/tacho.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* A batch fits into the thread's ring; between two of them the writer has time to empty it. */
enum { BATCH = 8000, RUNS = 40, PAUSE_US = 15000 };

static uint32_t name_id;
static volatile uint64_t sink;

static __attribute__((noinline)) void empty(void)
{
	__asm__ volatile("");
}

static void read_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	sink = (uint64_t)t.tv_nsec;
}

static void read_counter(void)
{
#if defined(__x86_64__)
	sink = __rdtsc();
#endif
}

LOOP(run_empty, BATCH, empty())
LOOP(run_clock, BATCH, read_clock())
LOOP(run_counter, BATCH, read_counter())
LOOP(run_ids, BATCH, tacho_range_push_id(name_id); tacho_range_pop())
LOOP(run_texts, BATCH, tacho_phase_push("forward"); tacho_phase_pop())
LOOP(run_step, BATCH, tacho_step())
LOOP(run_value, BATCH, tacho_counter_id(name_id, 1.0))

static const struct {
	const char *what;
	double (*run)(void);
	double share; /* of a loop's round that makes one figure */
} rows[] = {
	{ "push or pop, registered name", run_ids, 0.5 },
	{ "push or pop, name as text", run_texts, 0.5 },
	{ "step", run_step, 1 },
	{ "counter, registered name", run_value, 1 },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* In the child: one line of figures. */
static int measure_rows(void)
{
	size_t i;

	name_id = tacho_name("bench");
	for (i = 0; i < ROWS; i++)
		printf("%.2f ",
		       rows[i].share * best_of(rows[i].run, RUNS,
					       tacho_state() == TACHO_RECORDING ? PAUSE_US : 0));
	printf("%d\n", tacho_state());
	return 0;
}

static const struct {
	const char *name, *set;
	int state;
} states[] = {
	{ "off", "TACHO_ENABLED=0", TACHO_OFF },
	{ "armed", "TACHO_ENABLED=1 TACHO_WINDOW=signal", TACHO_ARMED },
	{ "recording", "TACHO_ENABLED=1 TACHO_WINDOW=all", TACHO_RECORDING },
	{ "in a ring",
	  "TACHO_ENABLED=1 TACHO_WINDOW=all TACHO_RING=16M TACHO_SAVE_ON=slow=1000,hang=1h",
	  TACHO_RECORDING },
};
enum { STATES = sizeof(states) / sizeof(states[0]) };

/* A child with these settings; false: it was not in the state that it should be in. */
static int ask(const char *self, const char *folder, size_t which, double ns[ROWS])
{
	char command[512];
	FILE *f;
	size_t i;
	int state = -1;

	snprintf(command, sizeof(command), "TACHO_OUT=%s %s %s rows", folder, states[which].set,
		 self);
	f = popen(command, "r");
	if (!f)
		return 0;
	for (i = 0; i < ROWS; i++)
		if (fscanf(f, "%lf", &ns[i]) != 1)
			ns[i] = -1;
	if (fscanf(f, "%d", &state) != 1)
		state = -1;
	return pclose(f) == 0 && state == states[which].state;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/tacho-bench-XXXXXX", command[64];
	double ns[STATES][ROWS];
	size_t state, i;

	if (argc > 1)
		return measure_rows();
	if (!mkdtemp(folder))
		return 1;
	for (state = 0; state < STATES; state++)
		if (!ask(argv[0], folder, state, ns[state])) {
			fprintf(stderr, "bench_hot: not %s\n", states[state].name);
			return 1;
		}
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	printf("%-34s %9.1f ns\n", "an empty call", best_of(run_empty, RUNS, 0));
	printf("%-34s %9.1f ns\n", "clock_gettime(MONOTONIC)", best_of(run_clock, RUNS, 0));
	printf("%-34s %9.1f ns\n", "the CPU's counter", best_of(run_counter, RUNS, 0));
	printf("%-34s %9s %9s %9s %9s  ns\n", "", states[0].name, states[1].name, states[2].name,
	       states[3].name);
	for (i = 0; i < ROWS; i++)
		printf("%-34s %9.1f %9.1f %9.1f %9.1f\n", rows[i].what, ns[0][i], ns[1][i],
		       ns[2][i], ns[3][i]);
	return system(command) != 0;
}
