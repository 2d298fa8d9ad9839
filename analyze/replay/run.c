/* SPDX-License-Identifier: Apache-2.0 */
/* Computes when points happen in several states. */
#include "analyze/replay/edit.h"
#include "analyze/replay/internal.h"

#include <math.h>
#include <stdlib.h>

#define FOR_STATES(x) for (unsigned k = 0; k < (x)->states; k++)

struct replay_run {
	const struct replay *of;
	struct replay_edits edits;
	unsigned states;
	bool has_overlaps, has_drops[REPLAY_ACTIVITIES], is_inexact;
	bool overlaps[REPLAY_STATES], drops_waits[REPLAY_ACTIVITIES][REPLAY_STATES];
	double keeps_rest[REPLAY_STATES]; /* 1: the state keeps the residual; 0: it drops it */
	double **factors;                 /* by kind; factor_cap items */
	size_t factor_cap;

	/* `states` numbers for each slot and each mark; mark_changed: the time that edits removed
	 * or added up to the mark. */
	double *at, *mark_at, *mark_changed;
	size_t at_cap, mark_at_cap, mark_changed_cap;
	uint32_t mark_count;            /* number of marks so far */
	double ready[REPLAY_STATES];    /* when the dependencies of the next point are met */
	double last_end[REPLAY_STATES]; /* end of the latest work so far */
	double changed[REPLAY_STATES];
};

enum status replay_run_open(struct replay_run **out, const struct replay *of,
			    const struct replay_edits *edits, struct error *err)
{
	struct replay_run *x = *out = calloc(1, sizeof(*x));

	if (!x)
		return fail_memory(err);
	x->of = of;
	x->edits = *edits;
	x->states = 1 + (unsigned)edits->count + edits->has_rest;
	for (unsigned k = 0; k < x->states; k++)
		x->keeps_rest[k] = k <= edits->count;
	for (unsigned k = 1; k <= edits->count; k++) {
		x->overlaps[k] = edit_has(edits->sets[k - 1], EDIT_OVERLAP);
		x->has_overlaps |= x->overlaps[k];
		for (unsigned a = 0; a < REPLAY_ACTIVITIES; a++) {
			x->drops_waits[a][k] = edit_drops_waits(edits->sets[k - 1], a);
			x->has_drops[a] |= x->drops_waits[a][k];
		}
	}
	return ST_OK;
}

void replay_run_close(struct replay_run *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->factor_cap; i++)
		free(x->factors[i]);
	free(x->factors);
	free(x->at);
	free(x->mark_at);
	free(x->mark_changed);
	free(x);
}

/* Returns `states` factors, of which the first is 1; NULL: out of memory. */
static const double *factors_of(struct replay_run *x, uint32_t kind, struct error *err)
{
	if (vec_reserve(&x->factors, &x->factor_cap, (size_t)kind + 1, err) != ST_OK)
		return NULL;
	double *f = x->factors[kind];
	if (f)
		return f;
	f = x->factors[kind] = calloc(x->states, sizeof(*f));
	if (!f) {
		fail_memory(err);
		return NULL;
	}
	for (unsigned k = 0; k < x->states; k++)
		f[k] = k && k <= x->edits.count
			       ? edit_factor(x->edits.sets[k - 1], &x->edits.kinds->all[kind])
			       : 1;
	return f;
}

/* ---- moves ------------------------------------------------------------------------------- */

static void set(const struct replay_run *x, double *restrict to, const double *restrict from,
		double after)
{
	FOR_STATES(x) to[k] = from[k] + after;
}

static void raise_to(const struct replay_run *x, double *restrict to, const double *restrict from,
		     double after)
{
	FOR_STATES(x)
	{
		double at = from[k] + after;

		to[k] = at > to[k] ? at : to[k];
	}
}

static void depend(struct replay_run *x, const struct move *m, const double *from)
{
	if (m->flags & MOVE_COMMUNICATES && x->has_overlaps) {
		for (unsigned k = 0; k < x->states; k++) {
			double ready = m->flags & MOVE_IS_FIRST ? 0 : x->ready[k];
			double at = from[k] + m->own;

			x->ready[k] = x->overlaps[k] || ready > at ? ready : at;
		}
	} else if (m->flags & MOVE_IS_FIRST) {
		set(x, x->ready, from, m->own);
	} else {
		raise_to(x, x->ready, from, m->own);
	}
}

static void spend(const struct replay_run *x, const struct move *m, const double *restrict f,
		  double *restrict to)
{
	double own = m->own;

	FOR_STATES(x) to[k] += own * f[k];
}

static void meet(const struct replay_run *x, const struct move *m, const double *restrict f,
		 double *restrict to)
{
	const double *restrict ready = x->ready;
	double own = m->own, rest = m->rest > 0 ? m->rest : 0, ahead = m->rest < 0 ? -m->rest : 0;

	if (!x->has_drops[m->activity] && !(m->flags & MOVE_WAITS_FOR_GPU)) {
		FOR_STATES(x)
		{
			double at = to[k] + own * f[k];

			to[k] = (at > ready[k] ? at : ready[k]) - ahead + rest * f[k];
		}
		return;
	}
	for (unsigned k = 0; k < x->states; k++) {
		double at = to[k] + own * f[k];

		if (!x->drops_waits[m->activity][k])
			at = (at > ready[k] ? at : ready[k]) - ahead;
		to[k] = at + rest * f[k] * (m->flags & MOVE_WAITS_FOR_GPU ? x->keeps_rest[k] : 1);
	}
}

static void work(struct replay_run *x, const struct move *m, const double *restrict f,
		 double *restrict to)
{
	double *restrict last = x->last_end, own = m->own, rest = m->rest;
	const double *restrict ready = x->ready, *restrict keeps = x->keeps_rest;

	FOR_STATES(x)
	{
		double end = ready[k] + rest * keeps[k] + own * f[k];

		to[k] = end;
		last[k] = end > last[k] ? end : last[k];
	}
}

static void mark(struct replay_run *x, const struct move *m, const double *from)
{
	double *at = x->mark_at + m->to * x->states;

	x->mark_count = m->to + 1;
	memcpy(x->mark_changed + m->to * x->states, x->changed, x->states * sizeof(*at));
	if (m->flags & MOVE_IS_FIRST)
		memcpy(at, from, x->states * sizeof(*at));
	raise_to(x, at, from, 0);
	raise_to(x, at, x->last_end, 0);
}

/* Adds up what edits removed. Waiting time is removed only in states in which the call does not
 * wait. */
static void change(struct replay_run *x, const struct move *m, const double *f)
{
	for (unsigned k = 0; k < x->states; k++) {
		double ns = (m->own - m->rest * !x->drops_waits[m->activity][k]) * fabs(1 - f[k]);

		x->changed[k] += ns;
		for (uint32_t i = m->to; m->type == MOVE_WAITS && i < x->mark_count; i++)
			x->mark_changed[i * x->states + k] += ns;
	}
}

enum status replay_run_go(struct replay_run *x, struct error *err)
{
	const struct replay *r = x->of;
	const double *f = NULL;

	TRY(vec_reserve(&x->at, &x->at_cap, (r->slot_count + (size_t)1) * x->states, err));
	TRY(vec_reserve(&x->mark_at, &x->mark_at_cap, (r->mark_count + 1) * x->states, err));
	TRY(vec_reserve(&x->mark_changed, &x->mark_changed_cap, (r->mark_count + 1) * x->states,
			err));
	for (size_t n = 0; n < r->move_count; n++) {
		const struct move *m = &r->moves[n];
		double *from = x->at + m->from * x->states, *to = x->at + m->to * x->states;

		if (m->type >= MOVE_OWN && m->type <= MOVE_WAITS &&
		    (m->kind >= x->factor_cap || !(f = x->factors[m->kind])) &&
		    !(f = factors_of(x, m->kind, err)))
			return ST_MEMORY;
		switch ((enum move_type)m->type) {
		case MOVE_SET:
			set(x, to, from, m->own);
			continue;
		case MOVE_DEPEND:
			depend(x, m, from);
			continue;
		case MOVE_OWN:
			spend(x, m, f, to);
			break;
		case MOVE_JOIN:
			meet(x, m, f, to);
			break;
		case MOVE_WORK:
			work(x, m, f, to);
			if (m->from)
				memcpy(from, to, x->states * sizeof(*to));
			break;
		case MOVE_CHANGED:
			change(x, m, f);
			continue;
		case MOVE_MARK:
			mark(x, m, from);
			continue;
		case MOVE_WAITS:
			change(x, m, f);
			for (uint32_t i = m->to; i < x->mark_count; i++)
				raise_to(x, x->mark_at + i * x->states, from, 0);
			continue;
		}
		x->is_inexact |= to[0] > m->at || to[0] < m->at;
	}
	return ST_OK;
}

bool replay_is_exact(const struct replay_run *x)
{
	return !x->is_inexact;
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Returns NULL if there is no mark at that time. */
static const struct mark *mark_find(const struct replay *r, uint64_t at_ns)
{
	/* `ns` is the first member of struct mark. */
	return r->mark_count
		       ? bsearch(&at_ns, r->marks, r->mark_count, sizeof(*r->marks), compare_u64)
		       : NULL;
}

const double *replay_at(const struct replay_run *x, uint64_t at_ns)
{
	const struct mark *found = mark_find(x->of, at_ns);

	return found ? x->mark_at + (size_t)(found - x->of->marks) * x->states : NULL;
}

double replay_changed(const struct replay_run *x, uint64_t since_ns, size_t state)
{
	const struct mark *since = mark_find(x->of, since_ns);
	size_t at = since ? (size_t)(since - x->of->marks) * x->states + state : 0;

	return since ? x->changed[state] - x->mark_changed[at] : 0;
}

size_t replay_lengths(const struct replay_run *x, const struct replay_step *steps, size_t count,
		      size_t state, uint64_t *out, uint64_t *changed_ns)
{
	bool is_graph =
		state && state <= x->edits.count && edit_has(x->edits.sets[state - 1], EDIT_LAUNCH);
	bool is_first = true;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct mark *begin = mark_find(x->of, steps[i].begin_ns);
		const struct mark *end = mark_find(x->of, steps[i].end_ns);

		if (!begin || !end)
			continue;
		/* A step without launches has nothing to put into a graph. */
		size_t of = is_graph && begin->works == end->works ? 0 : state;
		size_t from = (size_t)(begin - x->of->marks) * x->states + of;
		size_t to = (size_t)(end - x->of->marks) * x->states + of;

		if (!is_first) {
			if (changed_ns)
				changed_ns[kept] = (uint64_t)llround(x->mark_changed[to] -
								     x->mark_changed[from]);
			out[kept++] = (uint64_t)llround(fmax(x->mark_at[to] - x->mark_at[from], 0));
		}
		is_first = false;
	}
	return kept;
}
