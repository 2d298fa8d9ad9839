/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/internal.h"

#include "convert/base/temporary.h"
#include "schemas/base/buf.h"
#include "schemas/base/map.h"

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
	BOMB_RATIO = 200,      /* no trace unpacks to more times its size */
	KEPT_FREE = 1 << 30,   /* bytes that stay free on the disk */
	LOOK_BYTES = 64 << 20, /* bytes copied between two checks of the free space */
};

struct archive_entries {
	struct archive_entries *next;
	struct stat file;
	int copy;                /* decompressed bytes; -1: the file itself is not compressed */
	struct buf places;       /* for each member a uint64_t offset, its address and NUL */
	struct hash_index index; /* offsets into `places`, by address */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct archive_entries *cache;

static void entries_free(struct archive_entries *s)
{
	if (!s)
		return;
	if (s->copy >= 0)
		close(s->copy);
	buf_release(&s->places);
	hash_release(&s->index);
	free(s);
}

void archive_cache_clear(void)
{
	pthread_mutex_lock(&lock);
	while (cache) {
		struct archive_entries *s = cache;

		cache = s->next;
		entries_free(s);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- finding a member ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Sets *place to the offset of a member.  Returns false if the member is unknown. */
static bool find_place(const struct archive_entries *s, const char *member, uint64_t *place)
{
	uint64_t hash = hash_text(member, strlen(member));
	uint32_t offset;

	for (size_t at = hash_first(&s->index, hash);
	     (offset = hash_item(&s->index, &at, hash)) != HASH_NONE;
	     at = hash_next(&s->index, at)) {
		const char *entry = (const char *)s->places.data + offset;

		memcpy(place, entry, sizeof(*place));
		if (strcmp(entry + sizeof(*place), member) == 0)
			return true;
	}
	return false;
}

/* Adds a member; the first one with a given address wins.  Returns false if memory or space is
 * short. */
static bool add_place(struct archive_entries *s, const char *member, uint64_t place)
{
	uint32_t offset = (uint32_t)s->places.len;
	size_t len = strlen(member);
	uint64_t before;

	if (find_place(s, member, &before))
		return true;
	buf_put(&s->places, &place, sizeof(place));
	buf_put(&s->places, member, len + 1);
	return s->places.status == ST_OK &&
	       hash_add(&s->index, hash_text(member, len), offset, NULL) == ST_OK;
}

/* Moves the file offset to the member at `place`.  In a zip, the previous member's data descriptor
 * may precede it. */
static bool seek_member(int fd, uint64_t place)
{
	static const size_t behind[] = { 0, 16, 24 };
	uint8_t head[UNPACK_HEAD_BYTES + 24];
	ssize_t got = pread(fd, head, sizeof(head), (off_t)place);

	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
		size_t at = behind[i];

		if ((!at || (got > 4 && memcmp(head, "PK\7\10", 4) == 0)) && got > (ssize_t)at &&
		    archive_begins(head + at, (size_t)got - at))
			return lseek(fd, (off_t)(place + at), SEEK_SET) >= 0;
	}
	return false;
}

/* Returns a new descriptor at the member, or -1 if it is unknown or no member begins there. */
static int open_place(const struct archive_entries *s, int fd, const char *member)
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

int archive_cache_seek(int fd, const char *member)
{
	struct stat st;
	int own = -1;

	if (fd < 0 || !member || fstat(fd, &st) != 0)
		return fd;
	pthread_mutex_lock(&lock);
	for (struct archive_entries *s = cache; s && own < 0; s = s->next)
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
	struct archive_entries *made; /* NULL: the archive is not cached */
	uint64_t copied, look_at;
	archive_name each;
	void *self;
	struct archive_in *archive;
	size_t count;
};

static void give_up(struct lister *l)
{
	entries_free(l->made);
	l->made = NULL;
}

/* Returns whether `len` more bytes may be copied. */
static bool may_keep(struct lister *l, size_t len)
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

static enum status read_unpacked(void *self, void *out, size_t cap, size_t *got, struct error *err)
{
	struct lister *l = self;

	TRY(unpack_read(l->unpack, out, cap, got, err));
	if (l->made && l->made->copy >= 0 &&
	    (!may_keep(l, *got) || temporary_write(l->made->copy, out, *got, NULL) != ST_OK))
		give_up(l);
	return ST_OK;
}

static enum status put_place(void *self, const char *address, struct error *err)
{
	struct lister *l = self;
	uint64_t place = archive_in_at(l->archive);

	l->count++;
	/* addresses by number are only found by reading forward; "BZh" would look like bzip2 */
	if (l->made && address[0] != '#' && strncmp(address, "BZh", 3) != 0 &&
	    !add_place(l->made, address, place))
		give_up(l);
	return l->each(l->self, address, err);
}

static enum status list_archive(struct lister *l, const char *scratch, struct error *err)
{
	l->made = calloc(1, sizeof(*l->made));
	if (l->made) {
		buf_init(&l->made->places, MEMBERS_BYTES);
		l->made->copy = -1;
		if (!unpack_is_plain(l->unpack)) {
			l->made->copy = temporary_open(scratch);
			if (l->made->copy < 0)
				give_up(l);
		}
	}
	TRY(archive_in_open(&l->archive, read_unpacked, l, NULL, err));
	return archive_in_list(l->archive, put_place, l, err);
}

/* Adds a complete archive to the cache.  Errors in an incomplete one are reported when it is read.
 * */
static void remember(struct lister *l)
{
	struct archive_entries *s = l->made;

	if (!s || l->count < 2 || !l->archive || !archive_in_is_over(l->archive) ||
	    s->places.status != ST_OK || fstat(l->fd, &s->file) != 0)
		return;
	l->made = NULL;
	pthread_mutex_lock(&lock);
	s->next = cache;
	cache = s;
	pthread_mutex_unlock(&lock);
}

enum status archive_cache_list(const char *path, const char *scratch, archive_name each, void *self,
			       struct error *err)
{
	struct lister l = { .each = each, .self = self };
	enum status status = ST_OK;

	l.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (l.fd < 0)
		return fail(err, ST_IO, NOWHERE, "cannot be opened: %s", strerror(errno));
	if (unpack_open(&l.unpack, unpack_from_fd, &l.fd, NULL) == ST_OK && archive_is(l.unpack)) {
		status = list_archive(&l, scratch, err);
		if (status == ST_OK)
			remember(&l);
	}
	give_up(&l);
	archive_in_close(l.archive);
	unpack_close(l.unpack);
	close(l.fd);
	return status;
}
