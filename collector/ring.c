/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/ring.h"

#include <string.h>
#include <sys/mman.h>

enum { RECORDS_MIN = 64 };

static uint64_t records_in(size_t bytes)
{
	uint64_t count = RECORDS_MIN;

	while (count * 2 * sizeof(struct ring_record) <= bytes)
		count *= 2;
	return count;
}

size_t ring_size(size_t bytes)
{
	return (size_t)records_in(bytes) * sizeof(struct ring_record);
}

bool ring_open(struct ring *r, size_t bytes)
{
	/* mapped, not allocated: pages cost nothing until they are used, and no lock is taken */
	void *p = !bytes ? MAP_FAILED : mmap(NULL, ring_size(bytes), PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(r, 0, sizeof(*r));
	if (p == MAP_FAILED) {
		r->tail_seen = UINT64_MAX; /* so that each put looks, and finds no records */
		return false;
	}
	r->records = p;
	r->mask = records_in(bytes) - 1;
	return true;
}

void ring_close(struct ring *r)
{
	if (r->records)
		munmap(r->records, ((size_t)r->mask + 1) * sizeof(struct ring_record));
	r->records = NULL;
}

uint64_t ring_take_lost(struct ring *r)
{
	uint64_t lost = atomic_load_explicit(&r->lost, memory_order_relaxed);
	uint64_t fresh = lost - r->lost_seen;

	r->lost_seen = lost;
	return fresh;
}
