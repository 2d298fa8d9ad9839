/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/internal.h"

#include "convert/base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Blocks are large, because each wakes a thread twice, but stay in the second-level cache. */
enum { BLOCKS = 4, BLOCK_BYTES = 256 * 1024 };

struct block {          /* a job */
	size_t at, len; /* of bytes[] that were not given out */
	bool is_last;   /* after them is the end or the fault */
	struct error fault;
	uint8_t bytes[INPUT_AHEAD_KEEP + BLOCK_BYTES];
};

struct input_ahead {
	unpack_from from;
	void *self;
	struct ahead *crew; /* of one: bytes are read in the order of the blocks */
	struct block *now;  /* being given; NULL: none yet */
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
	struct input_ahead *a = malloc(sizeof(*a)); /* blocks are touched when they are read */

	*out = NULL;
	if (!a)
		return fail_memory(err);
	a->from = from;
	a->self = self;
	a->now = NULL;
	if (ahead_open(&a->crew, 1, BLOCKS, fill_block, a, err) != ST_OK) {
		free(a);
		return ST_MEMORY;
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		ahead_give(a->crew, &a->blocks[i]);
	*out = a;
	return ST_OK;
}

enum status input_ahead_lend(struct input_ahead *a, const uint8_t **bytes, size_t *len,
			     struct error *err)
{
	struct block *last = a->now, *b = last;

	if (!b || (!b->len && !b->is_last))
		b = a->now = ahead_wait(a->crew);
	if (!b->len) { /* *bytes may be of the block before, which is given back only later */
		if (b->fault.status != ST_OK && err)
			*err = b->fault;
		return b->fault.status;
	}
	if (*len)
		memcpy(b->bytes + b->at - *len, *bytes, *len);
	if (last && b != last)
		ahead_give(a->crew, last);
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
	ahead_close(a->crew);
	free(a);
}
