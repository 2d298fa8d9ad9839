/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * List of noted files, newest first.  Entries are never freed, because the signal handler may read
 * the list at any time; the entry of a forgotten file is reused for the next path that fits.
 */
struct temporary {
	struct temporary *next;
	size_t cap;
	_Atomic bool is_there;
	char path[];
};
static struct temporary *_Atomic newest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the handler does not lock it */

static struct temporary *find_room(size_t len)
{
	struct temporary *t;

	for (t = newest; t; t = t->next)
		if (!t->is_there && t->cap >= len)
			return t;
	t = malloc(sizeof(*t) + len);
	if (!t)
		return NULL;
	t->cap = len;
	t->is_there = false;
	t->next = newest;
	newest = t;
	return t;
}

void temporary_note(const char *path)
{
	size_t len = strlen(path) + 1;
	struct temporary *t;

	pthread_mutex_lock(&lock);
	t = find_room(len); /* noting is optional, so lack of memory is no error */
	if (t) {
		memcpy(t->path, path, len);
		t->is_there = true;
	}
	pthread_mutex_unlock(&lock);
}

void temporary_forget(const char *path)
{
	struct temporary *t;

	if (!path)
		return;
	pthread_mutex_lock(&lock);
	for (t = newest; t; t = t->next)
		if (t->is_there && strcmp(t->path, path) == 0) {
			t->is_there = false;
			break;
		}
	pthread_mutex_unlock(&lock);
}

enum status temporary_make(char **path, const char *folder, struct error *err)
{
	int fd;

	if (asprintf(path, "%s/tacho-XXXXXX", folder) < 0) {
		*path = NULL;
		return fail_memory(err);
	}
	fd = mkostemp(*path, O_CLOEXEC);
	if (fd < 0) {
		free(*path);
		*path = NULL;
		return fail(err, ST_IO, NOWHERE, "cannot create a temporary file in %s: %s", folder,
			    strerror(errno));
	}
	temporary_note(*path);
	close(fd);
	return ST_OK;
}

void temporary_remove(char **path)
{
	if (!*path)
		return;
	unlink(*path);
	temporary_forget(*path);
	free(*path);
	*path = NULL;
}

int temporary_open(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || strlen(folder) > sizeof(path) - 32)
		return fd;
	stpcpy(stpcpy(path, folder), "/tacho-XXXXXX"); /* if O_TMPFILE is not supported */
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

enum status temporary_write(int fd, const void *bytes, size_t len, struct error *err)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(err, ST_IO, NOWHERE, "cannot write the temporary file: %s",
				    strerror(errno));
		at += n;
		len -= (size_t)n;
	}
	return ST_OK;
}

static void remove_all(int number)
{
	struct temporary *t;

	for (t = newest; t; t = t->next)
		if (t->is_there)
			unlink(t->path);
	for (t = newest; t; t = t->next) /* folders, which are empty now */
		if (t->is_there)
			rmdir(t->path);
	raise(number); /* SA_RESETHAND has restored the default action */
}

void temporary_guard(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	struct sigaction action = { .sa_handler = remove_all, .sa_flags = SA_RESETHAND }, before;
	size_t i;

	sigfillset(&action.sa_mask);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(ends[i], &action, NULL);
}
