/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/replay/job.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
	TOLERANCE_NS = 1000,  /* resolution of clocks: ends may seem later by so much */
	SIDE_BY_SIDE = 32,    /* states that are simulated together */
	STARTS_MAX = 8 << 20, /* numbers with start times of operations */
};

/* ---- own times of operations ------------------------------------------------------------- */

/* Computes what a member takes once the last one has begun. If that seems to be after the member's
 * end, the hosts' clocks differ; then it is the least time that any member takes. */
static enum status transfers_find(struct job *j, struct error *err)
{
	struct {
		uint64_t latest_ns, least_ns;
	} * ranges;

	TRY(vec_new(&ranges, (size_t)j->collective_count + 1, err));
	for (size_t i = 0; i < j->op_count; i++) {
		const struct job_op *o = &j->ops[i];
		uint64_t ns = o->end_ns - o->begin_ns;

		if (o->collective == JOB_NONE)
			continue;
		if (!j->members[o->collective]++ || ns < ranges[o->collective].least_ns)
			ranges[o->collective].least_ns = ns;
		if (o->begin_ns > ranges[o->collective].latest_ns)
			ranges[o->collective].latest_ns = o->begin_ns;
	}
	for (size_t i = 0; i < j->op_count; i++) {
		struct job_op *o = &j->ops[i];

		if (o->collective == JOB_NONE)
			continue;
		uint64_t latest_ns = ranges[o->collective].latest_ns;
		o->own_ns = o->end_ns > latest_ns                  ? o->end_ns - latest_ns
			    : latest_ns - o->end_ns > TOLERANCE_NS ? ranges[o->collective].least_ns
								   : 0;
	}
	free(ranges);
	return ST_OK;
}

struct of_peers {
	uint32_t peers;
	bool is_collective;
	double ns;
};

static enum status ideals_find(struct job *j, struct error *err)
{
	struct of_peers *all;

	TRY(vec_new(&j->ideal_ns, (size_t)j->peer_count + 1, err));
	TRY(vec_new(&all, j->op_count + 1, err));
	for (size_t i = 0; i < j->op_count; i++)
		all[i] = (struct of_peers){ j->ops[i].peers, j->ops[i].collective != JOB_NONE,
					    (double)j->ops[i].own_ns };
	SORT_BY(all, j->op_count, UP(struct of_peers, peers), UP(struct of_peers, ns));
	for (size_t first = 0, end; first < j->op_count; first = end) {
		double sum = 0;
		for (end = first; end < j->op_count && all[end].peers == all[first].peers; end++)
			sum += all[end].ns;
		size_t n = end - first;
		j->ideal_ns[all[first].peers] =
			all[first].is_collective
				? (all[first + (n - 1) / 2].ns + all[first + n / 2].ns) / 2
				: sum / (double)n;
	}
	free(all);
	return ST_OK;
}

struct point {
	uint64_t at_ns;
	uint32_t number; /* index, as in job.points */
	/* order at equal times: ends, begins, ends of operations without duration */
	uint32_t order;
};

/* Numbers collectives in the order of the steps, so that those of a step are a range. */
static enum status collectives_number(struct job *j, struct error *err)
{
	uint32_t *numbers, count = 0;

	TRY(vec_new(&numbers, (size_t)j->collective_count + 1, err));
	for (size_t step = 0; step <= j->step_count; step++) {
		j->step_collectives[step] = count;
		for (size_t i = j->step_ops[step];
		     step < j->step_count && i < j->step_ops[step + 1]; i++) {
			uint32_t *collective = &j->ops[i].collective;

			if (*collective == JOB_NONE)
				continue;
			if (!numbers[*collective])
				numbers[*collective] = ++count;
			*collective = numbers[*collective] - 1;
		}
	}
	free(numbers);
	return ST_OK;
}

enum status job_prepare(struct job *j, struct error *err)
{
	size_t step = 0;

	if (j->op_count > UINT32_MAX / 2)
		return fail(err, ST_CEILING, NOWHERE, "more than %u operations of a job",
			    UINT32_MAX / 2);
	SORT_BY(j->ops, j->op_count, UP(struct job_op, step), UP(struct job_op, worker),
		UP(struct job_op, begin_ns), UP(struct job_op, end_ns), UP(struct job_op, peers));
	TRY(vec_new(&j->members, (size_t)j->collective_count + 1, err));
	TRY(vec_new(&j->step_ops, (size_t)j->step_count + 1, err));
	TRY(vec_new(&j->step_collectives, (size_t)j->step_count + 1, err));
	for (size_t i = 0; i <= j->op_count; i++)
		while (step <= j->step_count && (i == j->op_count || j->ops[i].step >= step))
			j->step_ops[step++] = i;
	TRY(collectives_number(j, err));
	TRY(transfers_find(j, err));
	TRY(ideals_find(j, err));
	/* Lists the begins and ends of each worker in each step, in measured order. */
	RELEASED_BY(vec_release) struct point *all = NULL;

	TRY(vec_new(&j->points, 2 * j->op_count + 2, err));
	TRY(vec_new(&all, 2 * j->op_count + 2, err));
	for (size_t first = 0, end; first < j->op_count; first = end) {
		for (end = first; end < j->op_count && j->ops[end].worker == j->ops[first].worker &&
				  j->ops[end].step == j->ops[first].step;
		     end++) {
			const struct job_op *o = &j->ops[end];
			uint64_t ns = o->end_ns - o->begin_ns;
			uint64_t early = ns / 2 < TOLERANCE_NS ? ns / 2 : TOLERANCE_NS;
			uint32_t number = (uint32_t)(end * 2);

			all[2 * end] = (struct point){ o->begin_ns, number, 1 };
			all[2 * end + 1] =
				(struct point){ o->end_ns - early, number + 1, ns ? 0 : 2 };
		}
		SORT_BY(all + 2 * first, 2 * (end - first), UP(struct point, at_ns),
			UP(struct point, order), UP(struct point, number));
	}
	for (size_t i = 0; i < 2 * j->op_count; i++)
		j->points[i] = all[i].number;
	return ST_OK;
}

void job_release(struct job *j)
{
	free(j->ops);
	free(j->workers);
	free(j->ideal_ns);
	free(j->members);
	free(j->points);
	free(j->step_ops);
	free(j->step_collectives);
}

/* ---- one step ---------------------------------------------------------------------------- */

struct run { /* simulates some states; arrays have `states` numbers for each item */
	struct job *job;
	const struct job_state *asked;
	size_t states;
	size_t first, first_collective; /* first operation and collective of the step */
	/* for each worker; for each operation of the step; for each collective */
	double *at, *begun, *last;
	/* bit set of the states in which they keep their own time */
	uint32_t *kept_workers, *kept_classes;
	/* members of each collective that have not begun it */
	uint32_t *missing;
	/* linked lists of the workers that wait for each collective */
	uint32_t *waits, *next_waits;
	uint64_t incomplete;
	size_t *next, *end; /* points of each worker that are left */
	uint32_t *ready;
	size_t ready_count;
};

/* Returns whether operations of a worker keep their own time. Classes are checked elsewhere. */
static bool worker_keeps(const struct job_state *s, const struct job_worker *w, uint32_t number)
{
	bool is = false;

	switch (s->by) {
	case JOB_BY_NOTHING:
		is = true;
		break;
	case JOB_BY_CLASS:
		return false;
	case JOB_BY_WORKER:
		is = number == s->value;
		break;
	case JOB_BY_HOST:
		is = w->host == s->value;
		break;
	case JOB_BY_DP:
		is = w->dp == s->value;
		break;
	case JOB_BY_STAGE:
		is = w->stage == s->value;
		break;
	case JOB_BY_MARK:
		is = w->is_marked;
		break;
	}
	return is != s->is_not;
}

static void raise_all(double *most, const double *with, size_t count)
{
	for (size_t k = 0; k < count; k++)
		most[k] = with[k] > most[k] ? with[k] : most[k];
}

static void wake(struct run *r, size_t collective)
{
	r->missing[collective] = 0;
	for (uint32_t w = r->waits[collective]; w != JOB_NONE; w = r->next_waits[w])
		r->ready[r->ready_count++] = w;
	r->waits[collective] = JOB_NONE;
}

static void op_begins(struct run *r, const struct job_op *o)
{
	double *begun = r->begun + (size_t)(o - r->job->ops - r->first) * r->states;
	size_t collective = o->collective - r->first_collective;

	memcpy(begun, r->at + o->worker * r->states, r->states * sizeof(*begun));
	if (o->collective == JOB_NONE)
		return;
	raise_all(r->last + collective * r->states, begun, r->states);
	if (r->missing[collective] && !--r->missing[collective])
		wake(r, collective);
}

static void op_ends(struct run *r, const struct job_op *o)
{
	double *at = r->at + o->worker * r->states;
	const double *from = o->collective == JOB_NONE
				     ? r->begun + (size_t)(o - r->job->ops - r->first) * r->states
				     : r->last + (o->collective - r->first_collective) * r->states;
	double own = (double)o->own_ns, ideal = r->job->ideal_ns[o->peers];

	uint32_t kept = r->kept_workers[o->worker] | r->kept_classes[o->class];

	/* The first loop has no branch: most operations keep their own time in no state. */
	for (size_t k = 0; !kept && k < r->states; k++)
		at[k] = from[k] + ideal > at[k] ? from[k] + ideal : at[k];
	for (size_t k = 0; kept && k < r->states; k++) {
		double end = from[k] + (kept >> k & 1 ? own : ideal);

		at[k] = end > at[k] ? end : at[k];
	}
}

/* Advances a worker until it has no more points or has to wait. */
static void worker_go_on(struct run *r, uint32_t worker)
{
	for (; r->next[worker] < r->end[worker]; r->next[worker]++) {
		uint32_t point = r->job->points[r->next[worker]];
		const struct job_op *o = &r->job->ops[point / 2];

		if (point % 2 == 0) {
			op_begins(r, o);
			continue;
		}
		if (o->collective != JOB_NONE && r->missing[o->collective - r->first_collective]) {
			uint32_t *waits = &r->waits[o->collective - r->first_collective];

			r->next_waits[worker] = *waits;
			*waits = worker;
			return;
		}
		op_ends(r, o);
	}
}

/* Resolves a deadlock, which missing records may cause: the first worker goes on without the
 * members that have not begun. */
static bool break_wait(struct run *r)
{
	for (uint32_t w = 0; w < r->job->worker_count; w++)
		if (r->next[w] < r->end[w]) {
			const struct job_op *o = &r->job->ops[r->job->points[r->next[w]] / 2];

			r->incomplete++;
			wake(r, o->collective - r->first_collective);
			return true;
		}
	return false;
}

static void step_run(struct run *r, size_t step, double *out, size_t out_states)
{
	const struct job *j = r->job;
	size_t collectives = j->step_collectives[step + 1] - j->step_collectives[step];

	r->first = j->step_ops[step];
	r->first_collective = j->step_collectives[step];
	memset(r->at, 0, j->worker_count * r->states * sizeof(*r->at));
	memset(r->last, 0, collectives * r->states * sizeof(*r->last));
	memset(r->waits, 0xff, collectives * sizeof(*r->waits));
	memcpy(r->missing, j->members + r->first_collective, collectives * sizeof(*r->missing));
	memset(r->next, 0, j->worker_count * sizeof(*r->next));
	memset(r->end, 0, j->worker_count * sizeof(*r->end));
	for (size_t i = r->first; i < j->step_ops[step + 1]; i++) {
		uint32_t w = j->ops[i].worker;

		if (!r->end[w])
			r->next[w] = 2 * i;
		r->end[w] = 2 * i + 2;
	}
	for (uint32_t w = j->worker_count; w; w--)
		r->ready[r->ready_count++] = w - 1;
	do
		while (r->ready_count)
			worker_go_on(r, r->ready[--r->ready_count]);
	while (break_wait(r));
	for (size_t k = 0; k < r->states; k++)
		out[step * out_states + k] = 0;
	for (uint32_t w = 0; w < j->worker_count; w++)
		raise_all(out + step * out_states, r->at + w * r->states, r->states);
}

static enum status run_new(struct run *r, size_t ops, size_t collectives, struct error *err)
{
	size_t workers = (size_t)r->job->worker_count + 1;

	TRY(vec_new(&r->at, workers * r->states, err));
	TRY(vec_new(&r->begun, (ops + 1) * r->states, err));
	TRY(vec_new(&r->last, (collectives + 1) * r->states, err));
	TRY(vec_new(&r->kept_workers, workers, err));
	TRY(vec_new(&r->kept_classes, (size_t)r->job->class_count + 1, err));
	TRY(vec_new(&r->missing, collectives + 1, err));
	TRY(vec_new(&r->waits, collectives + 1, err));
	TRY(vec_new(&r->next_waits, workers, err));
	TRY(vec_new(&r->next, workers, err));
	TRY(vec_new(&r->end, workers, err));
	TRY(vec_new(&r->ready, workers, err));
	for (size_t k = 0; k < r->states; k++) {
		const struct job_state *s = &r->asked[k];

		for (uint32_t w = 0; w < r->job->worker_count; w++)
			r->kept_workers[w] |= (uint32_t)worker_keeps(s, &r->job->workers[w], w)
					      << k;
		for (uint32_t c = 0; s->by == JOB_BY_CLASS && c < r->job->class_count; c++)
			r->kept_classes[c] |= (uint32_t)((c == s->value) != s->is_not) << k;
	}
	return ST_OK;
}

static enum status states_run(struct run *r, size_t ops, size_t collectives, double *out,
			      size_t out_states, struct error *err)
{
	struct job *j = r->job;
	const void *const owned[] = { &r->at,           &r->begun,        &r->last,  &r->missing,
				      &r->kept_workers, &r->kept_classes, &r->waits, &r->next_waits,
				      &r->next,         &r->end,          &r->ready };
	enum status status = run_new(r, ops, collectives, err);

	for (size_t step = 0; status == ST_OK && step < j->step_count; step++)
		step_run(r, step, out, out_states);
	j->incomplete_count = r->incomplete;
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
		vec_release(owned[i]);
	return status;
}

enum status job_run(struct job *j, const struct job_state *states, size_t count, double *out,
		    struct error *err)
{
	size_t ops = 0, collectives = 0, most, done = 0;

	for (size_t step = 0; step < j->step_count; step++) {
		size_t here = j->step_ops[step + 1] - j->step_ops[step];
		size_t collectives_here = j->step_collectives[step + 1] - j->step_collectives[step];

		ops = here > ops ? here : ops;
		collectives = collectives_here > collectives ? collectives_here : collectives;
	}
	most = STARTS_MAX / (ops + collectives + j->worker_count + 1);
	most = most < 1 ? 1 : most > SIDE_BY_SIDE ? SIDE_BY_SIDE : most;
	for (; done < count; done += most) {
		struct run r = { .job = j, .asked = states + done };

		r.states = count - done < most ? count - done : most;
		TRY(states_run(&r, ops, collectives, out + done, count, err));
	}
	return ST_OK;
}
