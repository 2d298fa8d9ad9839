/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/store.h"

#include "collector/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	NAMES_TRIED = 1000,
	RESERVE = 64 * 1024,    /* for the last tables, losses and END */
	CHECK_BYTES = 1 << 20,  /* look at the free space this often */
	FOLDER_MAX = 3072,
};

struct store_file {
	struct store store;
	int fd, reserve_fd; /* the second holds some room on the disk; -1: none */
	dev_t device;
	ino_t inode;        /* the program may close our descriptor and open its own in its place */
	uint64_t bytes, limit, min_free, checked_at;
	bool full;
};

enum status store_make_folder(const char *folder, bool *made, struct error *err)
{
	char path[FOLDER_MAX];
	char *p;

	if (snprintf(path, sizeof(path), "%s", folder) >= (int)sizeof(path))
		return fail(err, ST_USAGE, NOWHERE, "the folder's name is too long");
	for (p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0777); /* the last one tells */
		*p = '/';
	}
	if (made)
		*made = false;
	if (mkdir(path, 0777) == 0) {
		if (made)
			*made = true;
		return ST_OK;
	}
	return errno == EEXIST ? ST_OK :
	       fail(err, ST_IO, NOWHERE, "%s: %s", folder, strerror(errno));
}

static void format_name(const struct store_place *place, unsigned n, char *out, size_t cap)
{
	char rank[16] = "x";

	if (place->rank != RANK_UNKNOWN)
		snprintf(rank, sizeof(rank), "%u", place->rank);
	snprintf(out, cap, "%s/%s.r%s.p%u.%u.tacho", place->folder, place->host, rank, place->pid,
		 n);
}

static enum status open_new(const struct store_place *place, int *fd, struct error *err)
{
	char path[FOLDER_MAX + 256];
	unsigned n;

	for (n = 0; n < NAMES_TRIED; n++) {
		format_name(place, n, path, sizeof(path));
		*fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0666);
		if (*fd >= 0)
			return ST_OK;
		if (errno != EEXIST)
			break;
	}
	return fail(err, ST_IO, NOWHERE, "%s: %s", path, strerror(errno));
}

/* Room that is given up when the disk is full, so that the log can still be closed. */
static int open_reserve(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0 && fallocate(fd, 0, 0, RESERVE) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static uint64_t file_limit(uint64_t asked)
{
	struct rlimit r;
	uint64_t limit = asked ? asked : UINT64_MAX;

	if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY &&
	    r.rlim_cur < limit)
		limit = r.rlim_cur;
	return limit;
}

static enum status file_open(struct store **out, const struct store_place *place,
			     struct error *err)
{
	struct store_file *s = calloc(1, sizeof(*s));
	enum status status;
	struct stat st;

	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a log");
	status = store_make_folder(place->folder, NULL, err);
	if (status == ST_OK)
		status = open_new(place, &s->fd, err);
	if (status != ST_OK) {
		free(s);
		return status;
	}
	s->store.type = &store_file;
	if (fstat(s->fd, &st) == 0) {
		s->device = st.st_dev;
		s->inode = st.st_ino;
	}
	s->reserve_fd = open_reserve(place->folder);
	s->limit = file_limit(place->max_bytes);
	s->min_free = place->min_free;
	*out = &s->store;
	return ST_OK;
}

static bool is_ours(int fd, const struct store_file *s)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode;
}

static bool disk_is_low(struct store_file *s)
{
	struct statvfs v;

	if (!s->min_free || (s->checked_at && s->bytes - s->checked_at < CHECK_BYTES))
		return false;
	s->checked_at = s->bytes | 1;
	return fstatvfs(s->fd, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < s->min_free;
}

static bool has_room(struct store_file *s, unsigned kind, size_t len)
{
	uint64_t kept_back = kind == LOG_EVENTS ? RESERVE : 0;

	/* a small limit is not eaten up by what is kept back */
	if (kept_back > s->limit / 4)
		kept_back = s->limit / 4;
	if (len > s->limit - kept_back || s->bytes > s->limit - kept_back - len)
		return false;
	return kind != LOG_EVENTS || !disk_is_low(s);
}

static enum status write_whole(struct store_file *s, const uint8_t *bytes, size_t len,
			       struct error *err)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = write(s->fd, bytes + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == len)
		return ST_OK;
	fail(err, ST_CEILING, NOWHERE, "%s", strerror(errno));
	/* no half block; where even this fails, the reader passes over it */
	if (done && ftruncate(s->fd, (off_t)s->bytes) != 0)
		s->bytes += done;
	return ST_CEILING;
}

static enum status fill_up(struct store_file *s, const char *why, struct error *err)
{
	s->full = true;
	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	s->reserve_fd = -1;
	return fail(err, ST_CEILING, NOWHERE, "%s", why);
}

static enum status file_put(struct store *store, unsigned kind, const uint8_t *bytes, size_t len,
			    struct error *err)
{
	struct store_file *s = (struct store_file *)store;
	struct error why;
	enum status status;

	if (s->full && kind == LOG_EVENTS)
		return fail(err, ST_CEILING, NOWHERE, "the log is full");
	if (!is_ours(s->fd, s))
		return fail(err, ST_IO, NOWHERE, "the log's descriptor was closed by the program");
	if (!has_room(s, kind, len))
		return fill_up(s, "the log has reached its limit, or the disk is full", err);
	status = write_whole(s, bytes, len, &why);
	if (status != ST_OK)
		return fill_up(s, why.text, err);
	s->bytes += len;
	return ST_OK;
}

static uint64_t file_bytes(const struct store *store)
{
	return ((const struct store_file *)store)->bytes;
}

static void file_close(struct store *store)
{
	struct store_file *s = (struct store_file *)store;

	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	if (is_ours(s->fd, s))
		close(s->fd);
	free(s);
}

const struct store_type store_file = {
	.name = "file",
	.open = file_open,
	.put = file_put,
	.bytes = file_bytes,
	.close = file_close,
};
