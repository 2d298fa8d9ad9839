/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 32 << 10, KEPT_MAX = 8 };

static char program[PATH_MAX];
/* clone() of libc, because a sanitizer of the program may replace it with a function that has
 * state. */
static int (*clone_of_libc)(int (*)(void *), void *, int, void *, ...) = clone;

struct start {
	int arena;
	pid_t job;
	char *argv[4], *envp[KEPT_MAX];
	uint8_t *stacks;
	pid_t pid;  /* the recorder */
	int failed; /* errno of its start; 0: it runs */
};

bool spawn_find(const char *library)
{
	static const char *const places[] = { "tacho-record", "../bin/tacho-record" };
	const char *end = strrchr(library, '/');
	char path[2 * PATH_MAX];
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *found = libc ? dlsym(libc, "clone") : NULL;

	if (found)
		memcpy(&clone_of_libc, &found, sizeof(found));
	if (libc)
		dlclose(libc);
	for (size_t i = 0; end && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(end - library), library, places[i]);
		if (access(path, X_OK) == 0 && realpath(path, program))
			return true;
	}
	program[0] = '\0';
	return false;
}

/* Keeps only the variables that the recorder itself may need; it reads the program's settings from
 * the arena. */
static void keep_environment(char *envp[KEPT_MAX])
{
	static const char *const kept[] = { "PATH=", "LD_LIBRARY_PATH=", "TACHO_PLAIN=",
					    "ASAN_OPTIONS=", "TSAN_OPTIONS=" };
	size_t count = 0;

	for (char **e = environ; e && *e; e++)
		for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
			if (count < KEPT_MAX - 1 && strncmp(*e, kept[i], strlen(kept[i])) == 0)
				envp[count++] = *e;
	envp[count] = NULL;
}

/*
 * The two functions below run in children that share the program's memory, while the thread that
 * starts them is suspended.  They only make system calls, because functions of libc, or a
 * sanitizer's replacements, may keep state there.
 */
static int become_recorder(void *arg)
{
	struct start *s = arg;
	int pidfd = -1;

	s->pid = (pid_t)syscall(SYS_getpid);
#ifdef SYS_pidfd_open
	pidfd = (int)syscall(SYS_pidfd_open, s->job, 0);
#endif
	/* Make copies above those two numbers, so that neither descriptor overwrites the other. */
	long arena = syscall(SYS_fcntl, s->arena, F_DUPFD_CLOEXEC, SPAWN_PIDFD + 1), watched = -1;
	if (pidfd >= 0)
		watched = syscall(SYS_fcntl, pidfd, F_DUPFD_CLOEXEC, SPAWN_PIDFD + 1);
	syscall(SYS_close, SPAWN_PIDFD);
	if (arena >= 0 && syscall(SYS_dup3, arena, SPAWN_ARENA, 0) >= 0 &&
	    (watched < 0 || syscall(SYS_dup3, watched, SPAWN_PIDFD, 0) >= 0)) {
		syscall(SYS_setsid);
		syscall(SYS_execve, program, s->argv, s->envp);
	}
	s->failed = errno;
	return 127; /* exit status of the child */
}

static int make_orphan(void *arg)
{
	struct start *s = arg;

	if (clone_of_libc(become_recorder, s->stacks + STACK, CLONE_VM | CLONE_VFORK, s) < 0)
		s->failed = errno;
	return 0;
}

/*
 * Starts both children with all signals blocked, so that no handler of the program runs in a child
 * that shares its memory.  A program that adopts orphans (PR_SET_CHILD_SUBREAPER) must not adopt
 * the recorder, so this is off in the meantime.
 */
static void start(struct start *s)
{
	sigset_t all, before;
	int adopts = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && adopts)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
	pid_t child = clone_of_libc(make_orphan, s->stacks + 2 * STACK, CLONE_VM | CLONE_VFORK, s);
	if (child < 0)
		s->failed = errno;
	while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	if (adopts)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

pid_t spawn_recorder(int arena)
{
	char number[24], argument[] = SPAWN_ARGUMENT;
	struct start s = { .arena = arena,
			   .job = getpid(),
			   .argv = { program, argument, number, NULL } };
	int kept = errno;

	if (!*program)
		return 0;
	snprintf(number, sizeof(number), "%d", (int)s.job);
	keep_environment(s.envp);
	s.stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (s.stacks == MAP_FAILED)
		return 0;
	start(&s);
	munmap(s.stacks, 2 * STACK);
	errno = kept;
	return s.failed ? 0 : s.pid;
}
