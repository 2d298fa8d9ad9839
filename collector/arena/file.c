/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the file of an arena, with the features that the kernel has. */
#include "collector/arena/internal.h"

#include "schemas/base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

static unsigned forbidden, lacking; /* bits of enum arena_need */
static _Atomic enum arena_refusal refusal;
static uint64_t refused_at;
static const char *folder = "", *host = ""; /* folder and host name in paths of files */
static uint64_t least_bytes;                /* bytes that must be free there for a file */
static bool is_file;                        /* this arena gets a name in the folder */
static bool may_be_full;                    /* the file system of this arena may become full */

static const struct {
	const char *word, *without;
} needs[] = {
#define X(name, word, without) { word, without },
	ARENA_NEEDS(X)
#undef X
};

void arena_forbid(const char *words)
{
	forbidden = 0;
	for (unsigned i = 0; words && i < ARENA_NEED_COUNT; i++)
		if (strstr(words, needs[i].word))
			forbidden |= 1u << i;
}

bool arena_note(enum arena_need need, bool works)
{
	if (!works)
		lacking |= 1u << need;
	return works;
}

bool arena_allows(enum arena_need need)
{
	return arena_note(need, !(forbidden >> need & 1));
}

void arena_doctor(struct buf *out, const char *title, const char *if_whole)
{
	bool any = false;

	buf_put_text(out, title);
	for (unsigned i = 0; i < ARENA_NEED_COUNT; i++)
		if (lacking >> i & 1) {
			buf_putf(out, "%swithout %s", any ? "\n          " : "", needs[i].without);
			any = true;
		}
	buf_put_text(out, any ? "\n" : if_whole);
}

bool arena_fits_in(const char *place, uint64_t bytes)
{
	struct statfs fs;

	return *place && statfs(place, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	       (!fs.f_blocks || /* no limit */
		(uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= bytes);
}

void arena_keep_in(const char *place, const char *machine, uint64_t bytes)
{
	folder = place;
	host = machine;
	least_bytes = bytes;
}

static int open_without_name(const char *place)
{
	may_be_full = true;
	return open(place, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* Creates a file in `folder`, with allocated space for the parts that are used at first; returns -1
 * if that fails. */
static int open_in_folder(const struct arena_texts *texts, size_t threads_first)
{
	int fd = arena_fits_in(folder, least_bytes) ? open_without_name(folder) : -1;

	if (fd < 0 ||
	    (flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	     fallocate(fd, 0, 0, (off_t)(ARENA_HEADER + texts->first[0].bytes)) == 0 &&
	     fallocate(fd, 0, (off_t)(ARENA_HEADER + texts->first[1].at),
		       (off_t)texts->first[1].bytes) == 0 &&
	     fallocate(fd, 0, (off_t)(ARENA_HEADER + texts->bytes), (off_t)threads_first) == 0))
		return fd;
	close(fd);
	return -1;
}

void arena_file_name(struct arena_header *a, int fd)
{
	struct timespec now;
	char open_file[64];

	if (!is_file)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(open_file, sizeof(open_file), "/proc/self/fd/%d", fd);
	snprintf(a->file, ARENA_PATH, "%s/%s.p%u.%lld%09ld.rings", folder, host, a->pid,
		 (long long)now.tv_sec, now.tv_nsec);
	if (linkat(AT_FDCWD, open_file, AT_FDCWD, a->file, AT_SYMLINK_FOLLOW) != 0)
		a->file[0] = '\0';
}

void arena_remove_file(int fd)
{
	char path[ARENA_PATH] = "";
	struct stat named, opened;

	if (pread(fd, path, sizeof(path) - 1, offsetof(struct arena_header, file)) > 0 && *path &&
	    lstat(path, &named) == 0 && fstat(fd, &opened) == 0 && named.st_ino == opened.st_ino &&
	    named.st_dev == opened.st_dev)
		unlink(path);
}

/* Creates a memory file without a name; returns its descriptor or -1. */
static int open_file(void)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = -1;

	errno = 0;
	if (arena_allows(ARENA_MEMFD) && arena_allows(ARENA_NOEXEC)) {
		fd = memfd_create("tacho", flags | MFD_NOEXEC_SEAL);
		arena_note(ARENA_NOEXEC, fd >= 0 || errno != EINVAL);
	}
	if (fd < 0 && arena_allows(ARENA_MEMFD))
		arena_note(ARENA_MEMFD, (fd = memfd_create("tacho", flags)) >= 0);
	if (fd < 0 && errno != EMFILE && errno != ENFILE)
		fd = open_without_name("/dev/shm");
	return fd;
}

void arena_refuse(enum arena_refusal why, int resource)
{
	struct rlimit most = { 0 };

	refusal = why;
	if (resource >= 0 && getrlimit((__rlimit_resource_t)resource, &most) == 0)
		refused_at = most.rlim_cur;
}

int arena_file_make(const struct arena_texts *texts, size_t bytes, size_t threads_first)
{
	struct rlimit most;

	/* A file over the limit would cause a SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur < bytes) {
		arena_refuse(REFUSED_FILE_SIZE, RLIMIT_FSIZE);
		return -1;
	}
	int fd = open_in_folder(texts, threads_first);
	is_file = may_be_full = fd >= 0;
	if (fd < 0)
		fd = open_file();
	if (fd < 0)
		arena_refuse(REFUSED_DESCRIPTORS, RLIMIT_NOFILE);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

enum arena_refusal arena_refused(uint64_t *limit)
{
	*limit = refused_at;
	return refusal;
}

bool arena_file_may_be_full(void)
{
	return may_be_full;
}
