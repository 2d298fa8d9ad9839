/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"

#include "collector/config/config.h"
#include "collector/recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * How long the canary waits for a signal that we have received already, and we for its answer.
 * timeout(1) sends each signal to its child and then to the group: both count as one signal, as
 * they do if a program gets the second while the first is pending.
 */
enum { PATIENCE_MS = 10, ANSWER_MS = 500, WATCH_MS = 20 };

struct starter {
	sigset_t mask;               /* our own mask at the start, for the command */
	int death_signal;            /* our own PR_GET_PDEATHSIG, for the command */
	struct sigaction on_sigchld; /* our own disposition at the start */
	pid_t canary;
	int ask; /* socket to the canary; -1: there is no canary */
};

void run_hold_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR | O_CLOEXEC); /* the lowest free number */
}

/* ---- the canary ---- */

/* Returns whether the signal has come, or comes within PATIENCE_MS. */
static bool has_come(int number)
{
	const struct timespec patience = { .tv_nsec = PATIENCE_MS * 1000000L };
	sigset_t one;
	int got;

	/*
	 * kill() of a group holds a kernel lock until it has reached all members, and setpgid()
	 * waits for that lock.  If the group is outside of our PID namespace, its number is unknown
	 * (0), and setpgid() with 0 would make another group.
	 */
	if (getpgrp() > 0)
		setpgid(0, getpgrp());
	sigemptyset(&one);
	sigaddset(&one, number);
	do
		got = sigtimedwait(&one, NULL, &patience);
	while (got < 0 && errno == EINTR);
	return got == number;
}

static bool is_stopped(pid_t pid)
{
	char text[COMMAND_STAT];
	const char *stat = command_stat((uint32_t)pid, text);

	return stat && *stat == 'T';
}

/* Continues our parent where the command was continued, and our parent was not. */
static void watch(pid_t command, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, WATCH_MS) == 0)
		if (!is_stopped(command) && is_stopped(getppid()))
			kill(getppid(), SIGCONT);
}

/* It is sent the number of a signal, or the negative number of a process to watch. */
static void canary_main(int fd)
{
	int number;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "tacho-canary");
	recorder_close_others(0, &fd, 1);
	while (recv(fd, &number, sizeof(number), 0) == sizeof(number)) {
		bool came;

		if (number < 0) {
			watch(-number, fd);
			continue;
		}
		came = number && has_come(number);
		if (send(fd, &came, sizeof(came), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* Starts the canary.  Without one, for instance at the limit of processes, each signal is passed
 * on. */
static void start_canary(struct starter *s)
{
	const struct timeval patience = { .tv_usec = ANSWER_MS * 1000L };
	int ends[2];

	s->ask = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return;
	s->canary = fork();
	if (s->canary == 0)
		canary_main(ends[1]);
	close(ends[1]);
	if (s->canary < 0) {
		close(ends[0]);
		return;
	}
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	s->ask = ends[0];
}

static void stop_canary(struct starter *s)
{
	if (s->ask < 0)
		return;
	close(s->ask);
	kill(s->canary, SIGKILL); /* SIGKILL, because the canary may be stopped */
	waitpid(s->canary, NULL, 0);
	s->canary = 0;
	s->ask = -1;
}

static bool reached_group(struct starter *s, int number)
{
	bool came = false;

	if (s->ask < 0)
		return false;
	if (send(s->ask, &number, sizeof(number), MSG_NOSIGNAL) == sizeof(number) &&
	    recv(s->ask, &came, sizeof(came), 0) == sizeof(came))
		return came;
	/* A late answer would be taken for that to the next question, so do without the canary. */
	stop_canary(s);
	return false;
}

/* ---- the command ---- */

/*
 * env would have become the command, so a SIGKILL to us must end it, too.  The recorder does so, as
 * the program can read PR_GET_PDEATHSIG; we say through `report` whether it will.
 */
static void child_main(const struct starter *s, char *const *command, pid_t parent, int report)
{
	bool is_bound = false;
	int why;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || read(report, &is_bound, 1) != 1)
		_exit(RUN_NOT_EXECUTABLE);
	if (is_bound)
		prctl(PR_SET_PDEATHSIG, s->death_signal);
	sigaction(SIGCHLD, &s->on_sigchld, NULL);
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
	execvp(command[0], command);
	why = errno;
	(void)!write(report, &why, sizeof(why));
	_exit(RUN_NOT_FOUND);
}

/* Closes our ends of the standard streams, so that a pipe is closed when the command closes its
 * end. */
static void let_go_of_streams(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	close(null);
}

static enum status start_child(const struct starter *s, struct run *run, struct error *err)
{
	pid_t parent = getpid();
	int report[2], why = 0;

	run->exit_code = RUN_NOT_EXECUTABLE;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) != 0)
		return fail(err, ST_IO, NOWHERE, "%s", strerror(errno));
	run->child = fork();
	if (run->child == 0) {
		close(report[0]);
		child_main(s, run->command, parent, report[1]);
	}
	if (run->child < 0)
		why = errno;
	close(report[1]);
	bool is_bound = run->child > 0 && run->recorder && recorder_ends(run->recorder, run->child);
	(void)!send(report[0], &is_bound, 1, MSG_NOSIGNAL);
	while (!why && read(report[0], &why, sizeof(why)) < 0 && errno == EINTR)
		;
	close(report[0]);
	if (!why) {
		let_go_of_streams();
		return ST_OK;
	}
	if (run->child > 0)
		waitpid(run->child, NULL, 0);
	run->child = 0;
	run->exit_code = why == ENOENT || why == ENOTDIR ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
	return fail(err, ST_ABSENT, NOWHERE, "%s: %s", run->command[0], strerror(why));
}

/* Stops this process, so that our parent, a shell, notices that the command was stopped. */
static void stop_as_well(struct starter *s, pid_t command, int number)
{
	sigset_t one;
	int watched = -command;

	if (s->ask >= 0)
		(void)!send(s->ask, &watched, sizeof(watched), MSG_NOSIGNAL);
	sigemptyset(&one);
	sigaddset(&one, number);
	kill(getpid(), number);
	if (number != SIGSTOP) {
		sigprocmask(SIG_UNBLOCK, &one, NULL);
		sigprocmask(SIG_BLOCK, &one, NULL);
	}
	reached_group(s, 0); /* ends the watch */
}

/* Reaps all children that have ended, including orphans if we are process 1.  Returns whether the
 * command has ended. */
static bool reap(struct starter *s, struct run *run)
{
	bool ended = false;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid == s->canary && !WIFSTOPPED(status)) {
			close(s->ask);
			s->canary = 0;
			s->ask = -1;
		}
		if (pid != run->child)
			continue;
		if (WIFSTOPPED(status)) {
			stop_as_well(s, run->child, WSTOPSIG(status));
			continue;
		}
		run->status = status;
		ended = true;
	}
	return ended;
}

static void pass_on(const struct run *run, int number, const siginfo_t *info)
{
	if (info->si_code == SI_QUEUE)
		sigqueue(run->child, number, info->si_value);
	else
		kill(run->child, number);
}

static void take_signal(struct starter *s, struct run *run, int number, const siginfo_t *info)
{
	static const struct timespec now = { 0 };
	sigset_t again;

	if (number == SIGCONT && info->si_pid == s->canary)
		return; /* we were stopped with the command, which runs */
	if (reached_group(s, number)) {
		sigemptyset(&again);
		sigaddset(&again, number);
		if (number < SIGRTMIN) /* discard the second one of timeout(1) */
			sigtimedwait(&again, NULL, &now);
	} else if (!run->is_for_us || !run->is_for_us(number, run->child, run->arg)) {
		pass_on(run, number, info);
	}
}

static void wait_for_child(struct starter *s, struct run *run, const sigset_t *all)
{
	siginfo_t info;

	for (;;) {
		int number = sigwaitinfo(all, &info);

		if (number == SIGCHLD) {
			if (reap(s, run))
				return;
		} else if (number > 0) {
			take_signal(s, run, number, &info);
		}
	}
}

enum status run_command(struct run *run, struct error *err)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	struct starter s = { .ask = -1 };
	sigset_t all;

	sigemptyset(&plain.sa_mask);
	sigfillset(&all);
	/* From here on signals are pending until there is a command to which they can be passed
	 * on. */
	sigprocmask(SIG_SETMASK, &all, &s.mask);
	prctl(PR_GET_PDEATHSIG, &s.death_signal);
	sigaction(SIGCHLD, &plain, &s.on_sigchld); /* ignored, it would discard the exit status */
	start_canary(&s);
	enum status status = start_child(&s, run, err);
	if (status == ST_OK)
		wait_for_child(&s, run, &all);
	stop_canary(&s);
	return status;
}

int run_end_as(int status)
{
	sigset_t one;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (!WIFSIGNALED(status))
		return 1;
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 }); /* the command has dumped its core */
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, WTERMSIG(status));
	kill(getpid(), WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + WTERMSIG(status);
}
