/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session/ring.h"

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
	/* mapped: pages cost nothing until they are used, and no lock of malloc() is taken */
	void *p = !bytes ? MAP_FAILED
			 : mmap(NULL, ring_size(bytes), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(r, 0, sizeof(*r));
	if (p == MAP_FAILED) {
		r->tail_cached =
			UINT64_MAX; /* so that each put looks at the tail, and finds no records */
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

static bool fits(struct ring *r, uint64_t head, uint64_t places)
{
	if (r->records)
		r->tail_cached = atomic_load_explicit(&r->tail, memory_order_acquire);
	return head + places - r->tail_cached <= r->mask + 1;
}

bool ring_put_tail(struct ring *r, const struct ring_record *record, const void *tail)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), i;
	const uint8_t *from = tail;

	if (!record->more)
		return ring_put(r, record);
	if (!fits(r, head, 1u + record->more)) {
		atomic_store_explicit(&r->lost,
				      atomic_load_explicit(&r->lost, memory_order_relaxed) + 1,
				      memory_order_relaxed);
		return false;
	}
	r->records[head & r->mask] = *record;
	for (i = 0; i < record->more; i++)
		memcpy(&r->records[(head + 1 + i) & r->mask], from + i * sizeof(*record),
		       sizeof(*record));
	atomic_store_explicit(&r->head, head + 1 + record->more, memory_order_release);
	return true;
}

void ring_tail(const struct ring *r, uint64_t i, void *out)
{
	unsigned more = ring_at(r, i)->more, n;
	uint8_t *to = out;

	for (n = 0; n < more; n++, to += sizeof(struct ring_record))
		memcpy(to, ring_at(r, i + 1 + n), sizeof(struct ring_record));
}

uint64_t ring_take_lost(struct ring *r)
{
	uint64_t lost = atomic_load_explicit(&r->lost, memory_order_relaxed);
	uint64_t fresh = lost - r->lost_taken;

	r->lost_taken = lost;
	return fresh;
}
