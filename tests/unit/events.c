/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

struct array_source {
	struct source source;
	struct event *events;
	size_t count, at, batch;
	struct batch all;  /* its launches and marks; or zeroed */
	enum status fault; /* ST_OK: none, or given already */
};

static int open_sources;

static enum status array_next(struct source *source, struct batch *out, struct error *err)
{
	struct array_source *s = (struct array_source *)source;
	enum status fault = s->fault;

	*out = (struct batch){ .events = s->events + s->at, .count = s->count - s->at };
	if (out->count > s->batch)
		out->count = s->batch;
	if (s->all.launches)
		out->launches = s->all.launches + s->at;
	if (!s->at) {
		out->marks = s->all.marks;
		out->mark_count = s->all.mark_count;
	}
	s->at += out->count;
	if (out->count)
		return ST_OK;
	if (!fault)
		return ST_END;
	s->fault = ST_OK;
	return fail(err, fault, NOWHERE, "the array source was told to fail");
}

static void array_close(struct source *source)
{
	struct array_source *s = (struct array_source *)source;

	free(s->events);
	free(s);
	open_sources--;
}

static const struct source_type array_type = {
	.name = "array",
	.help = "events of a test",
	.next = array_next,
	.close = array_close,
};

enum status array_source_fail(struct source **out, const struct event *events, size_t count,
			      size_t batch, enum status fault)
{
	struct array_source *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return ST_MEMORY;
	s->events = calloc(count + 1, sizeof(*events));
	if (!s->events) {
		free(s);
		return ST_MEMORY;
	}
	if (count)
		memcpy(s->events, events, count * sizeof(*events));
	s->source.type = &array_type;
	s->count = count;
	s->batch = batch ? batch : 1;
	s->fault = fault;
	open_sources++;
	*out = &s->source;
	return ST_OK;
}

enum status array_source_open(struct source **out, const struct event *events, size_t count,
			      size_t batch)
{
	return array_source_fail(out, events, count, batch, ST_OK);
}

enum status array_source_batch(struct source **out, const struct batch *all, size_t batch)
{
	enum status status = array_source_open(out, all->events, all->count, batch);

	if (status == ST_OK)
		((struct array_source *)*out)->all = *all;
	return status;
}

int array_sources_open(void)
{
	return open_sources;
}

struct event *events_of(struct source *s, size_t *count)
{
	struct error err = { 0 };
	struct event *all = NULL, *bigger;
	struct batch batch;
	enum status status;

	*count = 0;
	while ((status = source_next(s, &batch, &err)) == ST_OK) {
		bigger = realloc(all, (*count + batch.count) * sizeof(*all));
		if (!CHECK(bigger != NULL))
			break;
		all = bigger;
		memcpy(all + *count, batch.events, batch.count * sizeof(*all));
		*count += batch.count;
	}
	if (status == ST_END)
		return all ? all : malloc(1);
	CHECK_OK(status, &err);
	free(all);
	*count = 0;
	return NULL;
}

uint64_t random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}
