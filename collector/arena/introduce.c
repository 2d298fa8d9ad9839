/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/introduce.h"

#include "collector/arena/arena.h"
#include "collector/arena/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 2 };
static struct {
	struct sockaddr_un address;
	socklen_t len;
} places[PLACES]; /* where the recorder listens; a namespace may hide either of them */
static unsigned place_count;
static char pid_space[64]; /* the recorder's PID namespace, as its link in /proc; "": unknown */
static pid_t spawned;

socklen_t introduce_address(const char *name, struct sockaddr_un *out)
{
	size_t len = strcspn(name, ",");

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (len < 2 || (name[0] != '@' && name[0] != '/') || len >= sizeof(out->sun_path))
		return 0;
	memcpy(out->sun_path, name, len);
	if (name[0] == '@')
		out->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

bool introduce_send(int to, const void *bytes, size_t len, int fd)
{
	union control control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
					      .cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)bytes, len };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

ssize_t introduce_receive(int from, void *bytes, size_t len, int flags, int *fd)
{
	union control control;
	struct iovec part = { bytes, len };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(from, &message, MSG_CMSG_CLOEXEC | flags);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n;
}

static bool send_arena(unsigned place, int arena_fd)
{
	struct introduction hello = { ARENA_MAGIC, ARENA_VERSION, (uint32_t)getpid() };
	int kept = errno;
	bool sent = false;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 &&
	    connect(fd, (struct sockaddr *)&places[place].address, places[place].len) == 0)
		sent = introduce_send(fd, &hello, sizeof(hello), arena_fd);
	if (fd >= 0)
		close(fd);
	errno = kept;
	return sent;
}

/*
 * Returns whether a recorder of our own could be killed before it has written: the kernel does so
 * as process 1 of a PID namespace ends.  tacho-record then reports this process.
 */
static bool may_be_killed(void)
{
	char link[sizeof(pid_space)];
	ssize_t n = readlink(INTRODUCE_PID_SPACE, link, sizeof(link) - 1);

	link[n > 0 ? n : 0] = '\0';
	return *pid_space && n > 0 && strcmp(link, pid_space) != 0;
}

/* Introduces an arena.  A recorder that cannot be reached is treated as if there were none. */
static bool introduce(int arena_fd)
{
	spawned = 0;
	for (unsigned i = 0; i < place_count; i++)
		if (send_arena(i, arena_fd))
			return true;
	if (arena_is_early())
		return false; /* do not start one for a program that may make no event */
	if (may_be_killed())
		return false;
	spawned = spawn_recorder(arena_fd);
	return spawned != 0;
}

void introduce_to(const char *name, const char *library, bool is_reported)
{
	const char *all = name;

	for (; name && place_count < PLACES; name = strchr(name, ',')) {
		name += *name == ',';
		places[place_count].len = introduce_address(name, &places[place_count].address);
		place_count += places[place_count].len != 0;
	}
	const char *space = is_reported && all ? strstr(all, ",pid:") : NULL;
	if (space)
		snprintf(pid_space, sizeof(pid_space), "%s", space + 1);
	if (spawn_find(library) || place_count)
		arena_introduce_by(introduce);
}

bool introduce_is_awaited(void)
{
	return place_count != 0;
}

/* Only makes system calls that the dynamic loader makes, too: open, read, close. */
int seccomp_filters(const char *proc)
{
	char path[64], text[8192];

	snprintf(path, sizeof(path), "%s/status", proc);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *mode = strstr(text, "\nSeccomp:"), *count = strstr(text, "\nSeccomp_filters:");
	if (!mode) /* the kernel has no seccomp, or there is no /proc */
		return FILTERS_UNKNOWN;
	int m = atoi(strchr(mode, ':') + 1);
	return m == 1 ? FILTERS_STRICT : count && m ? atoi(strchr(count, ':') + 1) : m;
}

bool seccomp_has_more(const char *proc, int recorder)
{
	return recorder != FILTERS_UNKNOWN && seccomp_filters(proc) > recorder;
}

pid_t introduced_to(void)
{
	return spawned;
}
