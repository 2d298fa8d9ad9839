/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/report.h"

#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

bool acc_is_helper(const struct accumulator *f, uint32_t process)
{
	const struct sweep_window *w;
	bool others = sweep_windows(f->sweep, &w) > 0;

	for (uint32_t i = 1; i <= trace_count(f->trace, TRACE_TRACKS) && others; i++) {
		const struct track *k = trace_get_track(f->trace, i);

		others = k->process != process || k->type == TRACK_THREAD;
	}
	return others && !sweep_process(f->sweep, process).end_ns &&
	       trace_get_process(f->trace, process)->rank == NO_RANK;
}

void acc_rank(const struct accumulator *f, uint32_t process, union value *keys)
{
	const struct process *p = trace_get_process(f->trace, process);

	keys[0].u64 = p->rank == NO_RANK ? NO_U64 : p->rank;
	keys[1].text = p->host ? trace_text(f->trace, p->host, NULL) : "";
	keys[2].u64 = p->pid;
}

enum status acc_row(struct accumulator *f, const char *table, uint32_t process, union value *keys,
		    union value **row, struct error *err)
{
	acc_rank(f, process, keys);
	return table_row(tables_find(f->tables, table), keys, row, err);
}

enum status acc_bounded_row(struct accumulator *f, const char *table, uint32_t process,
			    union value *keys, size_t name, union value **row, struct error *err)
{
	struct table *t = tables_find(f->tables, table);

	acc_rank(f, process, keys);
	if (!table_takes(t, keys))
		keys[name].text = TABLE_OTHER;
	return table_row(t, keys, row, err);
}

enum status acc_gpu_row(struct accumulator *f, const char *table, size_t gpu, union value *keys,
			union value **row, struct error *err)
{
	struct sweep_gpu g = sweep_gpu(f->sweep, gpu);

	keys[RANK_KEYS].u64 = g.device == NO_ID ? NO_U64 : g.device;
	return acc_row(f, table, g.process, keys, row, err);
}

enum status acc_name_row(struct accumulator *f, struct name_rows *r, const struct event *e,
			 union value ***place, struct error *err)
{
	uint32_t process = acc_process(f, e->track);

	TRY(vec_reserve(&r->rows, &r->cap, (size_t)e->name + 1, err));
	struct name_row *cached = &r->rows[e->name];
	if (cached->process != process)
		*cached = (struct name_row){ .process = process };
	r->process = process;
	*place = &cached->row;
	return ST_OK;
}

enum status acc_text(struct accumulator *f, const char *table, union value *cell, const char *text,
		     struct error *err)
{
	cell->text = text ? table_text(tables_find(f->tables, table), text, err) : NULL;
	return !text || cell->text ? ST_OK : ST_CEILING;
}

enum status acc_gpus(const struct accumulator *f, void *items, size_t *count, size_t size,
		     struct error *err)
{
	size_t wanted = sweep_gpu_count(f->sweep);
	void **at = items;

	if (wanted <= *count)
		return ST_OK;
	char *wider = realloc(*at, wanted * size);
	if (!wider)
		return fail_memory(err);
	memset(wider + *count * size, 0, (wanted - *count) * size);
	*at = wider;
	*count = wanted;
	return ST_OK;
}

void cause_text(const struct accumulator *f, enum cause cause, unsigned phase, char *out,
		size_t cap)
{
	if (cause == CAUSE_HOST)
		snprintf(out, cap, "host:%s", context_phase(f->context, phase).name);
	else
		snprintf(out, cap, "%s", cause_types[cause].word);
}

double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

void finish_shares(struct tables *all, const char *table, size_t keys, size_t part, size_t share)
{
	struct table *t = tables_find(all, table);
	size_t count = table_count(t), last;

	for (size_t first = 0; first < count; first = last) {
		uint64_t whole = 0;

		last = table_group_end(t, first, keys);
		for (size_t i = first; i < last; i++)
			whole += table_at(t, i)[part].u64;
		for (size_t i = first; i < last; i++)
			table_at(t, i)[share].f64 = percent_of(table_at(t, i)[part].u64, whole);
	}
}
