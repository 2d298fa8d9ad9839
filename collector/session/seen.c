/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/seen.h"

#include "collector/arena/arena.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };
#define MAGIC UINT64_C(0x6e6565736f686374) /* "tchoseen": the path may lead to some other file */

struct page {
	uint64_t magic;
	_Atomic uint64_t loaded, steps, slow, longest_ns, longest_step, refused, refusal, limit;
};
static struct page *page;

static struct page *map(int fd)
{
	void *at = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

void seen_make(void)
{
	struct rlimit limit;
	char path[64];

	/* exceeding the file size limit would raise a signal */
	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < PAGE_BYTES)
		return;
	int fd = memfd_create("tacho-seen", MFD_CLOEXEC);
	if (fd < 0)
		return;
	if (ftruncate(fd, PAGE_BYTES) == 0)
		page = map(fd);
	if (!page)
		return;
	page->magic = MAGIC;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	if (access(path, R_OK | W_OK) == 0)
		setenv("TACHO_SEEN", path, 1);
	else /* there is no /proc */
		page = NULL;
}

struct seen seen_read(void)
{
	if (!page)
		return (struct seen){ 0 };
	return (struct seen){ .is_known = true,
			      .loaded = atomic_load(&page->loaded),
			      .steps = atomic_load(&page->steps),
			      .slow = atomic_load(&page->slow),
			      .longest_ns = atomic_load(&page->longest_ns),
			      .longest_step = atomic_load(&page->longest_step),
			      .refused = atomic_load(&page->refused),
			      .refusal = atomic_load(&page->refusal),
			      .limit = atomic_load(&page->limit) };
}

bool seen_open(const char *path)
{
	uint64_t magic = 0;
	struct stat st;

	if (!path || !*path)
		return false;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == PAGE_BYTES &&
	    pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) && magic == MAGIC)
		page = map(fd);
	if (page)
		atomic_fetch_add(&page->loaded, 1);
	close(fd);
	return page != NULL;
}

void seen_add_steps(uint64_t steps)
{
	if (page)
		atomic_fetch_add(&page->steps, steps);
}

void seen_add_refused(void)
{
	uint64_t limit = 0;

	if (!page)
		return;
	atomic_store(&page->refusal, arena_refused(&limit));
	atomic_store(&page->limit, limit);
	atomic_fetch_add(&page->refused, 1);
}

void seen_add_slow(uint64_t step, uint64_t took_ns)
{
	if (!page)
		return;
	atomic_fetch_add(&page->slow, 1);
	/* a race of two processes may combine the number of one with the time of the other */
	if (took_ns > atomic_load(&page->longest_ns)) {
		atomic_store(&page->longest_ns, took_ns);
		atomic_store(&page->longest_step, step);
	}
}
