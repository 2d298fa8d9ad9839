/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct report_type *const all_reports[] = {
#define X(name) &report_##name,
	REPORT_LIST(X)
#undef X
	NULL,
};

const struct report_type *const *reports(void)
{
	return all_reports;
}

const struct report_type *report_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; all_reports[i]; i++)
		if (strlen(all_reports[i]->name) == len && !memcmp(all_reports[i]->name, name, len))
			return all_reports[i];
	return NULL;
}

void fold_rank(const struct fold *f, uint32_t process, union value *keys)
{
	const struct process *p = trace_get_process(f->trace, process);

	keys[0].u64 = p->rank == NO_RANK ? NO_U64 : p->rank;
	keys[1].text = p->host ? trace_text(f->trace, p->host, NULL) : "";
	keys[2].u64 = p->pid;
}

enum status fold_row(struct fold *f, const char *table, uint32_t process, union value *keys,
		     union value **row, struct error *err)
{
	fold_rank(f, process, keys);
	return table_row(tables_find(f->tables, table), keys, row, err);
}

enum status fold_text(struct fold *f, const char *table, union value *cell, const char *text,
		      struct error *err)
{
	cell->text = text ? table_text(tables_find(f->tables, table), text, err) : NULL;
	return !text || cell->text ? ST_OK : ST_CEILING;
}

enum status fold_gpus(const struct fold *f, void *items, size_t *count, size_t size,
		      struct error *err)
{
	size_t wanted = sweep_gpu_count(f->sweep);
	void **at = items;
	char *wider;

	if (wanted <= *count)
		return ST_OK;
	wider = realloc(*at, wanted * size);
	if (!wider)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for the GPUs of a report");
	memset(wider + *count * size, 0, (wanted - *count) * size);
	*at = wider;
	*count = wanted;
	return ST_OK;
}

void cause_text(const struct fold *f, enum cause cause, unsigned phase, char *out, size_t cap)
{
	if (cause == CAUSE_HOST)
		snprintf(out, cap, "host:%s", step_phase(f->step, phase).name);
	else
		snprintf(out, cap, "%s", cause_word(cause));
}

double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}
