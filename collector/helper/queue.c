/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/helper/helper.h"
#include "schemas/base/buf.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct head {
	uint32_t type, len;
};

static size_t padded(size_t len)
{
	return sizeof(struct head) + ((len + 7) & ~(size_t)7);
}

static void copy_in(struct queue *q, uint64_t at, const void *from, size_t len)
{
	size_t begin = at % QUEUE_BYTES,
	       first = len < QUEUE_BYTES - begin ? len : QUEUE_BYTES - begin;

	if (!len)
		return;
	memcpy(q->bytes + begin, from, first);
	memcpy(q->bytes, (const uint8_t *)from + first, len - first);
}

static void copy_out(const struct queue *q, uint64_t at, void *to, size_t len)
{
	size_t begin = at % QUEUE_BYTES,
	       first = len < QUEUE_BYTES - begin ? len : QUEUE_BYTES - begin;

	memcpy(to, q->bytes + begin, first);
	memcpy((uint8_t *)to + first, q->bytes, len - first);
}

bool queue_send(struct queue *q, unsigned type, const struct queue_part parts[QUEUE_PARTS])
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed), at = head;
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_acquire);
	struct head h = { .type = type };
	size_t len = 0;

	for (unsigned i = 0; i < QUEUE_PARTS; i++)
		len += parts[i].len;
	if (len > QUEUE_BYTES / 2 || head - tail + padded(len) > QUEUE_BYTES)
		return false;
	h.len = (uint32_t)len;
	copy_in(q, at, &h, sizeof(h));
	at += sizeof(h);
	for (unsigned i = 0; i < QUEUE_PARTS; i++) {
		copy_in(q, at, parts[i].at, parts[i].len);
		at += parts[i].len;
	}
	atomic_store_explicit(&q->head, head + padded(len), memory_order_release);
	return true;
}

bool queue_receive(struct queue *q, unsigned *type, struct buf *body)
{
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&q->head, memory_order_acquire) - tail;
	struct head h;

	if (used < sizeof(h) || used > QUEUE_BYTES)
		return false;
	copy_out(q, tail, &h, sizeof(h));
	buf_clear(body);
	if (padded(h.len) > used || !buf_reserve(body, h.len))
		return false; /* the memory was damaged */
	copy_out(q, tail + sizeof(h), body->data, h.len);
	body->len = h.len;
	*type = h.type;
	atomic_store_explicit(&q->tail, tail + padded(h.len), memory_order_release);
	return true;
}

unsigned queue_fullness(const struct queue *q)
{
	uint64_t used = atomic_load_explicit(&q->head, memory_order_relaxed) -
			atomic_load_explicit(&q->tail, memory_order_relaxed);

	return used > QUEUE_BYTES ? 100 : (unsigned)(used * 100 / QUEUE_BYTES);
}

void helper_wake(struct helper *h)
{
	if (!atomic_exchange_explicit(&h->wake, 1, memory_order_release))
		syscall(SYS_futex, &h->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
