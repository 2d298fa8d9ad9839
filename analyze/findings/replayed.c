/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/findings/internal.h"

#include "analyze/report/replay/log.h"

#include <stdlib.h>

#define UNEXPLAINED_MOST 0.1                /* share of a step */
#define BLANK_NS         100000u            /* shorter pauses between launches are Python's */
#define KEPT_MOST        ((size_t)32 << 20) /* bytes of ranks' replays to keep */

const char *const replayed_places[REPLAYED_PLACES] = { "*zero_grad*",
						       "*search_unused_parameters*" };

struct sum { /* sums over the ranks */
	double step_ns, changed_ns;
	bool is_elsewhere; /* half of a rank's steps have nothing that the edits change */
};
_Static_assert((int)REPLAYED_SETS == (int)EDIT_SETS_MAX, "states of a replay");

struct answer {
	struct edit_set set;
	struct sum sum;
};
/* A rank whose points are kept. */
struct rank {
	struct log_reader *reader; /* NULL: not read yet */
	struct replay *replay;
	struct replay_step *steps;
	size_t step_count;
	/* When no thread has anything open while the GPU works, an unrecorded thread may wait for
	 * it. */
	/* busy_ns: GPU work after `open_until_ns` */
	uint64_t open_until_ns, busy_until_ns, busy_ns, blank_ns;
};
struct replayed {
	struct tables *all;
	struct rank ranks_of[LOG_WINDOWS];
	struct answer *answers; /* the first one has no edits */
	size_t count, cap;
	double unexplained_ns;
	uint64_t ranks; /* number of ranks that were replayed */
};

/* One replay of a rank. */
struct pass {
	struct replayed *of;
	const struct rank *rank;
	size_t first, count; /* range of the answers, for states from 1 on */
	struct replay_run *run;
	uint64_t *lengths, *changed;
};

/* ---- a rank ------------------------------------------------------------------------------ */

static uint64_t beyond(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns - b_ns : 0;
}

static void note_work(struct rank *p, const struct replay_work *w)
{
	uint64_t from_ns =
		p->busy_until_ns > p->open_until_ns ? p->busy_until_ns : p->open_until_ns;

	p->busy_ns += beyond(w->end_ns, from_ns > w->begin_ns ? from_ns : w->begin_ns);
	p->busy_until_ns = w->end_ns > p->busy_until_ns ? w->end_ns : p->busy_until_ns;
}

static void note_host(struct rank *p, const struct replay_host *h)
{
	uint64_t from_ns = p->open_until_ns, to_ns = h->begin_ns;

	if (h->is_mark)
		return;
	uint64_t busy_ns = beyond(p->busy_ns, beyond(p->busy_until_ns, to_ns));

	if (from_ns > p->steps[0].begin_ns && to_ns < p->steps[p->step_count - 1].end_ns &&
	    to_ns > from_ns + BLANK_NS && 2 * busy_ns > to_ns - from_ns)
		p->blank_ns += to_ns - from_ns;
	if (h->end_ns <= from_ns)
		return;
	p->open_until_ns = h->end_ns;
	p->busy_ns = beyond(p->busy_until_ns, h->end_ns);
}

static void rank_close(struct rank *r)
{
	replay_close(r->replay);
	log_close(r->reader);
	free(r->steps);
	*r = (struct rank){ .reader = NULL };
}

static enum status points_take_all(struct rank *r, struct error *err)
{
	struct point point;

	for (;;) {
		TRY(log_take(r->reader, &point, err));
		if (point.type == POINT_NONE)
			return replay_end(r->replay, err);
		if (point.type == POINT_HOST) {
			note_host(r, &point.host);
			TRY(replay_put_host(r->replay, &point.host, err));
			continue;
		}
		note_work(r, &point.work);
		TRY(replay_put_work(r->replay, &point.work, err));
	}
}

/* Reads the points of a rank. Without steps step_count is 0, and there is no answer. */
static enum status rank_read(struct rank *r, const union value *row, struct error *err)
{
	if (r->reader)
		return ST_OK;
	TRY(log_steps_take(row[LOG_PACKED].text, row[LOG_STEPS].text, &r->steps, &r->step_count,
			   err));
	if (r->step_count <= 2)
		r->step_count = 0;
	TRY(log_open(&r->reader, r->step_count ? row[LOG_PACKED].text : "", err));
	TRY(replay_open(&r->replay, err));
	TRY(points_take_all(r, err));
	if (log_is_damaged(r->reader))
		r->step_count = 0;
	return ST_OK;
}

/* ---- a pass ------------------------------------------------------------------------------ */

/* Returns whether the edits change less than half of the steps. */
static bool is_elsewhere(const uint64_t *changed, size_t count)
{
	double sum = 0;
	size_t with = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)changed[i];
	for (size_t i = 0; i < count; i++)
		with += sum > 0 && 4 * (double)changed[i] * (double)count >= sum;
	return 2 * with < count || sum <= 0;
}

static void pass_end(struct pass *p)
{
	struct replayed *r = p->of;
	const struct rank *k = p->rank;
	size_t count = replay_lengths(p->run, k->steps, k->step_count, 0, p->lengths, NULL);

	if (count < 2)
		return;
	double baseline = median_u64(p->lengths, count);
	if (!p->first) {
		uint64_t span_ns = k->steps[k->step_count - 1].end_ns - k->steps[0].begin_ns;

		replay_lengths(p->run, k->steps, k->step_count, p->count + 1, p->lengths, NULL);
		r->unexplained_ns += baseline - median_u64(p->lengths, count) +
				     baseline * (double)k->blank_ns / (double)(span_ns + 1);
		r->ranks++;
	}
	for (size_t i = 0; i < p->count; i++) {
		struct answer *a = &r->answers[p->first + i];

		replay_lengths(p->run, k->steps, k->step_count, i + 1, p->lengths, p->changed);
		a->sum.is_elsewhere |= a->set.count && is_elsewhere(p->changed, count);
		a->sum.changed_ns +=
			replay_changed(p->run, k->steps[0].begin_ns, i + 1) / (double)(count + 1);
		a->sum.step_ns += median_u64(p->lengths, count);
	}
}

/* Replays a rank for `count` answers from `first` on. */
static void pass_release(struct pass *p)
{
	replay_run_close(p->run);
	free(p->lengths);
	free(p->changed);
}

static enum status rank_replay(struct replayed *r, const struct rank *rank, size_t first,
			       size_t count, struct error *err)
{
	RELEASED_BY(pass_release)
	struct pass p = { .of = r, .rank = rank, .first = first, .count = count };
	const struct edit_set *sets[EDIT_SETS_MAX];
	struct replay_edits edits = {
		.sets = sets, .count = count, .has_rest = !first, .kinds = log_kinds(rank->reader)
	};

	for (size_t i = 0; i < count; i++)
		sets[i] = &r->answers[first + i].set;
	TRY(replay_run_open(&p.run, rank->replay, &edits, err));
	TRY(vec_new(&p.lengths, rank->step_count, err));
	TRY(vec_new(&p.changed, rank->step_count, err));
	TRY(replay_run_go(p.run, err));
	pass_end(&p);
	return ST_OK;
}

/* ---- questions --------------------------------------------------------------------------- */

enum status replayed_open(struct replayed **out, struct tables *all, struct error *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	(*out)->all = all;
	return ST_OK;
}

void replayed_close(struct replayed *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < LOG_WINDOWS; i++)
		rank_close(&r->ranks_of[i]);
	free(r->answers);
	free(r);
}

static const struct answer *find(const struct replayed *r, const char *edits)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->answers[i].set.text, edits))
			return &r->answers[i];
	return NULL;
}

enum status replayed_ask(struct replayed *r, const char *const *edits, size_t count,
			 struct error *err)
{
	struct table *t = tables_find(r->all, "replay_log");
	const char *globs[EDIT_PLACES];
	const union value *row;
	size_t first = r->count, kept = 0;

	memcpy(globs, replayed_places, sizeof(replayed_places));
	for (size_t i = 0; i < count + !first; i++) {
		const char *text = first ? edits[i] : i ? edits[i - 1] : "";

		if (find(r, text) || r->count == first + REPLAYED_SETS)
			continue;
		TRY(vec_reserve(&r->answers, &r->cap, r->count + 1, err));
		struct answer *a = &r->answers[r->count];
		*a = (struct answer){ .set = { .count = 0 } };
		if (*text)
			TRY(edit_parse(&a->set, text, strlen(text), err));
		edit_places(&a->set, 1, globs, REPLAYED_PLACES);
		r->count++;
	}
	if (r->count == first || (first && !r->ranks))
		return ST_OK;
	for (size_t i = 0; i < LOG_WINDOWS && (row = table_at(t, i)); i++) {
		struct rank *rank = &r->ranks_of[i];

		TRY(rank_read(rank, row, err));
		if (rank->step_count)
			TRY(rank_replay(r, rank, first, r->count - first, err));
		kept += replay_size(rank->replay);
		if (kept > KEPT_MOST) {
			kept -= replay_size(rank->replay);
			rank_close(rank);
		}
	}
	return ST_OK;
}

double replayed_baseline(const struct replayed *r)
{
	double ns = r && r->ranks ? r->answers[0].sum.step_ns / (double)r->ranks : 0;

	return r && r->ranks && r->unexplained_ns / (double)r->ranks <= UNEXPLAINED_MOST * ns ? ns
											      : 0;
}

struct replay_answer replayed_answer(const struct replayed *r, const char *edits)
{
	double baseline = replayed_baseline(r);
	const struct answer *a = baseline > 0 ? find(r, edits) : NULL;

	if (!a)
		return (struct replay_answer){ .is_known = false };
	double step_ns = a->sum.step_ns / (double)r->ranks;
	return (struct replay_answer){ .step_ns = step_ns,
				       .saves_ns = step_ns < baseline ? baseline - step_ns : 0,
				       .changed_ns = a->sum.changed_ns / (double)r->ranks,
				       .is_known = !a->sum.is_elsewhere };
}
