/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the latest collectives that a rank called in each process group. */
#include "analyze/report/hang/internal.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdio.h>

RANK_TABLE_TYPE(hang_calls, &table_ranks, CALL_COLUMNS, .nest = NEST_NEVER,
		.null_texts = "sizes types members description where");

struct call {
	uint64_t created_ns, seq;
	uint32_t process, schema, group, name;
};
/* Returns a number that is an argument or a constant of the event. */
static uint64_t number_of(const struct accumulator *f, const struct event *e, const char *key)
{
	const struct arg_schema *schema = trace_get_schema(f->trace, e->schema);
	const struct attr *a = trace_find_attr(f->trace, e->schema, key);
	uint32_t name = trace_find_name(f->trace, key, strlen(key));

	if (a)
		return a->bits;
	for (uint32_t i = 0; e->args && i < schema->arg_count; i++)
		if (schema->args[i].key == name)
			return e->args[i];
	return 0;
}

enum status hang_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	struct hang *s = f->state;

	for (size_t i = 0; i < w->by[BATCH_SHAPED].count; i++) {
		const struct event *e = w->by[BATCH_SHAPED].items[i];

		if (e->flags & EVENT_NEVER_ENDED)
			TRY(hang_open_put(s, e, err));
		if (e->kind != KIND_RANGE || e->subkind != RANGE_OTHER ||
		    !trace_attr_text(f->trace, e->schema, "state") ||
		    !trace_attr_text(f->trace, e->schema, "collective") ||
		    number_of(f, e, "is_p2p"))
			continue;
		const struct attr *group = trace_find_attr(f->trace, e->schema, "group_name");
		TRY(vec_reserve(&s->calls, &s->cap, s->count + 1, err));
		s->calls[s->count++] = (struct call){ .created_ns = e->begin_ns,
						      .seq = number_of(f, e, "collective_seq"),
						      .process = acc_process(f, e->track),
						      .schema = e->schema,
						      .name = e->name,
						      .group = group ? (uint32_t)group->bits : 0 };
	}
	return ST_OK;
}

static enum status put_text(struct accumulator *f, union value *cell, const char *text,
			    struct error *err)
{
	return text ? acc_text(f, "hang_calls", cell, text, err) : ST_OK;
}

static enum status put_call(struct accumulator *f, const struct call *c, struct error *err)
{
	const char *state = trace_attr_text(f->trace, c->schema, "state");
	const char *members = trace_attr_text(f->trace, c->schema, "group_ranks");
	const char *name = trace_text(f->trace, c->name, NULL);
	const char *about = trace_attr_text(f->trace, c->schema, "group_description");
	char group[TEXT_BYTES];
	union value keys[CALL_STATE], *row;

	snprintf(group, sizeof(group), "%.100s%s%.200s",
		 c->group ? trace_text(f->trace, c->group, NULL) : "", members ? " " : "",
		 members ? members : "");
	keys[CALL_GROUP].text = group;
	keys[CALL_SEQ].u64 = c->seq;
	keys[CALL_OPERATION].text = trace_attr_text(f->trace, c->schema, "collective");
	TRY(acc_row(f, "hang_calls", c->process, keys, &row, err));
	row[CALL_STATE].u64 = !strcmp(state, "started")         ? STATE_STARTED
			      : strcmp(state, "completed") != 0 ? STATE_SCHEDULED
			      : strncmp(name, "nccl:", 5) != 0  ? STATE_ENDED
								: STATE_COMPLETED;
	row[CALL_CREATED].u64 = c->created_ns;
	TRY(put_text(f, &row[CALL_SIZES], trace_attr_text(f->trace, c->schema, "in_sizes"), err));
	TRY(put_text(f, &row[CALL_TYPES], trace_attr_text(f->trace, c->schema, "in_types"), err));
	TRY(put_text(f, &row[CALL_MEMBERS], members, err));
	/* gloo does not list the ranks of the default group */
	if (about && !strcmp(about, "default_pg"))
		row[CALL_WORLD].u64 = trace_get_process(f->trace, c->process)->world_size;
	TRY(put_text(f, &row[CALL_ABOUT], about, err));
	return put_text(f, &row[CALL_WHERE], trace_attr_text(f->trace, c->schema, "where"), err);
}

/* Stores the latest calls of each group; older ones of a ring of thousands add nothing. */
enum status hang_end(struct accumulator *f, struct error *err)
{
	struct hang *s = f->state;

	TRY(hang_open_end(f, err));
	if (!s->count)
		return ST_OK;
	SORT_BY(s->calls, s->count, UP(struct call, process), UP(struct call, group),
		DOWN(struct call, seq));
	for (size_t i = 0, first = 0; i < s->count; i++) {
		if (s->calls[i].process != s->calls[first].process ||
		    s->calls[i].group != s->calls[first].group)
			first = i;
		if (i - first < KEPT)
			TRY(put_call(f, &s->calls[i], err));
	}
	return ST_OK;
}
