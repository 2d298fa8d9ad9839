/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an XSpace.  What is given is in order and stands in the tables.
 */
#include "convert/input.h"
#include "convert/source.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct trace *t, const struct event *e, uint64_t *last_ns)
{
	const struct shape *shape = trace_get_shape(t, e->shape);

	if (e->begin_ns < *last_ns || e->end_ns < e->begin_ns || !e->track ||
	    e->track > trace_count(t, TRACE_TRACKS) || e->name > trace_count(t, TRACE_NAMES) ||
	    e->shape > trace_count(t, TRACE_SHAPES) || (shape->vary_count && !e->vary))
		abort();
	*last_ns = e->begin_ns;
}

static void read_source(struct input *in, struct trace *t)
{
	struct budget budget = { .opening = 1 << 20, .resident = 65536, .scratch = "/tmp" };
	struct source *source;
	struct batch batch;
	uint64_t last_ns = 0;

	if (source_xplane.open(&source, in, t, &budget, NULL, NULL) != ST_OK)
		return;
	while (source_next(source, &batch, NULL) == ST_OK)
		for (size_t i = 0; i < batch.count; i++)
			check_event(t, &batch.events[i], &last_ns);
	source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct trace *t = NULL;
	struct input *in = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	source_xplane.bid(data, size < 65536 ? size : 65536);
	if (input_open(&in, path, "/tmp", NULL) == ST_OK && trace_new(&t, 16 << 20, NULL) == ST_OK)
		read_source(in, t);
	input_close(in);
	trace_free(t);
	close(fd);
	return 0;
}
