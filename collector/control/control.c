/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/control/control.h"

#include "collector/session/clock.h"
#include "collector/session/session.h"
#include "collector/session/signals.h"
#include "schemas/base/buf.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_NS     UINT64_C(2000000000)
#define PATIENCE_NS UINT64_C(1000000000) /* limit for a connection without a request */
enum { BACKLOG = 64, PEERS = 16, STACK_BYTES = 512 << 10 };

static struct {
	pthread_t thread;
	int fd;
	dev_t device;
	ino_t inode; /* detects that our descriptor was closed and its number reused */
} control = { .fd = -1 };

/* ---- commands ---- */

static void do_start(struct buf *out)
{
	if (session_is_recording()) {
		buf_put_text(out, "ok\nrecording already\n");
		return;
	}
	session_start(BY_CONTROL);
	session_flush(WAIT_NS);
	buf_put_text(out, session_is_recording() ? "ok\nrecording\n" : "error\ncannot record\n");
}

static void do_stop(struct buf *out)
{
	bool was = session_is_recording();

	if (was)
		session_feed(WINDOW_STOP, tick_now(), 0, NULL);
	session_close_log(WAIT_NS);
	buf_put_text(out, was ? "ok\nstopped\n" : "ok\nno window is open\n");
}

/* tacho-record sends this when it receives SIGUSR1. */
static void do_toggle(struct buf *out)
{
	session_toggle();
	buf_put_text(out, "ok\n");
}

static void do_save(struct buf *out)
{
	if (!session_config()->ring) {
		buf_put_text(out, "error\nthere is no ring to save: see --ring\n");
		return;
	}
	trigger_ask(TRIGGER_COMMAND);
	session_flush(WAIT_NS);
	buf_put_text(out, "ok\nsaved\n");
}

static void do_status(struct buf *out)
{
	buf_put_text(out, "ok\n");
	session_put_status(out);
}

static const struct {
	const char *name;
	void (*run)(struct buf *out);
} commands[] = {
	{ "start", do_start }, { "stop", do_stop },     { "toggle", do_toggle },
	{ "save", do_save },   { "status", do_status },
};

static void obey(const char *what, struct buf *out)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, what) == 0) {
			commands[i].run(out);
			return;
		}
	buf_put_text(out, "error\nunknown: must be start, stop, save or status\n");
}

/* ---- the socket ---- */

static bool is_friend(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

/* Reads a request that has arrived and answers it. */
static void serve_peer(int fd)
{
	char what[CONTROL_ASK + 1];
	struct buf out;

	ssize_t n = recv(fd, what, CONTROL_ASK, MSG_DONTWAIT);
	if (n <= 0)
		return;
	what[n] = '\0'; /* a NUL within the request ends it */
	buf_init(&out, CONTROL_REPLY);
	obey(what, &out);
	if (out.len)
		send(fd, buf_text(&out), out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_release(&out);
}

static bool is_ours(void)
{
	struct stat st;

	return fstat(control.fd, &st) == 0 && st.st_dev == control.device &&
	       st.st_ino == control.inode;
}

/* A connection that has not sent its request yet. */
struct peer {
	int fd;
	ino_t inode; /* detects that the descriptor was closed and its number reused */
	uint64_t until_ns;
};
struct peers {
	struct peer all[PEERS]; /* oldest first */
	unsigned count;
};

static void drop_peer(struct peers *p, unsigned i, bool serve)
{
	struct peer *peer = &p->all[i];
	struct stat st;

	if (fstat(peer->fd, &st) == 0 && st.st_ino == peer->inode) {
		if (serve)
			serve_peer(peer->fd);
		close(peer->fd);
	}
	p->count--;
	memmove(peer, peer + 1, (p->count - i) * sizeof(*peer));
}

static void accept_peer(struct peers *p)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct stat st;
	int fd = accept4(control.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			nanosleep(&pause, NULL);
		return;
	}
	if (!is_friend(fd) || fstat(fd, &st) != 0) {
		close(fd);
		return;
	}
	if (p->count == PEERS) /* drop the oldest connection */
		drop_peer(p, 0, false);
	p->all[p->count++] = (struct peer){
		.fd = fd,
		.inode = st.st_ino,
		.until_ns = tick_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS,
	};
}

static void *control_main(void *arg)
{
	struct peers peers = { .count = 0 };
	struct pollfd set[PEERS + 1];

	pthread_setname_np(pthread_self(), "tacho-ctl");
	while (is_ours()) {
		unsigned asked = peers.count;

		for (unsigned i = 0; i < asked; i++)
			set[i] = (struct pollfd){ .fd = peers.all[i].fd, .events = POLLIN };
		set[asked] = (struct pollfd){ .fd = control.fd, .events = POLLIN };
		poll(set, asked + 1, asked ? (int)(PATIENCE_NS / 1000000) : -1);
		uint64_t now_ns = tick_clock_ns(CLOCK_MONOTONIC);
		for (unsigned i = asked; i-- > 0;)
			if (set[i].revents || peers.all[i].until_ns < now_ns)
				drop_peer(&peers, i, set[i].revents & POLLIN);
		if (set[asked].revents && is_ours())
			accept_peer(&peers);
	}
	while (peers.count)
		drop_peer(&peers, 0, false);
	return NULL;
}

static int open_socket(pid_t pid)
{
	struct sockaddr_un name;
	socklen_t len = control_address(pid, &name, NULL);
	int fd = len ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;

	if (fd >= 0 && (bind(fd, (struct sockaddr *)&name, len) != 0 || listen(fd, BACKLOG) != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool make_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, before;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool made = pthread_create(&control.thread, &attr, control_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return made;
}

void control_start(pid_t pid)
{
	struct stat st;

	if (control.fd >= 0)
		return;
	control.fd = open_socket(pid);
	if (control.fd < 0)
		return;
	if (fstat(control.fd, &st) == 0) {
		control.device = st.st_dev;
		control.inode = st.st_ino;
	}
	if (make_thread())
		return;
	close(control.fd);
	control.fd = -1;
}
