/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/arena.h"

#include "collector/arena/lock.h"
#include "schemas/base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { PAGE = 4096, THREADS_LEAST = 1 << 20, THREADS_USUAL = 64 << 20 };

/* In pages that are wiped by a fork: all zero says that nothing here is this process's. */
struct claim {
	bool is_mine;
};

static struct lock lock = LOCK_INITIALIZER;
static struct arena_header *_Atomic mapped;
static struct claim *_Atomic claim;
static bool may_make = true; /* not in a child of a bare clone(), whose `claim` is wiped */
static size_t threads_most = THREADS_USUAL;
static bool (*introduce)(int fd);
static bool introduced;
static unsigned forbidden, lacking; /* bits of enum arena_need */
static enum arena_refusal refusal;
static uint64_t refused_at;

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
		fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd;
}

static void refuse(enum arena_refusal why, int resource)
{
	struct rlimit most = { 0 };

	refusal = why;
	if (resource >= 0 && getrlimit((__rlimit_resource_t)resource, &most) == 0)
		refused_at = most.rlim_cur;
}

static int make_file(size_t bytes)
{
	struct rlimit most;

	/* a file over the limit would cost the program a SIGXFSZ */
	if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur < bytes) {
		refuse(REFUSED_FILE_SIZE, RLIMIT_FSIZE);
		return -1;
	}
	int fd = open_file();
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

/* *fd: its file. */
static struct arena_header *map(size_t bytes, int *fd)
{
	*fd = make_file(bytes);
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
	if (mprotect(p, ARENA_HEADER, PROT_READ | PROT_WRITE) == 0)
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
	while ((a = map(ARENA_HEADER + texts + threads, &fd)) == NULL && threads > THREADS_LEAST)
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
	if (!introduced)
		refuse(REFUSED_RECORDER, -1);
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

bool arena_adopt(int fd, bool is_alive)
{
	struct stat st;

	if (!claim)
		claim = arena_private(PAGE);
	if (!claim || fstat(fd, &st) != 0 || st.st_size < ARENA_HEADER)
		return false;
	struct arena_header *a = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
				      is_alive ? MAP_SHARED : MAP_PRIVATE, fd, 0);
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
	lock_take(&lock);
	bool good = arena_is_mine();
	if (!good && (may_make || !claim)) {
		may_make = false; /* once for each process */
		good = make(texts);
	}
	lock_release(&lock);
	return good;
}

void arena_forked(void)
{
	if (claim)
		claim->is_mine = false; /* where the kernel does not wipe */
	may_make = true;
}

void arena_before_fork(void)
{
	lock_take(&lock);
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
	return mprotect(arena_at(arena(), offset), bytes, PROT_READ | PROT_WRITE) == 0;
}

uint64_t arena_alloc(size_t bytes)
{
	struct arena_header *a = arena();
	uint64_t offset = 0;

	bytes = whole_pages(bytes);
	lock_take(&lock);
	uint64_t used = atomic_load_explicit(&a->used, memory_order_relaxed);
	if (arena_is_mine() && bytes <= a->bytes - used && arena_open_pages(used, bytes)) {
		offset = used;
		atomic_store_explicit(&a->used, used + bytes, memory_order_release);
	}
	lock_release(&lock);
	return offset;
}
