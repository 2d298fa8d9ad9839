/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs: the replay of ranks against a longest path by repeated relaxation. */
#include "analyze/replay/job.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 5, STEPS = 3, ROUNDS = 12, STATES = 6, OPS = WORKERS * STEPS * ROUNDS * 2 };
#define UNIT_NS 10000u /* far above what clocks may differ by */

static uint64_t seed;
static uint32_t next_random(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

/* Each round some workers compute, then some of them communicate; times are as they were measured.
 */
static void make_job(struct job *j)
{
	j->ops = calloc(OPS, sizeof(*j->ops));
	j->workers = calloc(WORKERS, sizeof(*j->workers));
	j->worker_count = WORKERS;
	j->step_count = STEPS;
	j->class_count = j->peer_count = 4;
	for (uint32_t step = 0; step < STEPS; step++) {
		uint64_t at[WORKERS];

		for (uint32_t w = 0; w < WORKERS; w++) {
			at[w] = (1 + step) * 100000000u + next_random(5) * UNIT_NS;
			j->workers[w] = (struct job_worker){ .dp = w % 2, .stage = w / 2 };
		}
		for (uint32_t round = 0; round < ROUNDS; round++) {
			uint64_t latest = 0, transfer = (1 + next_random(4)) * UNIT_NS;
			uint32_t members = 0, class = next_random(2);

			for (uint32_t w = 0; w < WORKERS; w++) {
				uint64_t ns = next_random(9) * UNIT_NS;

				if (next_random(4)) {
					j->ops[j->op_count++] =
						(struct job_op){ at[w],     at[w] + ns, ns,
								 w,         step,       2 + class,
								 2 + class, JOB_NONE };
					/* Every other one runs beside what follows. */
					at[w] +=
						round % 2 ? ns + next_random(3) * UNIT_NS : UNIT_NS;
				}
				if (next_random(3)) {
					members |= 1u << w;
					latest = at[w] > latest ? at[w] : latest;
				}
			}
			for (uint32_t w = 0; w < WORKERS; w++)
				if (members >> w & 1) {
					j->ops[j->op_count++] = (struct job_op){
						at[w], latest + transfer,  0, w, step, class,
						class, j->collective_count
					};
					at[w] = latest + transfer;
				}
			j->collective_count += members != 0;
		}
	}
}

static bool keeps(const struct job *j, const struct job_state *s, const struct job_op *o)
{
	const struct job_worker *w = &j->workers[o->worker];
	uint32_t of[] = { 0, o->class, o->worker, w->host, w->dp, w->stage, w->is_marked };
	bool is = s->by == JOB_BY_MARK ? w->is_marked : of[s->by] == s->value;

	return is != s->is_not;
}

/* The length of one step in one state. */
static double relax(const struct job *j, uint32_t step, const struct job_state *s)
{
	double *begin = calloc(j->op_count, sizeof(*begin)),
	       *end = calloc(j->op_count, sizeof(*end));
	double longest = 0;
	bool changes = true;

	for (; changes;) {
		changes = false;
		for (size_t i = 0; i < j->op_count; i++) {
			const struct job_op *o = &j->ops[i];
			double own = keeps(j, s, o) ? (double)o->own_ns : j->ideal_ns[o->peers];
			double from = 0;

			if (o->step != step)
				continue;
			for (size_t k = 0; k < j->op_count; k++) {
				const struct job_op *p = &j->ops[k];
				bool ended = p->step == step && p->worker == o->worker &&
					     p->end_ns <= o->begin_ns && p->begin_ns < o->begin_ns;

				from = k != i && ended && end[k] > from ? end[k] : from;
				if (p->step == step && p->collective == o->collective &&
				    o->collective != JOB_NONE && begin[k] > from)
					begin[i] = begin[i] > from ? begin[i] : from;
			}
			changes |= from > begin[i];
			begin[i] = from > begin[i] ? from : begin[i];
			double last = begin[i];
			for (size_t k = 0; o->collective != JOB_NONE && k < j->op_count; k++)
				if (j->ops[k].collective == o->collective && begin[k] > last)
					last = begin[k];
			changes |= last + own > end[i];
			end[i] = last + own > end[i] ? last + own : end[i];
			longest = end[i] > longest ? end[i] : longest;
		}
	}
	free(begin);
	free(end);
	return longest;
}

void test_replay_job(void)
{
	static const struct job_state states[STATES] = {
		{ JOB_BY_NOTHING, 0, false }, { JOB_BY_NOTHING, 0, true },
		{ JOB_BY_CLASS, 2, false },   { JOB_BY_WORKER, 3, false },
		{ JOB_BY_DP, 1, false },      { JOB_BY_STAGE, 1, true },
	};

	for (uint64_t i = 0; i < 40; i++) {
		struct job j = { .op_count = 0 };
		double lengths[STEPS * STATES];
		struct error err = { .at = NOWHERE };

		seed = i;
		make_job(&j);
		CHECK_OK(job_prepare(&j, &err), &err);
		CHECK_OK(job_run(&j, states, STATES, lengths, &err), &err);
		CHECK(!j.incomplete_count);
		for (uint32_t step = 0; step < STEPS; step++)
			for (size_t k = 0; k < STATES; k++)
				CHECK(fabs(lengths[step * STATES + k] -
					   relax(&j, step, &states[k])) < 1e-3);
		job_release(&j);
	}
}

/* Two workers that join two collectives in opposite orders, as damage may have it: neither waits
 * for ever. */
void test_replay_job_breaks_waits(void)
{
	struct job j = { .worker_count = 2,
			 .step_count = 1,
			 .class_count = 1,
			 .peer_count = 1,
			 .collective_count = 2 };
	struct error err = { .at = NOWHERE };
	double length = 0;

	j.ops = calloc(4, sizeof(*j.ops));
	j.workers = calloc(2, sizeof(*j.workers));
	for (uint32_t w = 0; w < 2; w++)
		for (uint32_t i = 0; i < 2; i++)
			j.ops[j.op_count++] = (struct job_op){ .begin_ns = 100000 * (i + 1),
							       .end_ns = 100000 * (i + 1) + 50000,
							       .worker = w,
							       .collective = w ^ i };
	CHECK_OK(job_prepare(&j, &err), &err);
	CHECK_OK(job_run(&j, &JOB_REAL, 1, &length, &err), &err);
	CHECK(j.incomplete_count > 0);
	CHECK(length > 0);
	job_release(&j);
}
