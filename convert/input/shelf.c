/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/shelf.h"

#include "schemas/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	MEMBERS_BYTES = 16 << 20,
	BOMB_RATIO = 200, /* more than this much of what is packed is no trace */
	KEPT_FREE = 1 << 30, /* bytes that stay free on the disk */
	LOOK_BYTES = 64 << 20, /* after so many more of the copy the disk is looked at again */
};

struct shelved {
	struct shelved *next;
	struct stat file;
	int copy;          /* unpacked bytes; -1: the file itself is plain */
	struct buf places; /* uint64_t, then the address with its NUL */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shelved *shelf;

int input_scratch_open(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || strlen(folder) > sizeof(path) - 32)
		return fd;
	stpcpy(stpcpy(path, folder), "/tacho-input-XXXXXX"); /* where O_TMPFILE is not known */
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static void shelved_free(struct shelved *s)
{
	if (!s)
		return;
	if (s->copy >= 0)
		close(s->copy);
	buf_release(&s->places);
	free(s);
}

void input_shelf_clear(void)
{
	pthread_mutex_lock(&lock);
	while (shelf) {
		struct shelved *s = shelf;

		shelf = s->next;
		shelved_free(s);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- taking ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* False: the member is not known. */
static bool find_place(const struct shelved *s, const char *member, uint64_t *place)
{
	const char *at = (const char *)s->places.data;
	const char *end = at ? at + s->places.len : at; /* NULL: it has no member */

	for (; at < end; at += sizeof(*place) + strlen(at + sizeof(*place)) + 1) {
		memcpy(place, at, sizeof(*place));
		if (strcmp(at + sizeof(*place), member) == 0)
			return true;
	}
	return false;
}

/* Moves the file to the member at `place`; in a zip its neighbour's sizes may stand first. */
static bool seek_member(int fd, uint64_t place)
{
	static const size_t behind[] = { 0, 16, 24 };
	uint8_t head[ARCHIVE_HEAD_BYTES + 24];
	ssize_t got = pread(fd, head, sizeof(head), (off_t)place);

	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
		size_t at = behind[i];

		if ((!at || (got > 4 && memcmp(head, "PK\7\10", 4) == 0)) && got > (ssize_t)at &&
		    archive_is(head + at, (size_t)got - at))
			return lseek(fd, (off_t)(place + at), SEEK_SET) >= 0;
	}
	return false;
}

/* A descriptor of its own at the member; -1: not known, or nothing begins there. */
static int open_place(const struct shelved *s, int fd, const char *member)
{
	uint64_t place;
	char path[64];
	int own;

	if (!find_place(s, member, &place))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->copy >= 0 ? s->copy : fd);
	own = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (own < 0)
		return -1;
	if (seek_member(own, place))
		return own;
	close(own);
	return -1;
}

int input_shelf_take(int fd, const char *member)
{
	struct stat st;
	int own = -1;

	if (fd < 0 || !member || fstat(fd, &st) != 0)
		return fd;
	pthread_mutex_lock(&lock);
	for (struct shelved *s = shelf; s && own < 0; s = s->next)
		if (same_file(&s->file, &st))
			own = open_place(s, fd, member);
	pthread_mutex_unlock(&lock);
	if (own < 0)
		return fd;
	close(fd);
	return own;
}

/* ---- listing ---- */

struct lister {
	int fd;
	struct unpack *unpack;
	struct shelved *made; /* NULL: it cannot be kept */
	uint64_t copied, look_at;
	archive_name each;
	void *self;
	struct archive_in *archive;
	size_t count;
};

static void give_up(struct lister *l)
{
	shelved_free(l->made);
	l->made = NULL;
}

static enum status read_file(void *self, void *out, size_t room, size_t *got, struct error *err)
{
	struct lister *l = self;
	ssize_t n;

	do
		n = read(l->fd, out, room);
	while (n < 0 && errno == EINTR);
	*got = n > 0 ? (size_t)n : 0;
	return n >= 0 ? ST_OK : fail(err, ST_IO, NOWHERE, "cannot be read: %s", strerror(errno));
}

/* Whether so many bytes more may be kept. */
static bool has_room(struct lister *l, size_t len)
{
	struct statvfs disk;

	l->copied += len;
	if (l->copied > KEPT_FREE / 4 && l->copied / BOMB_RATIO > unpack_packed(l->unpack))
		return false;
	if (l->copied < l->look_at)
		return true;
	l->look_at = l->copied + LOOK_BYTES;
	return fstatvfs(l->made->copy, &disk) == 0 &&
	       (uint64_t)disk.f_bavail * disk.f_frsize > KEPT_FREE + (uint64_t)LOOK_BYTES;
}

static void keep(struct lister *l, const uint8_t *bytes, size_t len)
{
	bool good = has_room(l, len);

	while (good && len) {
		ssize_t n = write(l->made->copy, bytes, len);

		good = n > 0 || (n < 0 && errno == EINTR);
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	if (!good)
		give_up(l);
}

static enum status read_unpacked(void *self, void *out, size_t room, size_t *got,
				 struct error *err)
{
	struct lister *l = self;

	TRY(unpack_read(l->unpack, out, room, got, err));
	if (l->made && l->made->copy >= 0)
		keep(l, out, *got);
	return ST_OK;
}

static enum status put_place(void *self, const char *address, struct error *err)
{
	struct lister *l = self;
	uint64_t place = archive_in_at(l->archive);

	l->count++;
	/* by its number it is found from the beginning only; "BZh" would be taken for bzip2 */
	if (l->made && address[0] != '#' && strncmp(address, "BZh", 3) != 0) {
		buf_put(&l->made->places, &place, sizeof(place));
		buf_put(&l->made->places, address, strlen(address) + 1);
	}
	return l->each(l->self, address, err);
}

static bool is_archive(struct lister *l)
{
	uint8_t head[ARCHIVE_HEAD_BYTES];
	size_t len = 0, got = 1;

	if (unpack_open(&l->unpack, read_file, l, NULL) != ST_OK)
		return false;
	while (len < sizeof(head) && got &&
	       unpack_read(l->unpack, head + len, sizeof(head) - len, &got, NULL) == ST_OK)
		len += got;
	unpack_close(l->unpack);
	l->unpack = NULL;
	return archive_is(head, len);
}

/* From its beginning again, now with what is remembered of it. */
static enum status list_archive(struct lister *l, const char *scratch, struct error *err)
{
	if (lseek(l->fd, 0, SEEK_SET) != 0)
		return fail(err, ST_IO, NOWHERE, "cannot be read: %s", strerror(errno));
	TRY(unpack_open(&l->unpack, read_file, l, err));
	l->made = calloc(1, sizeof(*l->made));
	if (l->made) {
		buf_init(&l->made->places, MEMBERS_BYTES);
		l->made->copy = -1;
		if (!unpack_is_plain(l->unpack)) {
			l->made->copy = input_scratch_open(scratch);
			if (l->made->copy < 0)
				give_up(l);
		}
	}
	TRY(archive_in_open(&l->archive, read_unpacked, l, NULL, err));
	return archive_in_list(l->archive, put_place, l, err);
}

/* Only of an archive that was whole: what is wrong with another is told as ever. */
static void shelve(struct lister *l)
{
	struct shelved *s = l->made;

	if (!s || l->count < 2 || !l->archive || !archive_in_is_over(l->archive) ||
	    s->places.status != ST_OK || fstat(l->fd, &s->file) != 0)
		return;
	l->made = NULL;
	pthread_mutex_lock(&lock);
	s->next = shelf;
	shelf = s;
	pthread_mutex_unlock(&lock);
}

enum status input_shelf_list(const char *path, const char *scratch, archive_name each, void *self,
			     struct error *err)
{
	struct lister l = { .each = each, .self = self };
	enum status status = ST_OK;

	l.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (l.fd < 0)
		return fail(err, ST_IO, NOWHERE, "cannot be opened: %s", strerror(errno));
	if (is_archive(&l)) {
		status = list_archive(&l, scratch, err);
		if (status == ST_OK)
			shelve(&l);
	}
	give_up(&l);
	archive_in_close(l.archive);
	unpack_close(l.unpack);
	close(l.fd);
	return status;
}
