/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight_program.c - a program for tests of the flight recorder: it makes steps and ends in a given
 *way. flight_program WORD[=NUMBER]...	one after the other
 */
#include "collector/api/tacho.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int step_us = 1000;

static void pause_us(long us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	while (nanosleep(&t, &t) != 0)
		;
}

static void do_step_us(int us)
{
	step_us = us;
}

static void do_steps(int count)
{
	while (count-- > 0) {
		tacho_step();
		tacho_phase_push("work");
		pause_us(step_us);
		tacho_phase_pop();
	}
}

/* One step that takes so many ms. */
static void do_slow(int ms)
{
	tacho_step();
	tacho_range_push("the slow one");
	pause_us(ms * 1000L);
	tacho_range_pop();
}

static void do_wait(int ms)
{
	pause_us(ms * 1000L);
}
static void do_save(int ignored)
{
	tacho_save();
}
static void do_flush(int ignored)
{
	tacho_flush();
}
static void do_usr2(int ignored)
{
	raise(SIGUSR2);
}
static void do_abort(int ignored)
{
	abort();
}
static void do__exit(int code)
{
	_exit(code);
}
static void do_exit(int code)
{
	exit(code);
}
static void do_kill(int number)
{
	kill(getpid(), number);
}
static void do_start(int ignored)
{
	tacho_start();
}
static void do_stop(int ignored)
{
	tacho_stop();
}

static void do_segv(int ignored)
{
	volatile char *volatile nowhere = (volatile char *)8;

	*nowhere = 1;
}

static void on_usr2(int number)
{
	static const char text[] = "the program's own handler\n";

	if (write(1, text, sizeof(text) - 1) < 0)
		_exit(9);
}
static void do_handle(int ignored)
{
	signal(SIGUSR2, on_usr2);
}

static void do_ranges(int count)
{
	uint32_t name = tacho_name("flood");

	while (count-- > 0) {
		tacho_range_push_id(name);
		tacho_range_pop();
		if (count % 20000 == 0)
			pause_us(20000); /* the thread's ring has an end */
	}
}

/* Each range has a name that was not there before. */
static void do_names(int count)
{
	char name[64];
	int i;

	for (i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "a name that comes once, number %d", i);
		tacho_range_push(name);
		tacho_range_pop();
		if (i % 300 == 0)
			pause_us(60000);
	}
}

static void *thread_main(void *arg)
{
	do_ranges(*(int *)arg);
	return NULL;
}

static void do_threads(int count)
{
	pthread_t threads[8];
	int i;

	for (i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, thread_main, &count);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

/* Children that do nothing, one that steps, one that dies of it. */
static void do_forks(int count)
{
	int i, status;

	for (i = 0; i < count; i++) {
		pid_t child = fork();

		if (child == 0) {
			if (i % 3 == 1)
				do_steps(20);
			if (i % 3 == 2)
				raise(SIGUSR2);
			exit(0);
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			exit(77);
	}
}

/* clang-format off */
#define WORDS(X) X(step_us) X(steps) X(slow) X(wait) X(save) X(flush) X(usr2) X(abort) X(_exit) \
	X(exit) X(kill) X(start) X(stop) X(segv) X(handle) X(ranges) X(names) X(threads) X(forks)
/* clang-format on */
static const struct {
	const char *word;
	void (*run)(int number);
} words[] = {
#define X(name) { #name, do_##name },
	WORDS(X)
#undef X
};

static void run(const char *text)
{
	const char *number = strchr(text, '=');
	size_t i, len = strcspn(text, "=");

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == len && !memcmp(words[i].word, text, len)) {
			words[i].run(number ? atoi(number + 1) : 0);
			return;
		}
	exit(2);
}

int main(int argc, char **argv)
{
	int i;

	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	for (i = 1; i < argc; i++)
		run(argv[i]);
	return 0;
}
