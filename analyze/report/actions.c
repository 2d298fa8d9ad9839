/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report/shared.h"

static RANK_TABLE_TYPE(actions, &table_ranks, ACTION_COLUMNS, .nest = NEST_NEVER);

struct actions {
	struct name_rows rows;
};

/* Returns the row of a name; *row is NULL if there are too many names. */
static enum status row_of(struct accumulator *f, const struct event *e, union value **row,
			  struct error *err)
{
	struct actions *a = f->state;
	union value keys[RANK_KEYS + 1], **place;

	TRY(acc_name_row(f, &a->rows, e, &place, err));
	if (!*place) {
		acc_rank(f, a->rows.process, keys);
		keys[ACTION_NAME].text = trace_text(f->trace, e->name, NULL);
		if (table_takes(tables_find(f->tables, "actions"), keys))
			TRY(acc_row(f, "actions", a->rows.process, keys, place, err));
	}
	*row = *place;
	return ST_OK;
}

/* Returns whether the program pushed the range. NVTX ranges of a domain belong to libraries. */
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
		row[ACTION_FIRST].u64 = earlier(row[ACTION_FIRST].u64, e->end_ns);
	}
	return ST_OK;
}

const struct report_type report_actions = {
	.name = "actions",
	.help = "ranges of the host by their own names, for views",
	.tables = TABLES(&table_actions),
	.state_size = sizeof(struct actions),
	.owned = OWNED(offsetof(struct actions, rows.rows)),
	.put = actions_put,
};
