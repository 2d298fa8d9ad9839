/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - buffers between CUPTI and our writer, without locks.
 *
 *	     pool_request()       CUPTI fills it       pool_complete()       pool_next()
 *	free --------------> lent --------------> lent ---------------> full ----------> writer
 *	 ^                                                                                 |
 *	 `--------------------- pool_give_back(), which zeroes the buffer <----------------'
 *
 * Without a free buffer a request gets a small one, or else one for a single record, which is
 * counted and not kept.
 *
 * All memory is mapped and touched by pool_open(); requests and completions may come from any
 * thread and take no lock, no memory, no system call.  Memory is never given back: CUPTI may write
 * into a buffer long after it was stopped.  Buffers are handed out zeroed, so that CUPTI need not
 * clear them on the program's threads.  The last resort are places for a single record that are
 * lent in turn, so that several may have one at once: they are never read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The pool of a completed buffer. */
enum pool_place { POOL_OURS, POOL_SMALL, POOL_SINGLE, POOL_SHARED, POOL_FOREIGN };

struct pool_buffer {
	uint8_t *bytes;
	size_t valid;
	uint64_t completed_ns; /* CLOCK_MONOTONIC */
	uint32_t number;       /* number of the buffer */
	uint32_t marks;        /* enum names_mark, set by the completing thread for the writer */
};

/*
 * Allocates `bytes` in all, half of it in buffers of `buffer_bytes`, half in small ones.  Returns
 * false without memory.  Further calls do nothing.
 */
bool pool_open(size_t bytes, size_t buffer_bytes);

/* Program's threads.  Lends a buffer to CUPTI, which is never NULL. */
void pool_request(uint8_t **buffer, size_t *size, size_t *max_records);
/* Program's threads.  Returns the pool to which the address belongs, and sets *number and *size. */
enum pool_place pool_find(const uint8_t *buffer, uint32_t *number, size_t *size);
/* Program's threads.  Hands a full buffer to the writer. */
void pool_complete(uint32_t number, size_t valid, uint64_t completed_ns, uint32_t marks);
/* Program's threads.  Clears and frees the buffer, after its records were counted. */
void pool_recycle(uint32_t number, size_t valid);
/* Program's threads.  Takes a free buffer for a copy of another tool's records; returns false if
 * none is free. */
bool pool_take(uint32_t *number, uint8_t **buffer, size_t *size);

/* Writer thread.  Gets the next full buffer, oldest first; returns false if there is none. */
bool pool_next(struct pool_buffer *out);
void pool_give_back(const struct pool_buffer *b);

/* Any thread.  These counts only grow. */
uint64_t pool_requested(void);
uint64_t pool_completed(void); /* requested buffers that were completed */
void pool_note_completed(void);
/* Returns the share of full buffers in those that are not lent, in percent. */
unsigned pool_fullness(void);

/* Makes all requests in the child of a fork get the shared buffer from now on. */
void pool_forked(void);
