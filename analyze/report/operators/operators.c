/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report `operators` (DEFINITIONS.md 8): host time of the framework's operators, and the GPU
 * work that they launched, by name and by name with shapes.
 *
 * GPU work comes after its launch, often after the operator has ended. So recent operators of each
 * thread are kept in the order of their begins, each with the one around it. A launch belongs to
 * the innermost operator that is open when it begins.
 */
#include "analyze/report/operators/operators.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"
#include "schemas/proto/xspace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FIGURES(X, prefix, where)                                                                  \
	X(prefix##_CALLS = where, "calls", "calls", U64, SUM, "calls of the operator")             \
	X(prefix##_GPU_CALLS, "gpu_calls", "with GPU", U64, SUM,                                   \
	  "calls in which GPU work was launched")                                                  \
	X(prefix##_HOST, "host_ns", "host", U64, SUM,                                              \
	  "time in the calls; nested calls of the same name count once")                           \
	X(prefix##_HOST_SELF, "host_self_ns", "host self", U64, SUM,                               \
	  "time in the calls without that in nested operators")                                    \
	X(prefix##_GPU_SELF, "gpu_self_ns", "GPU self", U64, SUM,                                  \
	  "GPU work launched while it was the innermost operator, overlaps counted twice")         \
	X(prefix##_GPU, "gpu_ns", "GPU", U64, SUM,                                                 \
	  "GPU work launched in its calls, overlaps counted twice")                                \
	X(prefix##_PCT, "gpu_self_pct", "%", F64, DERIVED,                                         \
	  "GPU self time / GPU self time of all operators", .of = "GPU self")                      \
	CAPTURED_COLUMNS(X, prefix, prefix##_PCT + 1)                                              \
	COST_COLUMNS(X, prefix, prefix##_CAPTURE_GPU + 1)
#define OPERATOR_COLUMNS(X)                                                                        \
	X(OPERATOR_NAME = RANK_KEYS, "name", "operator", TEXT, KEY, "name, as in the file")        \
	X(OPERATOR_CATEGORY, "category", "category", TEXT, KEY, "kind of computation, by name")    \
	FIGURES(X, OPERATOR, OPERATOR_CATEGORY + 1)
static RANK_TABLE(operators, &table_ranks, OPERATOR_COLUMNS, .by = "gpu_self_ns",
		  .tie = "capture_gpu_self_ns", .null_texts = "bound");

#define SHAPE_COLUMNS(X)                                                                           \
	X(SHAPE_NAME = RANK_KEYS, "name", "operator", TEXT, KEY, "name, as in the file")           \
	X(SHAPE_CATEGORY, "category", NULL, TEXT, KEY, "kind of computation, by name")             \
	X(SHAPE_SHAPES, "shapes", "shapes", TEXT, KEY, "shapes of inputs, JSON as in the file")    \
	X(SHAPE_TYPES, "types", "types", TEXT, KEY, "types of inputs, JSON as in the file")        \
	FIGURES(X, SHAPE, SHAPE_TYPES + 1)
static RANK_TABLE(operator_shapes, &table_ranks, SHAPE_COLUMNS, .by = "gpu_self_ns",
		  .tie = "capture_gpu_self_ns", .null_texts = "shapes types bound");

enum {
	CALLS_KEPT = 1 << 16, /* per thread; GPU work may come so many calls after its launch */
	NONE = UINT32_MAX,
};

static enum status operators_begin(struct accumulator *f, struct error *err)
{
	struct operators *s = f->state;

	s->thread_count = (size_t)trace_count(f->trace, TRACE_TRACKS) + 1;
	TRY(vec_new(&s->threads, s->thread_count, err));
	for (size_t i = 0; i < s->thread_count; i++)
		s->threads[i].innermost = NONE;
	s->process_count = trace_count(f->trace, TRACE_PROCESSES);
	TRY(vec_new(&s->processes, (size_t)s->process_count + 1, err));
	for (uint32_t i = 0; i <= s->process_count; i++)
		s->processes[i].device = NO_ID;
	return ST_OK;
}

static struct op_call *call_at(struct op_thread *t, uint32_t number)
{
	return number == NONE || number < t->first ? NULL : &t->calls[number - t->first];
}

/* Adds what a call computes to the step and phase of an event: its first GPU work or, in a process
 * without a GPU, the call. */
static enum status add_flops(struct operators *s, const struct op_row *row, const struct event *e,
			     bool is_again, bool is_gpu, struct error *err)
{
	struct roofline_cell *cell;

	if (!row->cost.is_matrix || (!is_gpu && s->processes[row->process].device != NO_ID))
		return ST_OK;
	struct op_cost one =
		cost_of_calls(&s->processes[row->process].gpu, &row->cost, row->is_tf32, 1);
	TRY(operator_cell(s, row->process, e->step, e->phase, &cell, err));
	for (int i = is_again; i < 2; i++) {
		cell->flops[i] += one.flops;
		cell->peak_ps[i] += is_gpu ? one.compute_ps : 0;
	}
	return ST_OK;
}

/* Determines whether a recomputed call computed anything. Activation checkpointing stops the last
 * operator that it runs again after the operator's event began. Without a GPU, a product is known
 * to have run only if it began other operators than views. */
static enum status put_computed(struct accumulator *f, const struct event *e, struct op_thread *t,
				struct op_call *c, struct error *err)
{
	struct operators *s = f->state;
	const struct op_row *row = &s->rows[c->row];

	c->is_again = e->path && trace_get_path(f->trace, e->path)->pass == PASS_RECOMPUTE;
	c->is_open = c->is_again && row->has_model && row->cost.is_matrix;
	if (!c->is_open) {
		struct op_call *above = call_at(t, c->above);

		s->rows[c->row].computed++;
		if (c->counts)
			TRY(add_flops(s, row, e, c->is_again, false, err));
		if (!above || !above->is_open || !strcmp(s->names[row->name].category, "view"))
			return ST_OK;
		for (; above && above->is_open; above = call_at(t, above->above)) {
			above->is_open = false;
			s->rows[above->row].computed++;
			if (above->counts)
				TRY(add_flops(s, &s->rows[above->row], e, true, false, err));
		}
	}
	return ST_OK;
}

static enum status put_operator(struct accumulator *f, const struct event *e, struct error *err)
{
	struct operators *s = f->state;
	struct op_thread *t = &s->threads[e->track];
	uint64_t ns = e->end_ns - e->begin_ns;
	/* latest ends of open calls with the same name; with the same shapes too */
	uint64_t until_ns[2] = { e->begin_ns, e->begin_ns };
	uint32_t number;

	TRY(operator_row(f, acc_process(f, e->track), e, &number, err));
	struct op_row *row = &s->rows[number];
	struct op_call *above = call_at(t, t->innermost);

	while (above && above->end_ns <= e->begin_ns)
		above = call_at(t, above->above);
	row->calls += !(e->flags & EVENT_BEGAN_EARLIER);
	row->host_self_ns += (int64_t)ns;
	if (above)
		s->rows[above->row].host_self_ns -=
			(int64_t)((e->end_ns < above->end_ns ? e->end_ns : above->end_ns) -
				  e->begin_ns);
	bool counts = row->has_model;
	for (struct op_call *c = above; c; c = call_at(t, c->above)) {
		counts &= !s->rows[c->row].has_model;
		if (s->rows[c->row].name != e->name)
			continue;
		for (int i = 0; i < (s->rows[c->row].shape == row->shape ? 2 : 1); i++)
			until_ns[i] = later(until_ns[i], c->end_ns);
	}
	for (int i = 0; i < 2; i++)
		row->host_ns[i] += e->end_ns > until_ns[i] ? e->end_ns - until_ns[i] : 0;
	uint32_t outer = above ? (uint32_t)(above - t->calls) + t->first : NONE;
	if (t->count == CALLS_KEPT) {
		/* Drop the older half. */
		size_t gone = t->count / 2;

		memmove(t->calls, t->calls + gone, (t->count - gone) * sizeof(*t->calls));
		t->count -= gone;
		t->first += (uint32_t)gone;
	}
	TRY(vec_reserve(&t->calls, &t->cap, t->count + 1, err));
	t->innermost = t->first + (uint32_t)t->count;
	t->calls[t->count++] = (struct op_call){ .begin_ns = e->begin_ns,
						 .end_ns = e->end_ns,
						 .row = number,
						 .above = outer,
						 .counts = counts };
	return put_computed(f, e, t, &t->calls[t->count - 1], err);
}

/* Returns the innermost call that is open at that time; NULL: none. */
static struct op_call *call_open(struct op_thread *t, uint64_t at_ns)
{
	size_t at;

	SEARCH(at, 0, t->count, t->calls[at].begin_ns <= at_ns);
	struct op_call *c = at ? &t->calls[at - 1] : NULL;
	while (c && c->end_ns <= at_ns)
		c = call_at(t, c->above);
	return c;
}

/* Detects algorithms by the name of a kernel: TF32 instead of FP32, or Winograd's with fewer
 * products. */
static void put_algorithm(struct op_row *row, const char *kernel)
{
	row->is_tf32 |= strcasestr(kernel, "tf32") || strstr(kernel, "s1688");
	if (strcasestr(kernel, "winograd"))
		/* 16 instead of 36 products for 2 x 2 results of a 3 x 3 filter */
		row->cost.fewer = 2.25;
}

static double number_of(const struct accumulator *f, uint32_t schema, const char *key)
{
	const struct attr *a = trace_find_attr(f->trace, schema, key);
	double value = NAN;

	if (a && a->type == ATTR_F64)
		memcpy(&value, &a->bits, sizeof(value));
	else if (a && (a->type == ATTR_U64 || a->type == ATTR_I64))
		value = (double)a->bits;
	return value >= 0 && value <= MODEL_MOST ? value : NAN;
}

/* Returns the XLA operation that a GPU work names, below the path of its launch; 0: none. */
static uint32_t stated_operator(const struct trace *t, const struct event *e,
				const struct launch *l)
{
	const struct path_node *node = trace_get_path(t, e->path);

	if (!e->path || e->path == (l ? l->path : 0))
		return 0;
	if (node->class == PATH_BACKWARD || node->class == PATH_RECOMPUTE)
		node = trace_get_path(t, node->parent);
	return node->class == RANGE_OP ? node->name : 0;
}

/* Finds the XLA program with an id; ST_OK and *out NULL: the file does not contain it. */
static enum status find_program(struct accumulator *f, uint32_t process, uint64_t id,
				struct xla_program **out, struct error *err)
{
	struct operators *s = f->state;
	const struct arg_schema *schema =
		trace_get_schema(f->trace, trace_get_process(f->trace, process)->schema);
	char key[48];

	for (size_t i = 0; i < s->program_count; i++)
		if (s->programs[i].id == id && s->programs[i].process == process) {
			*out = s->programs[i].program;
			return ST_OK;
		}
	TRY(vec_reserve(&s->programs, &s->program_cap, s->program_count + 1, err));
	struct op_program *p = &s->programs[s->program_count++];
	*p = (struct op_program){ .id = id, .process = process };
	snprintf(key, sizeof(key), XSPACE_PROGRAM_KEY "%llu.", (unsigned long long)id);
	for (uint32_t i = 0; i < schema->const_count && !p->program; i++) {
		const struct attr *a = &schema->consts[i];
		size_t size;
		const char *bytes = trace_text(f->trace, (uint32_t)a->bits, &size);

		if (a->type == ATTR_TEXT &&
		    !strncmp(trace_text(f->trace, a->key, NULL), key, strlen(key)))
			TRY(xla_read(bytes, size, &p->program, err));
	}
	*out = p->program;
	return ST_OK;
}

/* Sets the cost of a row from the FLOPs in a kernel's arguments or from the XLA program of its
 * operation. The arguments do not contain a type, so these FLOPs are compared with the 16-bit
 * peak. */
static enum status find_stated(struct accumulator *f, const struct event *e, struct op_row *row,
			       struct error *err)
{
	const struct attr *id = trace_find_attr(f->trace, e->schema, "program_id");
	const char *operation = trace_attr_text(f->trace, e->schema, "hlo_op");
	double flops = number_of(f, e->schema, "flops");
	struct xla_program *program = NULL;

	if (row->is_asked)
		return ST_OK;
	row->is_asked = true;
	if (!isnan(flops)) {
		row->has_model = true;
		row->cost = (struct model_cost){ .family = "xla",
						 .flops = flops,
						 .bytes = number_of(f, e->schema, "bytes_accessed"),
						 .number = NUMBER_BF16,
						 .is_matrix = true,
						 .fewer = 1 };
	} else if (operation && id && id->type <= ATTR_I64) {
		TRY(find_program(f, row->process, id->bits, &program, err));
		row->has_model = program && xla_cost(program, operation, &row->cost);
	}
	return ST_OK;
}

/* Returns whether work begins another run of its operation, which may have several kernels. */
static bool is_new_run(struct accumulator *f, const struct event *e)
{
	struct op_thread *t = &((struct operators *)f->state)->threads[e->track];
	const struct attr *a = trace_find_attr(f->trace, e->schema, "hlo_op");
	uint64_t operation = a && a->type == ATTR_TEXT ? a->bits : 0;

	if (operation && t->operation == operation && t->first_kernel != e->name)
		return false;
	t->operation = operation;
	t->first_kernel = e->name;
	return true;
}

/* Counts an XLA kernel whose arguments name its operation or FLOPs. Each kernel is a call; but if
 * the cost of the operation is known, all kernels of a run are one call. */
static enum status put_stated(struct accumulator *f, const struct event *e, uint32_t name,
			      struct error *err)
{
	struct operators *s = f->state;
	bool is_comm = sweep_class(f->sweep, e) == CLASS_COMM;
	uint64_t ns = e->end_ns - e->begin_ns;
	struct event stated = *e;
	uint32_t number;

	if (!name && (is_comm || isnan(number_of(f, e->schema, "flops"))))
		return ST_OK;
	stated.name = name ? name : e->name;
	TRY(operator_row(f, acc_process(f, e->track), &stated, &number, err));
	struct op_row *row = &s->rows[number];
	if (!is_comm)
		TRY(find_stated(f, e, row, err));
	bool is_new = is_new_run(f, e) || !row->has_model;

	row->calls += is_new;
	row->gpu_calls += is_new;
	row->gpu_self_ns += ns;
	row->gpu_ns[0] += ns;
	row->gpu_ns[1] += ns;
	if (!row->has_model)
		return ST_OK;
	row->own_calls += is_new;
	row->own_gpu_ns += ns;
	return is_new ? add_flops(s, row, e, false, true, err) : ST_OK;
}

static enum status put_work(struct accumulator *f, const struct event *e, struct error *err)
{
	struct operators *s = f->state;
	const struct launch *l = batch_launch(f->batch, e);
	uint64_t ns = e->end_ns - e->begin_ns, work = ++s->works;
	struct op_thread *t = l && l->track < s->thread_count ? &s->threads[l->track] : NULL;
	struct op_call *c = t ? call_open(t, l->begin_ns) : NULL;
	struct op_row *own = c ? &s->rows[c->row] : NULL;
	uint32_t process = acc_process(f, e->track);
	struct roofline_cell *cell;

	if (process <= s->process_count && s->processes[process].device == NO_ID) {
		s->processes[process].device = trace_get_track(f->trace, e->track)->device;
		s->processes[process].gpu =
			roofline_gpu_of(f, process, s->processes[process].device);
		for (size_t i = 0; i < s->cell_count; i++) /* discard what calls added */
			if (s->cells[i].process == process)
				s->cells[i].flops[0] = s->cells[i].flops[1] = 0;
	}
	TRY(captures_put_work(f, &s->captures, e, l, err));
	TRY(operator_cell(s, process, e->step, e->phase, &cell, err));
	cell->gpu_ns += ns;
	uint32_t stated = stated_operator(f->trace, e, l);
	if (stated || !c)
		TRY(put_stated(f, e, stated, err));
	if (c && !stated)
		s->rows[c->row].gpu_self_ns += ns;
	for (; c; c = call_at(t, c->above)) {
		struct op_row *row = &s->rows[c->row];

		if (c->end_ns <= l->begin_ns)
			continue; /* if calls do not nest, an outer one may have ended */
		if (row->cost.number == NUMBER_FP32 && row->cost.is_matrix)
			put_algorithm(row, trace_text(f->trace, e->name, NULL));
		if (c->counts) {
			own = row;
			row->own_calls += !c->has_work;
			if (!c->has_work)
				TRY(add_flops(s, row, e, c->is_again, true, err));
		}
		row->gpu_calls += !c->has_work;
		c->has_work = true;
		row->gpu_ns[0] += s->names[row->name].seen == work ? 0 : ns;
		row->gpu_ns[1] += s->shapes[row->shape].seen == work ? 0 : ns;
		s->names[row->name].seen = s->shapes[row->shape].seen = work;
	}
	if (own && sweep_class(f->sweep, e) != CLASS_COMM)
		own->own_gpu_ns += ns;
	return ST_OK;
}

static enum status put_api(struct accumulator *f, const struct event *e, struct error *err)
{
	struct operators *s = f->state;
	struct op_thread *t = &s->threads[e->track];
	bool wants;

	TRY(captures_wants(f, &s->captures, e, &wants, err));
	if (!wants)
		return ST_OK;
	for (struct op_call *c = call_open(t, e->begin_ns); c; c = call_at(t, c->above))
		if (c->end_ns > e->begin_ns)
			captures_put_operator(f, &s->captures, s->rows[c->row].name,
					      s->rows[c->row].schema);
	return captures_put_call(f, &s->captures, e, err);
}

/* Adds a sample of a GPU counter with the SM clock. */
static void put_clock(struct accumulator *f, const struct event *e)
{
	struct operators *s = f->state;
	const char *name = trace_text(f->trace, e->name, NULL);
	uint32_t process = acc_process(f, e->track);
	size_t len = strlen(name);

	if (process > s->process_count || !isfinite(e->value) || e->value <= 0 ||
	    !((len >= 8 && !strcmp(name + len - 8, "sm_clock")) || strstr(name, "SM Clock")))
		return;
	s->processes[process].clock_mhz += e->value;
	s->processes[process].clock_samples++;
}

static enum status operators_put(struct accumulator *f, const struct sorted_batch *w,
				 struct error *err)
{
	const struct operators *s = f->state;

	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		if (e->kind == KIND_COUNTER)
			put_clock(f, e);
		if (e->kind == KIND_API && e->track < s->thread_count)
			TRY(put_api(f, e, err));
		if (event_is_gpu_work(e))
			TRY(put_work(f, e, err));
		else if (e->kind == KIND_RANGE && e->subkind == RANGE_OP &&
			 e->track < s->thread_count)
			TRY(put_operator(f, e, err));
	}
	return ST_OK;
}

static void add_figures(union value *at, const struct op_row *row, int which)
{
	const uint64_t figures[] = {
		row->calls,          row->gpu_calls,
		row->host_ns[which], row->host_self_ns > 0 ? (uint64_t)row->host_self_ns : 0,
		row->gpu_self_ns,    row->gpu_ns[which]
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		at[i].u64 += figures[i];
}

static enum status operators_end(struct accumulator *f, struct error *err)
{
	struct operators *s = f->state;

	for (uint32_t i = 1; i <= s->process_count; i++) {
		struct op_process *p = &s->processes[i];
		double boost = p->gpu.sheet ? (double)p->gpu.sheet->boost_mhz : 0;

		if (boost > 0 && p->clock_samples)
			p->gpu.clock_share = p->clock_mhz / (double)p->clock_samples / boost;
		roofline_count(f, i, &p->gpu);
	}
	for (size_t i = 0; i < s->row_count; i++) {
		const struct op_row *row = &s->rows[i];
		const struct op_process *p = &s->processes[row->process];
		union value keys[SHAPE_TYPES + 1], *into;

		if (!acc_wants(f, row->process))
			continue;
		/* without a GPU the host's calls computed it */
		struct op_cost cost =
			cost_of_calls(&p->gpu, row->has_model ? &row->cost : NULL, row->is_tf32,
				      p->device == NO_ID ? row->computed : row->gpu_calls);
		keys[OPERATOR_NAME].text = trace_text(f->trace, row->name, NULL);
		keys[OPERATOR_CATEGORY].text = s->names[row->name].category;
		TRY(acc_row(f, "operators", row->process, keys, &into, err));
		add_figures(&into[OPERATOR_CALLS], row, 0);
		cost_add(&into[OPERATOR_FLOPS], &cost);
		keys[SHAPE_SHAPES].text = trace_attr_text(f->trace, row->schema, "input_dims");
		keys[SHAPE_TYPES].text = trace_attr_text(f->trace, row->schema, "input_type");
		TRY(acc_row(f, "operator_shapes", row->process, keys, &into, err));
		add_figures(&into[SHAPE_CALLS], row, 1);
		cost_add(&into[SHAPE_FLOPS], &cost);
		TRY(roofline_put_row(
			f, &p->gpu,
			&(struct roofline_row){
				.process = row->process,
				.name = keys[SHAPE_NAME].text,
				.shapes = keys[SHAPE_SHAPES].text,
				.types = keys[SHAPE_TYPES].text,
				.strides = trace_attr_text(f->trace, row->schema, "input_strides"),
				.cost = row->has_model ? &row->cost : NULL,
				.is_tf32 = row->is_tf32,
				.calls = row->own_calls,
				.gpu_ns = row->own_gpu_ns },
			err));
	}
	for (size_t i = 0; i < s->cell_count; i++) {
		struct roofline_cell *cell = &s->cells[i];
		const struct op_process *p = &s->processes[cell->process];

		if (!acc_wants(f, cell->process))
			continue;
		for (int k = 0; k < 2 && p->clock_samples; k++)
			cell->peak_ps[k] /= p->gpu.clock_share;
		TRY(roofline_put_cell(f, &p->gpu, cell, err));
	}
	for (uint32_t i = 1; i <= s->process_count; i++)
		if (s->processes[i].device != NO_ID && acc_wants(f, i))
			TRY(roofline_put_gpu(f, i, &s->processes[i].gpu, err));
	return captures_end(f, &s->captures, err);
}

static void operators_release(struct accumulator *f)
{
	struct operators *s = f->state;

	for (size_t i = 0; s->threads && i < s->thread_count; i++)
		free(s->threads[i].calls);
	for (size_t i = 0; i < s->program_count; i++)
		xla_free(s->programs[i].program);
	captures_release(&s->captures);
}

static enum status operators_finish(struct tables *all, struct error *err)
{
	union value *row;

	TRY(captures_finish(all, err));
	for (size_t i = 0; (row = table_at(tables_find(all, "operators"), i)); i++)
		cost_finish(&row[OPERATOR_FLOPS], row[OPERATOR_GPU].u64);
	for (size_t i = 0; (row = table_at(tables_find(all, "operator_shapes"), i)); i++)
		cost_finish(&row[SHAPE_FLOPS], row[SHAPE_GPU].u64);
	finish_shares(all, "operators", RANK_KEYS, OPERATOR_GPU_SELF, OPERATOR_PCT);
	finish_shares(all, "operator_shapes", RANK_KEYS, SHAPE_GPU_SELF, SHAPE_PCT);
	return ST_OK;
}

const struct report_type report_operators = {
	.name = "operators",
	.help = "framework operators: host and GPU time, by name and by shapes",
	.tables = TABLES(&table_operators, &table_operator_shapes, &table_graphs,
			 &table_graph_nodes, &table_graph_work),
	.state_size = sizeof(struct operators),
	.owned = OWNED(offsetof(struct operators, threads), offsetof(struct operators, rows),
		       offsetof(struct operators, names), offsetof(struct operators, processes),
		       offsetof(struct operators, cells), offsetof(struct operators, by_key.slots),
		       offsetof(struct operators, shapes), offsetof(struct operators, programs),
		       offsetof(struct operators, by_shape.slots),
		       offsetof(struct operators, by_cell.slots)),
	.begin = operators_begin,
	.put = operators_put,
	.end = operators_end,
	.release = operators_release,
	.finish = operators_finish,
};
