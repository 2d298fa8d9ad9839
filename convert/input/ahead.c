/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/ahead.h"

#include "convert/ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4, BLOCK_BYTES = 128 * 1024 }; /* all of it stays in the second-level cache */

struct block { /* a job */
	uint64_t turn;  /* bytes are read in the order of the blocks, whoever reads them */
	size_t at, len; /* what of `room` was not given */
	bool is_last;   /* the end or the fault is behind them */
	struct error fault;
	uint8_t room[INPUT_AHEAD_KEEP + BLOCK_BYTES];
};

struct input_ahead {
	unpack_from from;
	void *self;
	struct ahead *crew;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t turn, given; /* turn: under the lock */
	struct block *now;  /* being given; NULL: none yet */
	struct block blocks[BLOCKS];
};

static void fill_block(struct input_ahead *a, struct block *b)
{
	size_t got = 1;

	b->at = INPUT_AHEAD_KEEP;
	b->len = 0;
	b->fault = (struct error){ 0 };
	while (b->len < BLOCK_BYTES && got &&
	       a->from(a->self, b->room + b->at + b->len, BLOCK_BYTES - b->len, &got,
		       &b->fault) == ST_OK)
		b->len += got;
	b->is_last = b->len < BLOCK_BYTES;
}

static void read_block(void *self, void *job)
{
	struct input_ahead *a = self;
	struct block *b = job;

	pthread_mutex_lock(&a->lock);
	while (a->turn != b->turn)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	fill_block(a, b);
	pthread_mutex_lock(&a->lock);
	a->turn++;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

static void give_block(struct input_ahead *a, struct block *b)
{
	b->turn = a->given++;
	ahead_give(a->crew, b);
}

enum status input_ahead_open(struct input_ahead **out, unpack_from from, void *self,
			     struct error *err)
{
	struct input_ahead *a = malloc(sizeof(*a)); /* blocks are touched when they are read */

	*out = NULL;
	if (!a)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read ahead");
	a->from = from;
	a->self = self;
	a->now = NULL;
	a->turn = a->given = 0;
	if (ahead_open(&a->crew, 1, BLOCKS, read_block, a, err) != ST_OK) {
		free(a);
		return ST_MEMORY;
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	for (unsigned i = 0; i < BLOCKS; i++)
		give_block(a, &a->blocks[i]);
	*out = a;
	return ST_OK;
}

static enum status tell(const struct block *b, struct error *err)
{
	if (b->fault.status != ST_OK && err)
		*err = b->fault;
	return b->fault.status;
}

enum status input_ahead_read(struct input_ahead *a, void *out, size_t room, size_t *got,
			     struct error *err)
{
	struct block *b = a->now;

	if (!b || (!b->len && !b->is_last)) {
		if (b)
			give_block(a, b);
		b = a->now = ahead_take(a->crew);
	}
	*got = b->len < room ? b->len : room;
	memcpy(out, b->room + b->at, *got);
	b->at += *got;
	b->len -= *got;
	return *got ? ST_OK : tell(b, err);
}

enum status input_ahead_lend(struct input_ahead *a, const uint8_t **bytes, size_t *len,
			     struct error *err)
{
	struct block *last = a->now, *b = last;

	if (!b || (!b->len && !b->is_last))
		b = a->now = ahead_take(a->crew);
	if (!b->len) /* *bytes may be those of the one before, which nobody needs now */
		return tell(b, err);
	if (*len)
		memcpy(b->room + b->at - *len, *bytes, *len);
	if (last && b != last)
		give_block(a, last);
	*bytes = b->room + b->at - *len;
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
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	free(a);
}
