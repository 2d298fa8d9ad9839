/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/internal.h"

#include "convert/base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Blocks are large, because each wakes a thread twice, but small enough for the second-level cache.
 * */
enum { BLOCKS = 4, BLOCK_BYTES = 256 * 1024 };

struct block {          /* a job of `crew` */
	size_t at, len; /* range in `bytes` that was not returned yet */
	bool is_last;   /* the end or the error follows */
	struct error fault;
	uint8_t bytes[INPUT_AHEAD_KEEP + BLOCK_BYTES];
};

struct input_ahead {
	unpack_from from;
	void *self;
	struct job_queue *crew; /* one thread, so blocks are read in order */
	struct block *now;      /* the block being returned; NULL: none yet */
	struct block blocks[BLOCKS];
};

static void fill_block(void *self, void *job)
{
	struct input_ahead *a = self;
	struct block *b = job;
	size_t got = 1;

	b->at = INPUT_AHEAD_KEEP;
	b->len = 0;
	b->fault = (struct error){ 0 };
	while (b->len < BLOCK_BYTES && got &&
	       a->from(a->self, b->bytes + b->at + b->len, BLOCK_BYTES - b->len, &got, &b->fault) ==
		       ST_OK)
		b->len += got;
	b->is_last = b->len < BLOCK_BYTES;
}

enum status input_ahead_open(struct input_ahead **out, unpack_from from, void *self,
			     struct error *err)
{
	struct input_ahead *a = malloc(sizeof(*a)); /* pages of blocks are not touched yet */

	*out = NULL;
	if (!a)
		return fail_memory(err);
	a->from = from;
	a->self = self;
	a->now = NULL;
	if (job_queue_open(&a->crew, 1, BLOCKS, fill_block, a, err) != ST_OK) {
		free(a);
		return ST_MEMORY;
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		job_queue_give(a->crew, &a->blocks[i]);
	*out = a;
	return ST_OK;
}

enum status input_ahead_lend(struct input_ahead *a, const uint8_t **bytes, size_t *len,
			     struct error *err)
{
	struct block *last = a->now, *b = last;

	if (!b || (!b->len && !b->is_last))
		b = a->now = job_queue_wait(a->crew);
	if (!b->len) { /* *bytes may be in the previous block, which is reused only later */
		if (b->fault.status != ST_OK && err)
			*err = b->fault;
		return b->fault.status;
	}
	if (*len)
		memcpy(b->bytes + b->at - *len, *bytes, *len);
	if (last && b != last)
		job_queue_give(a->crew, last);
	*bytes = b->bytes + b->at - *len;
	*len += b->len;
	b->at += b->len;
	b->len = 0;
	return ST_OK;
}

void input_ahead_close(struct input_ahead *a)
{
	if (!a)
		return;
	job_queue_close(a->crew);
	free(a);
}
