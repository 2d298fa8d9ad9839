/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - stands between a program and its files (LD_PRELOAD), and makes calls fail.
 *
 *	FAULT_AT=N        the Nth call that writes fails: write, pwrite, writev, rename, close,
 *	                  fsync, ftruncate, fallocate, open for writing; and all that write after it
 *	                  (a disk that is full stays full; close and rename fail once)
 *	FAULT_ERRNO=28    what it fails with; 28 is ENOSPC, 5 is EIO
 *	FAULT_LOG=FILE    at the end of each process a line: how many such calls there were, and
 *what failed FAULT_SHORT=1     reads and writes move one byte where they may move fewer, and every
 *other call that may is interrupted first (EINTR) FAULT_SHORT=N     the same with N bytes
 *
 * Only descriptors of regular files are counted, and those that FAULT_PIPES=1 adds: pipes.  The
 * standard error of the program is left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long fail_at, fail_errno = ENOSPC, at_most;
static bool pipes_too;
static const char *log_file;
static atomic_long calls, turns;
static const char *_Atomic failed;

#define REAL(type, name, ...)                                                                      \
	static type (*real_##name)(__VA_ARGS__);                                                   \
	if (!real_##name)                                                                          \
	real_##name = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static long number_of(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
	fail_at = number_of("FAULT_AT", 0);
	fail_errno = number_of("FAULT_ERRNO", ENOSPC);
	at_most = number_of("FAULT_SHORT", 0);
	pipes_too = number_of("FAULT_PIPES", 0) != 0;
	log_file = getenv("FAULT_LOG");
}

__attribute__((destructor)) static void end(void)
{
	FILE *f = log_file ? fopen(log_file, "a") : NULL;
	const char *what = failed;

	if (!f)
		return;
	fprintf(f, "%ld %s\n", (long)calls, what ? what : "-");
	fclose(f);
}

/* The recorder's processes end so, and write what a recorded program made. */
void _exit(int status)
{
	end();
	for (;;)
		syscall(SYS_exit_group, status);
}

static bool is_ours(int fd)
{
	struct stat st;

	if (fd == STDERR_FILENO || fstat(fd, &st) != 0)
		return false;
	return S_ISREG(st.st_mode) || (pipes_too && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

/* Counts a call; true: it fails.  `once`: what comes later does not fail too. */
static bool fails(const char *what, bool once)
{
	long n = atomic_fetch_add(&calls, 1) + 1;

	if (!fail_at || n < fail_at || (once && n > fail_at))
		return false;
	if (n == fail_at)
		failed = what;
	errno = (int)fail_errno;
	return true;
}

/* Every other time; the rest are cut to a few bytes. */
static bool interrupts(size_t *len)
{
	if (!at_most)
		return false;
	if (atomic_fetch_add(&turns, 1) % 2) {
		errno = EINTR;
		return true;
	}
	if (*len > (size_t)at_most)
		*len = (size_t)at_most;
	return false;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	REAL(ssize_t, write, int, const void *, size_t);
	if (is_ours(fd) && (fails("write", false) || interrupts(&len)))
		return -1;
	return real_write(fd, bytes, len);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at)
{
	REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
	if (is_ours(fd) && (fails("pwrite", false) || interrupts(&len)))
		return -1;
	return real_pwrite64(fd, bytes, len, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	return pwrite64(fd, bytes, len, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	REAL(ssize_t, writev, int, const struct iovec *, int);
	if (is_ours(fd) && fails("writev", false))
		return -1;
	return real_writev(fd, parts, count);
}

ssize_t read(int fd, void *bytes, size_t len)
{
	REAL(ssize_t, read, int, void *, size_t);
	if (is_ours(fd) && interrupts(&len))
		return -1;
	return real_read(fd, bytes, len);
}

ssize_t pread64(int fd, void *bytes, size_t len, off64_t at)
{
	REAL(ssize_t, pread64, int, void *, size_t, off64_t);
	if (is_ours(fd) && interrupts(&len))
		return -1;
	return real_pread64(fd, bytes, len, at);
}

ssize_t pread(int fd, void *bytes, size_t len, off_t at)
{
	return pread64(fd, bytes, len, at);
}

int rename(const char *from, const char *to)
{
	REAL(int, rename, const char *, const char *);
	if (fails("rename", true))
		return -1;
	return real_rename(from, to);
}

static bool is_writing(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && is_ours(fd);
}

/* The descriptor is gone, as it is where a network's file system tells late that it is full. */
int close(int fd)
{
	REAL(int, close, int);
	bool told = is_writing(fd) && fails("close", true);
	int fault = errno, rc = real_close(fd);

	if (!told)
		return rc;
	errno = fault;
	return -1;
}

int fsync(int fd)
{
	REAL(int, fsync, int);
	if (is_ours(fd) && fails("fsync", true))
		return -1;
	return real_fsync(fd);
}

int fdatasync(int fd)
{
	REAL(int, fdatasync, int);
	if (is_ours(fd) && fails("fdatasync", true))
		return -1;
	return real_fdatasync(fd);
}

int ftruncate64(int fd, off64_t size)
{
	REAL(int, ftruncate64, int, off64_t);
	if (is_ours(fd) && fails("ftruncate", true))
		return -1;
	return real_ftruncate64(fd, size);
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
	REAL(int, fallocate, int, int, off_t, off_t);
	if (is_ours(fd) && fails("fallocate", false))
		return -1;
	return real_fallocate(fd, mode, at, len);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
	REAL(int, posix_fallocate, int, off_t, off_t);
	if (is_ours(fd) && fails("posix_fallocate", false))
		return errno;
	return real_posix_fallocate(fd, at, len);
}

static bool opens_to_write(const char *path, int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY && strncmp(path, "/dev/", 5) != 0 &&
	       strncmp(path, "/proc/", 6) != 0 && fails("open", false);
}

#define OPENS(name)                                                                                \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		REAL(int, name, const char *, int, ...);                                           \
		va_list args;                                                                      \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(args, flags);                                                             \
		mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                   \
		va_end(args);                                                                      \
		return opens_to_write(path, flags) ? -1 : real_##name(path, flags, mode);          \
	}

OPENS(open)
OPENS(open64)

int mkostemp(char *path, int flags)
{
	REAL(int, mkostemp, char *, int);
	if (fails("mkostemp", false))
		return -1;
	return real_mkostemp(path, flags);
}
