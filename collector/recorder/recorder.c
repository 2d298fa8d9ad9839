/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/recorder/recorder.h"

#include "collector/arena/arena.h"
#include "collector/arena/introduce.h"
#include "collector/arena/spawn.h"
#include "collector/config/config.h"
#include "collector/session/clock.h"
#include "collector/store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum {
	CLIENTS_MAX = 16384,
	POLLED_FIRST = 1 + RECORDER_SOCKETS, /* place of the first client */
	OFTEN_MS = 100,    /* time after a question with more frequent checks of the arenas */
	HANG_MS = 200,     /* time within which ranks that wait for each other begin to hang */
	SETTLE_MS = 20000, /* limit for writers on a slow machine or disk */
	SETTLE = 's',
	COMMAND = 'c',
	EXIT_NO_SPACE = 2, /* exit status of a writer that could not map the arena */
};

struct server {
	int listeners[RECORDER_SOCKETS], starter; /* starter -1: tacho-record has ended */
	int command; /* pidfd of its command, which ends with it; -1: none */
	struct recorded *clients;
	size_t count, capacity;
	int filters;           /* number of seccomp filters of the recorder itself */
	uint64_t hang_ns;      /* 0: hangs are not reported */
	uint64_t new_hang_ns;  /* time at which the latest hang was found; 0: all are reported */
	uint64_t asked_ns;     /* time of the latest question or first event of a program */
	bool is_asked;         /* tacho-record waits until the logs of dead programs are written */
	uint32_t killed;       /* number of writers that were killed */
	struct pollfd *polled; /* starter, listeners, then one for each client */
};

/* ---- clients ---- */

static void close_both(const int listeners[RECORDER_SOCKETS])
{
	for (size_t i = 0; i < RECORDER_SOCKETS; i++)
		if (listeners[i] >= 0)
			close(listeners[i]);
}

static void keep_only(const struct server *s, const struct recorded *r)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	close_both(s->listeners);
	for (size_t i = 0; i < s->count; i++)
		if (&s->clients[i] != r) {
			close(s->clients[i].arena);
			close(s->clients[i].pidfd);
		}
	dup2(null, STDERR_FILENO);
	close(null);
}

/* Starts a writer.  It keeps tacho-record's socket open, so that tacho-record notices when the last
 * of our processes ends. */
static void start_writer(struct server *s, struct recorded *r)
{
	sigset_t end;

	/* SIGTERM must not arrive before the writer has a handler for it. */
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	r->has_begun = true;
	if (s->hang_ns && !r->hang) {
		r->hang = mmap(NULL, sizeof(*r->hang), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (r->hang == MAP_FAILED)
			r->hang = NULL;
	}
	r->writer = fork();
	if (r->writer == 0) {
		keep_only(s, r);
		errno = 0;
		bool good = recorder_live(r);
		_exit(good ? EXIT_SUCCESS : errno == ENOMEM ? EXIT_NO_SPACE : EXIT_FAILURE);
	}
	sigprocmask(SIG_UNBLOCK, &end, NULL);
	if (r->writer < 0)
		r->writer = 0;
}

static void forget(struct server *s, size_t i)
{
	struct recorded *c = &s->clients[i];
	uint64_t look = LOOK_CLOSED; /* children that have inherited the arena stop waiting */

	(void)!pwrite(c->arena, &look, sizeof(look), offsetof(struct arena_header, look_state));
	recorder_unwatch(c);
	if (c->hang)
		munmap(c->hang, sizeof(*c->hang));
	close(c->arena);
	if (c->pidfd >= 0)
		close(c->pidfd);
	*c = s->clients[--s->count];
}

/* Writes the records of a dead program whose writer was killed. */
static void take_left(struct server *s, size_t i)
{
	const struct recorded *dead = &s->clients[i];
	bool is_done = dead->is_done || !dead->has_begun;
	pid_t child = is_done ? 0 : fork();
	int status = 0;

	if (child == 0 && !is_done)
		_exit(recorder_take_left(dead->arena, true) ? EXIT_SUCCESS : EXIT_FAILURE);
	if (child > 0)
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	if (child >= 0 && !status) /* otherwise a later tacho-record tries again */
		arena_remove_file(dead->arena);
	forget(s, i);
}

/* Reaps writers that have ended. */
static void reap(struct server *s)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < s->count; i++) {
			struct recorded *c = &s->clients[i];
			if (c->writer != pid)
				continue;
			c->writer = 0;
			c->is_done = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
			uint32_t died = !c->is_done;
			(void)!pwrite(c->arena, &died, sizeof(died),
				      offsetof(struct arena_header, writer_died));
			if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_SPACE)
				s->killed = RECORDER_NO_SPACE;
			else if (s->killed != RECORDER_NO_SPACE)
				s->killed += !c->is_done;
		}
}

int recorder_pidfd(int peer, pid_t pid)
{
	int fd = -1;
	socklen_t len = sizeof(fd);

	if (arena_allows(ARENA_PEER) &&
	    arena_note(ARENA_PEER, !getsockopt(peer, SOL_SOCKET, SO_PEERPIDFD, &fd, &len)))
		return fd;
#ifdef SYS_pidfd_open
	if (arena_allows(ARENA_PIDFD))
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
#endif
	arena_note(ARENA_PIDFD, fd >= 0);
	return fd;
}

static bool has_room(struct server *s)
{
	if (s->count < s->capacity)
		return true;
	size_t capacity = s->capacity ? 2 * s->capacity : 64;
	if (capacity > CLIENTS_MAX)
		return false;
	struct recorded *clients = realloc(s->clients, capacity * sizeof(*clients));
	if (clients)
		s->clients = clients;
	struct pollfd *polled = realloc(s->polled, (capacity + POLLED_FIRST) * sizeof(*polled));
	if (polled)
		s->polled = polled;
	if (!clients || !polled)
		return false;
	s->capacity = capacity;
	return true;
}

static int receive(int peer, struct introduction *hello)
{
	int fd;
	ssize_t n = introduce_receive(peer, hello, sizeof(*hello), 0, &fd);

	if (fd >= 0 && (n != sizeof(*hello) || hello->magic != ARENA_MAGIC ||
			hello->version != ARENA_VERSION)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void welcome(struct server *s, int peer)
{
	const struct timeval patience = { .tv_usec = 100000 };
	struct introduction hello;
	struct ucred who;
	socklen_t len = sizeof(who);

	setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 || !has_room(s) ||
	    (who.uid != geteuid() && who.uid != 0 && geteuid() != 0))
		return;
	int arena = receive(peer, &hello);
	if (arena < 0)
		return;
	/* A process that comes with another arena runs another program now. */
	for (size_t i = 0; i < s->count; i++)
		if (s->clients[i].pid == (uint32_t)who.pid) {
			s->clients[i].is_dead = true;
			if (s->clients[i].writer)
				kill(s->clients[i].writer, SIGTERM);
		}
	s->clients[s->count++] = (struct recorded){ .pid = (uint32_t)who.pid,
						    .inner_pid = hello.pid,
						    .arena = arena,
						    .pidfd = recorder_pidfd(peer, who.pid) };
}

/* ---- the loop ---- */

/* Reads the header of a program's arena: answers a question and starts a writer after the first
 * event.  The arena is not mapped, because its size cannot be trusted. */
static void look_into(struct server *s, struct recorded *c)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_REALTIME);
	uint32_t begun = 0;

	if (now_ns - c->beat_ns >= BEAT_MS * UINT64_C(1000000)) {
		c->beat_ns = now_ns;
		(void)!pwrite(c->arena, &now_ns, sizeof(now_ns),
			      offsetof(struct arena_header, beat_ns));
	}
	if (recorder_answer(c, s->filters))
		s->asked_ns = tick_clock_ns(CLOCK_MONOTONIC);
	if (!c->has_begun &&
	    pread(c->arena, &begun, sizeof(begun), offsetof(struct arena_header, begun)) ==
		    sizeof(begun) &&
	    begun) {
		start_writer(s, c);
		s->asked_ns = tick_clock_ns(CLOCK_MONOTONIC);
	}
}

static void accept_all(struct server *s)
{
	int peer;

	for (size_t i = 0; i < RECORDER_SOCKETS; i++)
		while ((peer = accept4(s->listeners[i], NULL, NULL, SOCK_CLOEXEC)) >= 0) {
			welcome(s, peer);
			close(peer);
		}
}

static void take_question(struct server *s)
{
	char what;
	int command;
	ssize_t n = introduce_receive(s->starter, &what, 1, MSG_DONTWAIT, &command);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		close(s->starter);
		s->starter = -1;
		s->hang_ns = 0; /* stderr has no reader, or may be a pipe that others wait for */
		close(STDERR_FILENO);
#ifdef SYS_pidfd_send_signal
		if (s->command >= 0) /* tacho-record was killed, and env would be the command */
			syscall(SYS_pidfd_send_signal, s->command, SIGKILL, NULL, 0);
#endif
	} else if (n > 0) {
		s->is_asked = what == SETTLE;
	}
	if (n < 0 && s->starter >= 0)
		return;
	if (s->command >= 0)
		close(s->command);
	s->command = command;
}

static bool is_dead(const struct recorded *c)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

	if (c->is_dead)
		return true;
	if (c->pidfd >= 0)
		return poll(&p, 1, 0) > 0;
	return kill((pid_t)c->pid, 0) < 0 && errno == ESRCH;
}

/* Returns whether a process was killed but has not ended yet, which takes longer the more memory it
 * has. */
static bool is_dying(uint32_t pid)
{
	enum { EXITING = 4 }; /* PF_EXITING of include/linux/sched.h */
	char text[COMMAND_STAT];
	unsigned flags = 0, pending = 0, threads = 0;
	/* fields 3 and on of proc(5); wanted are 9, 20 and 31 */
	const char *at = command_stat(pid, text);

	if (!at || sscanf(at,
			  "%*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			  "%*d %u %*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %u",
			  &flags, &threads, &pending) != 3)
		return false;
	return pending >> (SIGKILL - 1) & 1 || (flags & EXITING && threads <= 1);
}

/*
 * Reports a step that takes too long once, in an orphaned process.  Ranks that wait for each other
 * begin to hang one after the other, so they are reported together, when no more come.
 */
static void look_for_hangs(struct server *s)
{
	uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);
	bool any = false;
	pid_t child;

	for (size_t i = 0; i < s->count; i++) {
		struct recorded *c = &s->clients[i];
		if (recorder_hangs(c, s->hang_ns, now_ns) && !c->is_told)
			any = c->is_told = true;
	}
	if (any)
		s->new_hang_ns = now_ns;
	if (!s->new_hang_ns || now_ns - s->new_hang_ns < HANG_MS * UINT64_C(1000000))
		return;
	s->new_hang_ns = 0;
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			recorder_tell_hang(s->clients, s->count, s->hang_ns, now_ns);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	for (size_t i = 0; i < s->count; i++)
		s->clients[i].was_told = s->clients[i].is_told;
}

/* Runs one round; returns false when the recorder is no longer needed. */
static bool serve(struct server *s)
{
	struct pollfd *p = s->polled;
	bool often = tick_clock_ns(CLOCK_MONOTONIC) - s->asked_ns < OFTEN_MS * UINT64_C(1000000);
	int wait_ms = s->is_asked ? LOOK_MS : -1;

	/*
	 * Most processes make no event.  Their start and end does not wake the recorder, because
	 * that would take the processor from them: they are noticed in the next round, while there
	 * is another client.
	 */
	p[0] = (struct pollfd){ .fd = s->starter, .events = POLLIN };
	for (size_t i = 0; i < RECORDER_SOCKETS; i++)
		p[1 + i] =
			(struct pollfd){ .fd = s->count ? -1 : s->listeners[i], .events = POLLIN };
	for (size_t i = 0; i < s->count; i++) {
		const struct recorded *c = &s->clients[i];
		p[POLLED_FIRST + i] =
			(struct pollfd){ .fd = c->has_begun && !c->is_dead ? c->pidfd : -1,
					 .events = POLLIN };
		wait_ms = often ? LOOK_OFTEN_MS : LOOK_MS;
	}
	if (poll(p, s->count + POLLED_FIRST, wait_ms) < 0 && errno != EINTR)
		return false;
	if (p[0].revents)
		take_question(s);
	/* In this order, a process that died before the question has its log before the answer. */
	accept_all(s);
	reap(s);
	bool is_busy = false;
	for (size_t i = s->count; i-- > 0;) { /* forget() moves the last one to `i` */
		struct recorded *c = &s->clients[i];
		c->is_dead = is_dead(c);
		look_into(s, c); /* in this order, because it may begin and die in between */
		is_busy |= c->is_dead ? c->writer != 0 : s->is_asked && is_dying(c->pid);
		if (c->is_dead && !c->writer)
			take_left(s, i);
	}
	if (s->hang_ns)
		look_for_hangs(s);
	if (s->is_asked && !is_busy) {
		if (!s->count) /* now, so that nothing is left when tacho-record ends */
			recorder_stop_listening();
		send(s->starter, &s->killed, sizeof(s->killed), MSG_NOSIGNAL | MSG_DONTWAIT);
		s->is_asked = false;
	}
	return s->starter >= 0 || s->count;
}

void recorder_close_others(int from, const int *keep, size_t count)
{
	struct rlimit limit = { .rlim_cur = 1024 };

	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = from; fd < 65536 && (rlim_t)fd < limit.rlim_cur; fd++) {
		size_t i = 0;
		while (i < count && keep[i] != fd)
			i++;
		if (i == count)
			close(fd);
	}
}

static void leave_streams(bool speaks)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= (speaks ? 1 : 2); fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

static void note_child(int number)
{
}

static void settle_in(struct server *s)
{
	struct rlimit files;
	sigset_t none;

	s->filters = seccomp_filters("/proc/self");
	/* Each process needs two descriptors, even without events. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	prctl(PR_SET_NAME, "tacho-recorder");
	signal(SIGCHLD, note_child); /* interrupts poll() */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void recorder_main(const int listeners[RECORDER_SOCKETS], int starter, uint64_t hang_ns)
{
	struct server s = { .starter = starter, .command = -1, .hang_ns = hang_ns };
	int keep[POLLED_FIRST] = { starter };

	memcpy(s.listeners, listeners, sizeof(s.listeners));
	memcpy(keep + 1, listeners, sizeof(s.listeners));
	setsid();
	recorder_close_others(3, keep, POLLED_FIRST);
	settle_in(&s);
	arena_forbid(getenv("TACHO_WITHOUT"));
	leave_streams(hang_ns != 0);
	(void)!chdir("/");
	if (has_room(&s))
		while (serve(&s))
			;
	recorder_stop_listening();
	_exit(0);
}

int recorder_serve_program(uint32_t pid)
{
	bool has_pidfd = fcntl(SPAWN_PIDFD, F_GETFD) >= 0;
	struct server s = { .listeners = { -1, -1 }, .starter = -1, .command = -1 };
	const int keep[] = { SPAWN_ARENA, SPAWN_PIDFD };

	if (fcntl(SPAWN_ARENA, F_GETFD) < 0 || !has_room(&s))
		return EXIT_FAILURE;
	recorder_close_others(3, keep, 2);
	leave_streams(false);
	settle_in(&s);
	s.clients[s.count++] = (struct recorded){ .pid = pid,
						  .inner_pid = pid,
						  .arena = SPAWN_ARENA,
						  .pidfd = has_pidfd ? SPAWN_PIDFD : -1,
						  .is_alone = true };
	start_writer(&s, &s.clients[0]);
	while (serve(&s))
		;
	return EXIT_SUCCESS;
}

enum status recorder_start(struct recorder *r, uint64_t hang_ns, struct error *err)
{
	int listeners[RECORDER_SOCKETS], ends[2];
	char name[256];

	r->fd = -1;
	TRY(recorder_listen(listeners, name, sizeof(name), err));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		close_both(listeners);
		recorder_stop_listening();
		return fail(err, ST_IO, NOWHERE, "%s", strerror(errno));
	}
	pid_t pid = fork();
	if (pid == 0) {
		/* The recorder is an orphan, so that waiting for all children does not return
		 * it. */
		if (fork() != 0)
			_exit(0);
		recorder_main(listeners, ends[1], hang_ns);
	}
	close_both(listeners);
	close(ends[1]);
	if (pid < 0) {
		recorder_stop_listening();
		close(ends[0]);
		return fail(err, ST_MEMORY, NOWHERE, "%s", strerror(errno));
	}
	waitpid(pid, NULL, 0);
	r->fd = ends[0];
	setenv(INTRODUCE_VARIABLE, name, 1);
	snprintf(name, sizeof(name), "%d", seccomp_filters("/proc/self"));
	setenv(FILTERS_VARIABLE, name, 1);
	return ST_OK;
}

bool recorder_ends(const struct recorder *r, pid_t command)
{
	char what = COMMAND;
	bool sent = false;
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
	int fd = r->fd >= 0 && arena_allows(ARENA_PIDFD) ? (int)syscall(SYS_pidfd_open, command, 0)
							 : -1;

	sent = fd >= 0 && introduce_send(r->fd, &what, 1, fd);
	if (fd >= 0)
		close(fd);
#endif
	return sent;
}

unsigned recorder_settle(struct recorder *r)
{
	const struct timeval patience = { .tv_sec = SETTLE_MS / 1000 };
	char what = SETTLE;
	uint32_t killed = 0;

	if (r->fd < 0)
		return 0;
	setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ssize_t got = send(r->fd, &what, 1, MSG_NOSIGNAL) == 1
			      ? recv(r->fd, &killed, sizeof(killed), 0)
			      : 0;
	if (got == 0 || (got < 0 && errno == ECONNRESET)) /* reset: it died before it read this */
		killed = RECORDER_KILLED;
	if (killed == RECORDER_KILLED)
		recorder_stop_listening(); /* else it does so itself, as daemons may go on */
	else if (got < 0)
		killed = RECORDER_BUSY;
	close(r->fd);
	r->fd = -1;
	return killed;
}
