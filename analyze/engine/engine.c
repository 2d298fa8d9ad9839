/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/engine.h"

#include "analyze/engine/accumulate.h"
#include "convert/base/messages.h"
#include "convert/input/input.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { RESIDENT_BYTES = 64 * 1024, HOST_BYTES = 256 };

struct engine {
	const struct engine_request *how;
	struct engine_result *all;
	pthread_mutex_t lock;                   /* protects the members below and `all` */
	size_t next;                            /* index of the next input to read */
	uint64_t events, done_bytes, all_bytes; /* done_bytes: size of the inputs that are closed */
	struct input **open;                    /* open inputs, by index of the input */
	enum status status;                     /* first error that belongs to no single input */
	struct error error;
};

struct given { /* how many events of one input were added to engine.events */
	struct engine *engine;
	uint64_t reported;
};

static void note_events(void *self, uint64_t events)
{
	struct given *p = self;
	struct engine *e = p->engine;

	pthread_mutex_lock(&e->lock);
	e->events += events - p->reported;
	p->reported = events;
	pthread_mutex_unlock(&e->lock);
}

/* Returns the size of all inputs in bytes, or 0 if one is not a regular file. */
static uint64_t bytes_of(const struct engine_request *how)
{
	uint64_t sum = 0;
	struct stat st;

	for (size_t i = 0; i < how->count; i++) {
		if (stat(how->paths[i], &st) != 0 || !S_ISREG(st.st_mode))
			return 0;
		sum += (uint64_t)st.st_size;
	}
	return sum;
}

static void look(void *self, struct progress_now *now)
{
	struct engine *e = self;

	pthread_mutex_lock(&e->lock);
	now->events = e->events;
	now->done_bytes = e->done_bytes;
	now->all_bytes = e->all_bytes;
	double work = (double)e->done_bytes;
	for (size_t i = 0; i < e->how->count && i < e->next; i++) {
		struct input_progress at;

		if (!e->open[i])
			continue;
		input_look(e->open[i], &at);
		now->done_bytes += at.read_bytes;
		work += at.share * (double)at.all_bytes;
	}
	pthread_mutex_unlock(&e->lock);
	now->share = now->all_bytes ? work / (double)now->all_bytes : 0;
}

/* Registers an open input for the progress line. `in` is NULL before the input is closed. */
static void note_open(struct engine *e, size_t index, struct input *in)
{
	struct input_progress at;

	if (!e->open)
		return;
	pthread_mutex_lock(&e->lock);
	if (e->open[index] && !in) {
		input_look(e->open[index], &at);
		e->done_bytes += at.all_bytes;
	}
	e->open[index] = in;
	pthread_mutex_unlock(&e->lock);
}

static void show(void *self, const char *text)
{
	((struct engine *)self)->how->show(text);
}

static void merge(struct engine *e, struct tables *from, size_t input)
{
	struct error err = { 0 };

	pthread_mutex_lock(&e->lock);
	enum status status = tables_merge(e->all->tables, from, &err);
	if (status == ST_OK)
		status = engine_result_windows(e->all, from, input, &err);
	e->all->inputs[input].outcome.is_in_tables = status == ST_OK;
	if (status != ST_OK && e->status == ST_OK) {
		e->status = status;
		e->error = err;
	}
	pthread_mutex_unlock(&e->lock);
}

/* Marks the host of processes that NCCL's inspector recorded. A trace of the same rank has the same
 * collectives, so the marked rows stay apart until all inputs are read (report.h). */
static enum status mark_inspector(struct trace *trace, struct error *err)
{
	const char *format = trace_text(trace, trace_provenance(trace)->format, NULL);
	char host[HOST_BYTES];

	if (strncmp(format, INSPECTOR_FORMAT, strlen(INSPECTOR_FORMAT)) != 0)
		return ST_OK;
	for (uint32_t i = 1; i <= trace_count(trace, TRACE_PROCESSES); i++) {
		struct process p = *trace_get_process(trace, i);
		int len = snprintf(host, sizeof(host), "%.200s" BESIDE_MARK,
				   p.host ? trace_text(trace, p.host, NULL) : "");

		p.host = trace_name(trace, host, (size_t)len, err);
		if (!p.host)
			return err->status;
		trace_set_process(trace, i, &p);
	}
	return ST_OK;
}

/* ---- one input -------------------------------------------------------------------------- */

static size_t share_of(const struct engine *e, unsigned eighths)
{
	return e->how->memory_bytes / 8 * eighths / e->how->threads;
}

static enum status input_acc(struct engine *e, size_t index, struct input *in, struct trace *trace,
			     struct tables *into, bool *usable, struct error *err)
{
	struct budget budget = { .opening = share_of(e, 2),
				 .resident = RESIDENT_BYTES,
				 .threads = e->how->count == 1 ? e->how->helpers : 0,
				 .scratch = e->how->scratch };
	struct pipeline_request request = { .filter = e->how->filter,
					    .rules = e->how->rules,
					    .budget = &budget,
					    .needs = NEED_STEP | NEED_LINK };
	struct given given = { .engine = e };
	struct acc_request how = {
		.reports = e->all->reports,
		.rules = e->how->rules,
		.filter = e->how->filter,
		.path = input_path(in),
		.per_step = e->how->per_step,
		.edits = e->how->edits,
		.peaks = e->how->peaks,
		.edit_count = e->how->edit_count,
		.pictures = e->how->count == 1 ? e->how->pictures : PICTURES_NONE,
		.is_alone = e->how->count == 1 && !e->how->is_part,
		.ceiling = share_of(e, 2),
		.progress_self = &given,
		.progress = e->open ? note_events : NULL,
	};
	struct pipeline pipeline;

	TRY(pipeline_open(&pipeline, trace, &in, 1, &request, err));
	enum status status = mark_inspector(trace, err);
	if (status == ST_OK)
		status = acc_run(into, trace, &pipeline, &how, usable, err);
	*usable |= status == ST_OK;
	e->all->inputs[index].outcome.damaged =
		trace_lost(trace, 0, LOSS_DAMAGED) + trace_lost(trace, 0, LOSS_NO_TIME);
	pipeline_close(&pipeline);
	return status;
}

/* Stores the text of an input's error in the tables, beside the part that could be read. */
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

static void *work(void *self)
{
	struct engine *e = self;

	for (;;) {
		pthread_mutex_lock(&e->lock);
		size_t index = e->next++;
		pthread_mutex_unlock(&e->lock);
		if (index >= e->how->count)
			return NULL;
		struct engine_outcome *outcome = &e->all->inputs[index].outcome;
		outcome->error.at = NOWHERE;
		struct error *err = &outcome->error;
		struct input *in = NULL;
		struct trace *trace = NULL;
		struct tables *into = NULL;
		bool usable = false;

		enum status status = input_open(&in, e->how->paths[index], e->how->scratch, err);
		if (status == ST_OK) {
			note_open(e, index, in);
			status = trace_new(&trace, share_of(e, 3), err);
		}
		if (status == ST_OK)
			status = tables_new(&into, e->all->types, share_of(e, 3), err);
		if (status == ST_OK)
			status = input_acc(e, index, in, trace, into, &usable, err);
		if (usable && status != ST_OK &&
		    note_error(into, input_path(in), err->text, NULL) != ST_OK)
			usable = false;
		if (usable)
			merge(e, into, index);
		tables_free(into);
		trace_free(trace);
		note_open(e, index, NULL);
		input_close(in);
		outcome->status = status;
	}
}

/* ---- the run ---------------------------------------------------------------------------- */

enum status engine_accumulate(struct engine_result *out, const struct engine_request *how,
			      struct error *err)
{
	struct engine e = { .how = how, .all = out };
	struct progress_ticker *ticker = NULL;

	TRY(engine_result_init(out, how->reports, how->memory_bytes, err));
	const struct engine_outcome none = { .status = ST_OK };
	for (size_t i = 0; i < e.how->count; i++)
		TRY(engine_result_input(e.all, e.how->paths[i], &none, err));
	pthread_mutex_init(&e.lock, NULL);
	unsigned helpers = e.how->threads > 1 ? e.how->threads - 1 : 0, started = 0;
	pthread_t *threads = helpers ? calloc(helpers, sizeof(*threads)) : NULL;
	if (!threads)
		helpers = 0;
	if (how->show && (e.open = calloc(how->count ? how->count : 1, sizeof(*e.open)))) {
		e.all_bytes = bytes_of(how);
		ticker = progress_start(&(struct progress_hooks){ look, show }, &e);
	}
	for (unsigned i = 0; i < helpers && i + 1 < e.how->count; i++)
		if (pthread_create(&threads[started], NULL, work, &e) == 0)
			started++;
	work(&e); /* this thread works too, alone if no other could be started */
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	progress_stop(ticker);
	free(e.open);
	free(threads);
	pthread_mutex_destroy(&e.lock);
	if (e.status != ST_OK)
		return fail(err, e.status, e.error.at, "%s", e.error.text);
	return ST_OK;
}

bool engine_is_filtered(const struct filter *filter)
{
	return filter && (filter->has_steps || filter->has_ranks || filter->from || filter->to);
}

enum status engine_run(struct tables **out, const struct engine_request *how,
		       struct engine_outcome *outcomes, struct error *err)
{
	struct engine_result all = { .tables = NULL };
	enum status status = engine_accumulate(&all, how, err);

	*out = NULL;
	memset(outcomes, 0, how->count * sizeof(*outcomes));
	for (size_t i = 0; i < all.input_count; i++)
		outcomes[i] = all.inputs[i].outcome;
	if (status == ST_OK)
		status = engine_result_finish(&all, engine_is_filtered(how->filter), err);
	if (status == ST_OK) {
		*out = all.tables;
		all.tables = NULL;
	}
	engine_result_release(&all);
	return status;
}
