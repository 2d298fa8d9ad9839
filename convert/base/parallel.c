/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct slot {
	void *job;
	bool done;
};

struct job_queue {
	job_queue_work work;
	void *self;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t given, done;
	size_t depth, first, begun,
		count; /* ring positions: oldest, next to begin, number of jobs */
	bool closing;
	unsigned threads;
	pthread_t thread[MOST_THREADS];
	struct slot ring[];
};

static struct slot *slot_at(struct job_queue *a, size_t i)
{
	return &a->ring[i % a->depth];
}

/* Runs the oldest job that has not begun.  The lock is held on entry and exit, but not during the
 * work. */
static void work_one(struct job_queue *a)
{
	struct slot *slot = slot_at(a, a->begun++);

	pthread_mutex_unlock(&a->lock);
	a->work(a->self, slot->job);
	pthread_mutex_lock(&a->lock);
	slot->done = true;
}

static void *run(void *arg)
{
	struct job_queue *a = arg;

	pthread_mutex_lock(&a->lock);
	for (;;) {
		while (a->begun == a->first + a->count && !a->closing)
			pthread_cond_wait(&a->given, &a->lock);
		if (a->closing)
			break;
		work_one(a);
		pthread_cond_signal(&a->done); /* only one thread waits, for the oldest job */
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

enum status job_queue_open(struct job_queue **out, unsigned threads, size_t depth,
			   job_queue_work work, void *self, struct error *err)
{
	struct job_queue *a = calloc(1, sizeof(*a) + (depth ? depth : 1) * sizeof(a->ring[0]));

	*out = NULL;
	if (!a)
		return fail_memory(err);
	a->work = work;
	a->self = self;
	a->depth = depth ? depth : 1;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->given, NULL);
	pthread_cond_init(&a->done, NULL);
	/* Signals must reach the thread that gives jobs, because its reads and writes are to be
	 * interrupted. */
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (a->threads < threads && a->threads < MOST_THREADS &&
	       pthread_create(&a->thread[a->threads], NULL, run, a) == 0)
		a->threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	*out = a;
	return ST_OK;
}

bool job_queue_is_full(const struct job_queue *a)
{
	return a->count == a->depth;
}

void job_queue_give(struct job_queue *a, void *job)
{
	if (!a->threads)
		a->work(a->self, job);
	pthread_mutex_lock(&a->lock);
	*slot_at(a, a->first + a->count) = (struct slot){ .job = job, .done = !a->threads };
	a->count++;
	pthread_cond_signal(&a->given);
	pthread_mutex_unlock(&a->lock);
}

static void *take(struct job_queue *a, bool works)
{
	struct slot *slot = slot_at(a, a->first);
	void *job;

	if (!a->count)
		return NULL;
	pthread_mutex_lock(&a->lock);
	while (!slot->done) {
		if (works && a->begun < a->first + a->count)
			work_one(a);
		else
			pthread_cond_wait(&a->done, &a->lock);
	}
	job = slot->job;
	a->first++;
	a->count--;
	pthread_mutex_unlock(&a->lock);
	return job;
}

void *job_queue_take(struct job_queue *a)
{
	return take(a, true);
}

void *job_queue_wait(struct job_queue *a)
{
	return take(a, false);
}

void job_queue_close(struct job_queue *a)
{
	unsigned i;

	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->closing = true;
	pthread_cond_broadcast(&a->given);
	pthread_mutex_unlock(&a->lock);
	for (i = 0; i < a->threads; i++)
		pthread_join(a->thread[i], NULL);
	pthread_cond_destroy(&a->done);
	pthread_cond_destroy(&a->given);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

unsigned usable_cores(void)
{
	cpu_set_t set;
	int count;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	count = CPU_COUNT(&set);
	return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (unsigned)count;
}
