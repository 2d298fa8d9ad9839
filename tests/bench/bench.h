/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what the programs of `make bench` share: clocks, batches of one call, giving up.
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Seconds of CLOCK_MONOTONIC, or of the process's or the thread's CPU time. */
static inline double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A benchmark of something else than was meant is worse than none. */
static inline void need(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

/* The best of `runs` batches; between two whoever empties the buffers has pause_us. */
static inline double best_of(double (*run)(void), int runs, unsigned pause_us)
{
	double best = 1e9, ns;

	for (int i = 0; i < runs; i++) {
		ns = run();
		best = ns < best ? ns : best;
		if (pause_us)
			usleep(pause_us);
	}
	return best;
}

/* A function that does `body` `batch` times, with i from 0 on: nanoseconds for each. */
#define LOOP(function, batch, body)                                                                \
	static double function(void)                                                               \
	{                                                                                          \
		double begin_s = now_s(CLOCK_MONOTONIC);                                           \
                                                                                                   \
		for (int i = 0; i < (batch); i++) {                                                \
			body;                                                                      \
		}                                                                                  \
		return (now_s(CLOCK_MONOTONIC) - begin_s) * 1e9 / (batch);                         \
	}

#endif
