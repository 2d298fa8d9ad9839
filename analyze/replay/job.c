/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/replay/job.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
	TOLERANCE_NS = 1000,  /* the resolution of clocks: ends may seem to be so much too late */
	SIDE_BY_SIDE = 32,    /* states that are simulated together */
	STARTS_MAX = 8 << 20, /* numbers that hold when what goes on began */
};

/* ---- what operations take by themselves -------------------------------------------------- */

static int compare_ops(const void *pa, const void *pb)
{
	const struct job_op *a = pa, *b = pb;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return (a->peers > b->peers) - (a->peers < b->peers);
}

/*
 * What a member takes once the last one has begun.  Where that seems to be after its end the clocks
 * of the hosts differ, and it is the least that any member takes.
 */
static enum status transfers_find(struct job *j, struct error *err)
{
	size_t count = (size_t)j->meeting_count + 1;
	uint64_t *latest = calloc(count, sizeof(*latest)), *least = malloc(count * sizeof(*least));
	enum status status = latest && least && j->members ? ST_OK : fail_memory(err);

	for (size_t i = 0; status == ST_OK && i < count; i++)
		least[i] = UINT64_MAX;
	for (size_t i = 0; status == ST_OK && i < j->op_count; i++) {
		const struct job_op *o = &j->ops[i];
		uint64_t ns = o->end_ns - o->begin_ns;

		if (o->meeting == JOB_NONE)
			continue;
		j->members[o->meeting]++;
		if (o->begin_ns > latest[o->meeting])
			latest[o->meeting] = o->begin_ns;
		if (ns < least[o->meeting])
			least[o->meeting] = ns;
	}
	for (size_t i = 0; status == ST_OK && i < j->op_count; i++) {
		struct job_op *o = &j->ops[i];

		if (o->meeting == JOB_NONE)
			continue;
		o->own_ns = o->end_ns > latest[o->meeting] ? o->end_ns - latest[o->meeting]
			    : latest[o->meeting] - o->end_ns > TOLERANCE_NS ? least[o->meeting]
									    : 0;
	}
	free(latest);
	free(least);
	return status;
}

struct of_peers {
	uint32_t peers;
	bool meets;
	double ns;
};

static int compare_peers(const void *pa, const void *pb)
{
	const struct of_peers *a = pa, *b = pb;

	if (a->peers != b->peers)
		return a->peers < b->peers ? -1 : 1;
	return compare_double(&a->ns, &b->ns);
}

static enum status ideals_find(struct job *j, struct error *err)
{
	struct of_peers *all = calloc(j->op_count + 1, sizeof(*all));

	j->ideal_ns = calloc((size_t)j->peer_count + 1, sizeof(*j->ideal_ns));
	if (!all || !j->ideal_ns) {
		free(all);
		return fail_memory(err);
	}
	for (size_t i = 0; i < j->op_count; i++)
		all[i] = (struct of_peers){ j->ops[i].peers, j->ops[i].meeting != JOB_NONE,
					    (double)j->ops[i].own_ns };
	if (j->op_count)
		qsort(all, j->op_count, sizeof(*all), compare_peers);
	for (size_t first = 0, end; first < j->op_count; first = end) {
		double sum = 0;
		for (end = first; end < j->op_count && all[end].peers == all[first].peers; end++)
			sum += all[end].ns;
		size_t n = end - first;
		j->ideal_ns[all[first].peers] =
			all[first].meets ? (all[first + (n - 1) / 2].ns + all[first + n / 2].ns) / 2
					 : sum / (double)n;
	}
	free(all);
	return ST_OK;
}

struct point {
	uint64_t at_ns;
	uint32_t number; /* as in job.points */
	uint8_t order;   /* of equal times: ends, begins, ends of what takes no time */
};

static int compare_points(const void *pa, const void *pb)
{
	const struct point *a = pa, *b = pb;

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* Begins and ends of one worker in one step, in the order in which they were measured. */
static enum status points_find(struct job *j, struct error *err)
{
	struct point *all = calloc(2 * j->op_count + 2, sizeof(*all));

	j->points = calloc(2 * j->op_count + 2, sizeof(*j->points));
	if (!all || !j->points) {
		free(all);
		return fail_memory(err);
	}
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
		qsort(all + 2 * first, 2 * (end - first), sizeof(*all), compare_points);
	}
	for (size_t i = 0; i < 2 * j->op_count; i++)
		j->points[i] = all[i].number;
	free(all);
	return ST_OK;
}

/* Numbers meetings in the order of the steps, so that those of a step are a range. */
static enum status meetings_number(struct job *j, struct error *err)
{
	uint32_t *numbers = calloc((size_t)j->meeting_count + 1, sizeof(*numbers)), count = 0;

	if (!numbers)
		return fail_memory(err);
	for (size_t step = 0; step <= j->step_count; step++) {
		j->step_meetings[step] = count;
		for (size_t i = j->step_ops[step];
		     step < j->step_count && i < j->step_ops[step + 1]; i++) {
			uint32_t *meeting = &j->ops[i].meeting;

			if (*meeting == JOB_NONE)
				continue;
			if (!numbers[*meeting])
				numbers[*meeting] = ++count;
			*meeting = numbers[*meeting] - 1;
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
	if (j->op_count)
		qsort(j->ops, j->op_count, sizeof(*j->ops), compare_ops);
	j->members = calloc((size_t)j->meeting_count + 1, sizeof(*j->members));
	j->step_ops = calloc((size_t)j->step_count + 1, sizeof(*j->step_ops));
	j->step_meetings = calloc((size_t)j->step_count + 1, sizeof(*j->step_meetings));
	if (!j->step_ops || !j->step_meetings)
		return fail_memory(err);
	for (size_t i = 0; i <= j->op_count; i++)
		while (step <= j->step_count && (i == j->op_count || j->ops[i].step >= step))
			j->step_ops[step++] = i;
	TRY(meetings_number(j, err));
	TRY(transfers_find(j, err));
	TRY(ideals_find(j, err));
	return points_find(j, err);
}

void job_release(struct job *j)
{
	free(j->ops);
	free(j->workers);
	free(j->ideal_ns);
	free(j->members);
	free(j->points);
	free(j->step_ops);
	free(j->step_meetings);
}

/* ---- one step ---------------------------------------------------------------------------- */

struct run { /* of some states; arrays hold `states` numbers for each of what they are by */
	struct job *job;
	const struct job_state *asked;
	size_t states;
	size_t first, first_meeting;           /* operation and meeting of the step */
	double *at, *begun, *last;             /* by worker; by operation of the step; by meeting */
	uint32_t *kept_workers, *kept_classes; /* a bit for each state in which they keep theirs */
	uint32_t *missing;                     /* members of a meeting that have not begun it */
	uint32_t *waits, *next_waits; /* workers that wait for a meeting, each for the next */
	uint64_t unmet;
	size_t *next, *end; /* points of each worker */
	uint32_t *ready;
	size_t ready_count;
};

/* Whether operations of the worker keep their own time; by classes that is asked of them. */
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

static void keepers_find(struct run *r)
{
	for (size_t k = 0; k < r->states; k++) {
		const struct job_state *s = &r->asked[k];

		for (uint32_t w = 0; w < r->job->worker_count; w++)
			r->kept_workers[w] |= (uint32_t)worker_keeps(s, &r->job->workers[w], w)
					      << k;
		for (uint32_t c = 0; s->by == JOB_BY_CLASS && c < r->job->class_count; c++)
			r->kept_classes[c] |= (uint32_t)((c == s->value) != s->is_not) << k;
	}
}

static void raise_all(double *most, const double *with, size_t count)
{
	for (size_t k = 0; k < count; k++)
		most[k] = with[k] > most[k] ? with[k] : most[k];
}

static void wake(struct run *r, size_t meeting)
{
	r->missing[meeting] = 0;
	for (uint32_t w = r->waits[meeting]; w != JOB_NONE; w = r->next_waits[w])
		r->ready[r->ready_count++] = w;
	r->waits[meeting] = JOB_NONE;
}

static void op_begins(struct run *r, const struct job_op *o)
{
	double *begun = r->begun + (size_t)(o - r->job->ops - r->first) * r->states;
	size_t meeting = o->meeting - r->first_meeting;

	memcpy(begun, r->at + o->worker * r->states, r->states * sizeof(*begun));
	if (o->meeting == JOB_NONE)
		return;
	raise_all(r->last + meeting * r->states, begun, r->states);
	if (r->missing[meeting] && !--r->missing[meeting])
		wake(r, meeting);
}

static void op_ends(struct run *r, const struct job_op *o)
{
	double *at = r->at + o->worker * r->states;
	const double *from = o->meeting == JOB_NONE
				     ? r->begun + (size_t)(o - r->job->ops - r->first) * r->states
				     : r->last + (o->meeting - r->first_meeting) * r->states;
	double own = (double)o->own_ns, ideal = r->job->ideal_ns[o->peers];

	uint32_t kept = r->kept_workers[o->worker] | r->kept_classes[o->class];

	/* Of some hundred states one or two keep an operation: the others need no choice. */
	for (size_t k = 0; !kept && k < r->states; k++)
		at[k] = from[k] + ideal > at[k] ? from[k] + ideal : at[k];
	for (size_t k = 0; kept && k < r->states; k++) {
		double end = from[k] + (kept >> k & 1 ? own : ideal);

		at[k] = end > at[k] ? end : at[k];
	}
}

/* Until it has no more points, or has to wait for others. */
static void worker_go_on(struct run *r, uint32_t worker)
{
	for (; r->next[worker] < r->end[worker]; r->next[worker]++) {
		uint32_t point = r->job->points[r->next[worker]];
		const struct job_op *o = &r->job->ops[point / 2];

		if (point % 2 == 0) {
			op_begins(r, o);
			continue;
		}
		if (o->meeting != JOB_NONE && r->missing[o->meeting - r->first_meeting]) {
			uint32_t *waits = &r->waits[o->meeting - r->first_meeting];

			r->next_waits[worker] = *waits;
			*waits = worker;
			return;
		}
		op_ends(r, o);
	}
}

/* All wait for each other, as records that are missing may have it: the first one goes on without
 * those that have not come. */
static bool break_wait(struct run *r)
{
	for (uint32_t w = 0; w < r->job->worker_count; w++)
		if (r->next[w] < r->end[w]) {
			const struct job_op *o = &r->job->ops[r->job->points[r->next[w]] / 2];

			r->unmet++;
			wake(r, o->meeting - r->first_meeting);
			return true;
		}
	return false;
}

static void step_run(struct run *r, size_t step, double *out, size_t out_states)
{
	const struct job *j = r->job;
	size_t meetings = j->step_meetings[step + 1] - j->step_meetings[step];

	r->first = j->step_ops[step];
	r->first_meeting = j->step_meetings[step];
	memset(r->at, 0, j->worker_count * r->states * sizeof(*r->at));
	memset(r->last, 0, meetings * r->states * sizeof(*r->last));
	memset(r->waits, 0xff, meetings * sizeof(*r->waits));
	memcpy(r->missing, j->members + r->first_meeting, meetings * sizeof(*r->missing));
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

static enum status states_run(struct run *r, size_t ops, size_t meetings, double *out,
			      size_t out_states, struct error *err)
{
	struct job *j = r->job;
	size_t workers = (size_t)j->worker_count + 1;
	enum status status = ST_OK;

	r->at = calloc(workers * r->states, sizeof(*r->at));
	r->begun = calloc((ops + 1) * r->states, sizeof(*r->begun));
	r->last = calloc((meetings + 1) * r->states, sizeof(*r->last));
	r->kept_workers = calloc(workers, sizeof(*r->kept_workers));
	r->kept_classes = calloc((size_t)j->class_count + 1, sizeof(*r->kept_classes));
	r->missing = calloc(meetings + 1, sizeof(*r->missing));
	r->waits = calloc(meetings + 1, sizeof(*r->waits));
	r->next_waits = calloc(workers, sizeof(*r->next_waits));
	r->next = calloc(workers, sizeof(*r->next));
	r->end = calloc(workers, sizeof(*r->end));
	r->ready = calloc(workers, sizeof(*r->ready));
	if (!r->at || !r->begun || !r->last || !r->kept_workers || !r->kept_classes ||
	    !r->missing || !r->waits || !r->next_waits || !r->next || !r->end || !r->ready)
		status = fail_memory(err);
	else
		keepers_find(r);
	for (size_t step = 0; status == ST_OK && step < j->step_count; step++)
		step_run(r, step, out, out_states);
	j->unmet_count = r->unmet;
	free(r->at);
	free(r->begun);
	free(r->last);
	free(r->kept_workers);
	free(r->kept_classes);
	free(r->missing);
	free(r->waits);
	free(r->next_waits);
	free(r->next);
	free(r->end);
	free(r->ready);
	return status;
}

enum status job_run(struct job *j, const struct job_state *states, size_t count, double *out,
		    struct error *err)
{
	size_t ops = 0, meetings = 0, most, done = 0;

	for (size_t step = 0; step < j->step_count; step++) {
		size_t here = j->step_ops[step + 1] - j->step_ops[step];
		size_t meet = j->step_meetings[step + 1] - j->step_meetings[step];

		ops = here > ops ? here : ops;
		meetings = meet > meetings ? meet : meetings;
	}
	most = STARTS_MAX / (ops + meetings + j->worker_count + 1);
	most = most < 1 ? 1 : most > SIDE_BY_SIDE ? SIDE_BY_SIDE : most;
	for (; done < count; done += most) {
		struct run r = { .job = j, .asked = states + done };

		r.states = count - done < most ? count - done : most;
		TRY(states_run(&r, ops, meetings, out + done, count, err));
	}
	return ST_OK;
}
