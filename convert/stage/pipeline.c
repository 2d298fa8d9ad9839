/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/lod/lod.h"
#include "convert/input/input.h"
#include "convert/spool/merge.h"
#include "convert/stage/pump.h"

#include <stdlib.h>

enum { SHARE_LEAST = 8 << 20, RESIDENT_ALL = 8 << 20 };

/* A part of the memory for each of many inputs: a spool that fits its budget stays in memory. */
static struct budget budget_share(const struct budget *whole, size_t count)
{
	struct budget share = *whole;

	share.opening /= count;
	if (share.opening < SHARE_LEAST)
		share.opening = whole->opening < SHARE_LEAST ? whole->opening : SHARE_LEAST;
	share.resident /= 2; /* they do not read ahead, each with threads of its own */
	if (share.resident > RESIDENT_ALL / count)
		share.resident = RESIDENT_ALL / count;
	return share;
}

/* One of many: a source that passes everything on, and ends at a fault, which it tells. */
struct named_source {
	struct source source, *below;
	const char *path; /* borrowed from the input */
	input_fault fault;
	void *self;
};

static enum status named_next(struct source *source, struct batch *out, struct error *err)
{
	struct named_source *s = (struct named_source *)source;
	struct error own = { .at = NOWHERE };
	enum status status = source_next(s->below, out, &own);

	if (status == ST_OK || status == ST_END)
		return status;
	s->fault(s->self, s->path, &own);
	return ST_END;
}

static void named_close(struct source *source)
{
	struct named_source *s = (struct named_source *)source;

	source_close(s->below);
	free(s);
}

static const struct source_type named_type = {
	.name = "named",
	.help = "one of many inputs",
	.next = named_next,
	.close = named_close,
};

/* Owns `below` from here on, even on failure. */
static enum status named_open(struct source **out, struct source *below, const char *path,
			      const struct pipeline_request *how, struct error *err)
{
	struct named_source *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s) {
		source_close(below);
		return fail(err, ST_MEMORY, NOWHERE, "no memory for an input");
	}
	*s = (struct named_source){ { &named_type }, below, path, how->fault, how->self };
	*out = &s->source;
	return ST_OK;
}

/* Who has one input knows which it is; of many the last fault says it, place and all. */
static enum status last_fail(const char *path, const struct error *why, struct error *err)
{
	if (why->at == NOWHERE)
		return fail(err, why->status, NOWHERE, "%s: %s", path, why->text);
	return fail(err, why->status, NOWHERE, "%s: byte %llu: %s", path,
		    (unsigned long long)why->at, why->text);
}

/* Those of the inputs that can be opened, at least one; *opened is what the caller has to close. */
static enum status many_open(struct source **sources, struct align_input *tables, size_t *opened,
			     struct trace *trace, struct input *const *inputs, size_t count,
			     const struct pipeline_request *how, struct error *err)
{
	struct budget share = budget_share(how->budget, count);
	struct provenance *p = trace_provenance(trace);
	bool all_known = true;
	size_t i;

	for (i = 0; i < count; i++) {
		struct error own = { .at = NOWHERE };
		const char *path = input_path(inputs[i]);
		uint32_t first = trace_count(trace, TRACE_PROCESSES) + 1;
		enum status status;

		p->epoch_known =
			false; /* each says it of itself; together they know it if all do */
		status =
			source_open(&sources[*opened], inputs[i], trace, &share, how->filter, &own);
		if (status != ST_OK && !*opened && i + 1 == count)
			return last_fail(path, &own, err);
		if (status != ST_OK) {
			how->fault(how->self, path, &own);
			continue;
		}
		TRY(named_open(&sources[*opened], sources[*opened], path, how, err));
		tables[(*opened)++] = (struct align_input){
			path,
			first,
			trace_count(trace, TRACE_PROCESSES) + 1,
			p->epoch_known,
		};
		all_known &= p->epoch_known;
	}
	p->epoch_known = all_known;
	return ST_OK;
}

/* Owns the sources, even on failure. */
static enum status many_merge(struct source **out, struct source **sources,
			      const struct align_input *tables, size_t count, struct trace *trace,
			      const struct pipeline_request *how, struct error *err)
{
	struct align_request align = {
		.trace = trace,
		.inputs = tables,
		.count = count,
		.mode = how->align,
		.rules = how->rules,
		.budget = how->budget,
		.tell = how->tell,
		.self = how->self,
	};
	struct clock_fit *fits = calloc(count, sizeof(*fits));
	enum status status =
		fits ? align_fit(&align, fits, err)
		     : fail(err, ST_MEMORY, NOWHERE, "no memory for %zu inputs", count);
	size_t i;

	if (status == ST_OK)
		status = merge_open(out, sources, fits, count, err);
	else
		for (i = 0; i < count; i++)
			source_close(sources[i]);
	free(fits);
	return status;
}

/* All inputs as one source; what was opened is closed again on an error. */
static enum status sources_open(struct source **out, struct trace *trace,
				struct input *const *inputs, size_t count,
				const struct pipeline_request *how, struct error *err)
{
	struct source **sources;
	struct align_input *tables;
	enum status status;
	size_t i, opened = 0;

	if (count == 1)
		return source_open(out, inputs[0], trace, how->budget, how->filter, err);
	sources = calloc(count, sizeof(*sources));
	tables = calloc(count, sizeof(*tables));
	status = sources && tables
			 ? many_open(sources, tables, &opened, trace, inputs, count, how, err)
			 : fail(err, ST_MEMORY, NOWHERE, "no memory for %zu inputs", count);
	if (status == ST_OK)
		status = many_merge(out, sources, tables, opened, trace, how, err);
	else
		for (i = 0; i < opened; i++)
			source_close(sources[i]);
	free(sources);
	free(tables);
	return status;
}

static enum status lod_stage_open(struct pipeline *p, struct trace *trace,
				  const struct pipeline_request *how, struct error *err)
{
	struct lod_request lod = *how->lod;
	struct source *below = p->top;

	lod.budget = how->budget;
	p->top = NULL;
	TRY(lod_open(&p->top, below, trace, &lod, err));
	p->lod = p->top;
	return ST_OK;
}

/* Each stage owns what is below it, even when it fails: *top is NULL then, never half a stack. */
static enum status stages_open(struct pipeline *p, struct trace *trace,
			       const struct pipeline_request *how, struct error *err)
{
	unsigned needs = how->needs;
	struct source *below;

	if (how->filter && how->filter->has_steps)
		needs |= NEED_LINK; /* GPU work is filtered by the step of its launch */
	if (needs & (NEED_STEP | NEED_LINK)) {
		struct context_request context = {
			.rules = how->rules,
			.wants_launches = needs & NEED_LINK,
			.slack_ns = LAUNCH_SLACK_NS,
			.whole_intervals = how->lod != NULL, /* lod reads all before it gives any */
		};

		below = p->top;
		p->top = NULL;
		TRY(context_open(&p->context, below, trace, &context, err));
		p->top = context_source(p->context);
	}
	if (how->filter) {
		below = p->top;
		p->top = NULL;
		TRY(filter_open(&p->top, below, trace, how->filter, err));
	}
	return how->lod ? lod_stage_open(p, trace, how, err) : ST_OK;
}

enum status pipeline_open(struct pipeline *out, struct trace *trace, struct input *const *inputs,
			  size_t count, const struct pipeline_request *how, struct error *err)
{
	enum status status;

	*out = (struct pipeline){ 0 };
	if (!count)
		return fail(err, ST_USAGE, NOWHERE, "no input");
	TRY(sources_open(&out->top, trace, inputs, count, how, err));
	status = stages_open(out, trace, how, err);
	if (status != ST_OK)
		*out = (struct pipeline){ 0 };
	return status;
}

void pipeline_close(struct pipeline *p)
{
	source_close(p->top);
	*p = (struct pipeline){ 0 };
}
