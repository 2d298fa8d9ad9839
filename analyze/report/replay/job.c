/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the slowdown of a job against its ideal (DEFINITIONS.md 8, ranks), and its parts. */
#include "analyze/replay/job.h"

#include "analyze/replay/edit.h"
#include "analyze/report/replay/ops.h"
#include "analyze/report/replay/tables.h"
#include "schemas/base/map.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <math.h>
#include <stdlib.h>

/* Share of the worst ranks, for M_W. */
#define WORST_SHARE 0.03
enum { CLASSES_MOST = 512 /* further classes get no row */ };

/* ---- index numbers --------------------------------------------------------------------- */

enum { ID_WORDS = 5 };
struct id {
	uint64_t words[ID_WORDS]; /* texts by address, because the tables have one copy of each */
};
struct ids { /* all zero: empty */
	struct id *all;
	size_t count, cap;
	struct hash_index index;
};

static enum status id_of(struct ids *ids, const struct id *id, uint32_t *out, struct error *err)
{
	uint64_t hash = 1;
	uint32_t i;

	for (size_t k = 0; k < ID_WORDS; k++)
		hash = hash_word(hash, id->words[k]);
	for (size_t at = hash_first(&ids->index, hash);
	     (i = hash_item(&ids->index, &at, hash)) != HASH_NONE; at = hash_next(&ids->index, at))
		if (!memcmp(&ids->all[i], id, sizeof(*id))) {
			*out = i;
			return ST_OK;
		}
	TRY(vec_reserve(&ids->all, &ids->cap, ids->count + 1, err));
	TRY(hash_add(&ids->index, hash, (uint32_t)ids->count, err));
	ids->all[ids->count] = *id;
	*out = (uint32_t)ids->count++;
	return ST_OK;
}

static void ids_release(struct ids *ids)
{
	free(ids->all);
	hash_release(&ids->index);
}

static uint64_t text_word(const char *text)
{
	return (uint64_t)(uintptr_t)text;
}

/* ---- operations of all ranks ------------------------------------------------------------- */

struct step_of_job {
	uint64_t number, nth;
	/* workers: number of workers with it; last: the last one, + 1 */
	uint32_t id, workers, last;
	bool is_partial;
};
struct job_of_tables {
	struct tables *all;
	struct job job;
	const union value **workers; /* a row of each, for its keys and coordinates */
	struct rank_edits *sets;
	size_t set_count;
	struct ids classes, peers, collectives, steps, hosts, dps, stages;
	struct step_of_job *list; /* in the order of their numbers */
	size_t list_count, worker_cap, step_cap, alone;
};

/* Returns the step of an operation in a row; false: the file does not have all of the step. */
static bool step_number(const struct job_of_tables *j, const union value *row, uint64_t packed,
			struct id *out)
{
	union value keys[OPS_STEP_KEYS], *at;
	uint64_t place = packed / 2;

	if (packed % 2) {
		*out = (struct id){ { place, 0 } };
		return true;
	}
	memcpy(keys, row, OPS_STEP_DEVICE * sizeof(*keys));
	keys[OPS_STEP_DEVICE] = row[OPS_DEVICE];
	keys[OPS_STEP_FIRST] = row[OPS_FIRST];
	keys[OPS_STEP_PLACE].u64 = place;
	if (table_have(tables_find(j->all, "replay_steps"), keys, &at, NULL) != ST_OK)
		return false;
	*out = (struct id){ { at[OPS_STEP_NUMBER].u64, at[OPS_STEP_NTH].u64 } };
	return true;
}

static enum status worker_add(struct job_of_tables *j, const union value *row, struct error *err)
{
	struct id host = { { text_word(row[1].text) } };
	struct id dp = { { row[OPS_DP].u64 } }, stage = { { row[OPS_STAGE].u64 } };
	size_t cap = j->worker_cap;

	TRY(vec_reserve(&j->workers, &j->worker_cap, (size_t)j->job.worker_count + 1, err));
	TRY(vec_reserve(&j->job.workers, &cap, (size_t)j->job.worker_count + 1, err));
	struct job_worker *w = &j->job.workers[j->job.worker_count];
	*w = (struct job_worker){ .dp = JOB_NONE, .stage = JOB_NONE };
	TRY(id_of(&j->hosts, &host, &w->host, err));
	if (row[OPS_DP].u64 != NO_U64)
		TRY(id_of(&j->dps, &dp, &w->dp, err));
	if (row[OPS_STAGE].u64 != NO_U64)
		TRY(id_of(&j->stages, &stage, &w->stage, err));
	j->workers[j->job.worker_count++] = row;
	return ST_OK;
}

static enum status op_add(struct job_of_tables *j, const union value *row,
			  const struct rank_op *packed, const struct id *step, struct error *err)
{
	struct job *job = &j->job;
	bool communicates = *row[OPS_OPERATION].text, by_seq = row[OPS_BY_SEQ].u64 == 1;
	bool is_together = !communicates && row[OPS_BYTES].u64 == 0;
	struct id class = { { text_word(row[OPS_NAME].text) } };
	struct id peers = { { text_word(row[OPS_NAME].text), row[OPS_BYTES].u64, communicates,
			      is_together ? packed->index + 1 : 0 } };

	TRY(vec_reserve(&job->ops, &job->op_cap, job->op_count + 1, err));
	struct job_op *o = &job->ops[job->op_count];
	*o = (struct job_op){ .begin_ns = packed->begin_ns,
			      .end_ns = packed->begin_ns + packed->span_ns,
			      .own_ns = packed->own_ns,
			      .worker = job->worker_count - 1,
			      .collective = JOB_NONE };
	TRY(id_of(&j->steps, step, &o->step, err));
	TRY(id_of(&j->classes, &class, &o->class, err));
	TRY(id_of(&j->peers, &peers, &o->peers, err));
	if (communicates) {
		bool is_alone = !strcmp(row[OPS_OPERATION].text, "alone");
		struct id collective = {
			{ text_word(row[OPS_GROUP].text), text_word(row[OPS_OPERATION].text),
			  is_alone ? j->alone++ : packed->index, o->step, by_seq }
		};

		TRY(id_of(&j->collectives, &collective, &o->collective, err));
	}
	TRY(vec_reserve(&j->list, &j->step_cap, j->steps.count, err));
	for (; j->list_count < j->steps.count; j->list_count++)
		j->list[j->list_count] =
			(struct step_of_job){ .number = j->steps.all[j->list_count].words[0],
					      .nth = j->steps.all[j->list_count].words[1],
					      .id = (uint32_t)j->list_count };
	struct step_of_job *s = &j->list[o->step];
	s->workers += s->last != job->worker_count;
	s->last = job->worker_count;
	job->op_count++;
	return ST_OK;
}

static enum status ops_take(struct job_of_tables *j, struct error *err)
{
	struct table *t = tables_find(j->all, "replay_ops");
	const union value *row, *before = NULL;
	uint64_t latest_ns = 0, left_out = 0;
	uint32_t latest = JOB_NONE; /* step of the worker's latest operation */

	for (size_t i = 0;; i++, before = row) {
		row = table_at(t, i);
		bool is_new = !before || !row || memcmp(before, row, OPS_DP * sizeof(*row)) != 0;

		/* Left-out operations belong to its last step or to later ones. */
		if (is_new && left_out && latest != JOB_NONE)
			j->list[latest].is_partial = true;
		if (!row)
			return ST_OK;
		if (is_new) {
			TRY(worker_add(j, row, err));
			latest_ns = left_out = 0;
			latest = JOB_NONE;
		}
		left_out += row[OPS_LEFT_OUT].u64;
		const char *packed = row[OPS_PACKED].text;
		struct rank_op op, last = { 0 };
		uint64_t known = NO_U64;
		bool is_known = false;
		struct id step = { { 0 } };
		while (op_unpack(&packed, &op, &last)) {
			if (op.step != known)
				is_known = step_number(j, row, op.step, &step);
			known = op.step;
			if (!is_known)
				continue;
			TRY(op_add(j, row, &op, &step, err));
			if (op.begin_ns >= latest_ns) {
				latest_ns = op.begin_ns;
				latest = j->job.ops[j->job.op_count - 1].step;
			}
		}
	}
}

/* Keeps only steps that all workers have completely. */
static enum status steps_choose(struct job_of_tables *j, struct error *err)
{
	uint32_t *places = malloc((j->list_count + 1) * sizeof(*places));
	struct job *job = &j->job;
	size_t count = 0, kept = 0;

	if (!places)
		return fail_memory(err);
	memset(places, 0xff, (j->list_count + 1) * sizeof(*places));
	SORT_BY(j->list, j->list_count, UP(struct step_of_job, number),
		UP(struct step_of_job, nth));
	for (size_t i = 0; i < j->list_count; i++) {
		const struct step_of_job s = j->list[i];

		if (s.is_partial || s.workers != job->worker_count)
			continue;
		places[s.id] = (uint32_t)count;
		j->list[count++] = s;
	}
	for (size_t i = 0; i < job->op_count; i++) {
		struct job_op o = job->ops[i];

		if (places[o.step] == JOB_NONE)
			continue;
		o.step = places[o.step];
		job->ops[kept++] = o;
	}
	job->op_count = kept;
	job->step_count = (uint32_t)(j->list_count = count);
	job->class_count = (uint32_t)j->classes.count;
	job->peer_count = (uint32_t)j->peers.count;
	job->collective_count = (uint32_t)j->collectives.count;
	free(places);
	return ST_OK;
}

/* ---- figures ----------------------------------------------------------------------------- */

struct figures {
	struct job_of_tables *of;
	struct job_state *states;
	size_t count;
	double *lengths;                                       /* from job_run() */
	double *means;                                         /* by state */
	double *fixed;                                         /* from marked_run() */
	uint64_t *ns;                                          /* scratch space of median_step() */
	size_t classes, workers, hosts, dps, stages, not_last; /* first state of each group */
	size_t class_count;
};

static size_t add_states(struct figures *f, enum job_by by, size_t count)
{
	size_t first = f->count;

	for (size_t i = 0; i < count; i++)
		f->states[f->count++] = (struct job_state){ by, (uint32_t)i, false };
	return first;
}

static double slowdown_of(const struct figures *f, size_t state)
{
	return f->means[1] > 0 ? f->means[state] / f->means[1] : NAN;
}

/* Returns the share of the slowdown that disappears if some operations take their peers' time. */
static double share_fixed(const struct figures *f, double fixed)
{
	return f->means[0] - f->means[1] > 0.5 ? (f->means[0] - fixed) / (f->means[0] - f->means[1])
					       : NAN;
}

static enum status run_states(struct figures *f, struct error *err)
{
	struct job_of_tables *j = f->of;
	uint64_t last = 0;
	uint32_t last_stage = 0;

	f->class_count = j->classes.count < CLASSES_MOST ? j->classes.count : CLASSES_MOST;
	size_t most = 3 + f->class_count + j->job.worker_count + j->hosts.count + j->dps.count +
		      j->stages.count;
	TRY(vec_new(&f->states, most, err));
	TRY(vec_new(&f->lengths, most * (j->job.step_count + 1), err));
	TRY(vec_new(&f->means, most, err));
	TRY(vec_new(&f->fixed, (size_t)j->job.step_count + 1, err));
	TRY(vec_new(&f->ns, (size_t)j->job.step_count + 1, err));
	f->states[f->count++] = JOB_REAL;
	f->states[f->count++] = JOB_IDEAL;
	f->classes = add_states(f, JOB_BY_CLASS, f->class_count);
	f->workers = add_states(f, JOB_BY_WORKER, j->job.worker_count);
	f->hosts = add_states(f, JOB_BY_HOST, j->hosts.count);
	f->dps = add_states(f, JOB_BY_DP, j->dps.count);
	f->stages = add_states(f, JOB_BY_STAGE, j->stages.count);
	for (size_t i = 0; i < j->stages.count; i++)
		if (j->stages.all[i].words[0] >= last) {
			last = j->stages.all[i].words[0];
			last_stage = (uint32_t)i;
		}
	f->not_last = f->count;
	f->states[f->count++] = (struct job_state){ JOB_BY_STAGE, last_stage, true };
	TRY(job_run(&j->job, f->states, f->count, f->lengths, err));
	for (size_t k = 0; k < f->count; k++) {
		for (size_t step = 0; step < j->job.step_count; step++)
			f->means[k] += f->lengths[step * f->count + k];
		f->means[k] /= j->job.step_count;
	}
	return ST_OK;
}

/* Computes the lengths of steps if the marked workers take their peers' times. */
static enum status marked_run(const struct figures *f, struct error *err)
{
	const struct job_state others = { JOB_BY_MARK, 0, true };

	return job_run(&f->of->job, &others, 1, f->fixed, err);
}

struct worst {
	double slowdown;
	uint32_t worker;
};

/* Computes M_W. A rank's slowdown is the smaller one of its data-parallel rank and its stage, which
 * needs two figures for all ranks together; without coordinates it is the rank's own slowdown. */
static enum status worst_share(const struct figures *f, double *out, struct error *err)
{
	struct job *job = &f->of->job;
	size_t count = job->worker_count, marked = (size_t)ceil(WORST_SHARE * (double)count);
	struct worst *all;
	double sum = 0;

	TRY(vec_new(&all, count + 1, err));
	for (uint32_t i = 0; i < count; i++) {
		const struct job_worker *w = &job->workers[i];
		double by_own = f->means[f->workers + i];
		double dp = w->dp != JOB_NONE ? f->means[f->dps + w->dp] : by_own;
		double stage = w->stage != JOB_NONE ? f->means[f->stages + w->stage] : by_own;

		all[i] = (struct worst){ dp < stage ? dp : stage, i };
	}
	SORT_BY(all, count, DOWN(struct worst, slowdown), UP(struct worst, worker));
	for (size_t i = 0; i < marked && i < count; i++)
		job->workers[all[i].worker].is_marked = true;
	free(all);
	TRY(marked_run(f, err));
	for (size_t step = 0; step < job->step_count; step++)
		sum += f->fixed[step];
	*out = share_fixed(f, sum / job->step_count);
	return ST_OK;
}

/* Returns the median of lengths that are `stride` items apart. */
static uint64_t median_step(const struct figures *f, const double *lengths, size_t stride)
{
	size_t count = f->of->job.step_count;

	for (size_t i = 0; i < count; i++)
		f->ns[i] = (uint64_t)llround(lengths[i * stride]);
	return (uint64_t)median_u64(f->ns, count);
}

/* Computes the median step if only ranks that the edits do not name keep their own times. */
static enum status ranks_edit(const struct figures *f, struct rank_edits *of, struct error *err)
{
	struct job *job = &f->of->job;
	struct edit_set set;

	TRY(edit_parse(&set, of->edits, strlen(of->edits), err));
	for (uint32_t i = 0; i < job->worker_count; i++)
		job->workers[i].is_marked = false;
	for (const struct edit *e = set.edits; e < set.edits + set.count; e++) {
		bool is_there = false;

		for (uint32_t i = 0; i < job->worker_count; i++)
			if (f->of->workers[i][0].u64 == e->number)
				job->workers[i].is_marked = is_there = true;
		if (!is_there)
			return fail(err, ST_USAGE, NOWHERE, "--what-if %s: there is no rank %u",
				    of->edits, e->number);
	}
	TRY(marked_run(f, err));
	of->step_ns = median_step(f, f->fixed, 1);
	of->baseline_ns = median_step(f, f->lengths, f->count);
	return ST_OK;
}

/* ---- tables ------------------------------------------------------------------------------ */

/* Returns the mean over steps of the longest time of a worker from its first to its last
 * operation. */
static double measured_ns(const struct job *job)
{
	double sum = 0;

	for (size_t first = 0, end, step = 0; step < job->step_count; step++) {
		uint64_t longest = 0;

		for (; first < job->step_ops[step + 1]; first = end) {
			uint64_t end_ns = 0;

			for (end = first; end < job->step_ops[step + 1] &&
					  job->ops[end].worker == job->ops[first].worker;
			     end++)
				end_ns = job->ops[end].end_ns > end_ns ? job->ops[end].end_ns
								       : end_ns;
			uint64_t ns = end_ns - job->ops[first].begin_ns;
			longest = ns > longest ? ns : longest;
		}
		sum += (double)longest;
	}
	return sum / job->step_count;
}

static enum status put_by(const struct figures *f, const char *table, const struct ids *ids,
			  size_t count, size_t first, bool is_text, struct error *err)
{
	struct table *t = tables_find(f->of->all, table);
	union value keys[BY_KEY + 1] = { { .u64 = f->of->job.step_count } }, *row;

	for (size_t i = 0; i < count; i++) {
		if (is_text)
			keys[BY_KEY].text = (const char *)(uintptr_t)ids->all[i].words[0];
		else
			keys[BY_KEY].u64 = ids->all[i].words[0];
		if (is_text && !keys[BY_KEY].text)
			continue; /* the host's name is unknown */
		TRY(table_row(t, keys, &row, err));
		row[BY_SLOWDOWN].f64 = slowdown_of(f, first + i);
	}
	return ST_OK;
}

static enum status put_steps(const struct figures *f, struct error *err)
{
	struct table *t = tables_find(f->of->all, "replay_step");
	union value keys[STEP_SLOWDOWN] = { { .u64 = f->of->job.step_count } }, *row;

	for (size_t i = 0; i < f->of->list_count; i++) {
		const double *lengths = f->lengths + i * f->count;

		keys[STEP_NUMBER].u64 = f->of->list[i].number;
		keys[STEP_NTH].u64 = f->of->list[i].nth;
		TRY(table_row(t, keys, &row, err));
		row[STEP_SLOWDOWN].f64 = lengths[1] > 0 ? lengths[0] / lengths[1] : NAN;
		row[STEP_BASELINE].u64 = (uint64_t)llround(lengths[0]);
	}
	return ST_OK;
}

static enum status put_ranks(const struct figures *f, struct error *err)
{
	struct table *t = tables_find(f->of->all, "replay_rank");
	struct table *of_steps = tables_find(f->of->all, "replay_rank_step");
	union value keys[RANK_STEP_KEYS] = { { .u64 = f->of->job.step_count } }, *row;

	for (size_t i = 0; i < f->of->job.worker_count; i++) {
		const union value *worker = f->of->workers[i];

		memcpy(keys + 1, worker, (RANK_KEYS + 1) * sizeof(*keys));
		TRY(table_row(t, keys, &row, err));
		row[WORKER_DP].u64 = worker[OPS_DP].u64;
		row[WORKER_STAGE].u64 = worker[OPS_STAGE].u64;
		row[WORKER_SLOWDOWN].f64 = slowdown_of(f, f->workers + i);
		for (size_t step = 0; step < f->of->list_count; step++) {
			const double *lengths = f->lengths + step * f->count;

			keys[RANK_STEP_NUMBER].u64 = f->of->list[step].number;
			keys[RANK_STEP_NTH].u64 = f->of->list[step].nth;
			TRY(table_row(of_steps, keys, &row, err));
			row[RANK_STEP_SLOWDOWN].f64 =
				lengths[1] > 0 ? lengths[f->workers + i] / lengths[1] : NAN;
		}
	}
	return ST_OK;
}

static enum status put_job(const struct figures *f, struct error *err)
{
	struct job_of_tables *j = f->of;
	union value key = { .u64 = j->job.step_count }, *row;
	double measured = measured_ns(&j->job), mw;

	TRY(worst_share(f, &mw, err));
	TRY(table_row(tables_find(j->all, "replay"), &key, &row, err));
	row[JOB_REPLAY_RANKS].u64 = j->job.worker_count;
	row[JOB_REPLAY_SLOWDOWN].f64 = slowdown_of(f, 0);
	row[JOB_REPLAY_IDEAL].u64 = (uint64_t)llround(f->means[1]);
	row[JOB_REPLAY_BASELINE].u64 = (uint64_t)llround(f->means[0]);
	row[JOB_REPLAY_MEASURED].u64 = (uint64_t)llround(measured);
	row[JOB_REPLAY_LAUNCH].f64 = f->means[0] > 0 ? measured / f->means[0] : NAN;
	row[JOB_REPLAY_MW].f64 = mw;
	row[JOB_REPLAY_MS].f64 = j->stages.count > 1 ? share_fixed(f, f->means[f->not_last]) : NAN;
	row[JOB_REPLAY_OPS].u64 = j->job.op_count;
	row[JOB_REPLAY_UNMET].u64 = j->job.incomplete_count;
	TRY(put_by(f, "replay_class", &j->classes, f->class_count, f->classes, true, err));
	TRY(put_by(f, "replay_host", &j->hosts, j->hosts.count, f->hosts, true, err));
	TRY(put_by(f, "replay_dp", &j->dps, j->dps.count, f->dps, false, err));
	TRY(put_by(f, "replay_stage", &j->stages, j->stages.count, f->stages, false, err));
	TRY(put_steps(f, err));
	TRY(put_ranks(f, err));
	for (size_t i = 0; i < j->set_count; i++)
		TRY(ranks_edit(f, &j->sets[i], err));
	return ST_OK;
}

enum status job_replay(struct tables *all, struct rank_edits *sets, size_t count, struct error *err)
{
	struct job_of_tables j = { .all = all, .sets = sets, .set_count = count };
	struct figures f = { .of = &j };
	enum status status = ops_take(&j, err);

	if (status == ST_OK && j.job.worker_count > 1)
		status = steps_choose(&j, err);
	if (status == ST_OK && j.job.worker_count > 1 && j.job.step_count) {
		status = job_prepare(&j.job, err);
		if (status == ST_OK)
			status = run_states(&f, err);
		if (status == ST_OK)
			status = put_job(&f, err);
	}
	free(f.states);
	free(f.lengths);
	free(f.means);
	free(f.fixed);
	free(f.ns);
	free(j.workers);
	free(j.list);
	ids_release(&j.classes);
	ids_release(&j.peers);
	ids_release(&j.collectives);
	ids_release(&j.steps);
	ids_release(&j.hosts);
	ids_release(&j.dps);
	ids_release(&j.stages);
	job_release(&j.job);
	return status;
}
