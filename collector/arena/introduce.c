/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/introduce.h"

#include "collector/arena/arena.h"
#include "collector/arena/spawn.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static struct sockaddr_un address;
static socklen_t address_len;
static pid_t spawned;

socklen_t introduce_address(const char *name, struct sockaddr_un *out)
{
	size_t len = strlen(name);

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (len < 2 || name[0] != '@' || len > sizeof(out->sun_path))
		return 0;
	memcpy(out->sun_path + 1, name + 1, len - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static bool send_arena(int arena_fd)
{
	struct introduction hello = { ARENA_MAGIC, ARENA_VERSION, (uint32_t)getpid() };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { &hello, sizeof(hello) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int kept = errno;
	bool sent = false;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(CMSG_DATA(&control.header), &arena_fd, sizeof(arena_fd));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, address_len) == 0)
		sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
	if (fd >= 0)
		close(fd);
	errno = kept;
	return sent;
}

/* A recorder that cannot be reached, in another network namespace for one, is as good as none. */
static bool introduce(int arena_fd)
{
	spawned = 0;
	if (address_len && send_arena(arena_fd))
		return true;
	spawned = spawn_recorder(arena_fd);
	return spawned != 0;
}

void introduce_to(const char *name, const char *library)
{
	address_len = name ? introduce_address(name, &address) : 0;
	if (spawn_find(library) || address_len)
		arena_introduce_by(introduce);
}

pid_t introduced_to(void)
{
	return spawned;
}
