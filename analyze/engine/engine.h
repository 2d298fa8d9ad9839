/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - runs reports: reads inputs in parallel and merges their tables by key.
 *
 * The same inputs give the same tables at any number of threads. An input that cannot be read does
 * not end the run: its readable part is in the tables, and its outcome contains the error.
 */
#pragma once

#include "analyze/engine/result.h"

struct engine_request {
	char *const *paths; /* paths of inputs, as input_open() accepts them */
	size_t count;
	const struct report_type *const *reports; /* the requested reports; ends with NULL */
	const struct name_rules *rules;
	const struct filter *filter;
	bool per_step;
	const struct edit_set *edits;   /* edits of --what-if; borrowed (analyze/replay/edit.h) */
	const struct peaks_file *peaks; /* peaks of --peaks; borrowed (analyze/model/peaks.h) */
	size_t edit_count;
	enum pictures pictures; /* which pictures to make if there is only one input */
	bool is_part;           /* the result will be merged with others */
	bool is_apart;          /* logs that continue each other are read one by one */
	size_t memory_bytes;    /* approximate limit for all threads together */
	unsigned threads;       /* at least 1 */
	unsigned helpers;       /* threads that help to read a single input; 0: none */
	const char *scratch;    /* folder for unlinked files */
	/* Shows a progress line that replaces the previous one, for a terminal. It is called on a
	 * thread of its own. NULL: no progress is shown. */
	void (*show)(const char *text);
};
/*
 * Returns how many inputs from `at` on are logs of one recording, which the recorder has divided by
 * size (<log>.tacho, <log>_0001.tacho and so on).  Their rows lie across their bounds, so they are
 * read as one input.
 */
size_t engine_parts(char *const *paths, size_t count, size_t at);
/* Reads all inputs, without finish() of the reports.  Release *out with engine_result_release(),
 * also after an error.  ST_OK even if no input could be read.  Paths are borrowed for the call. */
enum status engine_accumulate(struct engine_result *out, const struct engine_request *how,
			      struct error *err);
/* Returns whether `filter` can remove all events. If it does, that is reported as an error. */
bool engine_is_filtered(const struct filter *filter);

/* Fills `outcomes`, one for each input. Returns ST_OK even if some inputs failed. If none could be
 * read, *out is NULL and the status is that of the first input. Two inputs with the same rank at
 * the same time are an error whose text names both. */
enum status engine_run(struct tables **out, const struct engine_request *how,
		       struct engine_outcome *outcomes, struct error *err);
