/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/log/ahead.h"

#include "convert/ahead.h"

#include <stdlib.h>

struct job {
	const struct log_has *has;
	size_t block; /* of has->blocks */
	enum log_room room;
	struct log_cursor *cursor;
	enum status status;
	struct error err;
};

struct log_ahead {
	const struct log_has *has;
	struct ahead *ahead;
	unsigned threads;
	enum log_room room;
	size_t begun; /* blocks that were given to somebody */
	struct log_cursor *spares;
	size_t depth;
	struct job jobs[];
};

static void open_block(void *self, void *arg)
{
	struct job *job = arg;
	const struct log_has *has = job->has;

	job->status = job->cursor ? ST_OK : log_cursor_new(&job->cursor, &job->err);
	if (job->status == ST_OK)
		job->status = log_cursor_open(job->cursor, has->in, &has->blocks[job->block],
					      job->block + 1, has->tables, job->room, &job->err);
}

enum status log_ahead_open(struct log_ahead **out, const struct log_has *has, unsigned threads,
			   bool sparing, struct error *err)
{
	size_t depth = (size_t)threads + 1;
	struct log_ahead *a = calloc(1, sizeof(*a) + depth * sizeof(a->jobs[0]));
	enum status st;

	*out = a;
	if (!a)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to read a log");
	a->has = has;
	a->threads = threads;
	a->room = threads ? LOG_ROOM_WHOLE : sparing ? LOG_ROOM_LEAST : LOG_ROOM_CHUNKS;
	a->depth = depth;
	st = ahead_open(&a->ahead, threads, depth, open_block, NULL, err);
	if (st == ST_OK)
		return ST_OK;
	log_ahead_close(a);
	*out = NULL;
	return st;
}

void log_ahead_close(struct log_ahead *a)
{
	struct log_cursor *c;
	size_t i;

	if (!a)
		return;
	ahead_close(a->ahead); /* from here on nobody works on a job */
	for (i = 0; i < a->depth; i++)
		log_cursor_free(a->jobs[i].cursor);
	while ((c = a->spares)) {
		a->spares = log_cursor_head(c)->spare;
		log_cursor_free(c);
	}
	free(a);
}

static void give_more(struct log_ahead *a)
{
	struct job *job;

	for (; a->begun < a->has->count && !ahead_is_full(a->ahead); a->begun++) {
		job = &a->jobs[a->begun % a->depth];
		*job = (struct job){ .has = a->has, .block = a->begun, .room = a->room,
				     .cursor = a->spares };
		if (a->spares)
			a->spares = log_cursor_head(a->spares)->spare;
		ahead_give(a->ahead, job);
	}
}

enum status log_ahead_next(struct log_ahead *a, struct log_cursor **out, struct error *err)
{
	struct job *job;
	enum status st;

	give_more(a);
	job = ahead_take(a->ahead);
	*out = job->cursor;
	job->cursor = NULL;
	st = job->status;
	if (st != ST_OK)
		fail(err, st, job->err.at, "%s", job->err.text);
	if (a->threads)
		give_more(a);
	return st;
}

void log_ahead_spare(struct log_ahead *a, struct log_cursor *c)
{
	if (a->begun == a->has->count) { /* many logs may be open: what is not needed leaves */
		log_cursor_free(c);
		return;
	}
	log_cursor_head(c)->spare = a->spares;
	a->spares = c;
}
