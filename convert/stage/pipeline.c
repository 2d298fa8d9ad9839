/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/lod/lod.h"
#include "convert/input/input.h"
#include "convert/stage/pump.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { SHARE_LEAST = 8 << 20, RESIDENT_ALL = 8 << 20 };

/* Opens the inputs that are valid, and fails if there is none.  The caller closes the *opened
 * sources in `all`. */
static enum status many_open(struct run_input *all, size_t *opened, struct trace *trace,
			     struct input *const *inputs, size_t count,
			     const struct pipeline_request *how, struct error *err)
{
	/* Each input gets an equal part of the memory.  A spool that fits into its part stays in
	 * memory. */
	const struct budget *whole = how->budget;
	struct budget share = *whole;

	share.opening /= count;
	if (share.opening < SHARE_LEAST)
		share.opening = whole->opening < SHARE_LEAST ? whole->opening : SHARE_LEAST;
	share.resident /= 2; /* many inputs do not read ahead in threads of their own */
	if (share.resident > RESIDENT_ALL / count)
		share.resident = RESIDENT_ALL / count;
	struct provenance *p = trace_provenance(trace);
	bool all_known = true, all_whole = true;
	uint64_t unread_bytes = 0;

	for (size_t i = 0; i < count; i++) {
		struct error own = { .at = NOWHERE };
		struct run_input *one = &all[*opened];

		*one = (struct run_input){ .path = input_path(inputs[i]),
					   .first_process =
						   trace_count(trace, TRACE_PROCESSES) + 1 };
		/* Each source sets these for its own input. */
		p->epoch_known = false;
		p->unread_bytes = 0;
		if (source_open(&one->source, inputs[i], trace, &share, how->filter, &own) !=
		    ST_OK) {
			/* The caller cannot know which of the inputs failed, so the text says it.
			 */
			if (!*opened && i + 1 == count)
				return own.at == NOWHERE
					       ? fail(err, own.status, NOWHERE, "%s: %s", one->path,
						      own.text)
					       : fail(err, own.status, NOWHERE, "%s: byte %llu: %s",
						      one->path, (unsigned long long)own.at,
						      own.text);
			how->fault(how->self, one->path, &own);
			continue;
		}
		one->end_process = trace_count(trace, TRACE_PROCESSES) + 1;
		one->epoch_known = p->epoch_known;
		all_known &= p->epoch_known;
		all_whole &= p->is_whole;
		unread_bytes += p->unread_bytes;
		if (how->opened)
			how->opened(how->self, i);
		++*opened;
	}
	p->epoch_known = all_known;
	p->is_whole = all_whole;
	p->unread_bytes = unread_bytes;
	trace_join_windows(trace);
	return ST_OK;
}

/* Opens all inputs as one source. */
static enum status sources_open(struct source **out, struct trace *trace,
				struct input *const *inputs, size_t count,
				const struct pipeline_request *how, struct error *err)
{
	struct align_request align = {
		.trace = trace,
		.mode = how->align,
		.rules = how->rules,
		.budget = how->budget,
		.report = how->report,
		.self = how->self,
	};

	if (count == 1)
		return source_open(out, inputs[0], trace, how->budget, how->filter, err);
	TRY(vec_new(&align.inputs, count, err));
	enum status status = many_open(align.inputs, &align.count, trace, inputs, count, how, err);
	if (status == ST_OK)
		status = align_fit(&align, err);
	if (status == ST_OK)
		status = merge_open(out, align.inputs, align.count, how->fault, how->self, err);
	else
		for (size_t i = 0; i < align.count; i++)
			source_close(align.inputs[i].source);
	free(align.inputs);
	return status;
}

/* Opens the stages in order.  Each stage owns the source below it, even when opening the stage
 * fails. */
static enum status stages_open(struct pipeline *p, struct trace *trace,
			       const struct pipeline_request *how, struct error *err)
{
	unsigned needs = how->needs;

	if (how->filter && how->filter->has_steps)
		needs |= NEED_LINK; /* GPU work is filtered by the step of its launch */
	if (needs & (NEED_STEP | NEED_LINK)) {
		/* Calls remembered for GPU work that comes later: a quarter of the budget, but at
		 * least as many as a GPU is ever behind. */
		size_t calls = (size_t)(how->budget->opening / LAUNCH_BYTES / 4);
		struct context_request context = {
			.rules = how->rules,
			.wants_launches = needs & NEED_LINK,
			.window = calls > LAUNCH_WINDOW_LEAST ? calls : LAUNCH_WINDOW_LEAST,
			.slack_ns = LAUNCH_SLACK_NS,
			.whole_intervals =
				how->lod != NULL, /* lod reads all input before it returns any */
		};

		TRY(context_open(&p->context, p->top, trace, &context, err));
		p->top = context_source(p->context);
	}
	if (how->filter)
		TRY(filter_open(&p->top, p->top, trace, how->filter, err));
	if (!how->lod)
		return ST_OK;
	struct lod_request lod = *how->lod;
	lod.budget = how->budget;
	TRY(lod_open(&p->lod, p->top, trace, &lod, err));
	p->top = p->lod;
	return ST_OK;
}

enum status pipeline_open(struct pipeline *out, struct trace *trace, struct input *const *inputs,
			  size_t count, const struct pipeline_request *how, struct error *err)
{
	*out = (struct pipeline){ 0 };
	if (!count)
		return fail(err, ST_USAGE, NOWHERE, "no input");
	TRY(sources_open(&out->top, trace, inputs, count, how, err));
	enum status status = stages_open(out, trace, how, err);
	if (status != ST_OK)
		*out = (struct pipeline){ 0 };
	return status;
}

void pipeline_close(struct pipeline *p)
{
	source_close(p->top);
	*p = (struct pipeline){ 0 };
}
