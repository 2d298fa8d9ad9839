/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/control/control.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* Returns the number of a process in its own PID namespace: the last number of
 * "NSpid:\t4711\t17". */
static long inner_pid(int pid)
{
	char path[64], line[256];
	long inner = pid;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "NSpid:", 6) == 0) {
			char *at = strrchr(line, '\t');
			inner = at ? strtol(at + 1, NULL, 10) : pid;
		}
	fclose(f);
	return inner;
}

socklen_t control_address(int pid, struct sockaddr_un *out, uid_t *owner)
{
	char path[64], space[64];
	struct stat st;

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) != 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	ssize_t n = readlink(path, space, sizeof(space) - 1);
	if (n < 0)
		return 0;
	space[n] = '\0';
	if (owner)
		*owner = st.st_uid;
	int len = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "tacho/%u/%s/%ld",
			   (unsigned)st.st_uid, space, inner_pid(pid));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* Returns whether the peer belongs to the process's user or root.  Another user's process could
 * have taken the name. */
static bool is_friend(int fd, uid_t owner)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == owner || peer.uid == 0);
}

static enum status exchange(int fd, const char *what, char reply[CONTROL_REPLY + 1],
			    struct error *err)
{
	const struct timeval patience = { .tv_sec = 10 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (send(fd, what, strlen(what), MSG_NOSIGNAL) < 0)
		return fail(err, ST_IO, NOWHERE, "%s", strerror(errno));
	ssize_t n = recv(fd, reply, CONTROL_REPLY, 0);
	if (n == 0)
		return fail(err, ST_IO, NOWHERE, "no answer: the process belongs to another user");
	if (n < 0)
		return fail(err, ST_IO, NOWHERE, "no answer: %s",
			    errno == EAGAIN ? "no answer in time" : strerror(errno));
	reply[n] = '\0';
	if (strncmp(reply, "error\n", 6) == 0)
		return fail(err, ST_USAGE, NOWHERE, "%.*s", (int)strcspn(reply + 6, "\n"),
			    reply + 6);
	const char *text = strchr(reply, '\n');
	text = text ? text + 1 : reply;
	memmove(reply, text, strlen(text) + 1);
	return ST_OK;
}

enum status control_ask(int pid, const char *what, char reply[CONTROL_REPLY + 1], struct error *err)
{
	struct sockaddr_un name;
	uid_t owner = 0;
	socklen_t len = control_address(pid, &name, &owner);
	int fd = len ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
	enum status status;

	if (!len)
		return fail(err, ST_ABSENT, NOWHERE, "process %d: %s", pid,
			    errno == ENOENT ? "there is none" : strerror(errno));
	if (fd < 0)
		return fail(err, ST_IO, NOWHERE, "%s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&name, len) != 0)
		status = fail(err, ST_ABSENT, NOWHERE,
			      "process %d: it is not recorded, or has no events yet", pid);
	else if (!is_friend(fd, owner))
		status = fail(err, ST_ABSENT, NOWHERE, "process %d: another user owns its socket",
			      pid);
	else
		status = exchange(fd, what, reply, err);
	close(fd);
	return status;
}
