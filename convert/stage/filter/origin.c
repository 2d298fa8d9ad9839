/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/stage/filter/filter.h"
#include "convert/input/input.h"

#include <string.h>

enum { NAMES_MOST = 256 << 20 };

/* Lowers *begin_ns to the begin of the input's first event.  An input without events or with an
 * error leaves it unchanged, because the later reading reports the error. */
static enum status first_event(const char *path, const struct budget *budget, uint64_t *begin_ns,
			       bool *epoch_known, struct error *err)
{
	struct input *in = NULL;
	struct trace *trace = NULL;
	struct source *source = NULL;
	struct error own = { .at = NOWHERE };
	enum status status = trace_new(&trace, NAMES_MOST, err);
	struct batch batch;

	if (status == ST_OK && input_open(&in, path, budget->scratch, &own) == ST_OK &&
	    source_open(&source, in, trace, budget, NULL, &own) == ST_OK) {
		*epoch_known &= trace_provenance(trace)->epoch_known;
		if (source_next(source, &batch, &own) == ST_OK &&
		    batch.events[0].begin_ns < *begin_ns)
			*begin_ns = batch.events[0].begin_ns;
	}
	source_close(source);
	input_close(in);
	trace_free(trace);
	return status;
}

enum status filter_find_origin(struct filter *filter, char *const *paths, size_t count,
			       const struct budget *budget, struct error *err)
{
	uint64_t begin_ns = UINT64_MAX;
	bool epoch_known = true;

	filter->has_origin = false;
	if (!filter->times_relative || count < 2)
		return ST_OK;
	for (size_t i = 0; i < count; i++)
		if (strcmp(paths[i], "-") == 0)
			return fail(err, ST_USAGE, NOWHERE,
				    "--from and --to count from the first event of all inputs, but "
				    "standard input can be read only once: use absolute times");
	for (size_t i = 0; i < count && epoch_known; i++)
		TRY(first_event(paths[i], budget, &begin_ns, &epoch_known, err));
	filter->has_origin = epoch_known && begin_ns != UINT64_MAX;
	filter->origin_ns = begin_ns;
	return ST_OK;
}
