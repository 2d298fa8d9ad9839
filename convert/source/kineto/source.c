/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads PyTorch's Chrome JSON, as Kineto has written it since 2021: {"traceEvents": [...], ...} or
 * only the array.  Its events have no order and its base time may come last, so it is read once to
 * its end, through a spool.
 */
#include "convert/input/input.h"
#include "convert/source/kineto/import.h"
#include "schemas/base/sort.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

/* ---- marks of steps that end too early ---- */

enum status kineto_steps_note(struct kineto_steps *s, const struct json *name,
			      const struct event *e, struct error *err)
{
	static const char mark[] = "ProfilerStep#", end[] = "): step",
			  file[] = "torch/profiler/profiler.py(";

	if (e->kind != KIND_RANGE || name->len < sizeof(mark))
		return ST_OK;
	if (e->subkind == RANGE_PYTHON && !s->has_function)
		s->has_function =
			memmem(name->text, name->len, file, sizeof(file) - 1) &&
			!memcmp(name->text + name->len - (sizeof(end) - 1), end, sizeof(end) - 1);
	if (e->subkind != RANGE_ANNOTATION || memcmp(name->text, mark, sizeof(mark) - 1) != 0)
		return ST_OK;
	TRY(vec_reserve(&s->items, &s->cap, s->count + 1, err));
	s->items[s->count++] = (struct kineto_step){ e->begin_ns, e->end_ns, e->name, e->track };
	return ST_OK;
}

void kineto_steps_resolve(struct kineto_steps *s)
{
	size_t kept = 0, count = s->has_function ? s->count : 0;

	SORT_BY(s->items, count, UP(struct kineto_step, begin_ns), UP(struct kineto_step, name));
	for (size_t i = 0; i + 1 < count; i++) {
		struct kineto_step one = s->items[i], next = s->items[i + 1];

		if (one.track != next.track || next.begin_ns <= one.begin_ns ||
		    one.end_ns - one.begin_ns >= (next.begin_ns - one.begin_ns) / 2)
			continue;
		one.end_ns = next.begin_ns;
		s->items[kept++] = one;
		/* the end of the last step is unknown */
		if (i + 2 == count)
			s->items[kept++] = next;
	}
	s->count = kept;
}

static enum status kineto_next(struct source *source, struct batch *out, struct error *err)
{
	struct kineto_steps *s = ((struct spool_source *)source)->own;

	TRY(spool_source_next(source, out, err));
	for (size_t i = 0; s && i < out->count && s->at < s->count; i++) {
		struct event *e = (struct event *)&out->events[i];
		const struct kineto_step *one = &s->items[s->at];

		if (e->kind != KIND_RANGE || e->name != one->name || e->track != one->track)
			continue;
		if (e->end_ns - e->begin_ns < one->end_ns - one->begin_ns)
			e->end_ns = e->begin_ns + (one->end_ns - one->begin_ns);
		else
			e->flags |= EVENT_NEVER_ENDED;
		s->at++;
	}
	return ST_OK;
}

static int kineto_bid(const uint8_t *head, size_t len)
{
	size_t i;

	if (!json_begins(head, len, &i))
		return 0;
	if (head[i] == '[')
		return head_has(head, len, "\"ph\"") ? 80 : 10;
	if (head_has(head, len, "\"traceEvents\""))
		return 90;
	return head_has(head, len, "\"schemaVersion\"") ||
			       head_has(head, len, "\"distributedInfo\"") ||
			       head_has(head, len, "\"deviceProperties\"")
		       ? 70
		       : 20;
}

static enum status import(struct spool_source *s, struct kineto_import *k, struct input *in,
			  struct error *err)
{
	TRY(kineto_import_read(k, in, &s->fault, err));
	spool_source_clock(s, k->head.base_ns, k->to.first_ns);
	TRY(kineto_import_finish(k, input_path(in), err));
	trace_provenance(s->trace)->is_synthetic = k->head.is_synthetic;
	return import_provenance(&k->to, "Kineto JSON", &s->fault, err);
}

/* Copies the steps into one allocation, which is freed with the source. */
static enum status steps_own(struct spool_source *s, const struct kineto_steps *steps,
			     struct error *err)
{
	size_t size = steps->count * sizeof(*steps->items);
	struct kineto_steps *own = malloc(sizeof(*own) + size);

	if (!own)
		return fail_memory(err);
	*own = *steps;
	own->items = (struct kineto_step *)(void *)(own + 1);
	memcpy(own->items, steps->items, size);
	s->own = own;
	return ST_OK;
}

static enum status kineto_read(struct spool_source *s, struct input *in, const struct budget *left,
			       struct error *err)
{
	struct kineto_import k;
	enum status status;

	if (left->threads)
		input_read_ahead(in);
	TRY(spool_source_process(s, input_path(in), err));
	status = kineto_import_init(&k, s->trace, s->spool, s->process, err);
	if (status == ST_OK)
		status = import(s, &k, in, err);
	kineto_steps_resolve(&k.steps);
	if (status == ST_OK && k.steps.count)
		status = steps_own(s, &k.steps, err);
	kineto_import_release(&k);
	return status;
}

static const struct spool_reader reader = { .own_bytes = 4 << 20,
					    .spools = 1,
					    .read = kineto_read };

const struct source_type source_kineto = {
	.name = "kineto",
	.help = "PyTorch profiler, Chrome JSON of Kineto or Cuspy (.pt.trace.json, .gz)",
	.bid = kineto_bid,
	.spooled = &reader,
	.next = kineto_next,
	.close = spool_source_close,
};
