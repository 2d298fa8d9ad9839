/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/internal.h"
#include "collector/arena/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum {
	PAGE = 4096,
	THREADS_USUAL = 64 << 20,
	GROWTH_LEAST = 256 << 10,
	GROWTH_OF_FILE = 4 << 20, /* limit for a file on tmpfs, whose pages are allocated at once */
};
/*
 * The arena is mapped BELOW_LIBRARIES bytes below the C library's mappings.  If a parent's arena,
 * inherited through fork(), is there, it is mapped at the next of ARENA_PLACES places, which are a
 * multiple of BETWEEN_ARENAS apart.
 */
#define BELOW_LIBRARIES (UINT64_C(1) << 38)
#define BETWEEN_ARENAS  (UINT64_C(1) << 32)
enum { ARENA_PLACES = 64 };

/* It is in pages that the kernel clears in a forked child, so the child does not own the arena. */
struct claim {
	_Atomic bool is_here; /* this process is not a new one */
	_Atomic bool is_mine; /* the arena is its own */
};

static struct lock lock = LOCK_INITIALIZER;
static struct arena_header *_Atomic mapped;
static struct claim *_Atomic claim;
static bool may_make = true; /* false in a child that must not have an arena */
static void (*when_cloned)(void);
static bool is_cloned; /* by a bare clone(), so that thread numbers of libc may be the parent's */
static _Thread_local uint32_t own_number; /* of the thread that was cloned; 0: libc knows it */
static size_t threads_most = THREADS_USUAL, threads_first = 1 << 20;
static bool (*introduce)(int fd);
static _Atomic bool introduced;
static bool is_early;
static bool is_whole;                   /* the whole arena is one mapping */
static _Atomic bool is_asking;          /* a thread calls arena_filters() or maps more */
static _Atomic uint64_t mapped_until;   /* offset in the areas, up to which pages are mapped */
static _Atomic uint64_t refused_growth; /* least growth in bytes that failed */

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

void arena_limit(size_t bytes, size_t first)
{
	threads_most = whole_pages(bytes);
	threads_first = whole_pages(first < bytes ? first : bytes);
}

/* ---- memory ---- */

void *arena_private(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (arena_allows(ARENA_WIPE))
		arena_note(ARENA_WIPE, madvise(p, bytes, MADV_WIPEONFORK) == 0);
	return p;
}

void *arena_once(void *_Atomic *at, size_t bytes)
{
	void *there = atomic_load_explicit(at, memory_order_acquire);

	if (there)
		return there;
	void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED || atomic_compare_exchange_strong(at, &there, made))
		return made == MAP_FAILED ? NULL : made;
	munmap(made, bytes);
	return there;
}

static size_t arena_bytes(const struct arena_texts *texts)
{
	return ARENA_HEADER + texts->bytes + threads_most;
}

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * Makes the file system allocate pages, and clears them.  If a file system is full, a store into a
 * page that is not allocated raises SIGBUS.  A system call that stores into it only fails, so
 * each page is touched by one first.
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

/* Maps a part of the file at `at`, or anywhere if that is NULL; returns NULL if that is impossible.
 */
static void *map_at(uint8_t *at, size_t bytes, int fd, uint64_t offset)
{
	int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
	uint8_t *p = mmap(at, bytes, PROT_NONE, flags, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return NULL;
	munlock(p, bytes); /* otherwise mlockall(MCL_FUTURE) would allocate all of it */
	/* a kernel that does not know the flag may have chosen another address */
	if ((!at || p == at) && mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0 &&
	    madvise(p, bytes, MADV_DONTDUMP) == 0)
		return p;
	munmap(p, bytes);
	return NULL;
}

/* Maps the parts that are used at first to their places in an arena that begins at `at`.  Returns
 * `at`, or NULL if another mapping is there. */
static uint8_t *map_first(uint8_t *at, const struct arena_texts *t, int fd)
{
	const struct {
		uint64_t at;
		size_t bytes;
	} parts[] = { { 0, ARENA_HEADER + t->first[0].bytes },
		      { ARENA_HEADER + t->first[1].at, t->first[1].bytes },
		      { ARENA_HEADER + t->bytes, threads_first } };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint8_t *to = at + parts[i].at;
		if (map_at(to, parts[i].bytes, fd, parts[i].at))
			continue;
		for (size_t k = 0; k < i; k++)
			munmap(at + parts[k].at, parts[k].bytes);
		return NULL;
	}
	return at;
}

/* An early process may never record an event, so it maps at most an eighth of its address space
 * limit. */
static bool may_take(size_t bytes)
{
	struct rlimit space;

	return !is_early || (getrlimit(RLIMIT_AS, &space) == 0 && bytes <= space.rlim_cur / 8);
}

static void unmap(uint8_t *at, const struct arena_texts *t)
{
	munmap(at, is_whole ? arena_bytes(t) : ARENA_HEADER + t->first[0].bytes);
	if (is_whole)
		return;
	munmap(at + ARENA_HEADER + t->first[1].at, t->first[1].bytes);
	munmap(at + ARENA_HEADER + t->bytes, threads_first);
}

/* Maps a new arena and sets `*fd` to its file; returns NULL if that fails, with `*fd` -1. */
static struct arena_header *map(const struct arena_texts *texts, int *fd)
{
	uint64_t ours = (uint64_t)(uintptr_t)&lock & ~(uint64_t)(PAGE - 1);
	uint64_t top = ours - BELOW_LIBRARIES;
	uint64_t bytes = arena_bytes(texts);
	uint64_t step = (bytes + BETWEEN_ARENAS - 1) & ~(BETWEEN_ARENAS - 1);
	bool may_place = arena_allows(ARENA_PLACE) && top < ours && may_take(2 * threads_first);
	uint8_t *p = NULL;

	*fd = arena_file_make(texts, bytes, threads_first);
	if (*fd < 0)
		return NULL;
	for (unsigned i = 0; may_place && i < ARENA_PLACES && !p && top > i * step; i++)
		p = map_first((uint8_t *)(uintptr_t)(top - i * step), texts, *fd);
	is_whole = !p && may_take(bytes);
	if (is_whole)
		p = map_at(NULL, bytes, *fd, 0);
	if (!p)
		arena_refuse(REFUSED_SPACE, errno == EAGAIN ? RLIMIT_MEMLOCK : RLIMIT_AS);
	if (p && arena_file_may_be_full() &&
	    !(get_pages(p, ARENA_HEADER + texts->first[0].bytes) &&
	      get_pages(p + ARENA_HEADER + texts->first[1].at, texts->first[1].bytes) &&
	      get_pages(p + ARENA_HEADER + texts->bytes, threads_first))) {
		unmap(p, texts);
		p = NULL;
	}
	bool has_all = is_whole && !arena_file_may_be_full();
	atomic_store(&mapped_until, has_all ? bytes : bytes - threads_most + threads_first);
	atomic_store(&refused_growth, UINT64_MAX);
	/* a process that receives the file may rely on its size; writing is never sealed */
	if (arena_allows(ARENA_SEALS))
		arena_note(ARENA_SEALS, fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	if (!p)
		close_file(fd);
	return (void *)p;
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

/* Unmaps the part of the parent's arena that was never allocated. */
static void leave_inherited(void)
{
	struct arena_header *a = arena();
	uint64_t used = a ? atomic_load(&a->used) : 0, until = atomic_load(&mapped_until);

	if (used && used < until)
		munmap(arena_at(a, used), until - used);
}

static uint64_t real_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool make(const struct arena_texts *texts)
{
	struct arena_header *a;
	int fd;

	if (!claim)
		claim = arena_private(PAGE);
	if (!claim)
		return false;
	leave_inherited();
	a = map(texts, &fd);
	if (!a)
		return false;
	a->magic = ARENA_MAGIC;
	a->version = ARENA_VERSION;
	a->pid = (uint32_t)getpid();
	a->bytes = arena_bytes(texts);
	a->texts = ARENA_HEADER;
	a->beat_ns = real_now_ns();
	a->committed[0].bytes = ARENA_WHOLE;
	atomic_store_explicit(&a->used, ARENA_HEADER + texts->bytes, memory_order_relaxed);
	atomic_store_explicit(&mapped, a, memory_order_release);
	claim->is_mine = true;
	introduced = introduce && introduce(fd);
	if (!introduced && is_early) {
		claim->is_mine = false;
		atomic_store_explicit(&mapped, NULL, memory_order_release);
		unmap((void *)a, texts);
		close_file(&fd);
		return false;
	}
	if (!introduced)
		arena_refuse(REFUSED_RECORDER, -1);
	else
		arena_file_name(a, fd);
	close_file(&fd);
	return true;
}

void arena_introduce_by(bool (*by)(int fd))
{
	introduce = by;
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

void arena_stay_out(enum arena_refusal why)
{
	may_make = false;
	arena_refuse(why, -1);
}

uint32_t arena_thread_number(void)
{
	clockid_t clock;

	if (own_number)
		return own_number;
	if (pthread_getcpuclockid(pthread_self(), &clock) != 0)
		return (uint32_t)syscall(SYS_gettid);
	return (uint32_t) ~(clock >> 3);
}

/* The recorder has not answered: it frees the place, or those of threads that have died since. */
static void give_up(struct arena_header *a, _Atomic uint64_t *mine, uint64_t question)
{
	for (unsigned i = 0; i < ARENA_LOOKS && !mine; i++) {
		uint64_t seen = atomic_load(&a->looks[i]);
		if (seen & LOOK_ANSWERS)
			atomic_compare_exchange_strong(&a->looks[i], &seen, 0);
	}
	if (mine && !atomic_compare_exchange_strong(mine, &question, LOOK_SILENT))
		atomic_store(mine, 0);
	atomic_store(&a->look_state, LOOK_SILENT);
}

enum arena_filters arena_filters(void)
{
	struct arena_header *a = arena();
	uint64_t until = lock_now_ns() + LOOK_LIMIT_MS * UINT64_C(1000000);
	/* the first process of a PID namespace has another number for the recorder */
	bool any = (is_cloned && !arena_is_mine()) || arena_thread_number() == 1, is_over;
	uint64_t question = arena_thread_number() | (any ? LOOK_ANY : 0);
	_Atomic uint64_t *mine = NULL;

	if (!a || !introduced)
		return FILTERS_SAME;
	for (unsigned i = (unsigned)question;; i++) {
		/* read the clock before the answer: this thread may be preempted in between */
		is_over = lock_now_ns() >= until ||
			  real_now_ns() >=
				  atomic_load(&a->beat_ns) + LOOK_LIMIT_MS * UINT64_C(1000000);
		uint64_t state = atomic_load(&a->look_state), seen = 0;
		if (state)
			return state & LOOK_CLOSED ? FILTERS_SAME : FILTERS_NO_ANSWER;
		if (mine)
			seen = atomic_load(mine);
		else if (atomic_compare_exchange_strong(&a->looks[i % ARENA_LOOKS], &seen,
							question))
			mine = &a->looks[i % ARENA_LOOKS];
		if (mine && seen & LOOK_ANSWERS) {
			atomic_store(mine, 0);
			return seen & LOOK_FILTERED ? FILTERS_MORE : FILTERS_SAME;
		}
		if (is_over)
			break;
	}
	give_up(a, mine, question);
	return FILTERS_NO_ANSWER;
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
	is_whole = true;
	atomic_store(&mapped_until, a->bytes);
	atomic_store_explicit(&mapped, a, memory_order_release);
	claim->is_mine = true;
	return true;
}

bool arena_make(const struct arena_texts *texts)
{
	if (!lock_take_masked(&lock))
		return false;
	bool good = arena_is_mine();
	if (!good && may_make) {
		good = make(texts);
		may_make = !good && is_early; /* only an early arena is tried again */
	}
	lock_release(&lock);
	return good;
}

void arena_forked(bool inside)
{
	if (claim) {
		claim->is_mine = false; /* for kernels without MADV_WIPEONFORK */
		claim->is_here = true;
	}
	atomic_store(&is_asking, false);
	is_cloned = false;
	own_number = 0;
	may_make = !inside;
}

void arena_when_cloned(void (*call)(void))
{
	when_cloned = call;
	if (!claim)
		claim = arena_private(PAGE);
	if (claim)
		claim->is_here = true;
}

bool arena_notice_clone(void)
{
	const struct claim *c = claim;

	if (!c || c->is_here || !when_cloned)
		return false;
	when_cloned();
	return true;
}

void arena_cloned(void)
{
	lock_forget_holders();
	arena_forked(false);
	is_cloned = true;
}

bool arena_learn_number(void)
{
	if (!is_cloned || arena_is_mine() || own_number)
		return false;
	own_number = (uint32_t)syscall(SYS_gettid);
	return true;
}

void arena_before_fork(void)
{
	lock_take_until(&lock,
			UINT64_MAX); /* its holders block signals, so this thread is not one */
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

/* Maps `bytes` of the file from `offset` on, after a mapped page; returns whether they can be used.
 */
static bool grow(uint64_t offset, size_t bytes)
{
	uint8_t *last = (uint8_t *)arena_at(arena(), offset) - PAGE;
	int kept = errno;

	/* otherwise the kernel would count the new pages as locked memory, which is limited */
	if (!is_whole)
		munlock(last, PAGE);
	bool good = is_whole || mremap(last, PAGE, PAGE + bytes, 0) == last;
	if (good && arena_file_may_be_full() && !get_pages(last + PAGE, bytes)) {
		good = false;
		madvise(last + PAGE, bytes, MADV_REMOVE); /* free the pages that were allocated */
		if (!is_whole)
			munmap(last + PAGE, bytes);
	}
	errno = kept;
	return good;
}

/* Returns whether system calls that map `bytes` are allowed; a seccomp filter may end the program.
 */
static bool may_grow(size_t bytes)
{
	static _Thread_local enum arena_filters
		filters; /* filters are never removed, so FILTERS_MORE is final */

	if (filters == FILTERS_MORE || bytes >= atomic_load(&refused_growth))
		return false;
	/* before the first thread state exists, system calls are made in any case */
	filters = !is_early && atomic_load(&arena()->threads) ? arena_filters() : FILTERS_SAME;
	return filters == FILTERS_SAME;
}

bool arena_open_pages(uint64_t offset, size_t bytes)
{
	return (is_whole && !arena_file_may_be_full()) || (may_grow(bytes) && grow(offset, bytes));
}

/* Doubles the mapping of the areas, at least to offset `until`, so that it seldom grows. */
static bool grow_areas(uint64_t until)
{
	const struct arena_header *a = arena();

	if (!lock_take_masked(&lock))
		return false;
	uint64_t from = atomic_load(&mapped_until), least = until > from ? until - from : 0;
	uint64_t more = from - (a->bytes - threads_most);
	more = more < GROWTH_LEAST ? GROWTH_LEAST : more;
	more = more > a->bytes - from ? a->bytes - from : more;
	more = more > GROWTH_OF_FILE && arena_file_may_be_full() ? GROWTH_OF_FILE : more;
	more = more > least && more < atomic_load(&refused_growth) ? more : least;
	while (least && more && !grow(from, more)) {
		atomic_store(&refused_growth, more);
		more = more > least ? least : 0;
	}
	if (least && more)
		atomic_store(&mapped_until, from + more);
	lock_release(&lock);
	return !least || more;
}

static bool map_until(uint64_t until)
{
	uint64_t from = atomic_load(&mapped_until), limit;
	bool asks = false;

	if (from < until && until - from >= atomic_load(&refused_growth))
		return false;
	limit = lock_now_ns() + 2 * LOOK_LIMIT_MS * UINT64_C(1000000);
	/* only one thread asks the recorder, and it maps for the others too */
	while ((from = atomic_load(&mapped_until)) < until && lock_now_ns() < limit) {
		asks = !atomic_exchange(&is_asking, true);
		if (asks)
			break;
	}
	asks |= from < until; /* a thread that takes longer was ended meanwhile */
	bool good = from >= until || (may_grow(until - from) && grow_areas(until));
	if (asks)
		atomic_store(&is_asking, false);
	return good;
}

uint64_t arena_alloc(size_t bytes)
{
	struct arena_header *a = arena();
	uint64_t used = arena_is_mine() ? atomic_load(&a->used) : UINT64_MAX;

	bytes = whole_pages(bytes);
	while (used <= a->bytes && bytes <= a->bytes - used) {
		if (used + bytes > atomic_load(&mapped_until) && !map_until(used + bytes))
			return 0;
		if (atomic_compare_exchange_weak(&a->used, &used, used + bytes))
			return used;
	}
	return 0;
}

void arena_want(size_t bytes)
{
	const struct arena_header *a = arena();
	uint64_t until = atomic_load(&a->used) + whole_pages(bytes);

	if (until > atomic_load(&mapped_until) && until <= a->bytes)
		map_until(until);
}
