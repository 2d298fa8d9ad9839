/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the latest collectives that a rank called in each process group. */
#include "analyze/report/hang/internal.h"

#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdio.h>

RANK_TABLE_TYPE(hang_calls, &table_ranks, CALL_COLUMNS, .nest = NEST_NEVER,
		.null_texts = "sizes types members description where");

enum sort { SORT_UNKNOWN, SORT_OTHER, SORT_DUMPED, SORT_CALLED };
struct call {
	uint64_t created_ns, seq, communicator; /* 0: the group has a name */
	uint32_t process, schema, group, name;
};
enum { CALLS_MOST = 1 << 16 /* between two droppings of older calls */ };

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

/* Tells the calls of dumps of PyTorch's Flight Recorder and those of NCCL's profiler plugin from
 * other ranges. */
static enum status sort_of(struct accumulator *f, uint32_t schema, enum sort *out,
			   struct error *err)
{
	struct hang *s = f->state;
	const char *domain;

	TRY(vec_reserve(&s->sort_of_schema, &s->sort_cap, schema + (size_t)1, err));
	*out = s->sort_of_schema[schema];
	if (*out != SORT_UNKNOWN)
		return ST_OK;
	*out = SORT_OTHER;
	if (trace_attr_text(f->trace, schema, "collective")) {
		domain = trace_attr_text(f->trace, schema, "domain");
		*out = trace_attr_text(f->trace, schema, "state")   ? SORT_DUMPED
		       : domain && !strcmp(domain, "NCCL profiler") ? SORT_CALLED
								    : SORT_OTHER;
	}
	s->sort_of_schema[schema] = (uint8_t)*out;
	return ST_OK;
}

/* Drops calls but the latest of each group: older ones of a ring of thousands add nothing. */
static void keep_latest(struct hang *s)
{
	size_t count = 0, of_group = 0;

	if (!s->count)
		return;
	SORT_BY(s->calls, s->count, UP(struct call, process), UP(struct call, group),
		UP(struct call, communicator), DOWN(struct call, seq));
	for (size_t i = 0; i < s->count; i++) {
		const struct call *c = &s->calls[i], *last = &s->calls[count ? count - 1 : 0];

		if (c->process != last->process || c->group != last->group ||
		    c->communicator != last->communicator)
			of_group = 0;
		if (of_group++ < KEPT)
			s->calls[count++] = *c;
	}
	s->count = s->kept = count;
}

enum status hang_put(struct accumulator *f, const struct sorted_batch *w, struct error *err)
{
	struct hang *s = f->state;
	enum sort sort;

	for (size_t i = 0; i < w->by[BATCH_SHAPED].count; i++) {
		const struct event *e = w->by[BATCH_SHAPED].items[i];

		if (e->flags & EVENT_NEVER_ENDED)
			TRY(hang_open_put(s, e, err));
		TRY(sort_of(f, e->schema, &sort, err));
		if (sort == SORT_OTHER || number_of(f, e, "is_p2p"))
			continue;
		const struct attr *group = trace_find_attr(f->trace, e->schema, "group_name");
		bool is_dumped = sort == SORT_DUMPED;
		if (s->count - s->kept >= CALLS_MOST)
			keep_latest(s);
		TRY(vec_reserve(&s->calls, &s->cap, s->count + 1, err));
		s->calls[s->count++] = (struct call){
			.created_ns = e->begin_ns,
			.seq = number_of(f, e, "collective_seq"),
			.communicator = is_dumped ? 0 : number_of(f, e, "comms_id"),
			.process = acc_process(f, e->track),
			.schema = e->schema,
			.name = e->name,
			.group = is_dumped && group ? (uint32_t)group->bits : 0,
		};
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
	const char *type = state ? "in_types" : "element_type";
	const char *members = trace_attr_text(f->trace, c->schema, "group_ranks");
	const char *name = trace_text(f->trace, c->name, NULL);
	const char *about = trace_attr_text(f->trace, c->schema, "group_description");
	char group[TEXT_BYTES];
	union value keys[CALL_STATE], *row;

	if (c->communicator)
		snprintf(group, sizeof(group), "0x%llx", (unsigned long long)c->communicator);
	else
		snprintf(group, sizeof(group), "%.100s%s%.200s",
			 c->group ? trace_text(f->trace, c->group, NULL) : "", members ? " " : "",
			 members ? members : "");
	keys[CALL_GROUP].text = group;
	keys[CALL_SEQ].u64 = c->seq;
	keys[CALL_OPERATION].text = trace_attr_text(f->trace, c->schema, "collective");
	TRY(acc_row(f, "hang_calls", c->process, keys, &row, err));
	row[CALL_STATE].u64 = !state                            ? STATE_CALLED
			      : !strcmp(state, "started")       ? STATE_STARTED
			      : strcmp(state, "completed") != 0 ? STATE_SCHEDULED
			      : strncmp(name, "nccl:", 5) != 0  ? STATE_ENDED
								: STATE_COMPLETED;
	row[CALL_CREATED].u64 = c->created_ns;
	TRY(put_text(f, &row[CALL_SIZES], trace_attr_text(f->trace, c->schema, "in_sizes"), err));
	TRY(put_text(f, &row[CALL_TYPES], trace_attr_text(f->trace, c->schema, type), err));
	TRY(put_text(f, &row[CALL_MEMBERS], members, err));
	/* gloo does not list the ranks of the default group */
	if (about && !strcmp(about, "default_pg"))
		row[CALL_WORLD].u64 = trace_get_process(f->trace, c->process)->world_size;
	TRY(put_text(f, &row[CALL_ABOUT], about, err));
	return put_text(f, &row[CALL_WHERE], trace_attr_text(f->trace, c->schema, "where"), err);
}

enum status hang_end(struct accumulator *f, struct error *err)
{
	struct hang *s = f->state;

	TRY(hang_open_end(f, err));
	keep_latest(s);
	for (const struct call *c = s->calls; c < s->calls + s->count; c++)
		if (!c->communicator || hang_is_open(f, c->process))
			TRY(put_call(f, c, err));
	return ST_OK;
}
