/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - runs reports: reads inputs in parallel and merges their tables by key.
 *
 * The same inputs give the same tables at any number of threads.  An input that cannot be read
 * does not end the run: its readable part is in the tables, and its outcome says why it ended.
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
 * Reads all inputs, without finish() of the reports.  Release *out with engine_result_release(),
 * also after an error.  ST_OK even if no input could be read.  Paths are borrowed for the call.
 */
enum status engine_accumulate(struct engine_result *out, const struct engine_request *how,
			      struct error *err);
/* Whether a filter is set that can remove all events, which is then reported as an error. */
bool engine_is_filtered(const struct filter *filter);

/*
 * Fills `outcomes`, one for each input.  ST_OK even if inputs failed.  If none could be read, *out
 * is NULL and the status is that of the first.  Two inputs with the same rank at the same time are
 * an error that names both.
 */
enum status engine_run(struct tables **out, const struct engine_request *how,
		       struct engine_outcome *outcomes, struct error *err);
