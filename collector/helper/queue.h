/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - messages of any length from one thread to one reader, in shared memory, without locks.
 *
 * A message is a head of eight bytes and its body, which begins at a multiple of eight.  It becomes
 * visible as a whole, when `head` is stored.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum { QUEUE_BYTES = 8 << 20, QUEUE_PARTS = 3 };
struct queue {
	_Alignas(64) _Atomic uint64_t head; /* head and tail only grow */
	_Alignas(64) _Atomic uint64_t tail;
	_Alignas(64) uint8_t bytes[QUEUE_BYTES];
};
struct queue_part {
	const void *at;
	size_t len;
};

/* Appends a message; returns false if there is no space now, or if it is too long. */
bool queue_send(struct queue *q, unsigned type, const struct queue_part parts[QUEUE_PARTS]);
/* Removes the oldest message and copies its body to `body`; returns false if there is none. */
bool queue_receive(struct queue *q, unsigned *type, struct buf *body);
/* Returns how full the queue is, in percent. */
unsigned queue_fullness(const struct queue *q);
