/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvtx.c - a program with NVTX in it three times, that tells what it said.
 *
 *	fake_nvtx [ROUNDS [THREADS [WHAT...]]]     default: 3 rounds, 1 thread, everything
 *
 * WHAT: basics, a, b, threads, open, unbalanced, deep, flood=N (N ranges on each thread, then their
 * cost).  With libtacho.so in the process `open` has ranges open when the window opens and when it
 * closes; without, it only nests.
 */
#include "tests/fake/fake_nvtx.h"

#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void tacho_start(void) __attribute__((weak));
void tacho_stop(void) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned rounds = 3, threads = 1;
static long flood;

static void put_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void tell(const char *domain, const char *kind, const char *name, unsigned count,
		 const char *detail)
{
	pthread_mutex_lock(&lock);
	printf("{\"domain\": ");
	if (domain)
		put_text(domain);
	else
		printf("null");
	printf(", \"kind\": \"%s\", \"name\": ", kind);
	put_text(name);
	printf(", \"count\": %u", count);
	if (detail) {
		printf(", \"detail\": ");
		put_text(detail);
	}
	puts("}");
	pthread_mutex_unlock(&lock);
}

/* ---- the program's own ---- */

static void basics(void)
{
	nvtxRangeId_t id, other;
	unsigned i;

	for (i = 0; i < rounds; i++) {
		nvtxRangePushA("outer");
		nvtxRangePushA("inner");
		nvtxMarkA("mark");
		nvtxRangePop();
		nvtxRangePop();
		id = nvtxRangeStartA("started first");
		other = nvtxRangeStartA("started second");
		nvtxRangeEnd(id); /* they overlap */
		nvtxRangeEnd(other);
	}
	tell(NULL, "push", "outer", rounds, NULL);
	tell(NULL, "push", "inner", rounds, NULL);
	tell(NULL, "mark", "mark", rounds, NULL);
	tell(NULL, "start", "started first", rounds, NULL);
	tell(NULL, "start", "started second", rounds, NULL);
}

static void unbalanced(void)
{
	unsigned i;

	for (i = 0; i < 5; i++)
		nvtxRangePop(); /* nothing is open */
	nvtxRangeEnd(0);
	nvtxRangeEnd(UINT64_C(0x1234567812345678)); /* never started */
	nvtxRangePushA("never popped");
	nvtxRangeStartA("never ended");
	nvtxMarkA("");
	tell(NULL, "push", "never popped", 1, "open");
	tell(NULL, "start", "never ended", 1, "open");
	tell(NULL, "mark", "", 1, NULL);
}

static void deep(void)
{
	char name[32];
	int i;

	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "level %d", i % 100);
		nvtxRangePushA(name); /* its text is gone when the next one comes */
	}
	for (i = 0; i < 300; i++)
		nvtxRangePop();
	tell(NULL, "push", "level 7", 3, NULL);
}

/* Ranges over both edges of a window. */
static void open_ranges(void)
{
	nvtxRangeId_t id;

	nvtxRangePushA("open before");
	id = nvtxRangeStartA("started before");
	if (tacho_start)
		tacho_start();
	nvtxRangePushA("inside");
	nvtxRangePop();
	nvtxRangePop();
	nvtxRangeEnd(id);
	nvtxRangePushA("open after");
	if (tacho_stop)
		tacho_stop();
	nvtxRangePop();
	tell(NULL, "push", "open before", 1, "open at the beginning");
	tell(NULL, "start", "started before", 1, "open at the beginning");
	tell(NULL, "push", "inside", 1, NULL);
	tell(NULL, "push", "open after", 1, "open at the end");
}

/* ---- threads ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *run(void *number)
{
	uint64_t begin;
	char name[32];
	long i;

	snprintf(name, sizeof(name), "worker %ld", (long)(intptr_t)number);
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
	nvtxRangePushA(name);
	nvtxRangePop();
	tell(NULL, "thread", name, 1, NULL);
	tell(NULL, "push", name, 1, NULL);
	begin = now_ns();
	for (i = 0; i < flood; i++) {
		nvtxRangePushA("flood");
		nvtxRangePop();
	}
	if (flood)
		fprintf(stderr, "fake_nvtx: %.1f ns a range\n",
			(double)(now_ns() - begin) / (double)flood);
	return NULL;
}

static void run_threads(void)
{
	pthread_t id[64];
	unsigned i;

	for (i = 0; i < threads && i < 64; i++)
		pthread_create(&id[i], NULL, run, (void *)(intptr_t)i);
	for (i = 0; i < threads && i < 64; i++)
		pthread_join(id[i], NULL);
	if (flood)
		tell(NULL, "push", "flood", (unsigned)(flood * (long)threads), NULL);
}

static bool wants(int argc, char **argv, const char *what)
{
	int i;

	for (i = 3; i < argc; i++)
		if (!strcmp(argv[i], what))
			return true;
	return argc <= 3;
}

int main(int argc, char **argv)
{
	int i;

	rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
	threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	for (i = 3; i < argc; i++)
		if (!strncmp(argv[i], "flood=", 6))
			flood = atol(argv[i] + 6);
	if (wants(argc, argv, "basics"))
		basics();
	if (wants(argc, argv, "a"))
		fake_nvtx_part_a(tell, rounds);
	if (wants(argc, argv, "b"))
		fake_nvtx_part_b(tell, rounds);
	if (wants(argc, argv, "threads") || flood)
		run_threads();
	if (wants(argc, argv, "deep"))
		deep();
	if (wants(argc, argv, "open"))
		open_ranges();
	if (wants(argc, argv, "unbalanced"))
		unbalanced();
	return 0;
}
