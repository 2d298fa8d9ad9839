/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - any bytes to one source; what it gives is in order and stands in the tables. */
#ifndef TESTS_FUZZ_SOURCE_H
#define TESTS_FUZZ_SOURCE_H

#include "convert/input/input.h"
#include "convert/source/source.h"
#include "tests/fuzz/target.h"

/* Only a log may hold events of no track. */
static void check_event(const struct source_type *type, const struct trace *t,
			const struct event *e, const struct event *last)
{
	const struct arg_schema *schema = trace_get_schema(t, e->schema);
	uint32_t i;

	if (event_before(e, last) || e->end_ns < e->begin_ns || e->step ||
	    (!e->track && type != &source_log) || e->track > trace_count(t, TRACE_TRACKS) ||
	    e->name > trace_count(t, TRACE_NAMES) || e->schema > trace_count(t, TRACE_SCHEMAS) ||
	    (schema->arg_count && !e->args))
		abort();
	for (i = 0; i < schema->arg_count; i++)
		(void)((const volatile uint64_t *)
			       e->args)[i]; /* touched, so that a sanitizer sees it */
}

static void read_all(const struct source_type *type, struct input *in, struct trace *t,
		     unsigned threads)
{
	struct budget budget = {
		.opening = 1 << 20, .resident = 65536, .threads = threads, .scratch = "/tmp"
	};
	struct event last = { .end_ns = UINT64_MAX };
	struct source *source;
	struct batch batch;
	size_t i;

	if (source_open_as(&source, type, in, t, &budget, NULL, NULL) != ST_OK)
		return;
	while (source_next(source, &batch, NULL) == ST_OK)
		for (i = 0; i < batch.count; last = batch.events[i++])
			check_event(type, t, &batch.events[i], &last);
	source_close(source);
}

static inline int fuzz_source(const struct source_type *type, const uint8_t *data, size_t size)
{
	struct trace *t = NULL;
	struct input *in = NULL;
	char path[64];
	int fd = fuzz_file(data, size, path);

	type->bid(data, size < 65536 ? size : 65536);
	if (input_open(&in, path, "/tmp", NULL) == ST_OK && trace_new(&t, 16 << 20, NULL) == ST_OK)
		read_all(type, in, t, 0);
	input_close(in);
	trace_free(t);
	close(fd);
	return 0;
}

#endif
