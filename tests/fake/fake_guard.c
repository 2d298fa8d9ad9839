/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fake/fake_guard.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* glibc's own, so that nothing has to be looked up before malloc() works */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

enum { LENT = 65536 };

static _Atomic uint64_t counts[GUARD_PLACES][GUARD_DEEDS], held_over;
static _Thread_local int place __attribute__((tls_model("initial-exec")));
static _Thread_local unsigned held __attribute__((tls_model("initial-exec")));
static _Atomic(void *) lent[LENT];
static _Atomic uint64_t lent_count;
static _Atomic int64_t step_ns;
static int64_t step_later_ns;
static uint64_t step_at_ns;

static void did(enum fake_guard_deed deed)
{
	if (place != GUARD_outside)
		counts[place][deed]++;
}

void fake_guard_enter(int where)
{
	place = where;
}

void fake_guard_leave(void)
{
	place = GUARD_outside;
}

uint64_t fake_guard_count(int where, int deed)
{
	return counts[where][deed];
}

unsigned fake_guard_held(void)
{
	held_over += held > 0;
	return held;
}

/* ---- memory ---- */

static unsigned hash(const void *memory)
{
	return (unsigned)((uintptr_t)memory >> 4) * 2654435761u % LENT;
}

void fake_guard_lend(void *memory)
{
	unsigned i = hash(memory), tries;
	void *none;

	for (tries = 0; memory && tries < LENT; tries++, i = (i + 1) % LENT) {
		none = NULL;
		if (!atomic_compare_exchange_strong(&lent[i], &none, memory))
			continue;
		lent_count++;
		return;
	}
}

static void came_back(void *memory)
{
	unsigned i = hash(memory), tries;
	void *is;

	for (tries = 0; lent_count && tries < 64; tries++, i = (i + 1) % LENT) {
		is = memory;
		if (!atomic_compare_exchange_strong(&lent[i], &is, NULL))
			continue;
		lent_count--;
		return;
	}
}

uint64_t fake_guard_lent(void)
{
	return lent_count;
}

void *malloc(size_t size)
{
	did(DID_malloc);
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	did(DID_malloc);
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	did(DID_malloc);
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	did(DID_malloc);
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	did(DID_malloc);
	*out = __libc_memalign(alignment, size);
	return *out ? 0 : 12;
}

void free(void *memory)
{
	if (!memory)
		return;
	did(DID_free);
	came_back(memory);
	__libc_free(memory);
}

/* ---- what stands behind ours: looked up once, at the latest at the first call ---- */

#define NEXT(result, name, arguments) static result(*next_##name) arguments
NEXT(int, pthread_mutex_lock, (pthread_mutex_t *));
NEXT(int, pthread_mutex_trylock, (pthread_mutex_t *));
NEXT(int, pthread_mutex_unlock, (pthread_mutex_t *));
NEXT(int, pthread_rwlock_rdlock, (pthread_rwlock_t *));
NEXT(int, pthread_rwlock_wrlock, (pthread_rwlock_t *));
NEXT(int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *));
NEXT(int, nanosleep, (const struct timespec *, struct timespec *));
NEXT(ssize_t, write, (int, const void *, size_t));
NEXT(ssize_t, read, (int, void *, size_t));
NEXT(int, open, (const char *, int, ...));
NEXT(int, close, (int));
NEXT(void *, mmap, (void *, size_t, int, int, int, off_t));
NEXT(int, munmap, (void *, size_t));
NEXT(int, clock_gettime, (clockid_t, struct timespec *));

static void look_up(void *pointer, const char *name)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	memcpy(pointer, &symbol, sizeof(symbol));
}
#define FIND(name)                                                                                 \
	if (!next_##name)                                                                          \
	look_up(&next_##name, #name)

/* ---- locks and waits ---- */

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int rc;

	FIND(pthread_mutex_lock);
	did(DID_lock);
	rc = next_pthread_mutex_lock(mutex);
	held += rc == 0;
	return rc;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int rc;

	FIND(pthread_mutex_trylock);
	rc = next_pthread_mutex_trylock(mutex);
	held += rc == 0;
	return rc;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	FIND(pthread_mutex_unlock);
	held -= held > 0;
	return next_pthread_mutex_unlock(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	FIND(pthread_rwlock_rdlock);
	did(DID_lock);
	return next_pthread_rwlock_rdlock(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	FIND(pthread_rwlock_wrlock);
	did(DID_lock);
	return next_pthread_rwlock_wrlock(lock);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	FIND(pthread_cond_wait);
	did(DID_wait);
	return next_pthread_cond_wait(cond, mutex);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	FIND(nanosleep);
	did(DID_wait);
	return next_nanosleep(time, left);
}

/* ---- I/O and mappings ---- */

ssize_t write(int fd, const void *bytes, size_t size)
{
	FIND(write);
	did(DID_io);
	return next_write(fd, bytes, size);
}

ssize_t read(int fd, void *bytes, size_t size)
{
	FIND(read);
	did(DID_io);
	return next_read(fd, bytes, size);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	FIND(open);
	did(DID_io);
	return next_open(path, flags, mode);
}

int close(int fd)
{
	FIND(close);
	did(DID_io);
	return next_close(fd);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	FIND(mmap);
	did(DID_map);
	return next_mmap(at, size, protection, flags, fd, offset);
}

int munmap(void *at, size_t size)
{
	FIND(munmap);
	did(DID_map);
	return next_munmap(at, size);
}

/* ---- the clock ---- */

void fake_guard_step(int64_t ns)
{
	step_ns += ns;
}

static int64_t step_now(void)
{
	struct timespec t;

	if (!step_at_ns)
		return step_ns;
	next_clock_gettime(CLOCK_MONOTONIC, &t);
	if ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec < step_at_ns)
		return step_ns;
	return step_ns + step_later_ns;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	int64_t step, ns;
	int rc;

	FIND(clock_gettime);
	rc = next_clock_gettime(clock, out);
	step = clock == CLOCK_REALTIME ? step_now() : 0;
	if (rc || !step)
		return rc;
	ns = (int64_t)out->tv_sec * 1000000000 + out->tv_nsec + step;
	out->tv_sec = ns / 1000000000;
	out->tv_nsec = ns % 1000000000;
	return 0;
}

/* ---- life ---- */

static __attribute__((constructor)) void start(void)
{
	const char *ns = getenv("FAKE_GUARD_STEP_NS"), *ms = getenv("FAKE_GUARD_STEP_MS");
	struct timespec t;

	FIND(clock_gettime);
	if (!ns)
		return;
	next_clock_gettime(CLOCK_MONOTONIC, &t);
	step_later_ns = strtoll(ns, NULL, 0);
	step_at_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec +
		     (ms ? strtoull(ms, NULL, 0) : 0) * 1000000;
}

static __attribute__((destructor)) void finish(void)
{
	static const char *const places[] = {
#define X(name) #name,
		FAKE_GUARD_PLACES(X)
#undef X
	};
	static const char *const deeds[] = {
#define X(name) #name,
		FAKE_GUARD_DEEDS(X)
#undef X
	};
	const char *path = getenv("FAKE_GUARD_REPORT");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1, i, j;

	if (fd < 0)
		return;
	dprintf(fd, "{\"held\": %llu, \"lent\": %llu", (unsigned long long)held_over,
		(unsigned long long)lent_count);
	for (i = GUARD_outside + 1; i < GUARD_PLACES; i++) {
		dprintf(fd, ", \"%s\": {", places[i]);
		for (j = 0; j < GUARD_DEEDS; j++)
			dprintf(fd, "%s\"%s\": %llu", j ? ", " : "", deeds[j],
				(unsigned long long)counts[i][j]);
		dprintf(fd, "}");
	}
	dprintf(fd, "}\n");
	close(fd);
}
