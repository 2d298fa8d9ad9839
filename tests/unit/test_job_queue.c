/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/base/parallel.h"
#include "tests/unit/unit.h"

#include <stdint.h>

enum { JOBS = 1000, DEPTH = 7 };

struct job {
	uint32_t number, result;
	int done; /* so often */
};

/* Long and short work by turns, so that the order of the ends is not that of the beginnings. */
static void square(void *self, void *job)
{
	struct job *j = job;
	volatile uint32_t spin = (j->number * 2654435761u) % 20000;

	while (spin)
		spin--;
	j->result = j->number * j->number + *(const uint32_t *)self;
	j->done++;
}

static void run_jobs(unsigned threads)
{
	static struct job jobs[JOBS];
	struct error err = { 0 };
	struct job_queue *a;
	uint32_t add = 5, given = 0, taken = 0, wrong = 0;

	CHECK(job_queue_open(&a, threads, DEPTH, square, &add, &err) == ST_OK);
	CHECK(job_queue_take(a) == NULL);
	while (taken < JOBS) {
		while (given < JOBS && !job_queue_is_full(a)) {
			jobs[given] = (struct job){ .number = given };
			job_queue_give(a, &jobs[given++]);
		}
		CHECK(given - taken <= DEPTH);
		struct job *j = job_queue_take(a);

		wrong += j != &jobs[taken] || j->done != 1 || j->result != taken * taken + add;
		taken++;
	}
	CHECK(wrong == 0);
	CHECK(job_queue_take(a) == NULL);
	job_queue_close(a);
}

void test_job_queue_in_order(void)
{
	unsigned threads;

	for (threads = 0; threads <= 4; threads++)
		run_jobs(threads);
}

/* Closed with jobs that nobody took: none is at work afterwards. */
void test_job_queue_closed_early(void)
{
	struct job jobs[DEPTH] = { { 0 } };
	struct error err = { 0 };
	struct job_queue *a;
	uint32_t add = 1, i;

	for (i = 0; i < 50; i++) {
		uint32_t k;

		CHECK(job_queue_open(&a, 3, DEPTH, square, &add, &err) == ST_OK);
		for (k = 0; k < DEPTH; k++)
			job_queue_give(a, &jobs[k]);
		CHECK(job_queue_is_full(a));
		job_queue_close(a);
	}
	CHECK(jobs[0].done <= 50);
	CHECK(usable_cores() >= 1);
}
