/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine.h"

#include "analyze/engine_fold.h"
#include "convert/input.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESIDENT_BYTES = 64 * 1024, REPORTS_MAX = 32 };

struct seen { /* a window of a rank, of one input */
	uint64_t rank, pid, begin_ns, end_ns;
	const char *host; /* of the tables that all is merged into */
	size_t input;
};

struct engine {
	const struct engine_request *how;
	const struct report_type *reports[REPORTS_MAX + 1]; /* asked for and what they need */
	const struct table_type **types;
	struct engine_outcome *outcomes;
	struct tables *all;
	pthread_mutex_t lock; /* of what follows, and of `all` */
	size_t next;          /* input to be taken */
	uint64_t events;
	struct seen *seen;
	size_t seen_count, seen_cap;
	enum status status; /* of what is nobody's input: memory, ceilings of the merged tables */
	struct error error;
};

struct progress { /* of one input: the pump says how many events it has given */
	struct engine *engine;
	uint64_t told;
};

static bool has_report(const struct engine *e, const struct report_type *type)
{
	size_t i;

	for (i = 0; e->reports[i]; i++)
		if (e->reports[i] == type)
			return true;
	return false;
}

static void add_report(struct engine *e, const struct report_type *type)
{
	size_t i = 0;

	while (e->reports[i])
		i++;
	if (i < REPORTS_MAX && !has_report(e, type))
		e->reports[i] = type;
}

static void reports_choose(struct engine *e)
{
	size_t i, k;

	add_report(e, &report_base);
	for (i = 0; e->how->reports[i]; i++) {
		/* first what it shows too: its finish() may look at their figures */
		for (k = 0; e->how->reports[i]->with && e->how->reports[i]->with[k]; k++)
			add_report(e, e->how->reports[i]->with[k]);
		add_report(e, e->how->reports[i]);
	}
}

static void tell_progress(void *self, uint64_t events)
{
	struct progress *p = self;
	struct engine *e = p->engine;

	pthread_mutex_lock(&e->lock);
	e->events += events - p->told;
	p->told = events;
	e->how->progress(e->how->progress_self, e->events);
	pthread_mutex_unlock(&e->lock);
}

/* ---- merging ---------------------------------------------------------------------------- */

static enum status seen_add(struct engine *e, const struct seen *s, struct error *err)
{
	size_t cap = e->seen_cap ? e->seen_cap * 2 : 64;
	struct seen *wider;

	if (e->seen_count == e->seen_cap) {
		wider = realloc(e->seen, cap * sizeof(*wider));
		if (!wider)
			return fail(err, ST_MEMORY, NOWHERE, "no memory for the ranks of a run");
		e->seen = wider;
		e->seen_cap = cap;
	}
	e->seen[e->seen_count++] = *s;
	return ST_OK;
}

static enum status seen_take(struct engine *e, struct tables *from, size_t input,
			     struct error *err)
{
	struct table *windows = tables_find(from, "windows");
	size_t begin = table_column(windows, "begin_ns"), end = table_column(windows, "end_ns"), i;
	const union value *row;

	for (i = 0; (row = table_at(windows, i)); i++) {
		struct seen s = { .rank = row[0].u64, .pid = row[2].u64,
				  .begin_ns = row[begin].u64, .end_ns = row[end].u64,
				  .input = input };

		s.host = table_text(tables_find(e->all, "ranks"), row[1].text ? row[1].text : "",
				    err);
		if (!s.host)
			return ST_CEILING;
		TRY(seen_add(e, &s, err));
	}
	return ST_OK;
}

static void merge(struct engine *e, struct tables *from, size_t input)
{
	struct error err = { 0 };
	enum status status;

	pthread_mutex_lock(&e->lock);
	status = tables_merge(e->all, from, &err);
	if (status == ST_OK)
		status = seen_take(e, from, input, &err);
	e->outcomes[input].is_in_tables = status == ST_OK;
	if (status != ST_OK && e->status == ST_OK) {
		e->status = status;
		e->error = err;
	}
	pthread_mutex_unlock(&e->lock);
}

static int compare_seen(const void *pa, const void *pb)
{
	const struct seen *a = pa, *b = pb;
	int hosts = strcmp(a->host, b->host);

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (hosts)
		return hosts;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return (a->input > b->input) - (a->input < b->input);
}

static enum status same_rank_twice(const struct engine *e, const struct seen *a,
				   const struct seen *b, struct error *err)
{
	char rank[32] = "process";

	if (a->rank != NO_U64)
		snprintf(rank, sizeof(rank), "rank %llu", (unsigned long long)a->rank);
	return fail(err, ST_USAGE, NOWHERE,
		    "%.70s and %.70s are the same %s (pid %llu) at the same time",
		    e->how->paths[a->input < b->input ? a->input : b->input],
		    e->how->paths[a->input < b->input ? b->input : a->input], rank,
		    (unsigned long long)a->pid);
}

/* DEFINITIONS.md 8: the same rank twice is an error; two windows of it are not. */
static enum status ranks_check(struct engine *e, struct error *err)
{
	size_t i;

	if (e->seen_count)
		qsort(e->seen, e->seen_count, sizeof(*e->seen), compare_seen);
	for (i = 1; i < e->seen_count; i++) {
		const struct seen *a = &e->seen[i - 1], *b = &e->seen[i];

		if (a->rank == b->rank && a->pid == b->pid && !strcmp(a->host, b->host) &&
		    a->input != b->input &&
		    (b->begin_ns < a->end_ns || b->begin_ns == a->begin_ns))
			return same_rank_twice(e, a, b, err);
	}
	return ST_OK;
}

/* ---- one input -------------------------------------------------------------------------- */

static size_t share_of(const struct engine *e, unsigned eighths)
{
	return e->how->memory_bytes / 8 * eighths / e->how->threads;
}

static enum status input_fold(struct engine *e, size_t index, struct input *in,
			      struct trace *trace, struct tables *into, bool *usable,
			      struct error *err)
{
	struct budget budget = { .opening = share_of(e, 2), .resident = RESIDENT_BYTES,
				 .scratch = e->how->scratch };
	struct pipeline_request request = { .cut = e->how->cut, .rules = e->how->rules,
					    .budget = &budget, .needs = NEED_STEP | NEED_LINK };
	struct progress progress = { .engine = e };
	struct fold_request how = {
		.reports = e->reports, .rules = e->how->rules, .cut = e->how->cut,
		.path = input_path(in), .per_step = e->how->per_step,
		.is_alone = e->how->count == 1, .bins = e->how->bins,
		.ceiling = share_of(e, 2), .progress_self = &progress,
		.progress = e->how->progress ? tell_progress : NULL,
	};
	struct pipeline pipeline;
	enum status status;

	TRY(pipeline_open(&pipeline, trace, &in, 1, &request, err));
	status = fold_run(into, trace, &pipeline, &how, usable, err);
	*usable |= status == ST_OK;
	e->outcomes[index].damaged = trace_lost(trace, 0, LOSS_DAMAGED) +
				     trace_lost(trace, 0, LOSS_NO_TIME);
	pipeline_close(&pipeline);
	return status;
}

/* What could be read is in the tables; so is why it was not all. */
static enum status note_error(struct tables *into, const char *path, const char *text,
			      struct error *err)
{
	struct table *inputs = tables_find(into, "inputs");
	union value key = { .text = path }, *row;
	size_t column = table_column(inputs, "error");

	TRY(table_row(inputs, &key, &row, err));
	row[column].text = table_text(inputs, text, err);
	return row[column].text ? ST_OK : ST_CEILING;
}

static enum status input_run(struct engine *e, size_t index, struct error *err)
{
	struct input *in = NULL;
	struct trace *trace = NULL;
	struct tables *into = NULL;
	bool usable = false;
	enum status status;

	status = input_open(&in, e->how->paths[index], e->how->scratch, err);
	if (status == ST_OK)
		status = trace_new(&trace, share_of(e, 3), err);
	if (status == ST_OK)
		status = tables_new(&into, e->types, share_of(e, 3), err);
	if (status == ST_OK)
		status = input_fold(e, index, in, trace, into, &usable, err);
	if (usable && status != ST_OK && note_error(into, input_path(in), err->text, NULL) != ST_OK)
		usable = false;
	if (usable)
		merge(e, into, index);
	tables_free(into);
	trace_free(trace);
	input_close(in);
	return status;
}

static void *work(void *self)
{
	struct engine *e = self;
	size_t index;

	for (;;) {
		pthread_mutex_lock(&e->lock);
		index = e->next++;
		pthread_mutex_unlock(&e->lock);
		if (index >= e->how->count)
			return NULL;
		e->outcomes[index].error.at = NOWHERE;
		e->outcomes[index].status = input_run(e, index, &e->outcomes[index].error);
	}
}

static void inputs_run(struct engine *e)
{
	unsigned helpers = e->how->threads > 1 ? e->how->threads - 1 : 0, i, started = 0;
	pthread_t *threads = helpers ? calloc(helpers, sizeof(*threads)) : NULL;

	for (i = 0; threads && i < helpers && i + 1 < e->how->count; i++)
		if (pthread_create(&threads[started], NULL, work, e) == 0)
			started++;
	work(e); /* this thread too, and alone if there is no other */
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

/* ---- the run ---------------------------------------------------------------------------- */

static enum status finish(struct engine *e, struct error *err)
{
	size_t i;

	for (i = 0; e->reports[i]; i++)
		if (e->reports[i]->finish)
			TRY(e->reports[i]->finish(e->all, err));
	return ST_OK;
}

/* Steps, ranks or times of which there is nothing are a mistake; an empty trace is none. */
static bool has_events(const struct engine *e)
{
	struct table *ranks = tables_find(e->all, "ranks");
	size_t events = table_column(ranks, "events"), i;

	const struct cut *cut = e->how->cut;

	if (!cut || !(cut->has_steps || cut->has_ranks || cut->from || cut->to))
		return true;
	for (i = 0; i < table_count(ranks); i++)
		if (table_at(ranks, i)[events].u64)
			return true;
	return false;
}

static enum status conclude(struct engine *e, struct error *err)
{
	size_t i, usable = 0;

	if (e->status != ST_OK)
		return fail(err, e->status, e->error.at, "%s", e->error.text);
	for (i = 0; i < e->how->count; i++)
		usable += e->outcomes[i].is_in_tables;
	if (!usable)
		return fail(err, e->how->count ? e->outcomes[0].status : ST_USAGE, NOWHERE,
			    "no input could be read");
	TRY(ranks_check(e, err));
	if (!has_events(e))
		return fail(err, ST_USAGE, NOWHERE,
			    "the inputs hold nothing of what was asked for");
	return finish(e, err);
}

enum status engine_run(struct tables **out, const struct engine_request *how,
		       struct engine_outcome *outcomes, struct error *err)
{
	struct engine e = { .how = how, .outcomes = outcomes };
	enum status status;

	*out = NULL;
	memset(outcomes, 0, how->count * sizeof(*outcomes));
	reports_choose(&e);
	e.types = fold_tables(e.reports);
	if (!e.types)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a report");
	status = tables_new(&e.all, e.types, how->memory_bytes, err);
	if (status == ST_OK) {
		pthread_mutex_init(&e.lock, NULL);
		inputs_run(&e);
		pthread_mutex_destroy(&e.lock);
		status = conclude(&e, err);
	}
	free(e.seen);
	if (status == ST_OK)
		*out = e.all;
	else
		tables_free(e.all);
	free(e.types);
	return status;
}
