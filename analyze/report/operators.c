/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of the framework (DEFINITIONS.md 8): host time, and the GPU work that their calls
 * launched, by name and by name with shapes.
 *
 * GPU work comes after the call that launched it, often after the operator has ended.  So the calls
 * of operators of each thread are kept for a while, in the order of their begins, each with the one
 * that it lies in; the operator of a launch is the innermost that is open when the launch begins.
 */
#include "analyze/engine/report.h"
#include "convert/name/operator.h"
#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

#define FIGURES(X, prefix, where)                                                                  \
	X(prefix##_CALLS = where, "calls", "calls", U64, SUM, "of the operator")                   \
	X(prefix##_GPU_CALLS, "gpu_calls", "with GPU", U64, SUM,                                   \
	  "calls that launched GPU work themselves or below")                                      \
	X(prefix##_HOST, "host_ns", "host", U64, SUM,                                              \
	  "length of the calls; a call inside one of the same name counts once")                   \
	X(prefix##_HOST_SELF, "host_self_ns", "host self", U64, SUM,                               \
	  "the same without operators inside")                                                     \
	X(prefix##_GPU_SELF, "gpu_self_ns", "GPU self", U64, SUM,                                  \
	  "GPU work that was launched while it was the innermost operator, overlaps twice")        \
	X(prefix##_GPU, "gpu_ns", "GPU", U64, SUM,                                                 \
	  "GPU work that was launched in its calls, overlaps twice")                               \
	X(prefix##_PCT, "gpu_self_pct", "%", F64, DERIVED,                                         \
	  "GPU self time / that of all operators", .of = "GPU self")
#define OPERATOR_COLUMNS(X)                                                                        \
	X(OPERATOR_NAME = RANK_KEYS, "name", "operator", TEXT, KEY, "as in the file")              \
	X(OPERATOR_CATEGORY, "category", "category", TEXT, KEY, "what it computes, by its name")   \
	FIGURES(X, OPERATOR, OPERATOR_CATEGORY + 1)
enum { OPERATOR_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_operators = {
	.name = "operators",
	.under = &table_ranks,
	.by = "gpu_self_ns",
	.columns = COLUMNS(RANK_COLUMNS, OPERATOR_COLUMNS(COLUMN_ROW)),
};

#define SHAPE_COLUMNS(X)                                                                           \
	X(SHAPE_NAME = RANK_KEYS, "name", "operator", TEXT, KEY, "as in the file")                 \
	X(SHAPE_CATEGORY, "category", NULL, TEXT, KEY, "what it computes, by its name")            \
	X(SHAPE_SHAPES, "shapes", "shapes", TEXT, KEY, "of its inputs, as in the file: JSON")      \
	X(SHAPE_TYPES, "types", "types", TEXT, KEY, "of its inputs, as in the file: JSON")         \
	FIGURES(X, SHAPE, SHAPE_TYPES + 1)
enum { SHAPE_COLUMNS(COLUMN_PLACE) };
static const struct table_type table_operator_shapes = {
	.name = "operator_shapes",
	.under = &table_ranks,
	.by = "gpu_self_ns",
	.null_texts = "shapes types",
	.columns = COLUMNS(RANK_COLUMNS, SHAPE_COLUMNS(COLUMN_ROW)),
};

enum {
	CALLS_KEPT = 1 << 16, /* of a thread: GPU work may come so many calls after its launch */
	NONE = UINT32_MAX,
};

/* Sums of one operator with one set of shapes, of one process. */
struct op_row {
	uint32_t process, name, schema;
	uint64_t calls, gpu_calls, gpu_self_ns;
	int64_t host_self_ns; /* less what lies inside; of calls that overlap below 0 */
	/* By name and by name and shapes: a call inside its like counts once. */
	uint64_t host_ns[2], gpu_ns[2];
	uint64_t name_seen, row_seen; /* the latest GPU work that was counted for it */
};
struct op_call {
	uint64_t begin_ns, end_ns;
	uint32_t row;
	uint32_t above; /* the call it lies in, by number in the thread; NONE */
	bool has_work;
};
struct op_thread {
	struct op_call *calls; /* in order; the first is number `first` */
	size_t count, cap;
	uint32_t first, innermost; /* the latest call that may still be open */
};
struct operators {
	struct op_row *rows;
	size_t row_count, row_cap;
	struct hash_index by_key;
	struct op_thread *threads; /* by track */
	size_t thread_count;
	uint64_t works;      /* so far */
	uint64_t *name_seen; /* by name: the latest GPU work that was counted for it */
	size_t name_cap;
};

static enum status operators_begin(struct accumulator *f, struct error *err)
{
	struct operators *s = f->state;

	s->thread_count = (size_t)trace_count(f->trace, TRACE_TRACKS) + 1;
	s->threads = calloc(s->thread_count, sizeof(*s->threads));
	for (size_t i = 0; s->threads && i < s->thread_count; i++)
		s->threads[i].innermost = NONE;
	return s->threads ? ST_OK : fail_memory(err);
}

static struct op_call *call_at(struct op_thread *t, uint32_t number)
{
	return number == NONE || number < t->first ? NULL : &t->calls[number - t->first];
}

/* Operators of the same shapes may differ in other constant arguments; those rows add up later. */
static enum status row_of(struct operators *s, uint32_t process, const struct event *e,
			  uint32_t *out, struct error *err)
{
	uint64_t hash = hash_word((uint64_t)e->name << 32 | e->schema, process);
	size_t at = hash_first(&s->by_key, hash);

	for (; (*out = hash_item(&s->by_key, &at, hash)) != HASH_NONE;
	     at = hash_next(&s->by_key, at)) {
		const struct op_row *row = &s->rows[*out];

		if (row->name == e->name && row->schema == e->schema && row->process == process)
			return ST_OK;
	}
	TRY(vec_reserve(&s->rows, &s->row_cap, s->row_count + 1, err));
	*out = (uint32_t)s->row_count;
	s->rows[s->row_count++] =
		(struct op_row){ .process = process, .name = e->name, .schema = e->schema };
	return hash_add(&s->by_key, hash, *out, err);
}

/* Forgets the older half. */
static void calls_forget(struct op_thread *t)
{
	size_t gone = t->count / 2;

	memmove(t->calls, t->calls + gone, (t->count - gone) * sizeof(*t->calls));
	t->count -= gone;
	t->first += (uint32_t)gone;
}

static enum status put_operator(struct accumulator *f, const struct event *e, struct error *err)
{
	struct operators *s = f->state;
	struct op_thread *t = &s->threads[e->track];
	uint64_t ns = e->end_ns - e->begin_ns;
	bool is_inner[2] = { false, false };
	uint32_t number;

	TRY(row_of(s, acc_process(f, e->track), e, &number, err));
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
	for (struct op_call *c = above; c; c = call_at(t, c->above)) {
		is_inner[0] |= s->rows[c->row].name == e->name;
		is_inner[1] |= c->row == number;
	}
	for (int i = 0; i < 2; i++)
		row->host_ns[i] += is_inner[i] ? 0 : ns;
	uint32_t outer = above ? (uint32_t)(above - t->calls) + t->first : NONE;
	if (t->count == CALLS_KEPT)
		calls_forget(t);
	TRY(vec_reserve(&t->calls, &t->cap, t->count + 1, err));
	t->innermost = t->first + (uint32_t)t->count;
	t->calls[t->count++] = (struct op_call){
		.begin_ns = e->begin_ns, .end_ns = e->end_ns, .row = number, .above = outer
	};
	return ST_OK;
}

/* The innermost call that is open at that time; NULL: none is. */
static struct op_call *call_open(struct op_thread *t, uint64_t at_ns)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->calls[mid].begin_ns <= at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	struct op_call *c = low ? &t->calls[low - 1] : NULL;
	while (c && c->end_ns <= at_ns)
		c = call_at(t, c->above);
	return c;
}

static enum status put_work(struct accumulator *f, const struct event *e, struct error *err)
{
	struct operators *s = f->state;
	const struct launch *l = batch_launch(f->batch, e);
	uint64_t ns = e->end_ns - e->begin_ns, work = ++s->works;
	struct op_thread *t = l && l->track < s->thread_count ? &s->threads[l->track] : NULL;
	struct op_call *c = t ? call_open(t, l->begin_ns) : NULL;

	if (c)
		s->rows[c->row].gpu_self_ns += ns;
	for (; c; c = call_at(t, c->above)) {
		struct op_row *row = &s->rows[c->row];

		row->gpu_calls += !c->has_work;
		c->has_work = true;
		TRY(vec_reserve(&s->name_seen, &s->name_cap, (size_t)row->name + 1, err));
		row->gpu_ns[0] += s->name_seen[row->name] == work ? 0 : ns;
		row->gpu_ns[1] += row->row_seen == work ? 0 : ns;
		s->name_seen[row->name] = row->row_seen = work;
	}
	return ST_OK;
}

static enum status operators_put(struct accumulator *f, const struct sorted_batch *w,
				 struct error *err)
{
	const struct operators *s = f->state;

	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		if (event_is_gpu_work(e))
			TRY(put_work(f, e, err));
		else if (e->kind == KIND_RANGE && e->subkind == RANGE_OP &&
			 e->track < s->thread_count)
			TRY(put_operator(f, e, err));
	}
	return ST_OK;
}

/* A constant argument as text; NULL: there is none. */
static const char *argument(const struct accumulator *f, uint32_t schema, const char *key)
{
	const struct attr *a = trace_find_attr(f->trace, schema, key);

	if (!a || (a->type != ATTR_JSON && a->type != ATTR_TEXT))
		return NULL;
	return trace_text(f->trace, (uint32_t)a->bits, NULL);
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
	const struct operators *s = f->state;

	for (size_t i = 0; i < s->row_count; i++) {
		const struct op_row *row = &s->rows[i];
		union value keys[SHAPE_TYPES + 1], *into;

		if (!acc_wants(f, row->process))
			continue;
		keys[OPERATOR_NAME].text = trace_text(f->trace, row->name, NULL);
		keys[OPERATOR_CATEGORY].text = operator_category(keys[OPERATOR_NAME].text);
		TRY(acc_row(f, "operators", row->process, keys, &into, err));
		add_figures(&into[OPERATOR_CALLS], row, 0);
		keys[SHAPE_SHAPES].text = argument(f, row->schema, "input_dims");
		keys[SHAPE_TYPES].text = argument(f, row->schema, "input_type");
		TRY(acc_row(f, "operator_shapes", row->process, keys, &into, err));
		add_figures(&into[SHAPE_CALLS], row, 1);
	}
	return ST_OK;
}

static void operators_release(struct accumulator *f)
{
	struct operators *s = f->state;

	for (size_t i = 0; s->threads && i < s->thread_count; i++)
		free(s->threads[i].calls);
	free(s->threads);
	free(s->rows);
	free(s->name_seen);
	hash_release(&s->by_key);
}

static enum status operators_finish(struct tables *all, struct error *err)
{
	(void)err;
	finish_shares(all, "operators", RANK_KEYS, OPERATOR_GPU_SELF, OPERATOR_PCT);
	finish_shares(all, "operator_shapes", RANK_KEYS, SHAPE_GPU_SELF, SHAPE_PCT);
	return ST_OK;
}

const struct report_type report_operators = {
	.name = "operators",
	.help = "operators of the framework: host time and GPU time, by name and by shapes",
	.tables = TABLES(&table_operators, &table_operator_shapes),
	.state_size = sizeof(struct operators),
	.begin = operators_begin,
	.put = operators_put,
	.end = operators_end,
	.release = operators_release,
	.finish = operators_finish,
};
