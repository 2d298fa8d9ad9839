/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of PyTorch's key_averages() for the same profile, by its rules (DEFINITIONS.md 8): a
 * view for comparison.
 *
 * The events of a thread form a tree. If a call has only one child, which has the same name, the
 * child is removed, and its children become the outer call's.
 */
#include "analyze/report/where/where.h"

#include "schemas/base/map.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

#define AVERAGE_FIGURES(X, prefix, where)                                                          \
	X(prefix##_CALLS = where, "calls", "# of Calls", U64, SUM, "number of calls")              \
	X(prefix##_CPU, "cpu_ns", "CPU total", U64, SUM, "total duration, nested calls twice")     \
	X(prefix##_INSIDE, "inside_ns", NULL, U64, SUM,                                            \
	  "total duration of the calls directly inside")                                           \
	X(prefix##_SELF, "self_cpu_ns", "Self CPU", U64, DERIVED,                                  \
	  "cpu_ns - inside_ns; null: below 0, because calls inside overlap")
#define AVERAGE_COLUMNS(X)                                                                         \
	X(AVERAGE_NAME = RANK_KEYS, "name", "Name", TEXT, KEY, "name; steps are ProfilerStep*")    \
	X(AVERAGE_IS_ANNOTATION, "is_user_annotation", NULL, BOOL, KEY, "it is an annotation")     \
	AVERAGE_FIGURES(X, AVERAGE, AVERAGE_IS_ANNOTATION + 1)
static RANK_TABLE(key_averages, &table_ranks, AVERAGE_COLUMNS, .by = "cpu_ns");

#define SHAPED_COLUMNS(X)                                                                          \
	X(SHAPED_NAME = RANK_KEYS, "name", "Name", TEXT, KEY, "name; steps are ProfilerStep*")     \
	X(SHAPED_IS_ANNOTATION, "is_user_annotation", NULL, BOOL, KEY, "it is an annotation")      \
	X(SHAPED_SHAPES, "shapes", "Input Shapes", TEXT, KEY,                                      \
	  "shapes of the inputs, JSON; a list of tensors is [], as in PyTorch")                    \
	AVERAGE_FIGURES(X, SHAPED, SHAPED_SHAPES + 1)
static RANK_TABLE(key_averages_by_shape, &table_ranks, SHAPED_COLUMNS, .by = "cpu_ns");

struct average_row {
	uint32_t process, name, schema;
	bool is_annotation;
	uint64_t calls, cpu_ns, inside_ns;
};
/* An open event. Its first child is counted only when it is known whether it is the only one. */
struct average_call {
	uint64_t begin_ns, end_ns, inside_ns, count;
	uint32_t row;
	uint64_t only_ns, only_inside_ns;
	uint32_t only_row; /* valid while count is 1 */
};
struct average_thread {
	struct average_call *calls;
	size_t count, cap;
};
struct averages {
	struct average_row *rows;
	size_t row_count, row_cap;
	struct hash_index by_key;
	struct average_thread *threads; /* by track */
	size_t thread_count;
	uint32_t *names; /* cache by name: counted as this name; UINT32_MAX: left out; 0: none */
	size_t name_cap;
};

static void row_add(struct averages *s, uint32_t row, uint64_t ns, uint64_t inside_ns)
{
	s->rows[row].calls++;
	s->rows[row].cpu_ns += ns;
	s->rows[row].inside_ns += inside_ns;
}

/* Closes the innermost call of a thread. */
static void call_close(struct averages *s, struct average_thread *t)
{
	struct average_call c = t->calls[--t->count], *above;

	if (c.count == 1 && s->rows[c.only_row].name == s->rows[c.row].name)
		c.inside_ns = c.only_inside_ns;
	else if (c.count == 1)
		row_add(s, c.only_row, c.only_ns, c.only_inside_ns);
	if (!t->count) {
		row_add(s, c.row, c.end_ns - c.begin_ns, c.inside_ns);
		return;
	}
	above = &t->calls[t->count - 1];
	above->inside_ns += c.end_ns - c.begin_ns;
	if (++above->count == 1) {
		above->only_row = c.row;
		above->only_ns = c.end_ns - c.begin_ns;
		above->only_inside_ns = c.inside_ns;
		return;
	}
	if (above->count == 2)
		row_add(s, above->only_row, above->only_ns, above->only_inside_ns);
	row_add(s, c.row, c.end_ns - c.begin_ns, c.inside_ns);
}

/* Returns in *out the name for counting: PyTorch's bookkeeping is left out, and all steps have one
 * name. */
static enum status name_of(struct accumulator *f, uint32_t name, uint32_t *out, struct error *err)
{
	static const char *const left_out[] = { "aten::is_leaf",
						"aten::output_nr",
						"aten::_version",
						"profiler::_record_function_enter",
						"profiler::_record_function_enter_new",
						"profiler::_record_function_exit",
						"[memory]" };
	struct averages *s = f->state;
	const char *text = trace_text(f->trace, name, NULL);

	TRY(vec_reserve(&s->names, &s->name_cap, (size_t)name + 1, err));
	*out = s->names[name];
	if (*out)
		return ST_OK;
	*out = name;
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (!strcmp(text, left_out[i]))
			*out = UINT32_MAX;
	if (!strncmp(text, "ProfilerStep#", 13)) {
		*out = trace_name(f->trace, "ProfilerStep*", 13, err);
		if (!*out)
			return ST_CEILING;
	}
	TRY(vec_reserve(&s->names, &s->name_cap, (size_t)name + 1, err));
	s->names[name] = *out;
	return ST_OK;
}

static enum status row_of(struct averages *s, const struct average_row *key, uint32_t *out,
			  struct error *err)
{
	uint64_t hash = hash_word((uint64_t)key->name << 32 | key->schema,
				  (uint64_t)key->process << 1 | key->is_annotation);

	*out = hash_find(&s->by_key, hash, s->rows, sizeof(*key), key,
			 offsetof(struct average_row, is_annotation) + 1);
	if (*out != HASH_NONE)
		return ST_OK;
	TRY(vec_reserve(&s->rows, &s->row_cap, s->row_count + 1, err));
	*out = (uint32_t)s->row_count;
	s->rows[s->row_count++] = *key;
	return hash_add(&s->by_key, hash, *out, err);
}

static enum status put_call(struct accumulator *f, const struct event *e, struct error *err)
{
	struct averages *s = f->state;
	struct average_row key = { .process = acc_process(f, e->track),
				   .schema = e->schema,
				   .is_annotation = e->kind == KIND_RANGE &&
						    e->subkind == RANGE_ANNOTATION };
	uint32_t row;

	TRY(name_of(f, e->name, &key.name, err));
	if (key.name == UINT32_MAX)
		return ST_OK;
	TRY(row_of(s, &key, &row, err));
	TRY(vec_reserve(&s->threads, &s->thread_count, (size_t)e->track + 1, err));
	struct average_thread *t = &s->threads[e->track];
	while (t->count && (e->begin_ns >= t->calls[t->count - 1].end_ns ||
			    e->end_ns > t->calls[t->count - 1].end_ns))
		call_close(s, t);
	TRY(vec_reserve(&t->calls, &t->cap, t->count + 1, err));
	t->calls[t->count++] =
		(struct average_call){ .begin_ns = e->begin_ns, .end_ns = e->end_ns, .row = row };
	return ST_OK;
}

static enum status averages_put(struct accumulator *f, const struct sorted_batch *w,
				struct error *err)
{
	for (size_t i = 0; i < w->in->count; i++) {
		const struct event *e = &w->in->events[i];

		bool is_range = e->kind == KIND_RANGE &&
				(e->subkind == RANGE_OP || e->subkind == RANGE_ANNOTATION ||
				 (e->subkind == RANGE_PYTHON && f->type == &report_compat_pytorch));

		if (is_range || e->kind == KIND_API)
			TRY(put_call(f, e, err));
	}
	return ST_OK;
}

/* Writes shapes without the contents of nested lists: "[[[4, 8]], [2]]" becomes "[[], [2]]". */
static void put_shapes(const char *text, struct buf *out)
{
	size_t list = 0;
	int depth = 0;

	for (; text && *text; text++) {
		depth += *text == '[';
		if (*text == '[' && depth == 2)
			list = out->len + 1;
		if (*text == '[' && depth == 3)
			out->len = list;
		else if (depth < 3 && !(depth == 2 && *text == ',' && out->len == list) &&
			 !(depth == 2 && *text == ' ' && out->len == list))
			buf_put_byte(out, (uint8_t)*text);
		depth -= *text == ']';
	}
}

static enum status end_row(struct accumulator *f, const struct average_row *row, struct buf *shapes,
			   struct error *err)
{
	const uint64_t figures[] = { row->calls, row->cpu_ns, row->inside_ns };
	union value keys[SHAPED_SHAPES + 1], *at;

	keys[AVERAGE_NAME].text = trace_text(f->trace, row->name, NULL);
	keys[AVERAGE_IS_ANNOTATION].u64 = row->is_annotation;
	TRY(acc_row(f, "key_averages", row->process, keys, &at, err));
	for (size_t i = 0; i < 3; i++)
		at[AVERAGE_CALLS + i].u64 += figures[i];
	buf_clear(shapes);
	put_shapes(trace_attr_text(f->trace, row->schema, "input_dims"), shapes);
	keys[SHAPED_SHAPES].text = buf_text(shapes);
	TRY(buf_status(shapes, err));
	TRY(acc_row(f, "key_averages_by_shape", row->process, keys, &at, err));
	for (size_t i = 0; i < 3; i++)
		at[SHAPED_CALLS + i].u64 += figures[i];
	return ST_OK;
}

static enum status averages_end(struct accumulator *f, struct error *err)
{
	struct averages *s = f->state;
	RELEASED_BY(buf_release) struct buf shapes;

	for (size_t i = 0; i < s->thread_count; i++)
		while (s->threads[i].count)
			call_close(s, &s->threads[i]);
	buf_init(&shapes, (size_t)1 << 20);
	for (size_t i = 0; i < s->row_count; i++)
		if (s->rows[i].calls && acc_wants(f, s->rows[i].process))
			TRY(end_row(f, &s->rows[i], &shapes, err));
	return ST_OK;
}

static void averages_release(struct accumulator *f)
{
	struct averages *s = f->state;

	for (size_t i = 0; i < s->thread_count; i++)
		free(s->threads[i].calls);
}

static void finish_self(struct table *t, size_t cpu, size_t inside, size_t self)
{
	union value *row;

	for (size_t i = 0; (row = table_at(t, i)); i++)
		row[self].u64 =
			row[cpu].u64 < row[inside].u64 ? NO_U64 : row[cpu].u64 - row[inside].u64;
}

static enum status averages_finish(struct tables *all, struct error *err)
{
	(void)err;
	finish_self(tables_find(all, "key_averages"), AVERAGE_CPU, AVERAGE_INSIDE, AVERAGE_SELF);
	finish_self(tables_find(all, "key_averages_by_shape"), SHAPED_CPU, SHAPED_INSIDE,
		    SHAPED_SELF);
	return ST_OK;
}

#define AVERAGES(which, about)                                                                     \
	{                                                                                          \
		.name = which, .help = about,                                                      \
		.tables = TABLES(&table_key_averages, &table_key_averages_by_shape),               \
		.state_size = sizeof(struct averages),                                             \
		.owned = OWNED(offsetof(struct averages, threads),                                 \
			       offsetof(struct averages, rows), offsetof(struct averages, names),  \
			       offsetof(struct averages, by_key.slots)),                           \
		.put = averages_put, .end = averages_end, .release = averages_release,             \
		.finish = averages_finish,                                                         \
	}

const struct report_type report_compat_pytorch =
	AVERAGES("pytorch", "the table of PyTorch's key_averages(), by its definitions");
const struct report_type report_compat_pytorch_ops =
	AVERAGES("pytorch-ops", "the same without Python functions, as older versions have it");
