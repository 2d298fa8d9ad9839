/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/engine/engine.h"

#include "analyze/engine/accumulate.h"
#include "convert/base/messages.h"
#include "convert/input/input.h"
#include "schemas/base/sort.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
	RESIDENT_BYTES = 64 * 1024,
	HOST_BYTES = 256,
	PARTS_MAX = 64, /* inputs that are open at once on a thread */
};

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

/* Inputs that are read as one, in the order of their times: one input, or the logs into which the
 * recorder has divided one. */
struct log_part {
	const char *path;
	size_t path_len, index;
	struct input *in;
	struct provenance found; /* what the source said of it */
};
struct parts {
	struct engine *engine;
	struct trace *trace;
	struct log_part all[PARTS_MAX];
	size_t count;
};

static void part_fail(struct engine *e, size_t index, const struct error *err)
{
	struct engine_outcome *o = &e->all->inputs[index].outcome;

	o->error = *err;
	o->status = err->status;
}

static void part_open(struct parts *p, size_t index)
{
	struct engine *e = p->engine;
	struct log_part *one = &p->all[p->count];
	struct error err = { .at = NOWHERE };
	const char *path = e->how->paths[index];

	*one = (struct log_part){ path, strlen(path), index, NULL, { 0 } };
	if (input_open(&one->in, path, e->how->scratch, &err) != ST_OK) {
		part_fail(e, index, &err);
		return;
	}
	note_open(e, index, one->in);
	p->count++;
}

/* Receives the error of one of several parts. */
static void note_fault(void *self, const char *path, const struct error *err)
{
	const struct parts *p = self;

	for (size_t i = 0; i < p->count; i++)
		if (path == input_path(p->all[i].in))
			part_fail(p->engine, p->all[i].index, err);
}

static void note_opened(void *self, size_t index)
{
	struct parts *p = self;

	p->all[index].found = *trace_provenance(p->trace);
}

static enum status parts_acc(struct parts *p, struct trace *trace, struct tables *into,
			     bool *usable, struct error *err)
{
	struct engine *e = p->engine;
	struct input *in[PARTS_MAX];
	struct budget budget = { .opening = share_of(e, 2),
				 .resident = RESIDENT_BYTES,
				 .threads = e->how->count == 1 ? e->how->helpers : 0,
				 .scratch = e->how->scratch };
	struct pipeline_request request = { .filter = e->how->filter,
					    .rules = e->how->rules,
					    .budget = &budget,
					    .needs = NEED_STEP | NEED_LINK,
					    .fault = note_fault,
					    .opened = note_opened,
					    .align = ALIGN_NONE,
					    .self = p };
	struct given given = { .engine = e };
	struct acc_request how = {
		.reports = e->all->reports,
		.rules = e->how->rules,
		.filter = e->how->filter,
		.path = input_path(p->all[0].in),
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

	for (size_t i = 0; i < p->count; i++)
		in[i] = p->all[i].in;
	p->trace = trace;
	TRY(pipeline_open(&pipeline, trace, in, p->count, &request, err));
	enum status status = mark_inspector(trace, err);
	if (status == ST_OK)
		status = acc_run(into, trace, &pipeline, &how, usable, err);
	*usable |= status == ST_OK;
	e->all->inputs[p->all[0].index].outcome.damaged =
		trace_lost(trace, 0, LOSS_DAMAGED) + trace_lost(trace, 0, LOSS_NO_TIME);
	pipeline_close(&pipeline);
	return status;
}

/* Sets the rows of several parts, and the text of each part's error beside what could be read. */
static enum status parts_note(struct parts *p, struct trace *trace, struct tables *into,
			      struct error *err)
{
	struct table *inputs = tables_find(into, "inputs");
	uint64_t events = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct engine_outcome *o = &p->engine->all->inputs[p->all[i].index].outcome;
		const struct provenance *found = &p->all[i].found;
		const char *format = trace_text(trace, trace_provenance(trace)->format, NULL);
		union value key = { .text = input_path(p->all[i].in) }, *row;

		if (p->count == 1 && o->status == ST_OK)
			break;
		TRY(table_row(inputs, &key, &row, err));
		if (p->count > 1) {
			row[table_column(inputs, "format")].text = table_text(inputs, format, err);
			row[table_column(inputs, "events")].u64 = found->events - events;
			row[table_column(inputs, "whole")].u64 =
				found->is_whole && o->status == ST_OK;
			row[table_column(inputs, "unread_bytes")].u64 = found->unread_bytes;
			events = found->events;
		}
		if (o->status == ST_OK)
			continue;
		size_t column = table_column(inputs, "error");
		row[column].text = table_text(inputs, o->error.text, err);
		if (!row[column].text)
			return ST_CEILING;
	}
	return ST_OK;
}

static void merge(const struct parts *p, struct tables *from)
{
	struct engine *e = p->engine;
	struct error err = { 0 };

	pthread_mutex_lock(&e->lock);
	enum status status = tables_merge(e->all->tables, from, &err);
	if (status == ST_OK)
		status = engine_result_windows(e->all, from, p->all[0].index, &err);
	for (size_t i = 0; i < p->count; i++)
		e->all->inputs[p->all[i].index].outcome.is_in_tables = status == ST_OK;
	if (status != ST_OK && e->status == ST_OK) {
		e->status = status;
		e->error = err;
	}
	pthread_mutex_unlock(&e->lock);
}

/* Reads the inputs paths[first .. first + count) as one into tables of their own, and merges these.
 */
static void parts_read(struct engine *e, size_t first, size_t count)
{
	struct parts p = { .engine = e };
	struct error err = { .at = NOWHERE };
	struct trace *trace = NULL;
	struct tables *into = NULL;
	bool usable = false;

	for (size_t i = 0; i < count; i++)
		part_open(&p, first + i);
	if (!p.count)
		return;
	SORT_BY(p.all, p.count, UP(struct log_part, path_len), UP(struct log_part, path));
	enum status status = trace_new(&trace, share_of(e, 3), &err);
	if (status == ST_OK)
		status = tables_new(&into, e->all->types, share_of(e, 3), &err);
	if (status == ST_OK)
		status = parts_acc(&p, trace, into, &usable, &err);
	if (status != ST_OK)
		part_fail(e, p.all[0].index, &err);
	if (usable && parts_note(&p, trace, into, NULL) == ST_OK)
		merge(&p, into);
	tables_free(into);
	trace_free(trace);
	for (size_t i = 0; i < p.count; i++) {
		note_open(e, p.all[i].index, NULL);
		input_close(p.all[i].in);
	}
}

/* Returns the length of a log's path without its part number and ending; 0: it is named otherwise.
 */
static size_t stem_length(const char *path)
{
	size_t len = strlen(path), end, at;

	if (len < 6 || strcmp(path + len - 6, ".tacho") != 0)
		return 0;
	for (end = at = len - 6; at && path[at - 1] >= '0' && path[at - 1] <= '9';)
		at--;
	if (at && path[at - 1] == '_')
		for (end = --at; at && path[at - 1] >= '0' && path[at - 1] <= '9';)
			at--;
	return at && at < end && path[at - 1] == '.' ? end : 0;
}

size_t engine_parts(char *const *paths, size_t count, size_t at)
{
	size_t parts = 1, len = stem_length(paths[at]);

	while (len && parts < PARTS_MAX && at + parts < count &&
	       stem_length(paths[at + parts]) == len &&
	       strncmp(paths[at], paths[at + parts], len) == 0 &&
	       strcmp(paths[at], paths[at + parts]) != 0)
		parts++;
	return parts;
}

static void *work(void *self)
{
	struct engine *e = self;

	for (;;) {
		size_t count = 0;

		pthread_mutex_lock(&e->lock);
		size_t first = e->next;
		if (first < e->how->count)
			count = e->how->is_apart
					? 1
					: engine_parts(e->how->paths, e->how->count, first);
		e->next += count;
		pthread_mutex_unlock(&e->lock);
		if (!count)
			return NULL;
		parts_read(e, first, count);
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
