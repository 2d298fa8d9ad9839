/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/cli/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

struct loaded { /* inputs that share a trace */
	struct input **inputs;
	size_t count;
	const char *last; /* path of the last input */
	struct trace *trace;
	struct pipeline pipeline;
};

static void unload(struct run *r, struct loaded *l)
{
	set_reading(r, NULL);
	for (size_t i = 0; i < WRITERS; i++) { /* left by a run that failed */
		sink_free(r->writers[i].sink);
		r->writers[i].sink = NULL;
	}
	pipeline_close(&l->pipeline);
	trace_free(l->trace);
	for (size_t i = 0; l->inputs && i < l->count; i++)
		input_close(l->inputs[i]);
	free(l->inputs);
}

/* Records the inputs' identities in the output, so that a later run over a folder with both skips
 * the output. */
static enum status name_sources(const struct run *r, struct trace *trace, size_t first,
				size_t count, struct error *err)
{
	enum { NAMED_BYTES = 4096 }; /* some of the inputs are enough */
	struct provenance *p = trace_provenance(trace);
	RELEASED_BY(buf_release) struct buf text;

	buf_init(&text, (size_t)2 * NAMED_BYTES);
	for (size_t i = first; i < first + count && text.len < NAMED_BYTES; i++) {
		char *one = input_identity(r->paths.paths[i]);

		if (one)
			buf_putf(&text, "%s\n", one);
		free(one);
	}
	TRY(buf_status(&text, err));
	p->sources = trace_name(trace, buf_text(&text), text.len, err);
	return p->sources ? ST_OK : ST_CEILING;
}

static enum status load(struct run *r, struct loaded *l, size_t first, size_t count,
			struct error *err)
{
	struct pipeline_request how = {
		.filter = r->type->cuts || filter_is_empty(&r->filter) ? NULL : &r->filter,
		.rules = r->rules,
		.budget = &r->budget,
		.needs = r->type->needs | (all_args(r) ? r->type->needs_for_args : 0),
		.fault = note_fault,
		.report = r->common.quiet ? NULL : print_clocks,
		.self = r,
		.lod = r->size.attempt ? &r->size.request : NULL,
	};

	align_mode_find(r->own.align, &how.align);
	attempt_begin(r);
	*l = (struct loaded){ .inputs = calloc(count, sizeof(struct input *)) };
	if (!l->inputs)
		return fail_memory(err);
	for (size_t i = first; i < first + count; i++) {
		const char *path = r->paths.paths[i];
		const char *real = path;
		enum status st = size_path(&r->size, &real, r->budget.scratch, err);

		if (st == ST_OK)
			st = input_open(&l->inputs[l->count], real, r->budget.scratch, err);
		l->last = st == ST_OK || count == 1 ? path : l->last;
		if (st == ST_OK)
			l->count++;
		else if (count == 1)
			return st;
		else if (!l->count && i + 1 == first + count) /* no other input is left */
			return fail(err, st, NOWHERE, "%s: %s", path, err->text);
		else
			note_fault(r, path, err);
	}
	if (count == 1)
		set_reading(r, l->inputs[0]);
	TRY(trace_new(&l->trace, options_trace_ceiling(&r->common), err));
	TRY(pipeline_open(&l->pipeline, l->trace, l->inputs, l->count, &how, err));
	TRY(name_sources(r, l->trace, first, count, err));
	TRY(size_begin(&r->size, l->trace, err));
	r->context = l->pipeline.context;
	return ST_OK;
}

/* Adds to the account.  Events that --max-size merged on request are no losses for --strict. */
static void account_for(struct run *r, struct trace *trace)
{
	account_add(&r->account, trace);
	r->account.lost_all -= r->size.summed;
	r->size.summed = 0;
}

/* ---- a sink that draws all inputs on one timeline ---- */

static enum status need_folder(const struct run *r, struct error *err)
{
	const char *o = r->common.output;

	return r->type->is_folder && (!o || strcmp(o, "-") == 0)
		       ? fail(err, ST_USAGE, NOWHERE, "%s writes a folder: use -o FOLDER",
			      r->type->name)
		       : ST_OK;
}

static enum status whole_once(struct run *r, bool *again, struct error *err, const char **file)
{
	struct loaded l;
	bool source_failed = false;
	enum status status = load(r, &l, 0, r->paths.count, err);
	const char *only = l.count <= 1 ? l.last : NULL;

	*file = status == ST_OK ? NULL : only;
	if (status == ST_OK) {
		r->is_folder = r->type->is_folder;
		status = writer_open(r, 0, l.trace, 0, err);
		if (status == ST_OK)
			status = pump_writers(r, l.pipeline.top, 1, &source_failed, err);
	}
	if (source_failed) {
		note_fault(r, only, err);
		status = ST_OK;
	}
	if (status == ST_OK)
		status = attempt_end(r, 1, l.pipeline.lod, again, err);
	if (l.trace && !*again)
		account_for(r, l.trace);
	unload(r, &l);
	return status;
}

enum status convert_whole(struct run *r, struct error *err, const char **file)
{
	bool again = false;
	enum status status = ST_OK;

	TRY(need_folder(r, err));
	do
		status = whole_once(r, &again, err, file);
	while (status == ST_OK && again);
	return status;
}

/* ---- a sink that writes a file for each process ---- */

bool is_one_output(const struct run *r)
{
	return r->type->scope == SINK_WHOLE ||
	       (r->type->scope == SINK_EITHER && !out_names_folder(r->common.output));
}

/* Returns the first process from `from` on that gets a file, or 0. */
static uint32_t next_process(const struct run *r, const struct trace *t, uint32_t from)
{
	for (; from <= trace_count(t, TRACE_PROCESSES); from++)
		if (!r->filter.has_ranks ||
		    filter_wants_rank(&r->filter, trace_get_process(t, from)->rank))
			return from;
	return 0;
}

/* Returns whether users would give this name to a file of the format, such as "two.json.gz". */
static bool is_file_name(const struct sink_type *type, const char *name)
{
	const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');

	return dot && !type->is_folder && !out_names_folder(name) && strstr(type->file_name, dot);
}

static enum status decide_folder(struct run *r, const struct trace *t, struct error *err)
{
	const char *o = r->common.output;
	uint32_t first = next_process(r, t, 1);
	bool many = r->paths.count > 1 || (first && next_process(r, t, first + 1)) ||
		    r->type->is_folder;

	if (r->is_decided)
		return ST_OK;
	r->is_decided = true;
	r->is_folder = many || out_names_folder(o);
	TRY(need_folder(r, err));
	if (many && (!o || strcmp(o, "-") == 0))
		return fail(err, ST_USAGE, NOWHERE,
			    "%s writes one file per process, and there are several: use -o FOLDER",
			    r->type->name);
	if (many && is_file_name(r->type, o))
		return fail(err, ST_USAGE, NOWHERE,
			    "%s writes one file per process, and there are several: -o %.60s/ "
			    "creates a folder of that name",
			    r->type->name, o);
	return ST_OK;
}

/* Makes one pass over the input for up to WRITERS processes.  *from is set to the next process, or
 * to 0 at the end. */
static enum status convert_some(struct run *r, struct loaded *l, uint32_t *from, size_t *count_out,
				bool *source_failed, struct error *err)
{
	uint32_t process = next_process(r, l->trace, *from);
	size_t count = 0, most = r->is_folder ? WRITERS : 1;

	if (!process && trace_count(l->trace, TRACE_PROCESSES)) { /* all are filtered out */
		r->account.lost[LOSS_CUT_OUT] += trace_provenance(l->trace)->events;
		*from = 0;
		return ST_OK;
	}
	do {
		TRY(writer_open(r, count++, l->trace, process, err));
		process = process ? next_process(r, l->trace, process + 1) : 0;
	} while (process && count < most);
	*from = process;
	*count_out = count;
	return pump_writers(r, l->pipeline.top, count, source_failed, err);
}

/* Makes one pass over an input.  *again: its files had a wrong size and must be written again. */
static enum status input_once(struct run *r, size_t i, uint32_t *from, bool *again,
			      bool *input_failed, struct error *err)
{
	struct loaded l;
	size_t files = 0;
	uint32_t first = *from;
	enum status fault = ST_OK, status = load(r, &l, i, 1, err);

	*again = false;
	*input_failed = status != ST_OK;
	if (status == ST_OK)
		status = decide_folder(r, l.trace, err);
	if (status == ST_OK)
		status = convert_some(r, &l, from, &files, input_failed, err);
	if (*input_failed && l.pipeline.top) { /* write what was read */
		fault = status;
		status = ST_OK;
	}
	if (status == ST_OK)
		status = attempt_end(r, files, l.pipeline.lod, again, err);
	if (*again) {
		*from = first;
		*input_failed = false;
		fault = ST_OK;
	} else if (l.trace && !*from) {
		account_for(r, l.trace);
	}
	unload(r, &l);
	return status == ST_OK ? fault : status;
}

static enum status convert_input(struct run *r, size_t i, bool *input_failed, struct error *err)
{
	uint32_t from = 1, before;
	bool again = false, failed = false;
	enum status status, fault = ST_OK;

	do {
		if (from > 1 && !r->size.is_on && strcmp(r->paths.paths[i], "-") == 0)
			return fail(err, ST_USAGE, NOWHERE,
				    "standard input can be read only once and contains more than "
				    "%d processes: use a file",
				    WRITERS);
		before = from;
		status = input_once(r, i, &from, &again, &failed, err);
		/* continue: the next pass fails at the same place, but writes other processes */
		if (failed && status != ST_OK && from > before) {
			fault = status;
			status = ST_OK;
		}
	} while (status == ST_OK && (from || again));
	*input_failed = failed || fault != ST_OK;
	return status == ST_OK ? fault : status;
}

enum status convert_each(struct run *r, struct error *err)
{
	for (size_t i = 0; i < r->paths.count; i++) {
		bool input_failed = false;
		enum status status = convert_input(r, i, &input_failed, err);

		if (status != ST_OK && !input_failed)
			return status;
		if (status != ST_OK)
			note_fault(r, r->paths.paths[i], err);
	}
	return ST_OK;
}
