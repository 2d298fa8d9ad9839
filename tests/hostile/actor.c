/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actor.c - a program that does what recorders stumble over, and prints what it saw of the world.
 *	actor ACT [NUMBER]
 * It makes events through the library where that is in the process, and does the same without it:
 * what it prints, and how it ends, is compared.  Nothing that differs by itself is printed (times,
 * process numbers, addresses).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- events, where there is a library ---- */

static void (*step)(void), (*push)(const char *), (*pop)(void);

static void find_library(void)
{
#ifndef STATIC
	*(void **)&step = dlsym(RTLD_DEFAULT, "tacho_step");
	*(void **)&push = dlsym(RTLD_DEFAULT, "tacho_range_push");
	*(void **)&pop = dlsym(RTLD_DEFAULT, "tacho_range_pop");
#endif
}

/* As a program of CUDA does, on the stand-in for its driver. */
static void start_cuda(void)
{
#ifdef CUDA
	int (*init)(unsigned) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (driver)
		*(void **)&init = dlsym(driver, "cuInit");
	if (!init || init(0) != 0) {
		dprintf(2, "no driver: %s\n", dlerror());
		_exit(99);
	}
#endif
}

static void sleep_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static void events(int count)
{
	while (count-- > 0 && step) {
		step();
		push("work");
		pop();
	}
	sleep_ms(20); /* threads of a recorder have begun */
}

static void say(const char *text)
{
	(void)!write(1, text, strlen(text));
}

static void ready(void)
{
	events(20);
	say("ready\n");
}

/* ---- ends ---- */

static void act_exit(int code)
{
	events(5);
	exit(code);
}
static void act__exit(int code)
{
	events(5);
	_exit(code);
}
static void act_quick_exit(int code)
{
	events(5);
	quick_exit(code);
}
static void act_exit_group(int code)
{
	events(5);
	syscall(SYS_exit_group, code);
}
static void act_return(int code)
{
	events(5);
}
static void act_abort(int n)
{
	events(5);
	abort();
}
static void act_segv(int n)
{
	volatile char *volatile nowhere = (volatile char *)8;

	events(5);
	*nowhere = 1;
}
static void act_raise(int number)
{
	events(5);
	raise(number);
	sleep_ms(300);
	say("went on\n");
}
static void act_raise_twice(int number)
{
	events(5);
	kill(getpid(), number);
	kill(getpid(), number);
	sleep_ms(300);
	say("went on\n");
}
static void *exit_main(void *arg)
{
	exit(9);
}
static void act_exit_in_thread(int n)
{
	pthread_t t;

	events(5);
	pthread_create(&t, NULL, exit_main, NULL);
	pthread_join(t, NULL);
}
static void act_main_pthread_exit(int n)
{
	events(5);
	pthread_exit(NULL);
}
static void *sleep_main(void *arg)
{
	events(5);
	sleep_ms(100);
	say("the last thread\n");
	return NULL;
}
static void act_last_thread(int n)
{
	pthread_t t;

	pthread_create(&t, NULL, sleep_main, NULL);
	pthread_detach(t);
	pthread_exit(NULL);
}
static void at_exit_one(void)
{
	events(3);
	say("atexit\n");
}
static void act_atexit(int n)
{
	atexit(at_exit_one);
	events(5);
	exit(3);
}
static void on_signal_exit(int number)
{
	exit(5);
}
static void act_exit_in_handler(int n)
{
	signal(SIGALRM, on_signal_exit);
	ready();
	ualarm(20000, 0);
	for (;;)
		events(1);
}
static char alt_stack[65536];
static void on_overflow(int number)
{
	_exit(6);
}
static int overflow(int n)
{
	volatile char room[4096];

	room[n % 4096] = (char)n;
	return overflow(n + 1) + room[0];
}
static void act_stack_overflow(int n)
{
	struct sigaction sa = { .sa_handler = on_overflow, .sa_flags = SA_ONSTACK };

	sigaltstack(&(stack_t){ .ss_sp = alt_stack, .ss_size = sizeof(alt_stack) }, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	events(5);
	exit(overflow(1));
}

/* ---- signals from outside ---- */

static volatile sig_atomic_t counts[65], any;

static void count(int number)
{
	counts[number]++;
	any = 1;
}

/* Counts what comes, until a while after the first. */
static void act_count(int restart)
{
	for (int i = 1; i <= 64; i++)
		if (i != SIGKILL && i != SIGSTOP && i != SIGCHLD && i != 32 && i != 33) {
			struct sigaction sa = { .sa_handler = count,
						.sa_flags = restart ? SA_RESTART : 0 };
			sigaction(i, &sa, NULL);
		}
	ready();
	for (int i = 0; i < 2000 && !any; i++)
		sleep_ms(5);
	sleep_ms(250);
	for (int i = 1; i <= 64; i++)
		if (counts[i])
			printf("%d: %d\n", i, counts[i]);
}
/* Steps until it is ended. */
static void act_work(int n)
{
	ready();
	for (int i = 0; i < 200; i++)
		events(1);
	exit(77);
}
static void act_poll(int n)
{
	struct pollfd none = { .fd = -1 };

	ready();
	int got = poll(&none, 1, 5000);
	if (got < 0)
		perror("poll");
	exit(got < 0 ? 3 : 0);
}
static void act_sigwait(int n)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ready();
	sigwait(&set, &number);
	printf("signal %d\n", number);
}
static void act_signalfd(int n)
{
	struct signalfd_siginfo info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC);
	ready();
	if (read(fd, &info, sizeof(info)) == sizeof(info))
		printf("signal %u\n", info.ssi_signo);
}
static void on_value(int number, siginfo_t *info, void *context)
{
	printf("value %d\n", info->si_value.sival_int);
	fflush(stdout);
	_exit(0);
}
static void act_value(int n)
{
	struct sigaction sa = { .sa_sigaction = on_value, .sa_flags = SA_SIGINFO };

	sigaction(SIGRTMIN + 1, &sa, NULL);
	ready();
	sleep_ms(5000);
}
static void on_term_again(int number)
{
	if (counts[number]++)
		_exit(11); /* "at once", as trainers take the second one */
}
static void act_checkpoint(int n)
{
	signal(SIGTERM, on_term_again);
	ready();
	while (!counts[SIGTERM])
		sleep_ms(5);
	sleep_ms(300);
	say("checkpoint\n");
	exit(12);
}

/* ---- what it can see of itself ---- */

static void put_masks(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "SigIgn", 6) || !strncmp(line, "SigBlk", 6) ||
		    !strncmp(line, "SigCgt", 6) || !strncmp(line, "NoNewPrivs", 10))
			fputs(line, stdout);
	if (f)
		fclose(f);
}
static void act_masks(int n)
{
	put_masks();
	events(20);
	put_masks();
}
static void act_descriptors(int n)
{
	events(20);
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("open %d\n", fd);
	for (int i = 0; i < 3; i++)
		printf("next %d\n", open("/dev/null", O_RDONLY));
}
static void act_threads(int n)
{
	DIR *d;
	int threads = 0;

	events(20);
	d = opendir("/proc/self/task");
	while (d && readdir(d))
		threads++;
	printf("threads %d\n", threads - 2);
}
static void act_children(int n)
{
	events(20);
	errno = 0;
	pid_t pid = waitpid(-1, NULL, WNOHANG);
	printf("children %d %s\n", pid > 0, errno == ECHILD ? "none" : "some");
}
static void act_limits(int n)
{
	struct rlimit r;

	int death = -1;

	events(5);
	prctl(PR_GET_PDEATHSIG, &death);
	printf("signal of a parent's death %d\n", death);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (getrlimit((__rlimit_resource_t)i, &r) == 0)
			printf("%d %llx %llx\n", i, (unsigned long long)r.rlim_cur,
			       (unsigned long long)r.rlim_max);
}
static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}
static void act_environment(int n)
{
	static const char *const ours[] = { "TACHO_",
					    "LD_PRELOAD=",
					    "PYTHONPATH=",
					    "CUDA_INJECTION64_PATH=",
					    "NVTX_INJECTION64_PATH=",
					    "NCCL_PROFILER_PLUGIN=",
					    "ASAN_OPTIONS=" };
	char cwd[PATH_MAX];
	size_t count = 0;

	while (environ[count])
		count++;
	qsort(environ, count, sizeof(*environ), compare);
	for (char **e = environ; *e; e++) {
		size_t i, all = sizeof(ours) / sizeof(ours[0]);

		for (i = 0; i < all && strncmp(*e, ours[i], strlen(ours[i])) != 0; i++)
			;
		if (i == all)
			puts(*e);
	}
	printf("cwd %s umask %o nice %d\n", getcwd(cwd, sizeof(cwd)), umask(022),
	       getpriority(PRIO_PROCESS, 0));
}
static void act_streams(int n)
{
	int kept = atoi(getenv("ACTOR_REPORT"));
	char byte;

	events(20);
	sleep_ms(1200); /* a recorder flushes each second */
	for (int fd = 0; fd <= 2; fd++) {
		errno = 0;
		ssize_t got = fd ? write(fd, "out\n", 4) : read(fd, &byte, 1);
		dprintf(kept, "stream %d: %zd %d\n", fd, got, errno);
	}
}
static void act_daemonize(int n)
{
	int kept = fcntl(1, F_DUPFD, 100);

	events(20);
	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	int a = open("/dev/null", O_RDWR), b = dup(a), c = dup(a);
	dprintf(kept, "%d %d %d\n", a, b, c);
	events(20);
}
static void act_close_all(int n)
{
	events(20);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	events(20);
	sleep_ms(200);
	say("closed\n");
}
static void act_reuse(int n)
{
	char name[] = "/tmp/actor.XXXXXX", text[64];

	events(20);
	int file = mkstemp(name);
	unlink(name);
	for (int fd = 3; fd < 40; fd++)
		if (fd != file)
			dup2(file, fd);
	events(200);
	sleep_ms(1300);
	events(200);
	printf("foreign bytes %zd\n", pread(file, text, sizeof(text), 0));
}

/* ---- children ---- */

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
static void act_fork(int code)
{
	events(5);
	pid_t pid = fork();
	if (pid == 0) {
		events(5);
		exit(code);
	}
	printf("child %d\n", wait_for(pid));
	events(5);
}
static void act_raw_fork(int code)
{
	struct timespec a, b;

	events(5);
	clock_gettime(CLOCK_MONOTONIC, &a);
	pid_t pid = (pid_t)syscall(SYS_fork);
	if (pid == 0) {
		events(300);
		exit(code);
	}
	int got = wait_for(pid);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("child %d, %s\n", got, b.tv_sec - a.tv_sec > 1 ? "late" : "at once");
	events(5);
}
static void act_vfork_exec(int n)
{
	static char *const words[] = { "true", NULL };

	events(5);
	pid_t pid = vfork();
	if (pid == 0) {
		execvp("true", words);
		_exit(1);
	}
	printf("child %d\n", wait_for(pid));
}
static void act_vfork_term(int n)
{
	events(5);
	pid_t pid = vfork();
	if (pid == 0) {
		kill((pid_t)syscall(SYS_getpid), SIGTERM);
		_exit(1);
	}
	printf("child %d\n", wait_for(pid));
	sleep_ms(100);
	events(5);
}
static void act_spawn(int n)
{
	static char *const words[] = { "sh", "-c", "exit 4", NULL };
	pid_t pid = 0;

	events(5);
	posix_spawnp(&pid, "sh", NULL, NULL, words, environ);
	printf("child %d\n", wait_for(pid));
	printf("system %d\n", WEXITSTATUS(system("exit 6")));
}
static void act_sigchld(int n)
{
	signal(SIGCHLD, count);
	events(5);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(i);
		wait_for(pid);
	}
	sleep_ms(50);
	printf("SIGCHLD %d\n", counts[SIGCHLD]);
}
static void act_exec(int n)
{
	events(5);
	execl("/proc/self/exe", "actor", "exit", "8", NULL);
}
static void act_daemon(int n)
{
	events(5);
	if (fork())
		_exit(0);
	setsid();
	events(5);
	sleep_ms(200);
	say("the daemon\n");
}
/* Whether there is a child that it has not made. */
static void act_adopts(int n)
{
	events(5);
	say(waitpid(-1, NULL, WNOHANG) == 0 ? "a child\n" : "none\n");
}
static void act_reparent(int n)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	events(5);
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			sleep_ms(50);
			_exit(3);
		}
		_exit(2);
	}
	int a = wait_for(pid), b = wait_for(-1);
	printf("%d %d\n", a, b);
}

/* ---- locks and unwinding ---- */

static void *event_main(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	while (!any)
		sched_yield();
	if (step)
		step();
	pthread_testcancel();
	return NULL;
}
static void act_cancel(int n)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;
		any = 0;
		pthread_create(&t, NULL, event_main, NULL);
		pthread_cancel(t);
		any = 1;
		pthread_join(t, NULL);
	}
	events(10);
	say("joined\n");
}
static void on_alarm_fork(int number)
{
	int kept = errno;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	/* on a busy machine a fork takes longer than the timer, and nothing else would run */
	if (++counts[number] == 100)
		setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	errno = kept;
}
static void act_fork_in_handler(int n)
{
	struct itimerval every = { { 0, 3000 }, { 0, 3000 } };
	struct sigaction sa = { .sa_handler = on_alarm_fork, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (counts[SIGALRM] < 100) {
		if (step)
			step();
	}
	say("forked\n");
}
static sigjmp_buf back;
static void on_alarm_jump(int number)
{
	counts[number]++;
	siglongjmp(back, 1);
}
static void act_jump_out(int n)
{
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } };

	signal(SIGALRM, on_alarm_jump);
	sigsetjmp(back, 1);
	if (counts[SIGALRM] < 100) {
		setitimer(ITIMER_REAL, &every, NULL);
		for (;;)
			if (step)
				step();
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	events(5);
	say("jumped\n");
}

/* ---- fences ---- */

static void act_userns(int n)
{
	events(20);
	printf("unshare %s\n", unshare(CLONE_NEWUSER) == 0 ? "ok" : strerror(errno));
}
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* What a program needs that only computes and writes. */
#define ALLOW_FEW                                                                                  \
	ALLOW(write), ALLOW(exit_group), ALLOW(exit), ALLOW(nanosleep), ALLOW(clock_nanosleep),    \
		ALLOW(rt_sigreturn), ALLOW(restart_syscall)
#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static volatile sig_atomic_t trapped;

static void on_trap(int number)
{
	trapped++;
}

/* From here on what is not listed is met with one of these. */
static void forbid(struct sock_filter *code, size_t count, int kind, unsigned flags)
{
	static const unsigned ways[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
					 SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_TRAP };
	struct sock_fprog filter = { (unsigned short)count, code };

	code[count - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ways[kind % 4]);
	signal(SIGSYS, on_trap);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) != 0)
		say("no filter\n");
}
static void forbid_most(int kind, unsigned flags)
{
	struct sock_filter code[] = { LOAD_NUMBER, ALLOW_FEW, { 0 } };

	forbid(code, COUNT(code), kind, flags);
}
static void act_seccomp(int n)
{
	events(20);
	forbid_most(0, SECCOMP_FILTER_FLAG_TSYNC);
	events(20);
	sleep_ms(1200);
	say("alive\n");
	_exit(0);
}
/* Before the first event, without a pause; then it returns from main(). */
static void act_filter(int kind)
{
	char name[32];

	forbid_most(kind, 0);
	for (int i = 0; i < 20 && step; i++) {
		step();
		sprintf(name, "range %d", i); /* each name is new */
		push(name);
		pop();
	}
	say(trapped ? "trapped\n" : "alive\n");
}
static void *filter_main(void *kind)
{
	if ((intptr_t)kind >= 0)
		forbid_most((int)(intptr_t)kind, 0);
	for (int i = 0; i < 20 && step; i++)
		step();
	/* the kernel also forbids it the processor's counter, so that no event is possible then */
	if ((intptr_t)kind < 0)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	say(trapped ? "trapped\n" : "the thread is alive\n");
	syscall(SYS_exit, 0); /* pthread_exit() makes system calls */
	return NULL;
}
static void act_filter_thread(int kind)
{
	pthread_t t;

	pthread_create(&t, NULL, filter_main, (void *)(intptr_t)kind);
	pthread_join(t, NULL);
	say("joined\n");
}
/* More of them at once than there is memory for, which takes system calls to map. */
static void *filter_with_others(void *kind)
{
	static _Atomic int there;

	forbid_most((int)(intptr_t)kind, 0);
	for (int i = 0; i < 20 && step; i++)
		step();
	there++;
	while (there < 6)
		sleep_ms(1);
	syscall(SYS_exit, 0);
	return NULL;
}
static void act_filter_threads(int kind)
{
	pthread_t t[6];

	for (int i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, filter_with_others, (void *)(intptr_t)kind);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	say(trapped ? "trapped\n" : "joined\n");
}
/* And more names. */
static void act_filter_names(int kind)
{
	char name[64];

	forbid_most(kind, 0);
	for (int i = 0; i < 100000 && step; i++) {
		sprintf(name, "range %d whose name is not the shortest", i);
		push(name);
		pop();
	}
	say(trapped ? "trapped\n" : "alive\n");
}
static void act_strict_thread(int n)
{
	act_filter_thread(-1);
}
/* The child's events are the first, and it returns from main(). */
static void act_filter_fork(int kind)
{
	struct sock_filter code[] = { LOAD_NUMBER,
				      ALLOW_FEW,
				      ALLOW(clone),
				      ALLOW(wait4),
				      ALLOW(set_robust_list),
				      ALLOW(rt_sigprocmask),
				      { 0 } };

	forbid(code, COUNT(code), kind, 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 20 && step; i++)
			step();
		say(trapped ? "trapped\n" : "the child is alive\n");
		return;
	}
	say(wait_for(pid) ? "failed\n" : "ended\n");
}
/* What a dynamic loader needs and this program, and no more. */
static void act_filter_exec(int kind)
{
	struct sock_filter code[] = { LOAD_NUMBER,
				      ALLOW_FEW,
				      ALLOW(execve),
				      ALLOW(brk),
				      ALLOW(mmap),
				      ALLOW(munmap),
				      ALLOW(mprotect),
				      ALLOW(openat),
				      ALLOW(read),
				      ALLOW(pread64),
				      ALLOW(close),
				      ALLOW(fstat),
				      ALLOW(newfstatat),
				      ALLOW(access),
				      ALLOW(arch_prctl),
				      ALLOW(set_tid_address),
				      ALLOW(set_robust_list),
				      ALLOW(rseq),
				      ALLOW(prlimit64),
				      ALLOW(getrandom),
				      { 0 } };

	forbid(code, COUNT(code), kind, 0);
	execl("/proc/self/exe", "actor", "exit", "8", NULL);
}
static void act_forget(int n)
{
	clearenv();
	events(20);
	say("forgotten\n");
}
/* An event leaves errno as it is, also one that makes a system call: with a new thread, name,
 * child. */
static int first_errno;
static void *errno_kept(void *bad)
{
	char name[32];

	for (int i = 0; i < 5000 && step; i++) {
		sprintf(name, "range %d", i);
		errno = 77;
		step();
		push(name);
		pop();
		*(int *)bad += errno != 77;
	}
	return bad;
}
static void act_errno(int n)
{
	int bad = 0;
	pthread_t t;

	errno_kept(&bad);
	for (int i = 0; i < 5; i++)
		if (pthread_create(&t, NULL, errno_kept, &bad) == 0)
			pthread_join(t, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		errno_kept(&bad);
		_exit(bad != 0);
	}
	printf("changed %d times, in a child %d, at first %d\n", bad, wait_for(pid), first_errno);
}
/* Each generation maps what it shares below that of its parent. */
static void act_generations(int count)
{
	events(2);
	pid_t pid = count ? fork() : -1;
	if (pid == 0)
		act_generations(count - 1);
	else
		printf("%d: %d\n", count, count ? wait_for(pid) : 0);
	_exit(0);
}
static void act_opens(int n)
{
	int opened = 0;

	events(20);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)n, (rlim_t)n });
	while (open("/dev/null", O_RDONLY) >= 0)
		opened++;
	printf("opened %d\n", opened);
}
static void act_file_size(int n)
{
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 65536, 65536 });
	char name[] = "/tmp/actor.XXXXXX", block[4096] = { 0 };
	int file = mkstemp(name);

	unlink(name);
	events(200);
	for (int i = 0; i < 20; i++)
		(void)!write(file, block, sizeof(block));
	say("went on\n");
}
static void act_cpu(int n)
{
	setrlimit(RLIMIT_CPU, &(struct rlimit){ 1, 2 });
	for (;;)
		if (step)
			step();
}
enum { LOCK_FUTURE = 1, LOCK_AFTER_EVENTS = 2, LOCK_IN_THREAD = 4, LOCK_IN_CHILD = 8 };
static void act_memory(int n)
{
	events(20);
	void *big = malloc((size_t)1 << 20);
	printf("memory %s\n", big ? "ok" : "none");
	free(big);
}
/* What a thread or a child does; after it a mapping of the program's own, which may be one too
 * much. */
static void *lock_memory(void *how)
{
	bool first = (intptr_t)how & LOCK_AFTER_EVENTS;
	int flags = MCL_CURRENT | ((intptr_t)how & LOCK_FUTURE ? MCL_FUTURE : 0);
	size_t bytes = (size_t)1 << 20;

	if (first)
		events(10);
	errno = 0;
	say(mlockall(flags) == 0 ? "locked\n" : errno == ENOMEM ? "too much\n" : "not locked\n");
	events(first ? 10 : 20);
	void *more = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say(more == MAP_FAILED ? "no more\n" : "more\n");
	return NULL;
}
static void act_lock_memory(int how)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	if (how & LOCK_IN_THREAD &&
	    pthread_create(&t, &attr, lock_memory, (void *)(intptr_t)how) == 0)
		pthread_join(t, NULL);
	else if (how & LOCK_IN_CHILD && fork())
		say(wait_for(-1) ? "failed\n" : "ended\n");
	else
		lock_memory((void *)(intptr_t)how);
}
/* More threads and names than the memory holds that is shared before main(). */
static void *busy_thread(void *number)
{
	char name[32];

	for (int i = 0; i < 500 && step; i++) {
		sprintf(name, "range %d of %d", i, i % 2 ? (int)(intptr_t)number : 0);
		push(name);
		pop();
	}
	return NULL;
}
static void act_lock_and_grow(int count)
{
	pthread_attr_t attr;
	pthread_t t[64];

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32 << 10);
	printf("mlockall %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
	events(20);
	for (int i = 0; i < count; i++)
		if (pthread_create(&t[i], &attr, busy_thread, (void *)(intptr_t)i) != 0)
			count = i;
	printf("%d threads\n", count);
	for (int i = 0; i < count; i++)
		pthread_join(t[i], NULL);
}

#include "acts_more.c"

/* clang-format off */
#define ACTS(X) X(exit) X(_exit) X(quick_exit) X(exit_group) X(return) X(abort) X(segv) X(raise) X(raise_twice) \
	X(exit_in_thread) X(main_pthread_exit) X(last_thread) X(atexit) X(exit_in_handler) X(stack_overflow) \
	X(count) X(work) X(poll) X(sigwait) X(signalfd) X(value) X(checkpoint) X(masks) X(descriptors) \
	X(threads) X(children) X(limits) X(environment) X(streams) X(daemonize) X(close_all) X(reuse) \
	X(fork) X(raw_fork) X(vfork_exec) X(vfork_term) X(spawn) X(sigchld) X(exec) X(daemon) X(reparent) X(adopts) \
	X(cancel) X(fork_in_handler) X(jump_out) X(userns) X(seccomp) X(filter) X(filter_thread) X(filter_threads) X(filter_names) X(strict_thread) \
	X(filter_fork) X(filter_exec) X(opens) X(file_size) X(cpu) \
	X(memory) X(errno) X(generations) X(forget) X(lock_memory) X(lock_and_grow) \
	X(stop_self) X(filter_raw_fork) X(raw_storm) X(shares_memory) X(crowd) X(crowd_at_once) X(small_stacks) X(bad_pointer) X(namespace) X(close_range) \
	X(traced) X(atfork) X(thread_end) X(fork_storm) X(exec_again) X(kill_group)
/* clang-format on */
static const struct {
	const char *word;
	void (*run)(int number);
} acts[] = {
#define X(name) { #name, act_##name },
	ACTS(X)
#undef X
};

int main(int argc, char **argv)
{
	first_errno = errno;
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	setvbuf(stdout, NULL, _IOLBF, 0);
	find_library();
	start_cuda();
	for (size_t i = 0; argc > 1 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(acts[i].word, argv[1]) == 0) {
			acts[i].run(argc > 2 ? atoi(argv[2]) : 0);
			return 0;
		}
	return 2;
}
