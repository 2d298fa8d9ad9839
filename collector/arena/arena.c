/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/arena.h"

#include "collector/arena/lock.h"
#include "schemas/base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { PAGE = 4096, THREADS_LEAST = 1 << 20, THREADS_USUAL = 64 << 20 };
enum { TEXTS_FIRST = 8 << 20 }; /* what the table of texts takes at first */

/* In pages that are wiped by a fork: all zero says that nothing here is this process's. */
struct claim {
	_Atomic bool is_mine;
};

static struct lock lock = LOCK_INITIALIZER;
static struct arena_header *_Atomic mapped;
static struct claim *_Atomic claim;
static bool may_make = true; /* not in a child of a bare clone(), whose `claim` is wiped */
static size_t threads_most = THREADS_USUAL;
static bool (*introduce)(int fd);
static _Atomic bool introduced;
static bool is_early;
static unsigned forbidden, lacking; /* bits of enum arena_need */
static _Atomic enum arena_refusal refusal;
static uint64_t refused_at;
static const char *folder = "", *host = ""; /* of files for arenas */
static uint64_t least_bytes;                /* that are free there before a file is made */
static bool is_file;                        /* this arena is to get a name there */
static bool may_be_full;                    /* the file system that this arena is in */

static const struct {
	const char *word, *without;
} needs[] = {
#define X(name, word, without) { word, without },
	ARENA_NEEDS(X)
#undef X
};

void arena_limit(size_t bytes)
{
	threads_most = bytes;
}

void arena_forbid(const char *words)
{
	forbidden = 0;
	for (unsigned i = 0; words && i < ARENA_NEED_COUNT; i++)
		if (strstr(words, needs[i].word))
			forbidden |= 1u << i;
}

/* Notes whether the kernel has what was asked of it. */
static bool note(enum arena_need need, bool works)
{
	if (!works)
		lacking |= 1u << need;
	return works;
}

static bool is_allowed(enum arena_need need)
{
	return note(need, !(forbidden >> need & 1));
}

void arena_doctor(struct buf *out)
{
	bool any = false;

	buf_put_text(out, "memory    ");
	for (unsigned i = 0; i < ARENA_NEED_COUNT; i++)
		if (lacking >> i & 1) {
			buf_putf(out, "%swithout %s", any ? "\n          " : "", needs[i].without);
			any = true;
		}
	buf_put_text(out, any ? "\n" : "shared by memfd, sealed, wiped in children\n");
}

/* ---- memory ---- */

void *arena_private(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (is_allowed(ARENA_WIPE))
		note(ARENA_WIPE, madvise(p, bytes, MADV_WIPEONFORK) == 0);
	return p;
}

bool arena_fits_in(const char *place, uint64_t bytes)
{
	struct statfs fs;

	return *place && statfs(place, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	       (!fs.f_blocks || /* it has no limit */
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

/* A file of our own folder, with space for what the first thread needs; -1: there is none. */
static int open_in_folder(size_t texts)
{
	int fd = arena_fits_in(folder, least_bytes) ? open_without_name(folder) : -1;

	if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 && fallocate(fd, 0, 0, TEXTS_FIRST) == 0 &&
		       fallocate(fd, 0, (off_t)(ARENA_HEADER + texts), THREADS_LEAST) == 0))
		return fd;
	close(fd);
	return -1;
}

static void name_file(struct arena_header *a, int fd)
{
	struct timespec now;
	char open_file[64];

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

/* A memory file without a name, or -1. */
static int open_file(void)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = -1;

	errno = 0;
	if (is_allowed(ARENA_MEMFD) && is_allowed(ARENA_NOEXEC)) {
		fd = memfd_create("tacho", flags | MFD_NOEXEC_SEAL);
		note(ARENA_NOEXEC, fd >= 0 || errno != EINVAL);
	}
	if (fd < 0 && is_allowed(ARENA_MEMFD))
		note(ARENA_MEMFD, (fd = memfd_create("tacho", flags)) >= 0);
	if (fd < 0 && errno != EMFILE && errno != ENFILE)
		fd = open_without_name("/dev/shm");
	return fd;
}

static void refuse(enum arena_refusal why, int resource)
{
	struct rlimit most = { 0 };

	refusal = why;
	if (resource >= 0 && getrlimit((__rlimit_resource_t)resource, &most) == 0)
		refused_at = most.rlim_cur;
}

static int make_file(size_t texts, size_t threads)
{
	size_t bytes = ARENA_HEADER + texts + threads;
	struct rlimit most;

	/* a file over the limit would cost the program a SIGXFSZ */
	if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur < bytes) {
		refuse(REFUSED_FILE_SIZE, RLIMIT_FSIZE);
		return -1;
	}
	int fd = open_in_folder(texts);
	is_file = may_be_full = fd >= 0;
	if (fd < 0)
		fd = open_file();
	if (fd < 0)
		refuse(REFUSED_DESCRIPTORS, RLIMIT_NOFILE);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * A store into a page for which a full file system has no space raises SIGBUS; where the kernel
 * stores into it, the call fails.  The pages are zero.
 */
static bool get_pages(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE) {
		if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, at + i, sizeof(uint64_t)) != 0)
			return false;
		memset(at + i, 0, sizeof(uint64_t));
	}
	return true;
}

static bool open_pages(void *at, size_t bytes)
{
	return mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0 &&
	       (!may_be_full || get_pages(at, bytes));
}

/* *fd: its file. */
static struct arena_header *map(size_t texts, size_t threads, int *fd)
{
	size_t bytes = ARENA_HEADER + texts + threads;

	*fd = make_file(texts, threads);
	if (*fd < 0)
		return NULL;
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, *fd, 0);

	/* whoever gets it may rely on its size; writing is never sealed */
	if (is_allowed(ARENA_SEALS))
		note(ARENA_SEALS, fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	if (p == MAP_FAILED) {
		refuse(REFUSED_SPACE, RLIMIT_AS);
		close_file(fd);
		return NULL;
	}
	munlock(p, bytes); /* mlockall(MCL_FUTURE) would fill it */
	madvise(p, bytes, MADV_DONTDUMP);
	if (open_pages(p, ARENA_HEADER))
		return p;
	munmap(p, bytes);
	close_file(fd);
	return NULL;
}

bool arena_is_mine(void)
{
	const struct claim *c = claim;

	return c && c->is_mine;
}

struct arena_header *arena(void)
{
	return atomic_load_explicit(&mapped, memory_order_acquire);
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static bool make(size_t texts)
{
	size_t threads = whole_pages(threads_most);
	struct arena_header *a;
	int fd;

	texts = whole_pages(texts);
	if (!claim)
		claim = arena_private(PAGE);
	if (!claim)
		return false;
	/* where address space is scarce, fewer threads get a ring */
	while ((a = map(texts, threads, &fd)) == NULL && threads > THREADS_LEAST)
		threads = whole_pages(threads / 2);
	if (!a)
		return false;
	a->magic = ARENA_MAGIC;
	a->version = ARENA_VERSION;
	a->pid = (uint32_t)getpid();
	a->bytes = ARENA_HEADER + texts + threads;
	a->texts = ARENA_HEADER;
	a->committed[0].bytes = ARENA_WHOLE;
	atomic_store_explicit(&a->used, ARENA_HEADER + texts, memory_order_relaxed);
	atomic_store_explicit(&mapped, a, memory_order_release);
	claim->is_mine = true;
	introduced = introduce && introduce(fd);
	if (!introduced && is_early) {
		claim->is_mine = false;
		atomic_store_explicit(&mapped, NULL, memory_order_release);
		munmap(a, a->bytes);
		close_file(&fd);
		return false;
	}
	if (!introduced)
		refuse(REFUSED_RECORDER, -1);
	else if (is_file)
		name_file(a, fd);
	close_file(&fd);
	return true;
}

void arena_introduce_by(bool (*by)(int fd))
{
	introduce = by;
}

enum arena_refusal arena_refused(uint64_t *limit)
{
	*limit = refused_at;
	return refusal;
}

bool arena_is_introduced(void)
{
	return arena_is_mine() && introduced;
}

void arena_set_early(bool early)
{
	is_early = early;
}

bool arena_is_early(void)
{
	return is_early;
}

void arena_stay_out(void)
{
	may_make = false;
	refusal = REFUSED_FILTER;
}

uint32_t arena_thread_number(void)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock) != 0)
		return (uint32_t)syscall(SYS_gettid);
	return (uint32_t) ~(clock >> 3);
}

bool arena_is_filtered(void)
{
	struct arena_header *a = arena();
	uint64_t until = lock_now_ns() + LOOK_LIMIT_MS * UINT64_C(1000000);
	uint64_t question = arena_thread_number(), seen = 0;
	bool is_asked = false;

	if (!a || !introduced)
		return false;
	while (lock_now_ns() < until) {
		seen = is_asked ? atomic_load(&a->look) : 0;
		if (!is_asked)
			is_asked = atomic_compare_exchange_strong(&a->look, &seen, question);
		if (seen & LOOK_CLOSED)
			return (seen & LOOK_FILTERED) != 0;
		if (is_asked && (uint32_t)seen == (uint32_t)question && seen >> 32)
			break;
	}
	/* of another thread that has died since, too */
	atomic_store(&a->look, 0);
	return (seen & LOOK_FILTERED) != 0;
}

bool arena_adopt(int fd, bool is_shared)
{
	struct stat st;

	if (!claim)
		claim = arena_private(PAGE);
	if (!claim || fstat(fd, &st) != 0 || st.st_size < ARENA_HEADER)
		return false;
	struct arena_header *a = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
				      is_shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
	if (a == MAP_FAILED)
		return false;
	if (a->magic != ARENA_MAGIC || a->version != ARENA_VERSION ||
	    a->bytes != (uint64_t)st.st_size || a->texts != ARENA_HEADER) {
		munmap(a, (size_t)st.st_size);
		return false;
	}
	atomic_store_explicit(&mapped, a, memory_order_release);
	claim->is_mine = true;
	return true;
}

bool arena_make(size_t texts)
{
	lock_take_masked(&lock);
	bool good = arena_is_mine();
	if (!good && may_make) {
		good = make(texts);
		may_make = !good && is_early; /* else once for each process */
	}
	lock_release(&lock);
	return good;
}

void arena_forked(bool inside)
{
	if (claim)
		claim->is_mine = false; /* where the kernel does not wipe */
	may_make = !inside;
}

void arena_before_fork(void)
{
	lock_take_until(&lock, UINT64_MAX); /* its holders are masked, so none is interrupted */
}

void arena_after_fork(void)
{
	lock_release(&lock);
}

/* ---- areas ---- */

void *arena_table_there(enum arena_table which, size_t bytes)
{
	struct arena_header *a = arena();
	uint64_t at =
		arena_is_mine() ? atomic_load_explicit(&a->tables[which], memory_order_acquire) : 0;

	return at && at % PAGE == 0 && at <= a->bytes && bytes <= a->bytes - at ? arena_at(a, at)
										: NULL;
}

void *arena_table(enum arena_table which, size_t bytes)
{
	void *there = arena_table_there(which, bytes);
	uint64_t at = there || !arena_is_mine() ? 0 : arena_alloc(bytes);

	if (!at)
		return there;
	atomic_store_explicit(&arena()->tables[which], at, memory_order_release);
	return arena_at(arena(), at);
}

bool arena_open_pages(uint64_t offset, size_t bytes)
{
	return open_pages(arena_at(arena(), offset), bytes);
}

uint64_t arena_alloc(size_t bytes)
{
	struct arena_header *a = arena();
	uint64_t offset = 0;

	bytes = whole_pages(bytes);
	lock_take_masked(&lock);
	uint64_t used = atomic_load_explicit(&a->used, memory_order_relaxed);
	if (arena_is_mine() && bytes <= a->bytes - used && arena_open_pages(used, bytes)) {
		offset = used;
		atomic_store_explicit(&a->used, used + bytes, memory_order_release);
	}
	lock_release(&lock);
	return offset;
}
