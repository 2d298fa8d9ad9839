/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - preloaded: clocks that go back by an hour, 200 ms after they were first read.  CLOCKS:
 * "wall" is CLOCK_REALTIME alone, "all" every clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BACK_S = 3600, AFTER_MS = 200 };

static long long now_ms(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static long long first;
	const char *clocks = getenv("CLOCKS");
	int all = clocks && !strcmp(clocks, "all");
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	if (!first)
		first = now_ms();
	if (rc == 0 && (clock == CLOCK_REALTIME || all) && now_ms() - first > AFTER_MS &&
	    t->tv_sec > BACK_S)
		t->tv_sec -= BACK_S;
	return rc;
}
