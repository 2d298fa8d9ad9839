/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - a run of reports: inputs side by side on the cores, their tables merged by key.
 *
 * The same inputs give the same tables at any number of threads.  An input that cannot be read
 * does not end the run: what was readable of it is in the tables, why it ended in its outcome.
 */
#pragma once

#include "analyze/engine/result.h"

struct engine_request {
	char *const *paths; /* of inputs, as input_open() takes them */
	size_t count;
	const struct report_type *const *reports; /* asked for; ends with NULL */
	const struct name_rules *rules;
	const struct filter *filter;
	bool per_step;
	const struct edit_set *edits;   /* of --what-if; borrowed (analyze/replay/edit.h) */
	const struct peaks_file *peaks; /* of --peaks; borrowed (analyze/model/peaks.h) */
	size_t edit_count;
	enum pictures pictures; /* of an input that is alone */
	bool is_part;           /* others will be added to what is found */
	size_t memory_bytes;    /* of all threads together, more or less */
	unsigned threads;       /* at least 1 */
	unsigned helpers;       /* of an input that is alone; 0: none */
	const char *scratch;    /* folder for unlinked files */
	/* A line that replaces the one before, for a terminal; called on a thread of its own.
	 * NULL: nobody looks. */
	void (*show)(const char *text);
};
/*
 * Before reports finish; released with engine_result_release(), also after an error.  ST_OK even if
 * no input could be read.  The paths are borrowed no longer than the call.
 */
enum status engine_accumulate(struct engine_result *out, const struct engine_request *how,
			      struct error *err);
/* Whether what is left of the inputs may be nothing by mistake. */
bool engine_is_filtered(const struct filter *filter);

/*
 * `outcomes` holds `count` of them.  ST_OK even if inputs failed, unless none could be read: then
 * *out is NULL and the status that of the first.  Two inputs of the same rank at the same time
 * are an error that names both.
 */
enum status engine_run(struct tables **out, const struct engine_request *how,
		       struct engine_outcome *outcomes, struct error *err);
