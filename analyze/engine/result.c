/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/result.h"

#include "analyze/engine/accumulate.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

static void add_report(struct engine_result *r, const struct report_type *type)
{
	size_t i;

	for (i = 0; r->reports[i]; i++)
		if (r->reports[i] == type)
			return;
	if (i < ENGINE_REPORTS)
		r->reports[i] = type;
}

enum status engine_result_init(struct engine_result *r, const struct report_type *const *asked,
			       size_t ceiling, struct error *err)
{
	*r = (struct engine_result){ .tables = NULL };
	add_report(r, &report_base);
	for (size_t i = 0; asked[i]; i++) {
		/* first the reports whose tables it shows: its finish() may use their figures */
		for (size_t k = 0; asked[i]->with && asked[i]->with[k]; k++)
			add_report(r, asked[i]->with[k]);
		add_report(r, asked[i]);
	}
	r->types = acc_tables(r->reports);
	if (!r->types)
		return fail_memory(err);
	return tables_new(&r->tables, r->types, ceiling, err);
}

void engine_result_release(struct engine_result *r)
{
	tables_free(r->tables);
	free(r->types);
	free(r->inputs);
	free(r->windows);
	*r = (struct engine_result){ .tables = NULL };
}

static const char *keep(struct engine_result *r, const char *text, struct error *err)
{
	return table_text(tables_find(r->tables, "ranks"), text ? text : "", err);
}

enum status engine_result_input(struct engine_result *r, const char *path,
				const struct engine_outcome *outcome, struct error *err)
{
	TRY(vec_reserve(&r->inputs, &r->input_cap, r->input_count + 1, err));
	r->inputs[r->input_count] = (struct engine_input){ keep(r, path, err), *outcome };
	return r->inputs[r->input_count++].path ? ST_OK : ST_CEILING;
}

enum status engine_result_window(struct engine_result *r, const struct engine_window *window,
				 struct error *err)
{
	struct engine_window w = *window;

	w.host = keep(r, window->host, err);
	if (w.run)
		w.run = keep(r, w.run, err);
	TRY(vec_reserve(&r->windows, &r->window_cap, r->window_count + 1, err));
	r->windows[r->window_count++] = w;
	return w.host && (w.run || !window->run) ? ST_OK : ST_CEILING;
}

enum status engine_result_windows(struct engine_result *r, struct tables *from, size_t input,
				  struct error *err)
{
	struct table *windows = tables_find(from, "windows"), *ranks = tables_find(from, "ranks");
	size_t begin = table_column(windows, "begin_ns"), end = table_column(windows, "end_ns");
	size_t run = table_column(ranks, "run_id");
	const union value *row;

	for (size_t i = 0; (row = table_at(windows, i)); i++) {
		const union value *rank = NULL; /* NULL: a filter removed the rank */

		for (size_t k = 0; k < table_count(ranks) && !rank; k++)
			if (!memcmp(table_at(ranks, k), row, RANK_KEYS * sizeof(*row)))
				rank = table_at(ranks, k);
		struct engine_window w = { .rank = row[0].u64,
					   .host = row[1].text,
					   .pid = row[2].u64,
					   .begin_ns = row[begin].u64,
					   .end_ns = row[end].u64,
					   .run = rank ? rank[run].text : NULL,
					   .input = input };

		TRY(engine_result_window(r, &w, err));
	}
	return ST_OK;
}

struct ranks_known { /* sorted ranks that have rows of other formats than NCCL's inspector */
	uint64_t *all;
	size_t count;
	bool any_left; /* some ranks have only rows of NCCL's inspector */
};

/* ---- the end ---------------------------------------------------------------------------- */

/* Returns whether any event is left. A filter that leaves none is an error, an empty trace is
 * not. */
static bool has_events(const struct engine_result *r)
{
	struct table *ranks = tables_find(r->tables, "ranks");
	size_t events = table_column(ranks, "events");

	for (size_t i = 0; i < table_count(ranks); i++)
		if (table_at(ranks, i)[events].u64)
			return true;
	return false;
}

/* Keeps a row without the mark, and a marked row whose rank has no trace; removes the mark. */
static enum status keep_alone(void *self, struct table *t, union value *row, bool *is_kept,
			      struct error *err)
{
	struct ranks_known *known = self;
	size_t at;

	*is_kept = true;
	if (!row_is_beside(row))
		return ST_OK;
	SEARCH(at, 0, known->count, known->all[at] < row[0].u64);
	*is_kept = at == known->count || known->all[at] != row[0].u64;
	if (!*is_kept)
		return ST_OK;
	known->any_left = true;
	char *host = strndup(row[1].text, strlen(row[1].text) - strlen(BESIDE_MARK));
	if (!host)
		return fail_memory(err);
	row[1].text = table_text(t, host, err);
	free(host);
	return row[1].text ? ST_OK : ST_CEILING;
}

/* Keeps inputs that NCCL's inspector did not write, if no rank depends on the others. */
static enum status keep_others(void *self, struct table *inputs, union value *row, bool *is_kept,
			       struct error *err)
{
	const char *format = row[table_column(inputs, "format")].text;

	(void)self;
	(void)err;
	*is_kept = !format || strncmp(format, INSPECTOR_FORMAT, strlen(INSPECTOR_FORMAT)) != 0;
	return ST_OK;
}

/* Ends the separation of rows of NCCL's inspector, after copying their figures to rows of
 * traces. */
static enum status join(struct engine_result *r, struct error *err)
{
	struct table *ranks = tables_find(r->tables, "ranks");
	RELEASED_BY(vec_release) uint64_t *all = NULL;
	const union value *row;
	bool any = false;

	TRY(vec_new(&all, table_count(ranks), err));
	struct ranks_known known = { .all = all };
	for (size_t i = 0; (row = table_at(ranks, i)); i++) {
		any |= row_is_beside(row);
		if (!row_is_beside(row) && row[0].u64 != NO_U64)
			known.all[known.count++] = row[0].u64; /* rows are sorted by rank */
	}
	for (size_t i = 0; any && r->reports[i]; i++)
		if (r->reports[i]->join)
			TRY(r->reports[i]->join(r->tables, err));
	for (size_t i = 0; any && i < tables_count(r->tables); i++) {
		struct table *t = tables_at(r->tables, i);

		if (table_keys(table_type(t)) >= RANK_KEYS &&
		    !strcmp(table_type(t)->columns[0].name, "rank"))
			TRY(table_sift(t, keep_alone, &known, err));
	}
	if (any && !known.any_left)
		TRY(table_sift(tables_find(r->tables, "inputs"), keep_others, NULL, err));
	return ST_OK;
}

enum status engine_result_finish(struct engine_result *r, bool is_filtered, struct error *err)
{
	size_t usable = 0;

	for (size_t i = 0; i < r->input_count; i++)
		usable += r->inputs[i].outcome.is_in_tables;
	if (!usable)
		return fail(err, r->input_count ? r->inputs[0].outcome.status : ST_USAGE, NOWHERE,
			    "no input could be read");
	/* DEFINITIONS.md 8: two inputs with one rank at the same time are an error; two windows of
	 * a rank are not. */
	for (size_t i = 0; i < r->window_count; i++)
		r->windows[i].path = r->inputs[r->windows[i].input].path;
	/* The path decides between equal windows, so that an error's text does not depend on the
	 * order of inputs.
	 */
	SORT_BY(r->windows, r->window_count, UP(struct engine_window, rank),
		UP(struct engine_window, host), UP(struct engine_window, pid),
		UP(struct engine_window, begin_ns), UP(struct engine_window, path),
		UP(struct engine_window, input));
	for (size_t i = 1; i < r->window_count; i++) {
		const struct engine_window *a = &r->windows[i - 1], *b = &r->windows[i];

		if (a->rank == b->rank && a->pid == b->pid && !strcmp(a->host, b->host) &&
		    a->input != b->input &&
		    (b->begin_ns < a->end_ns || b->begin_ns == a->begin_ns)) {
			bool is_sorted = strcmp(a->path, b->path) <= 0;
			char rank[32] = "process";
			if (a->rank != NO_U64)
				snprintf(rank, sizeof(rank), "rank %llu",
					 (unsigned long long)a->rank);
			return fail(err, ST_USAGE, NOWHERE,
				    "%.70s and %.70s are the same %s (pid %llu) at the same time",
				    is_sorted ? a->path : b->path, is_sorted ? b->path : a->path,
				    rank, (unsigned long long)a->pid);
		}
	}
	if (is_filtered && !has_events(r))
		return fail(err, ST_USAGE, NOWHERE,
			    "the inputs contain nothing that matches the filters");
	for (size_t i = 0; r->types[i]; i++)
		if (r->types[i]->is_picture && r->input_count != 1)
			table_clear(tables_at(r->tables, i));
	TRY(join(r, err));
	for (size_t i = 0; r->reports[i]; i++)
		if (r->reports[i]->finish)
			TRY(r->reports[i]->finish(r->tables, err));
	return ST_OK;
}
