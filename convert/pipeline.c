/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input.h"
#include "convert/merge.h"
#include "convert/pump.h"

#include <stdlib.h>

enum { SHARE_LEAST = 8 << 20 };

/* A part of the memory for each of many inputs: a spool that fits its budget stays in memory. */
static struct budget budget_share(const struct budget *whole, size_t count)
{
	struct budget share = *whole;

	share.opening /= count;
	if (share.opening < SHARE_LEAST)
		share.opening = whole->opening < SHARE_LEAST ? whole->opening : SHARE_LEAST;
	return share;
}

static enum status input_fail(struct input *in, size_t count, enum status status,
			      const struct error *why, struct error *err)
{
	if (count == 1) /* who has one input knows which it is */
		return fail(err, status, why->at, "%s", why->text);
	return fail(err, status, why->at, "%s: %s", input_path(in), why->text);
}

/* All inputs as one source; what was opened is closed again on an error. */
static enum status sources_open(struct source **out, struct trace *trace,
				struct input *const *inputs, size_t count,
				const struct pipeline_request *how, struct error *err)
{
	struct source **sources = calloc(count, sizeof(*sources));
	struct budget share = budget_share(how->budget, count);
	struct error own = { 0 };
	enum status status = ST_OK;
	size_t i;

	if (!sources)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for %zu inputs", count);
	for (i = 0; i < count && status == ST_OK; i++) {
		status = source_open(&sources[i], inputs[i], trace, &share, how->cut, &own);
		if (status != ST_OK)
			status = input_fail(inputs[i], count, status, &own, err);
	}
	if (status == ST_OK)
		status = merge_open(out, sources, NULL, count, how->budget, err);
	else
		for (i = 0; i < count; i++)
			source_close(sources[i]);
	free(sources);
	return status;
}

/* Each stage owns what is below it, even when it fails: *top is NULL then, never half a stack. */
static enum status stages_open(struct pipeline *p, struct trace *trace,
			       const struct pipeline_request *how, struct error *err)
{
	unsigned needs = how->needs;
	struct source *below;

	if (how->cut && how->cut->has_steps)
		needs |= NEED_LINK; /* GPU work is cut by the step of its launch */
	if (needs & (NEED_STEP | NEED_LINK)) {
		below = p->top;
		p->top = NULL;
		TRY(step_open(&p->top, below, trace, how->rules, err));
		p->step = p->top;
	}
	if (needs & NEED_LINK) {
		below = p->top;
		p->top = NULL;
		TRY(link_open(&p->top, below, trace, LINK_WINDOW, LINK_SLACK_NS, err));
		p->link = p->top;
	}
	if (!how->cut)
		return ST_OK;
	below = p->top;
	p->top = NULL;
	return cut_open(&p->top, below, trace, how->cut, err);
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
