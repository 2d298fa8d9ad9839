/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/columns.h"

#include "schemas/base/json_text.h"
#include "schemas/model/records.h"
#include "schemas/proto/xspace.h"

#include <string.h>

struct cell cell_u64(bool is_there, uint64_t u64)
{
	return (struct cell){ .type = is_there ? CELL_U64 : CELL_EMPTY, .u64 = u64 };
}

static struct cell cell_i64(bool is_there, uint64_t bits)
{
	return (struct cell){ .type = is_there ? CELL_I64 : CELL_EMPTY, .u64 = bits };
}

struct cell cell_word(const char *word)
{
	return (struct cell){ .type = word[0] ? CELL_WORD : CELL_EMPTY,
			      .text = word,
			      .len = strlen(word) };
}

struct cell cell_name(const struct trace *t, uint32_t name)
{
	struct cell c = { .type = name ? CELL_TEXT : CELL_EMPTY };

	c.text = trace_text(t, name, &c.len);
	return c;
}

static const char *class_word(const struct event *e)
{
	static const char *const syncs[] = { "", "event", "stream_wait", "stream", "context" };
	static const char *const marks[] = { "instant", "flow_begin", "flow_end" };

	switch (e->kind) {
	case KIND_API:
		return e->subkind == API_DRIVER ? "driver" : "runtime";
	case KIND_RANGE:
		return range_class_word(e->subkind);
	case KIND_MEMCPY:
		return copy_kind_word(e->subkind);
	case KIND_SYNC:
		return e->subkind < sizeof(syncs) / sizeof(*syncs) ? syncs[e->subkind] : "";
	case KIND_MARK:
		return e->subkind < sizeof(marks) / sizeof(*marks) ? marks[e->subkind] : "";
	}
	return "";
}

void columns_of_event(const struct trace *t, const struct event *e, struct cell cells[COLUMN_END])
{
	bool is_memory = e->kind == KIND_ALLOC || e->kind == KIND_FREE;
	bool is_numbered = e->kind == KIND_RANGE || e->kind == KIND_MARK;
	bool is_step = e->kind == KIND_STEP, is_counter = e->kind == KIND_COUNTER;
	const char *kind = kind_word(e->kind);

	cells[COLUMN_TIME] = cell_u64(true, e->begin_ns);
	cells[COLUMN_DURATION] = cell_u64(true, e->end_ns - e->begin_ns);
	cells[COLUMN_KIND] = cell_word(kind);
	if (!kind[0]) { /* an unknown kind: its word is in the schema */
		const struct attr *own = trace_find_attr(t, e->schema, ".kind");

		cells[COLUMN_KIND] = cell_word("kind_0");
		if (own && own->type == ATTR_TEXT && own->bits)
			cells[COLUMN_KIND] = cell_name(t, (uint32_t)own->bits);
	}
	cells[COLUMN_CLASS] = cell_word(class_word(e));
	cells[COLUMN_NAME] = cell_name(t, e->name);
	if (!e->name && is_counter)
		cells[COLUMN_NAME] = cell_name(t, trace_get_track(t, e->track)->name);
	else if (!e->name && (e->kind == KIND_MEMCPY || e->kind == KIND_SYNC))
		cells[COLUMN_NAME] = cells[COLUMN_CLASS];
	cells[COLUMN_CORRELATION] =
		cell_u64(e->correlation && !is_memory && !is_numbered && !is_step && !is_counter,
			 e->correlation);
	cells[COLUMN_BYTES] =
		cell_u64(e->kind == KIND_MEMCPY || e->kind == KIND_MEMSET || is_memory, e->bytes);
	cells[COLUMN_ADDRESS] = cell_u64(is_memory, e->address);
	cells[COLUMN_VALUE] =
		(struct cell){ .type = is_counter ? CELL_F64 : CELL_EMPTY, .f64 = e->value };
	cells[COLUMN_RESULT] =
		cell_i64(e->kind == KIND_API && e->flags & EVENT_RESULT, (uint64_t)e->result);
	cells[COLUMN_NUMBER] = cell_u64(is_step || (is_numbered && e->number), e->number);
	cells[COLUMN_STATE] = cell_word(e->flags & EVENT_BEGAN_EARLIER ? "began_earlier"
					: e->flags & EVENT_NEVER_ENDED ? "never_ended"
								       : "");
}

void columns_of_track(const struct trace *t, const struct track *k, struct cell cells[COLUMN_END])
{
	const struct process *p = trace_get_process(t, k->process);
	bool is_thread = k->type == TRACK_THREAD;

	cells[COLUMN_HOST] = cell_name(t, p->host);
	cells[COLUMN_RANK] = cell_u64(p->rank != NO_RANK, p->rank);
	cells[COLUMN_PID] = cell_u64(true, p->pid);
	cells[COLUMN_THREAD] = cell_i64(is_thread || k->type == TRACK_ALLOCATOR, k->id);
	cells[COLUMN_DEVICE] = cell_u64(k->device != NO_ID, k->device);
	cells[COLUMN_CONTEXT] = cell_u64(k->context != NO_ID && !is_thread, k->context);
	cells[COLUMN_STREAM] = cell_i64(k->type == TRACK_STREAM, k->id);
}

const char *track_type_word(unsigned type)
{
	static const char *const words[] = { "stream", "thread", "pool", "counter" };

	return type < sizeof(words) / sizeof(*words) ? words[type] : "";
}

/* ---- arguments ---- */

static void put_json_key(struct buf *out, const char *key, size_t len)
{
	json_put_text(out, key, len);
	buf_put_text(out, ": ");
}

const struct arg_format json_args = { put_json_key, json_put_value };

void put_json_attrs(struct buf *out, const struct trace *t, const struct attr *attrs, size_t count,
		    const uint64_t *values)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		size_t len;
		const char *key = trace_text(t, attrs[i].key, &len);

		if (strncmp(key, XSPACE_PROGRAM_KEY, strlen(XSPACE_PROGRAM_KEY)) == 0)
			continue; /* a program, which only XProf reads */
		buf_put_text(out, any ? ", " : "{");
		any = true;
		put_json_key(out, key, len);
		json_put_value(out, t, attrs[i].type, values ? values[i] : attrs[i].bits);
	}
	if (any)
		buf_put_byte(out, '}');
}

static enum status make(void *self, const struct event *e, struct template *p, struct error *err)
{
	struct column_args *a = self;
	struct templates *t = &a->templates;

	for (size_t i = 0; i < t->list.count; i++) {
		const struct arg *arg = &t->list.args[i];

		if (!arg->name_id || (!arg->word && !a->all))
			continue;
		a->format->put_key(&t->text, arg->name, arg->name_len);
		if (arg->at.source == ARG_CONST)
			a->format->put_value(&t->text, t->trace, arg->at.type, arg->bits);
		template_add(t, p, arg->at);
	}
	return ST_OK;
}

enum status column_args_init(struct column_args *a, const struct trace *t,
			     const struct arg_format *format, bool all, struct error *err)
{
	static const struct template_type type = { .size = sizeof(struct template),
						   .ceiling = 8 << 20,
						   .make = make };

	a->format = format;
	a->all = all;
	return templates_init(&a->templates, &type, a, t, err);
}

enum status column_args_put(struct column_args *a, const struct event *e, const char *begin,
			    const char *between, struct buf *out, struct error *err)
{
	struct template *p = template_find(&a->templates, e);

	if (!p)
		TRY(template_make(&a->templates, e, &p, err));
	for (size_t i = 0; i < p->part_count; i++) {
		const struct template_part *part = &p->parts[i];

		if (part->at.source == ARG_EVENT && !e->args)
			continue;
		buf_put_text(out, begin);
		begin = between;
		buf_put(out, part->bytes, part->len);
		if (part->at.source == ARG_EVENT)
			a->format->put_value(out, a->templates.trace, part->at.type,
					     e->args[part->at.index]);
	}
	return ST_OK;
}
