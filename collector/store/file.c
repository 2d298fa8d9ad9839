/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/store/store.h"

#include "collector/config/config.h"

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
	RESERVE = 64 * 1024,   /* space reserved for the last tables, losses and END */
	CHECK_BYTES = 1 << 20, /* check the free space after this many bytes */
	FOLDER_MAX = 3072,
};

struct store_file {
	struct store store;
	int fd, reserve_fd; /* reserve_fd: a file that reserves space on the disk; -1: none */
	uint64_t bytes, limit, min_free, checked_at;
	bool full;
	char path[FOLDER_MAX + 256];
};

enum status store_make_folder(const char *folder, bool *made, struct error *err)
{
	char path[FOLDER_MAX];

	if (snprintf(path, sizeof(path), "%s", folder) >= (int)sizeof(path))
		return fail(err, ST_USAGE, NOWHERE, "the folder's name is too long");
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0777); /* the last mkdir() reports the error */
		*p = '/';
	}
	bool is_new = mkdir(path, 0777) == 0;
	struct stat st;

	if (made)
		*made = is_new;
	if (is_new)
		return ST_OK;
	if (errno == EEXIST && stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		errno = ENOTDIR;
	return errno == EEXIST ? ST_OK
			       : fail(err, ST_IO, NOWHERE, "%s: %s", folder, strerror(errno));
}

static enum status open_new(const struct store_place *place, int *fd, char path[FOLDER_MAX + 256],
			    struct error *err)
{
	for (unsigned n = 0; n < NAMES_TRIED; n++) {
		size_t cap = FOLDER_MAX + 256;
		char rank[16] = "x";

		if (place->rank != RANK_UNKNOWN)
			snprintf(rank, sizeof(rank), "%u", place->rank);
		if (place->first)
			snprintf(path, cap, "%.*s_%04u.tacho",
				 (int)(strrchr(place->first, '.') - place->first), place->first,
				 place->part + n);
		else
			snprintf(path, cap, "%s/%s.r%s.p%u.%u.tacho", place->folder, place->host,
				 rank, place->pid, n);
		*fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0600);
		if (*fd >= 0 && place->path)
			snprintf(place->path, STORE_PATH_MAX, "%s", path);
		if (*fd >= 0)
			return ST_OK;
		if (errno != EEXIST)
			break;
	}
	return fail(err, ST_IO, NOWHERE, "%s: %s", path, strerror(errno));
}

/* Reserves space that is released when the disk is full, so that the log can still be closed. */
static int open_reserve(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0 && fallocate(fd, 0, 0, RESERVE) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static enum status file_open(struct store **out, const struct store_place *place, struct error *err)
{
	struct store_file *s = calloc(1, sizeof(*s));

	if (!s)
		return fail_memory(err);
	enum status status = store_make_folder(place->folder, NULL, err);
	if (status == ST_OK)
		status = open_new(place, &s->fd, s->path, err);
	if (status != ST_OK) {
		free(s);
		return status;
	}
	s->store.type = &store_file;
	s->reserve_fd = open_reserve(place->folder);
	struct rlimit r;

	s->limit = place->max_bytes ? place->max_bytes : UINT64_MAX;
	if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur < s->limit) /* RLIM_INFINITY is most */
		s->limit = r.rlim_cur;
	s->min_free = place->min_free;
	*out = &s->store;
	return ST_OK;
}

bool store_has_space(const char *folder, uint64_t min_free)
{
	struct statvfs v;

	return access(folder, W_OK | X_OK) == 0 && statvfs(folder, &v) == 0 &&
	       (uint64_t)v.f_bavail * v.f_frsize >= min_free + 2 * RESERVE;
}

static bool disk_is_low(struct store_file *s)
{
	struct statvfs v;

	if (!s->min_free || (s->checked_at && s->bytes - s->checked_at < CHECK_BYTES))
		return false;
	s->checked_at = s->bytes | 1;
	return fstatvfs(s->fd, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < s->min_free;
}

static bool fits(struct store_file *s, unsigned kind, size_t len)
{
	uint64_t kept_back = kind == LOG_EVENTS ? RESERVE : 0;

	/* at most a quarter of a small limit is reserved */
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

	while (done < len) {
		ssize_t n = write(s->fd, bytes + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == len)
		return ST_OK;
	fail(err, ST_CEILING, NOWHERE, "%s", strerror(errno));
	/* remove a partial block; if that fails, readers skip the block */
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

	if (s->full && (kind == LOG_EVENTS || !s->bytes)) /* without a header nothing is readable */
		return fail(err, ST_CEILING, NOWHERE, "the log is full");
	if (!fits(s, kind, len))
		return fill_up(s, "the log has reached its limit, or the disk is full", err);
	enum status status = write_whole(s, bytes, len, &why);
	if (status != ST_OK)
		return fill_up(s, why.text, err);
	s->bytes += len;
	return ST_OK;
}

static uint64_t file_bytes(const struct store *store)
{
	return ((const struct store_file *)store)->bytes;
}

static const char *file_path(const struct store *store)
{
	return ((const struct store_file *)store)->path;
}

static void file_close(struct store *store)
{
	struct store_file *s = (struct store_file *)store;

	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	close(s->fd);
	free(s);
}

const struct store_type store_file = {
	.open = file_open,
	.put = file_put,
	.bytes = file_bytes,
	.close = file_close,
	.path = file_path,
};
