/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/spooled.h"

#include "convert/input/input.h"

#include <stdlib.h>
#include <string.h>

/* Nanoseconds since the Unix epoch are greater than this (September 2001); nanoseconds since a boot
 * are less. */
#define EPOCH_LEAST_NS ((int64_t)1000000000000000000)

void spool_source_close(struct source *source)
{
	struct spool_source *s = (struct spool_source *)source;

	spool_close(s->spool);
	free(s->own);
	free(s);
}

enum status spool_source_open(struct source **out, const struct source_type *type, struct input *in,
			      struct trace *trace, const struct budget *budget, struct error *err)
{
	const struct spool_reader *reader = type->spooled;
	struct spool_source *s = calloc(1, sizeof(*s));
	struct budget left = *budget;
	struct error own = { 0 };
	enum status status;

	*out = NULL;
	if (!s)
		return fail_memory(err);
	s->base.type = type;
	s->trace = trace;
	s->in = in;
	input_note(in, 0, 1);
	left.opening = left.opening > 2 * reader->own_bytes ? left.opening - reader->own_bytes
							    : left.opening / 2;
	left.opening /= reader->spools;
	status = spool_open(&s->spool, trace, &left, &own);
	if (status == ST_OK)
		status = reader->read(s, in, &left, &own);
	if (status != ST_OK) {
		if (err)
			*err = own;
		spool_source_close(&s->base);
		return status;
	}
	*out = &s->base;
	return ST_OK;
}

enum status spool_source_process(struct spool_source *s, const char *path, struct error *err)
{
	struct process p = { .rank = NO_RANK };

	p.host = trace_name(s->trace, path, strlen(path), err);
	if (!p.host)
		return err->status;
	s->process = trace_process(s->trace, &p, err);
	return s->process ? ST_OK : err->status;
}

void spool_source_clock(struct spool_source *s, uint64_t base_ns, int64_t first_ns)
{
	struct provenance *p = trace_provenance(s->trace);

	s->is_biased = true;
	s->base_ns = (int64_t)base_ns;
	p->epoch_known = base_ns || (first_ns >= EPOCH_LEAST_NS && first_ns < INT64_MAX);
	if (!p->epoch_known && first_ns < 0)
		s->base_ns = -first_ns;
}

/* Replaces the bias by the file's base time.  Drops events from before the epoch, which no event
 * can express; they are the first ones of a batch. */
static void take_bias(const struct spool_source *s, struct batch *batch)
{
	uint64_t shift_ns = (uint64_t)s->base_ns - (uint64_t)SPOOL_BIAS;
	size_t early = 0;

	for (size_t i = 0; i < batch->count; i++) {
		batch->events[i].begin_ns += shift_ns;
		batch->events[i].end_ns += shift_ns;
		early += (int64_t)batch->events[i].begin_ns < 0;
	}
	if (!early)
		return;
	trace_lose(s->trace, s->process, LOSS_NO_TIME, early);
	batch->events += early;
	batch->count -= early;
}

enum status spool_source_next(struct source *source, struct batch *out, struct error *err)
{
	struct spool_source *s = (struct spool_source *)source;
	uint32_t group;
	enum status status;

	do {
		status = spool_next(s->spool, &group, out, err);
		if (status == ST_OK && s->is_biased)
			take_bias(s, out);
	} while (status == ST_OK && !out->count);
	if (status == ST_OK) {
		s->given += out->count;
		input_note(s->in, s->given, spool_totals(s->spool).events);
	}
	if (status == ST_END && s->fault.status != ST_OK) {
		if (err)
			*err = s->fault;
		return s->fault.status;
	}
	return status;
}
