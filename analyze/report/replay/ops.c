/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/replay/ops.h"

#include "analyze/report/comm/comm.h"
#include "convert/stage/collective.h"
#include "schemas/base/vec.h"
#include "schemas/model/args.h"

#include <stdlib.h>

enum {
	OPS_APART = 8,       /* separate computations between two begins of communication */
	NAMES_MOST = 1024,   /* rows of a GPU */
	RANKS_UNKNOWN = 256, /* assumed ranks if the file does not contain the job's size */
	PACKED_LEAST = 256 << 10,
	PACKED_MOST = 16 << 20,
	OP_PACKED_MOST = 96, /* upper bound for one operation */
};
#define PACKED_OF_JOB (256u << 20)

const struct table_type table_replay_ops = {
	.name = "replay_ops",
	.under = &table_ranks,
	.nest = NEST_NEVER,
	.columns = COLUMNS(RANK_COLUMNS, { "device", NULL, CELL_U64, KEY, NULL, "GPU number" },
			   { "dp", NULL, CELL_U64, KEY, NULL, "data-parallel coordinate" },
			   { "stage", NULL, CELL_U64, KEY, NULL, "pipeline stage" },
			   { "name", NULL, CELL_TEXT, KEY, NULL, "name of the operation" },
			   { "group", NULL, CELL_TEXT, KEY, NULL, "communicator" },
			   { "operation", NULL, CELL_TEXT, KEY, NULL, "kind of collective" },
			   { "by_seq", NULL, CELL_BOOL, KEY, NULL, "the indices are Seq" },
			   { "bytes", NULL, CELL_U64, KEY, NULL, "size; null: unknown" },
			   { "first_ns", NULL, CELL_U64, KEY, NULL, "tells inputs apart" },
			   { "packed", NULL, CELL_TEXT, MAX, NULL, "packed operations" },
			   { "left_out", NULL, CELL_U64, SUM, NULL, "operations left out" }, ),
};
const struct table_type table_replay_steps = {
	.name = "replay_steps",
	.under = &table_ranks,
	.nest = NEST_NEVER,
	.columns = COLUMNS(RANK_COLUMNS, { "device", NULL, CELL_U64, KEY, NULL, "GPU number" },
			   { "first_ns", NULL, CELL_U64, KEY, NULL, "tells inputs apart" },
			   { "place", NULL, CELL_U64, KEY, NULL, "index of the step" },
			   { "number", NULL, CELL_U64, MAX, NULL, "number of the step" },
			   { "nth", NULL, CELL_U64, MAX, NULL, "steps of this number before" }, ),
};

/* ---- packing ----------------------------------------------------------------------------- */

void op_pack(struct buf *out, const struct rank_op *o, struct rank_op *last)
{
	packed_put(out, zigzag((int64_t)(o->step - last->step)));
	packed_put(out, zigzag((int64_t)(o->begin_ns - last->begin_ns)));
	packed_put(out, o->span_ns);
	packed_put(out, o->span_ns - o->own_ns);
	packed_put(out, zigzag((int64_t)(o->index - last->index)));
	*last = *o;
}

bool op_unpack(const char **packed, struct rank_op *o, struct rank_op *last)
{
	const char *begin = *packed;

	if (!begin || !*begin)
		return false;
	o->step = last->step + (uint64_t)unzigzag(packed_take(packed));
	o->begin_ns = last->begin_ns + (uint64_t)unzigzag(packed_take(packed));
	o->span_ns = packed_take(packed);
	uint64_t gaps = packed_take(packed);
	o->own_ns = gaps < o->span_ns ? o->span_ns - gaps : 0;
	o->index = last->index + (uint64_t)unzigzag(packed_take(packed));
	/* Bounds prevent overflow of sums of damaged numbers. */
	if (o->begin_ns > INT64_MAX || o->span_ns > INT64_MAX)
		return false;
	*last = *o;
	return *packed != begin; /* otherwise it is not such a text */
}

/* ---- operations of a GPU ----------------------------------------------------------------- */

struct held { /* a computation that is separate unless too many follow each other */
	struct rank_op op;
	uint32_t name;
};
struct series { /* operations with one key */
	char group[GROUP_TEXT];
	uint64_t bytes;
	struct buf packed;
	struct rank_op last;
	uint32_t name; /* 0: joined computations */
	enum operation operation;
	bool by_seq, communicates;
};
struct counter { /* of a communicator and operation, in the current step */
	char group[GROUP_TEXT];
	uint64_t step, count;
	enum operation operation;
};
struct gpu {
	struct series *series;
	struct counter *counters;
	size_t series_count, series_cap, counter_count, counter_cap;
	struct held held[OPS_APART];
	size_t held_count; /* more than OPS_APART: they are joined in `together` */
	struct rank_op together;
	uint64_t together_step, together_count; /* joined computations in the step so far */
	uint64_t busy_ns;                       /* latest end of a computation */
	uint64_t first_ns, left_out;
	size_t packed, packed_most;
	uint32_t process, device;
};
struct ops {
	struct collectives *collectives;
	struct gpu **gpus; /* by the sweep's index */
	size_t gpu_count;
	uint32_t step_key; /* name of a kernel argument with its step; 0: none */
};

enum status ops_begin(struct ops **out, struct accumulator *f, struct error *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	(*out)->step_key = trace_find_name(f->trace, "step", 4);
	return collectives_new(&(*out)->collectives, f->trace, err);
}

void ops_free(struct ops *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->gpu_count; i++) {
		for (size_t k = 0; o->gpus[i] && k < o->gpus[i]->series_count; k++)
			buf_release(&o->gpus[i]->series[k].packed);
		if (o->gpus[i]) {
			free(o->gpus[i]->series);
			free(o->gpus[i]->counters);
		}
		free(o->gpus[i]);
	}
	free(o->gpus);
	collectives_free(o->collectives);
	free(o);
}

static enum status series_put(struct gpu *g, const struct series *like, const struct rank_op *op,
			      struct error *err)
{
	struct series *s = NULL;

	for (size_t i = 0; i < g->series_count && !s; i++) {
		struct series *one = &g->series[i];

		if (one->name == like->name && one->communicates == like->communicates &&
		    one->bytes == like->bytes && one->operation == like->operation &&
		    one->by_seq == like->by_seq && !strcmp(one->group, like->group))
			s = one;
	}
	if (g->left_out || g->packed >= g->packed_most || (!s && g->series_count == NAMES_MOST)) {
		g->left_out++; /* drop this and all later ones: an incomplete step is useless */
		return ST_OK;
	}
	if (!s) {
		TRY(vec_reserve(&g->series, &g->series_cap, g->series_count + 1, err));
		s = &g->series[g->series_count++];
		*s = *like;
		s->last = (struct rank_op){ 0 };
		buf_init(&s->packed, (size_t)PACKED_MOST + OP_PACKED_MOST);
	}
	size_t before = s->packed.len;
	op_pack(&s->packed, op, &s->last);
	g->packed += s->packed.len - before;
	return buf_status(&s->packed, err);
}

/* Writes the computations since the last communication began. */
static enum status held_flush(struct gpu *g, struct error *err)
{
	struct series like = { .bytes = NO_U64 };
	size_t count = g->held_count;

	g->held_count = 0;
	if (count > OPS_APART) {
		like.bytes = 0;
		if (g->together_step != g->together.step)
			g->together_count = 0;
		g->together_step = g->together.step;
		g->together.index = g->together_count++;
		return series_put(g, &like, &g->together, err);
	}
	for (size_t i = 0; i < count; i++) {
		like.name = g->held[i].name;
		TRY(series_put(g, &like, &g->held[i].op, err));
	}
	return ST_OK;
}

static enum status put_compute(struct gpu *g, const struct event *e, struct rank_op *op,
			       struct error *err)
{
	struct series like = { .name = e->name, .bytes = NO_U64 };

	/* An event with a step argument is already an operation of a job, so it stays separate. */
	if (op->step % 2)
		return series_put(g, &like, op, err);
	uint64_t from_ns = e->begin_ns > g->busy_ns ? e->begin_ns : g->busy_ns;
	uint64_t busy_ns = e->end_ns > from_ns ? e->end_ns - from_ns : 0;

	g->busy_ns = e->end_ns > g->busy_ns ? e->end_ns : g->busy_ns;
	if (g->held_count && g->together.step != op->step)
		TRY(held_flush(g, err));
	if (!g->held_count) {
		g->together = *op;
		g->together.own_ns = e->end_ns - e->begin_ns;
	} else {
		uint64_t span_ns = e->end_ns - g->together.begin_ns;

		g->together.own_ns += busy_ns;
		g->together.span_ns = span_ns > g->together.span_ns ? span_ns : g->together.span_ns;
	}
	if (g->held_count < OPS_APART)
		g->held[g->held_count] = (struct held){ *op, e->name };
	g->held_count += g->held_count <= OPS_APART;
	return ST_OK;
}

static enum status put_comm(struct ops *o, struct gpu *g, const struct event *e,
			    const struct launch *launch, struct rank_op *op, struct error *err)
{
	struct series like = { .name = e->name, .communicates = true };
	struct collective is;
	size_t i;

	TRY(held_flush(g, err));
	collectives_find(o->collectives, e, launch, &is);
	memcpy(like.group, is.group, GROUP_TEXT);
	like.bytes = is.bytes;
	like.operation = is.operation;
	/* The order does not show which send belongs to which receive, so they are not matched. */
	like.by_seq = is.has_seq;
	if (operation_is_point(is.operation) && !(is.is_pair && is.has_seq))
		like.operation = OPERATION_COUNT;
	op->index = is.seq;
	if (is.has_seq)
		return series_put(g, &like, op, err);
	for (i = 0; i < g->counter_count; i++)
		if (g->counters[i].operation == is.operation &&
		    !strcmp(g->counters[i].group, is.group))
			break;
	if (i == g->counter_count) {
		TRY(vec_reserve(&g->counters, &g->counter_cap, i + 1, err));
		g->counters[g->counter_count++] = (struct counter){ .operation = is.operation };
		memcpy(g->counters[i].group, is.group, GROUP_TEXT);
	}
	if (g->counters[i].step != op->step)
		g->counters[i].count = 0;
	g->counters[i].step = op->step;
	op->index = g->counters[i].count++;
	return series_put(g, &like, op, err);
}

/* Returns in *out the packed step of an event; false: it belongs to no step. */
static bool step_of(const struct ops *o, const struct accumulator *f, const struct gpu *g,
		    const struct event *e, const struct launch *launch, uint64_t *out)
{
	const struct step_list *steps = &f->steps[g->process];
	uint64_t bits;
	const struct attr *a = o->step_key ? event_arg(f->trace, e, o->step_key, &bits) : NULL;

	if (!a && o->step_key && (a = trace_find_attr(f->trace, e->schema, "step")))
		bits = a->bits;
	if (a && (a->type == ATTR_U64 || a->type == ATTR_I64) && bits <= INT64_MAX / 4) {
		*out = 2 * bits + 1;
		return true;
	}
	size_t at = steps_begun(steps, launch ? launch->begin_ns : e->begin_ns);
	*out = 2 * at;
	return at < steps->count;
}

static enum status gpus_take(struct ops *o, struct accumulator *f, struct error *err)
{
	size_t i = o->gpu_count;

	TRY(acc_gpus(f, &o->gpus, &o->gpu_count, sizeof(struct gpu *), err));
	for (; i < o->gpu_count; i++) {
		struct sweep_gpu of = sweep_gpu(f->sweep, i);
		struct gpu *g = o->gpus[i] = calloc(1, sizeof(*g));

		if (!g)
			return fail_memory(err);
		uint32_t ranks = trace_get_process(f->trace, of.process)->world_size;
		g->packed_most = PACKED_OF_JOB / (ranks ? ranks : RANKS_UNKNOWN);
		g->packed_most = g->packed_most < PACKED_LEAST  ? PACKED_LEAST
				 : g->packed_most > PACKED_MOST ? PACKED_MOST
								: g->packed_most;
		g->process = of.process;
		g->device = of.device;
		g->first_ns = NO_U64;
	}
	return ST_OK;
}

enum status ops_put(struct ops *o, struct accumulator *f, const struct sorted_batch *w,
		    struct error *err)
{
	const struct batch_events *ranges = &w->by[BATCH_SHAPED];
	size_t k = 0;

	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];
		struct rank_op op = { .begin_ns = e->begin_ns,
				      .span_ns = e->end_ns - e->begin_ns,
				      .own_ns = e->end_ns - e->begin_ns };

		if (!event_is_gpu_work(e) || e->flags & EVENT_BEGAN_EARLIER)
			continue;
		for (; k < ranges->count && ranges->items[k] < e; k++)
			TRY(collectives_note(o->collectives, ranges->items[k], err));
		TRY(gpus_take(o, f, err));
		uint32_t gpu = sweep_gpu_of(f->sweep, e->track);
		if (gpu >= o->gpu_count || !acc_wants(f, o->gpus[gpu]->process))
			continue;
		struct gpu *g = o->gpus[gpu];
		const struct launch *launch = batch_launch(f->batch, e);
		if (!step_of(o, f, g, e, launch, &op.step))
			continue;
		g->first_ns = g->first_ns == NO_U64 ? e->begin_ns : g->first_ns;
		if (sweep_class(f->sweep, e) == CLASS_COMM)
			TRY(put_comm(o, g, e, launch, &op, err));
		else
			TRY(put_compute(g, e, &op, err));
	}
	for (; k < ranges->count; k++)
		TRY(collectives_note(o->collectives, ranges->items[k], err));
	return ST_OK;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Reads "coords": {"dp": 1, "pp": 3} in the description of the job. */
static uint64_t coordinate(const struct accumulator *f, uint32_t process, const char *key)
{
	const struct process *p = trace_get_process(f->trace, process);
	const struct attr *a = trace_find_attr(f->trace, p->schema, "distributedInfo");
	const char *at =
		a && (a->type == ATTR_JSON || a->type == ATTR_TEXT)
			? strstr(trace_text(f->trace, (uint32_t)a->bits, NULL), "\"coords\"")
			: NULL;
	const char *end = at ? strchr(at, '}') : NULL;
	char *stop;

	at = at ? strstr(at, key) : NULL;
	if (!at || !end || at > end)
		return NO_U64;
	at += strlen(key);
	at += strspn(at, " \t\r\n:");
	uint64_t value = strtoull(at, &stop, 10);
	return stop > at && *at >= '0' && *at <= '9' && value < UINT32_MAX ? value : NO_U64;
}

static enum status end_steps(struct accumulator *f, const struct gpu *g, struct error *err)
{
	const struct step_list *steps = &f->steps[g->process];
	union value keys[OPS_STEP_KEYS], *row;
	RELEASED_BY(vec_release) struct step_repeat *repeats = NULL;

	TRY(step_repeats_find(steps, &repeats, err));
	keys[OPS_STEP_DEVICE].u64 = g->device == NO_ID ? NO_U64 : g->device;
	keys[OPS_STEP_FIRST].u64 = g->first_ns;
	for (size_t i = 0; i < steps->count; i++) {
		const struct step_row *s = &steps->rows[i];

		if (!s->is_counted || s->is_out)
			continue;
		keys[OPS_STEP_PLACE].u64 = i;
		TRY(acc_row(f, "replay_steps", g->process, keys, &row, err));
		row[OPS_STEP_NUMBER].u64 = s->number;
		row[OPS_STEP_NTH].u64 = step_repeat_at(repeats, (uint32_t)i + 1).nth;
	}
	return ST_OK;
}

static enum status end_gpu(struct accumulator *f, struct gpu *g, struct error *err)
{
	union value keys[OPS_KEYS], *row;

	TRY(held_flush(g, err));
	TRY(end_steps(f, g, err));
	keys[OPS_DEVICE].u64 = g->device == NO_ID ? NO_U64 : g->device;
	keys[OPS_DP].u64 = coordinate(f, g->process, "\"dp\"");
	keys[OPS_STAGE].u64 = coordinate(f, g->process, "\"pp\"");
	keys[OPS_FIRST].u64 = g->first_ns;
	for (size_t i = 0; i < g->series_count; i++) {
		struct series *s = &g->series[i];

		keys[OPS_NAME].text = s->name ? trace_text(f->trace, s->name, NULL) : "compute";
		keys[OPS_GROUP].text = s->group;
		keys[OPS_OPERATION].text = !s->communicates ? ""
					   : s->operation < OPERATION_COUNT
						   ? operation_word(s->operation)
						   : "alone";
		keys[OPS_BY_SEQ].u64 = s->by_seq;
		keys[OPS_BYTES].u64 = s->bytes;
		TRY(acc_row(f, "replay_ops", g->process, keys, &row, err));
		row[OPS_LEFT_OUT].u64 += i ? 0 : g->left_out;
		TRY(acc_text(f, "replay_ops", &row[OPS_PACKED], buf_text(&s->packed), err));
	}
	return ST_OK;
}

enum status ops_end(struct ops *o, struct accumulator *f, struct error *err)
{
	for (size_t i = 0; i < o->gpu_count; i++)
		TRY(end_gpu(f, o->gpus[i], err));
	return ST_OK;
}
