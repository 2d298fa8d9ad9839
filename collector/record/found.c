/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record/internal.h"

#include "collector/recorder/recorder.h"
#include "collector/store/store.h"
#include "schemas/base/vec.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOGS_MAX = 100000 };

void found_init(struct found *f)
{
	memset(f, 0, sizeof(*f));
}

void found_release(struct found *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->names[i]);
	free(f->names);
	found_init(f);
}

static bool is_named(const char *name, const char *host, const char *ending)
{
	size_t len = strlen(name), host_len = strlen(host), end_len = strlen(ending);

	return len > host_len + end_len + 1 && !strncmp(name, host, host_len) &&
	       name[host_len] == '.' && !strcmp(name + len - end_len, ending);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add(struct found *f, const char *name)
{
	if (vec_reserve(&f->names, &f->cap, f->count + 1, NULL) != ST_OK)
		return false;
	f->names[f->count] = strdup(name);
	return f->names[f->count] && ++f->count;
}

static void look(struct found *f, const char *folder, const char *host, const char *ending)
{
	DIR *d = opendir(folder);
	struct dirent *entry;

	while (d && f->count < LOGS_MAX && (entry = readdir(d)) != NULL)
		if (is_named(entry->d_name, host, ending) && !add(f, entry->d_name))
			break;
	if (d)
		closedir(d);
	if (f->count)
		qsort(f->names, f->count, sizeof(*f->names), compare);
}

void found_look(struct found *f, const char *folder, const char *host)
{
	look(f, folder, host, ".tacho");
}

bool found_holds(const struct found *f, const char *name)
{
	return f->count && bsearch(&name, f->names, f->count, sizeof(*f->names), compare) != NULL;
}

/* ---- rings ---- */

/* Removes a file that was saved or is empty.  Returns whether the file remains because it cannot be
 * saved now; a later run may succeed. */
static bool is_left(const char *path, enum status status, const struct error *err)
{
	if (status == ST_OK || status == ST_END)
		unlink(path);
	if (status == ST_OK || status == ST_END ||
	    status == ST_ABSENT) /* absent: its process is alive, or belongs to another user */
		return false;
	fprintf(stderr, "tacho-record: %s is unchanged: %s\n", path, err->text);
	return true;
}

static bool take_ring(const char *path, const char *folder, const char *word, bool save)
{
	struct error err;
	uint64_t bytes;

	return is_left(path, store_save_left(path, save ? folder : NULL, word, &bytes, &err), &err);
}

/* Saves the rings of the threads of a process that was killed together with its recorder.  Returns
 * whether the file remains. */
static bool take_arena(const char *path)
{
	struct error err;
	struct stat st;
	int fd, failed = 0;
	enum status status = store_open_left(path, O_RDWR, &fd, &err);

	/* A locked file is in use, and one without a name was saved by another tacho-record. */
	if (status == ST_OK &&
	    (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &st) != 0 || !st.st_nlink))
		status = ST_ABSENT;
	if (status == ST_OK) {
		pid_t child = fork();
		if (child == 0)
			_exit(recorder_take_left(fd, false) ? EXIT_SUCCESS : EXIT_FAILURE);
		if (child < 0 || waitpid(child, &failed, 0) < 0 || failed)
			status = fail(&err, ST_FORMAT, NOWHERE, "no log can be made of it");
	}
	bool left = is_left(path, status, &err);
	if (fd >= 0)
		close(fd);
	return left;
}

unsigned found_rings(const char *rings, const char *host, const char *folder, bool save, pid_t pid,
		     int status)
{
	char path[8192], word[64];
	unsigned left = 0;
	struct found f;

	found_init(&f);
	look(&f, rings, host, ".ring");
	for (size_t i = 0; i < f.count; i++) {
		snprintf(path, sizeof(path), "%s/%s", rings, f.names[i]);
		const char *name = f.names[i] + strlen(host);
		size_t cap = sizeof(word);
		const char *at = strstr(name, ".p");
		bool is_child = pid && at && strtol(at + 2, NULL, 10) == pid;

		if (is_child && WIFSIGNALED(status))
			snprintf(word, cap, "death, signal %d", WTERMSIG(status));
		else if (is_child && WIFEXITED(status))
			snprintf(word, cap, "death, exit %d", WEXITSTATUS(status));
		else
			snprintf(word, cap, "death");
		left += take_ring(path, folder, word, save);
	}
	found_release(&f);
	look(&f, rings, host, ".rings");
	for (size_t i = 0; i < f.count; i++) {
		snprintf(path, sizeof(path), "%s/%s", rings, f.names[i]);
		left += take_arena(path);
	}
	found_release(&f);
	return left;
}
