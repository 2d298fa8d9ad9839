/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's sockets: one with an abstract name, which another network namespace hides, and one
 * in a folder of this user's, which another mount namespace may hide.
 */
#include "collector/arena/introduce.h"
#include "collector/recorder/recorder.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 1024, PATH_CAP = sizeof(((struct sockaddr_un *)0)->sun_path) };

static char folder[PATH_CAP]; /* "": there is none */

static int listen_at(const char *name)
{
	struct sockaddr_un address;
	socklen_t len = introduce_address(name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && len && bind(fd, (struct sockaddr *)&address, len) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void remove_folder(const char *path)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s/new", path);
	unlink(name);
	snprintf(name, sizeof(name), "%s/socket", path);
	unlink(name);
	rmdir(path);
}

/* Removes the folders of recorders that were killed together with their tacho-record. */
static void remove_left(const char *pattern)
{
	struct sockaddr_un address;
	glob_t found;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct stat st;
		socklen_t len = introduce_address(found.gl_pathv[i], &address);
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bool is_left = len && lstat(found.gl_pathv[i], &st) == 0 && S_ISSOCK(st.st_mode) &&
			       st.st_uid == geteuid() && fd >= 0 &&
			       connect(fd, (struct sockaddr *)&address, len) != 0 &&
			       errno == ECONNREFUSED;
		if (fd >= 0)
			close(fd);
		*strrchr(found.gl_pathv[i], '/') = '\0';
		if (is_left)
			remove_folder(found.gl_pathv[i]);
	}
	globfree(&found);
}

/* The socket gets its name when it listens, so that remove_left() does not take it for one that is
 * left. */
static int listen_in_folder(char path[PATH_CAP])
{
	const char *place = getenv("TMPDIR");
	char pattern[PATH_MAX], new_path[PATH_CAP + 8];

	if (!place || *place != '/' || strpbrk(place, ",*?[\\"))
		place = "/tmp";
	snprintf(pattern, sizeof(pattern), "%s/tacho-recorder.*/socket", place);
	remove_left(pattern);
	if (snprintf(folder, sizeof(folder), "%s/tacho-recorder.XXXXXX", place) + 8 >= PATH_CAP ||
	    !mkdtemp(folder)) {
		folder[0] = '\0';
		return -1;
	}
	snprintf(new_path, sizeof(new_path), "%s/new", folder);
	snprintf(path, PATH_CAP, "%.*s/socket", PATH_CAP - 8, folder);
	int fd = listen_at(new_path);
	if (fd >= 0 && rename(new_path, path) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	recorder_stop_listening();
	return -1;
}

enum status recorder_listen(int listeners[RECORDER_SOCKETS], char *name, size_t cap,
			    struct error *err)
{
	char path[PATH_CAP] = "";
	uint64_t random = 0;

	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	snprintf(name, cap, "@tacho-recorder/%d/%llx", getpid(), (unsigned long long)random);
	listeners[0] = listen_at(name);
	int why = errno;
	listeners[1] = listen_in_folder(path);
	if (listeners[1] >= 0)
		snprintf(name + strlen(name), cap - strlen(name), ",%s", path);
	size_t len = strlen(name);
	ssize_t n = readlink(INTRODUCE_PID_SPACE, name + len + 1, cap - len - 2);
	if (n > 0) {
		name[len] = ',';
		name[len + 1 + (size_t)n] = '\0';
	}
	if (listeners[0] < 0 && listeners[1] < 0)
		return fail(err, ST_IO, NOWHERE, "the recorder has no socket: %s", strerror(why));
	return ST_OK;
}

void recorder_stop_listening(void)
{
	if (*folder)
		remove_folder(folder);
	folder[0] = '\0';
}
