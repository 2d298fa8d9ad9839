/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/actions.h"

#include <stdlib.h>

enum { NAMES_MOST = 4096 /* of an input: names with a number in them have no end */ };

static const struct table_type table_actions = {
	.name = "actions",
	.under = &table_ranks,
	.nest = NEST_NEVER,
	.columns = COLUMNS(RANK_COLUMNS, ACTION_COLUMNS(COLUMN_ROW)),
};

struct actions {
	union value **rows; /* by name; of `process` */
	uint32_t process, name_count;
	size_t row_count;
};

static enum status actions_begin(struct accumulator *f, struct error *err)
{
	struct actions *a = f->state;

	a->name_count = trace_count(f->trace, TRACE_NAMES);
	a->rows = calloc((size_t)a->name_count + 1, sizeof(*a->rows));
	return a->rows ? ST_OK : fail_memory(err);
}

/* The row of a name, NULL when there are too many. */
static enum status row_of(struct accumulator *f, const struct event *e, union value **row,
			  struct error *err)
{
	struct actions *a = f->state;
	uint32_t process = acc_process(f, e->track);
	union value keys[RANK_KEYS + 1];

	*row = NULL;
	if (e->name > a->name_count)
		return ST_OK;
	for (uint32_t i = 0; process != a->process && i <= a->name_count; i++)
		a->rows[i] = NULL;
	a->process = process;
	if (!a->rows[e->name] && a->row_count < NAMES_MOST) {
		a->row_count++;
		keys[ACTION_NAME].text = trace_text(f->trace, e->name, NULL);
		TRY(acc_row(f, "actions", process, keys, &a->rows[e->name], err));
	}
	*row = a->rows[e->name];
	return ST_OK;
}

/* What programs push; ranges of a domain of NVTX are those of libraries. */
static bool is_action(struct accumulator *f, const struct event *e)
{
	if (e->flags & EVENT_BEGAN_EARLIER || !acc_wants(f, acc_process(f, e->track)))
		return false;
	if (e->subkind == RANGE_NVTX && trace_find_attr(f->trace, e->schema, "domain"))
		return false;
	return !context_is_step_name(f->context, e->name);
}

static enum status actions_put(struct accumulator *f, const struct sorted_batch *w,
			       struct error *err)
{
	const struct batch_events *ranges = &w->by[BATCH_ANNOTATIONS];
	union value *row;

	for (size_t i = 0; i < ranges->count; i++) {
		const struct event *e = ranges->items[i];

		if (!is_action(f, e))
			continue;
		TRY(row_of(f, e, &row, err));
		if (!row)
			continue;
		row[ACTION_COUNT].u64++;
		row[ACTION_TOTAL].u64 += e->end_ns - e->begin_ns;
		if (e->end_ns < row[ACTION_FIRST].u64)
			row[ACTION_FIRST].u64 = e->end_ns;
	}
	return ST_OK;
}

static void actions_release(struct accumulator *f)
{
	struct actions *a = f->state;

	free(a->rows);
}

const struct report_type report_actions = {
	.name = "actions",
	.help = "ranges of the host by their own names, for views",
	.tables = TABLES(&table_actions),
	.state_size = sizeof(struct actions),
	.begin = actions_begin,
	.put = actions_put,
	.release = actions_release,
};
