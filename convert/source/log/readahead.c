/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/log/internal.h"

#include "convert/base/parallel.h"

#include <stdlib.h>

struct job {
	const struct log_index *index;
	size_t block; /* index into index->blocks */
	enum log_keep keep;
	struct log_cursor *cursor;
	enum status status;
	struct error err;
};

struct log_readahead {
	const struct log_index *index;
	struct job_queue *queue;
	unsigned threads;
	enum log_keep keep;
	size_t begun;              /* number of blocks for which a job was created */
	struct log_cursor *spares; /* list of cursors to reuse */
	size_t depth;
	struct job jobs[];
};

static void open_block(void *self, void *arg)
{
	struct job *job = arg;
	const struct log_index *index = job->index;

	job->status = job->cursor ? ST_OK : log_cursor_new(&job->cursor, &job->err);
	if (job->status == ST_OK)
		job->status = log_cursor_open(job->cursor, index->in, &index->blocks[job->block],
					      job->block + 1, index->tables, job->keep, &job->err);
}

enum status log_readahead_open(struct log_readahead **out, const struct log_index *index,
			       unsigned threads, bool sparing, struct error *err)
{
	size_t depth = (size_t)threads + 1;
	struct log_readahead *a = calloc(1, sizeof(*a) + depth * sizeof(a->jobs[0]));
	enum status st;

	*out = a;
	if (!a)
		return fail_memory(err);
	a->index = index;
	a->threads = threads;
	a->keep = threads ? LOG_KEEP_ALL : sparing ? LOG_KEEP_LEAST : LOG_KEEP_CHUNK;
	a->depth = depth;
	st = job_queue_open(&a->queue, threads, depth, open_block, NULL, err);
	if (st == ST_OK)
		return ST_OK;
	log_readahead_close(a);
	*out = NULL;
	return st;
}

void log_readahead_close(struct log_readahead *a)
{
	struct log_cursor *c;

	if (!a)
		return;
	job_queue_close(a->queue); /* no thread works on a job after this */
	for (size_t i = 0; i < a->depth; i++)
		log_cursor_free(a->jobs[i].cursor);
	while ((c = a->spares)) {
		a->spares = log_cursor_head(c)->spare;
		log_cursor_free(c);
	}
	free(a);
}

static void give_jobs(struct log_readahead *a)
{
	for (; a->begun < a->index->count && !job_queue_is_full(a->queue); a->begun++) {
		struct job *job = &a->jobs[a->begun % a->depth];

		*job = (struct job){
			.index = a->index, .block = a->begun, .keep = a->keep, .cursor = a->spares
		};
		if (a->spares)
			a->spares = log_cursor_head(a->spares)->spare;
		job_queue_give(a->queue, job);
	}
}

enum status log_readahead_next(struct log_readahead *a, struct log_cursor **out, struct error *err)
{
	struct job *job;
	enum status st;

	give_jobs(a);
	job = job_queue_take(a->queue);
	*out = job->cursor;
	job->cursor = NULL;
	st = job->status;
	if (st != ST_OK)
		fail(err, st, job->err.at, "%s", job->err.text);
	if (a->threads)
		give_jobs(a);
	return st;
}

void log_readahead_reuse(struct log_readahead *a, struct log_cursor *c)
{
	if (a->begun == a->index->count) { /* many logs may be open, so spare memory is freed */
		log_cursor_free(c);
		return;
	}
	log_cursor_head(c)->spare = a->spares;
	a->spares = c;
}
