/* SPDX-License-Identifier: Apache-2.0 */
/* traced_program.c - the programs that run.sh records, one for each first argument. */
#include "collector/api/tacho.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_us(long us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

static void steps(int count, long us)
{
	int i;

	for (i = 0; i < count; i++) {
		tacho_step();
		tacho_phase_push("data");
		pause_us(us);
		tacho_phase_pop();
		tacho_phase_push("forward");
		tacho_range_push("layer");
		tacho_range_pop();
		tacho_phase_pop();
		tacho_counter("loss", 1.0 / (i + 1));
	}
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static int act_steps(int count)
{
	steps(count, 500);
	tacho_epoch_end();
	return 0;
}

/*
 * Waits for the recorder after each three steps: a program does not by itself, and what it cannot
 * keep of windows that come before a recorder has started is only counted.
 */
static int act_flushed(int count)
{
	for (; count > 0; count -= 3) {
		steps(3, 500);
		tacho_flush();
	}
	tacho_epoch_end();
	return 0;
}

/* Epochs of so many steps, each with a validation behind it. */
static int act_epochs(int count)
{
	steps(count, 100);
	tacho_epoch_end();
	steps(count, 100);
	tacho_validation_begin();
	return 0;
}

/* Stops what has not begun, wherever. */
static int act_stops(int count)
{
	tacho_stop();
	steps(8, 100);
	tacho_stop();
	steps(count, 100);
	tacho_stop();
	return 0;
}

static int act_abort(int unused)
{
	tacho_range_push("outer");
	steps(5, 100);
	tacho_flush();
	abort();
}

static int act_segv(int unused)
{
	tacho_range_push("outer");
	steps(5, 100);
	tacho_flush();
	raise(SIGSEGV);
	return 1;
}

/* All descriptors are in use before the library wants one. */
static int act_no_fds(int code)
{
	while (dup(0) >= 0)
		;
	steps(20, 100);
	tacho_start();
	steps(5, 100);
	tacho_stop();
	return dup(0) < 0 ? code : 1;
}

/* Ends without a word, with ranges open. */
static int act_exit(int code)
{
	tacho_range_push("outer");
	steps(5, 100);
	tacho_range_push("inner");
	exit(code);
}

static int act_quick(int code)
{
	steps(5, 100);
	_exit(code);
}

static int act_spin(int us)
{
	tacho_range_push("outer");
	steps(20, us);
	ready();
	for (;;)
		steps(1, us);
	return 0;
}

static int act_spin_for(int ms)
{
	int i;

	for (i = 0; i < ms; i += 10)
		steps(1, 10000);
	return 0;
}

static volatile sig_atomic_t asked;

static void on_term(int number)
{
	asked = 1;
}

static int act_handler(int code)
{
	signal(SIGTERM, on_term);
	steps(5, 100);
	ready();
	while (!asked)
		steps(1, 1000);
	return code;
}

/* A handler that is set when ours is there already: theirs wins. */
static int act_late_handler(int code)
{
	steps(5, 100);
	signal(SIGTERM, on_term);
	ready();
	while (!asked)
		steps(1, 1000);
	return code;
}

/* A signal that the library has no use for ends the program. */
static int act_usr2(int code)
{
	steps(5, 100);
	raise(SIGUSR2);
	return code;
}

static int act_own_usr1(int code)
{
	signal(SIGUSR1, on_term);
	steps(5, 100);
	raise(SIGUSR1);
	return asked && tacho_state() == TACHO_ARMED ? code : 1;
}

static void *many_ranges(void *arg)
{
	int count = *(int *)arg, i;
	uint32_t name = tacho_name("work");

	for (i = 0; i < count; i++) {
		tacho_range_push_id(name);
		tacho_range_pop();
		if (i % 100 == 0)
			pause_us(100);
	}
	return NULL;
}

static int act_threads(int count)
{
	pthread_t threads[8];
	size_t i;

	for (i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, many_ranges, &count);
	steps(20, 1000);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int act_threads_64(int count)
{
	pthread_t threads[64];
	size_t i;

	for (i = 0; i < 64; i++)
		pthread_create(&threads[i], NULL, many_ranges, &count);
	for (i = 0; i < 64; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int churn(int count, int flush_every)
{
	pthread_t thread;
	int ranges = 10, i;

	for (i = 0; i < count; i++) {
		pthread_create(&thread, NULL, many_ranges, &ranges);
		pthread_join(thread, NULL);
		if (flush_every && i % flush_every == 0)
			tacho_flush();
	}
	return 0;
}

/* Threads that come and go: their rings are used again, and nothing is lost. */
static int act_churn(int count)
{
	return churn(count, 3); /* a memory of 16 MB holds four rings */
}

/* Perhaps faster than the writer takes what their rings hold. */
static int act_churn_fast(int count)
{
	return churn(count, 0);
}

static void *leave_open(void *arg)
{
	tacho_range_push("never popped");
	return NULL;
}

static int act_dead_thread(int count)
{
	pthread_t thread;

	steps(2, 100);
	pthread_create(&thread, NULL, leave_open, NULL);
	pthread_join(thread, NULL);
	steps(2, 100);
	return 0;
}

/* A thread that sits in a range while windows come and go around it. */
static void *sit(void *barrier)
{
	tacho_range_push("sitting");
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	tacho_range_pop();
	return NULL;
}

static int act_sitter(int count)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, sit, &barrier);
	pthread_barrier_wait(&barrier);
	steps(count, 1000);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return 0;
}

/* After an event in a window two threads stay in a range, and make no event for so many ms. */
static int act_silent(int ms)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	tacho_step();
	tacho_range_push("silent");
	pthread_create(&thread, NULL, sit, &barrier);
	pthread_barrier_wait(&barrier);
	pause_us(50000);
	tacho_mark("in the window");
	pause_us(ms * 1000L);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return 0;
}

static int wait_for(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* One child that says nothing, one that pops what its parent pushed, one that works. */
static int act_fork(int code)
{
	int sum = 0;
	pid_t child;

	steps(3, 100);
	tacho_range_push("around the forks");
	child = fork();
	if (!child)
		exit(1);
	sum += wait_for(child);
	child = fork();
	if (!child) {
		tacho_range_pop();
		exit(2);
	}
	sum += wait_for(child);
	child = fork();
	if (!child) {
		tacho_range_push("in the child");
		pause_us(1000);
		tacho_range_pop();
		exit(4);
	}
	sum += wait_for(child);
	tacho_range_pop();
	steps(3, 100);
	return sum == 7 ? code : 98;
}

/* Forks while other threads are busy in the library. */
static int act_fork_storm(int count)
{
	pthread_t threads[4];
	int ranges = 3000, failed = 0, i;

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, many_ranges, &ranges);
	for (i = 0; i < count; i++) {
		pid_t child = fork();

		if (!child) {
			steps(2, 10);
			exit(0);
		}
		failed += wait_for(child) != 0;
	}
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return failed;
}

/* The child dies of SIGTERM as if there were no library. */
static int act_fork_term(int code)
{
	int status = 0;
	pid_t child;

	steps(3, 100);
	child = fork();
	if (!child)
		for (;;)
			pause();
	pause_us(20000);
	kill(child, SIGTERM);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? code : 97;
}

/* What a child of vfork() must not do, and some do: its memory is the parent's. */
static int act_vfork_exit(int code)
{
	int status = 0;
	pid_t child;

	steps(3, 100);
	child = vfork();
	if (!child)
		exit(3);
	waitpid(child, &status, 0);
	steps(3, 100);
	tacho_flush();
	return WEXITSTATUS(status) == 3 ? code : 96;
}

/* The child of vfork() waits for its death by SIGTERM, which must not be the parent's. */
static int act_vfork_term(int code)
{
	int status = 0;
	pid_t child;

	steps(3, 100);
	child = vfork();
	if (!child) {
		kill(getpid(), SIGTERM);
		_exit(3);
	}
	waitpid(child, &status, 0);
	steps(3, 100000); /* longer than the writer sleeps */
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? code : 96;
}

/* A child that pthread_atfork() knows nothing of makes two steps, and the parent goes on. */
static int act_raw_fork(int ms)
{
	struct timespec before, after;
	long took;
	pid_t child;

	steps(3, 100);
	pause_us(60000); /* no other thread is to hold a lock of libc in the child */
	clock_gettime(CLOCK_MONOTONIC, &before);
	child = (pid_t)syscall(SYS_fork);
	if (!child) {
		steps(2, 100);
		exit(3);
	}
	if (wait_for(child) != 3)
		return 96;
	clock_gettime(CLOCK_MONOTONIC, &after);
	took = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	steps(3, 100);
	return took > ms;
}

static void *first_event_cancelled(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_barrier_wait(arg);
	pause_us(10000);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	tacho_range_push("by a thread that is cancelled");
	tacho_range_pop();
	return NULL;
}

/* Threads are cancelled in their first event, where the library does most. */
static int act_cancel(int count)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	int i;

	pthread_barrier_init(&barrier, NULL, 2);
	for (i = 0; i < count; i++) {
		pthread_create(&thread, NULL, first_event_cancelled, &barrier);
		pthread_barrier_wait(&barrier);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	steps(3, 100);
	return 0;
}

static sigjmp_buf way_out;
static volatile sig_atomic_t interruptions;

static void fork_or_jump(int number)
{
	pid_t child;

	if (++interruptions % 2 == 0)
		siglongjmp(way_out, 1);
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

/* A handler forks and jumps away over whatever the library is doing, so many times. */
static int act_interrupted(int count)
{
	struct itimerspec often = { .it_value = { .tv_nsec = 300000 },
				    .it_interval = { .tv_nsec = 300000 } };
	timer_t timer;

	signal(SIGALRM, fork_or_jump);
	timer_create(CLOCK_MONOTONIC, NULL, &timer);
	sigsetjmp(way_out, 1);
	timer_settime(timer, 0, &often, NULL);
	while (interruptions < count) {
		char name[32];
		static int names;

		snprintf(name, sizeof(name), "name %d", names++ % 50000);
		tacho_step();
		tacho_memory_sample();
		tacho_range_push(name);
		tacho_range_pop();
	}
	timer_delete(timer);
	return 0;
}

/*
 * Makes ranges for ever, and counts in the file of the variable COUNTED how many it has made; at
 * most the one under way is not counted.
 */
static int act_counted(int us)
{
	const char *path = getenv("COUNTED");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
	volatile uint64_t *made;

	if (fd < 0 || ftruncate(fd, sizeof(*made)) != 0)
		return 1;
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (made == MAP_FAILED)
		return 1;
	for (;;) {
		tacho_range_push("counted");
		tacho_range_pop();
		++*made;
		if (us || *made % 1000 == 0)
			pause_us(us ? us : 500);
	}
}

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* One of as many threads, which are there at the same time; another system call ends the process.
 */
static void *filtered(void *count)
{
	static _Atomic int there;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(clock_nanosleep),
		ALLOW(exit),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
	tacho_mark("filtered");
	for (there++; there < *(int *)count;)
		pause_us(1000);
	syscall(SYS_exit, 0); /* pthread_exit() makes system calls */
	return NULL;
}

static int act_filtered(int count)
{
	pthread_t threads[16];
	int i;

	for (i = 0; i < count && i < 16; i++)
		pthread_create(&threads[i], NULL, filtered, &count);
	for (i = 0; i < count && i < 16; i++)
		pthread_join(threads[i], NULL);
	ready();
	return 0;
}

/* Becomes another program with a log of its own. */
static int act_exec(int count)
{
	char number[16];

	tacho_range_push("before exec");
	steps(count, 100);
	snprintf(number, sizeof(number), "%d", count);
	execl("/proc/self/exe", "traced_program", "steps", number, NULL);
	return 95;
}

/* Learns its rank after its first event, and ends without a word. */
static int act_late_rank(int code)
{
	tacho_range_push("before");
	setenv("RANK", "3", 1);
	steps(5, 100);
	_exit(code);
}

static int act_hand(int count)
{
	int i;

	for (i = 0; i < count; i++) {
		tacho_start();
		steps(3, 100);
		tacho_stop();
		steps(3, 100);
	}
	return tacho_state() == TACHO_RECORDING;
}

static int act_flood(int count)
{
	uint32_t name = tacho_name("flood");
	int i;

	for (i = 0; i < count; i++) {
		tacho_range_push_id(name);
		tacho_range_pop();
	}
	return 0;
}

/* Every function, in an order that makes little sense. */
static void soup(unsigned seed, int count)
{
	char text[100];
	int i;

	for (i = 0; i < count; i++) {
		seed = seed * 1103515245 + 12345;
		switch (seed >> 16 & 15) {
		case 0:
			tacho_step();
			break;
		case 1:
			tacho_step_number(seed >> 20);
			break;
		case 2:
			tacho_phase_push("a");
			break;
		case 3:
			tacho_range_push(NULL);
			break;
		case 4:
			tacho_phase_pop();
			break;
		case 5:
			tacho_range_pop();
			break;
		case 6:
			tacho_counter("c", seed);
			break;
		case 7:
			tacho_mark("m");
			break;
		case 8:
			tacho_memory_sample();
			break;
		case 9:
			tacho_epoch_end();
			break;
		case 10:
			tacho_validation_begin();
			break;
		case 11:
			tacho_range_push_id(seed >> 8);
			break;
		case 12:
			tacho_range_push_class(seed >> 12, seed >> 20);
			break;
		case 13:
			tacho_summary(text, seed >> 25);
			break;
		case 14:
			if (!(seed >> 26))
				tacho_start();
			break;
		case 15:
			if (!(seed >> 26))
				tacho_stop();
			break;
		}
	}
	tacho_flush();
	tacho_summary_reset();
}

static int act_soup(int count)
{
	soup(1, count);
	return 0;
}

static void *soup_of_thread(void *arg)
{
	int *count = arg;

	soup((unsigned)(uintptr_t)&count, *count);
	return NULL;
}

static int act_soup_threads(int count)
{
	pthread_t threads[6];
	size_t i;

	for (i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, soup_of_thread, &count);
	for (i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* exit() in a handler, whatever it interrupts. */
static void exit_now(int number)
{
	exit(5);
}

static int act_exit_in_handler(int ms)
{
	struct itimerspec at = { .it_value = { .tv_nsec = ms * 1000000L } };
	timer_t timer;

	signal(SIGALRM, exit_now);
	timer_create(CLOCK_MONOTONIC, NULL, &timer);
	timer_settime(timer, 0, &at, NULL);
	for (;;) {
		tacho_start();
		tacho_step();
		tacho_epoch_end();
		tacho_range_push("x");
		tacho_range_pop();
	}
	return 0;
}

static int act_summary(int count)
{
	char text[4096];

	steps(count, 100);
	tacho_summary(text, sizeof(text));
	fputs(text, stdout);
	tacho_summary_reset();
	return (int)tacho_summary(text, sizeof(text));
}

static int act_state(int unused)
{
	printf("%d\n", tacho_state());
	return 0;
}

static const struct {
	const char *name;
	int (*act)(int number);
} acts[] = {
	{ "steps", act_steps },
	{ "exit", act_exit },
	{ "quick", act_quick },
	{ "flushed", act_flushed },
	{ "epochs", act_epochs },
	{ "stops", act_stops },
	{ "abort", act_abort },
	{ "segv", act_segv },
	{ "no-fds", act_no_fds },
	{ "threads-64", act_threads_64 },
	{ "spin", act_spin },
	{ "spin-for", act_spin_for },
	{ "usr2", act_usr2 },
	{ "own-usr1", act_own_usr1 },
	{ "handler", act_handler },
	{ "late-handler", act_late_handler },
	{ "threads", act_threads },
	{ "churn", act_churn },
	{ "churn-fast", act_churn_fast },
	{ "dead-thread", act_dead_thread },
	{ "sitter", act_sitter },
	{ "silent", act_silent },
	{ "fork", act_fork },
	{ "fork-storm", act_fork_storm },
	{ "fork-term", act_fork_term },
	{ "vfork-exit", act_vfork_exit },
	{ "vfork-term", act_vfork_term },
	{ "raw-fork", act_raw_fork },
	{ "cancel", act_cancel },
	{ "interrupted", act_interrupted },
	{ "counted", act_counted },
	{ "exec", act_exec },
	{ "filtered", act_filtered },
	{ "late-rank", act_late_rank },
	{ "hand", act_hand },
	{ "flood", act_flood },
	{ "soup", act_soup },
	{ "soup-threads", act_soup_threads },
	{ "exit-in-handler", act_exit_in_handler },
	{ "summary", act_summary },
	{ "state", act_state },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 2 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (!strcmp(acts[i].name, argv[1]))
			return acts[i].act(atoi(argv[2]));
	fprintf(stderr, "traced_program: no such act\n");
	return 2;
}
