/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - what was accumulated from some inputs, before any report finishes: the tables, the
 * outcome of each input, and the windows of ranks that each contains.
 *
 * Results of disjoint inputs merge in any grouping and order to the same tables, and so finish to
 * the same bytes as one run over all of them. Not thread-safe: the engine uses a lock.
 */
#pragma once

#include "analyze/engine/report.h"

enum { ENGINE_REPORTS = 48 };

struct engine_outcome {     /* how reading an input ended */
	enum status status; /* ST_OK, or why the input could not be read to its end */
	struct error error;
	bool is_in_tables; /* at least a part was readable */
	uint64_t damaged;  /* records that were lost to damage */
};
struct engine_input {
	const char *path; /* owned by the tables */
	struct engine_outcome outcome;
};
struct engine_window { /* a window of a rank in one input */
	uint64_t rank, pid, begin_ns, end_ns;
	const char *host; /* owned by the tables */
	const char *run;  /* run id, owned by the tables; NULL: none, or from a partial result */
	size_t input;
	const char *path; /* path of input `input`; set by engine_result_finish() */
};
struct engine_result {                                         /* all zero: empty */
	const struct report_type *reports[ENGINE_REPORTS + 1]; /* all that run; ends with NULL */
	const struct table_type **types;
	struct tables *tables;
	struct engine_input *inputs;
	size_t input_count, input_cap;
	struct engine_window *windows;
	size_t window_count, window_cap;
};

/* Makes empty tables for the reports in `asked` and those that they need. */
enum status engine_result_init(struct engine_result *r, const struct report_type *const *asked,
			       size_t ceiling, struct error *err);
void engine_result_release(struct engine_result *r); /* accepts a zeroed result */

enum status engine_result_input(struct engine_result *r, const char *path,
				const struct engine_outcome *outcome, struct error *err);
/* Adds a window of the input with index `window->input`. The host's name is copied. */
enum status engine_result_window(struct engine_result *r, const struct engine_window *window,
				 struct error *err);
/* Adds the windows in the tables `from` of one input. */
enum status engine_result_windows(struct engine_result *r, struct tables *from, size_t input,
				  struct error *err);
/* Calls finish() of all reports. Fails if nothing could be read, if a filter left nothing, or if
 * two inputs have the same rank at the same time (the error names both). */
enum status engine_result_finish(struct engine_result *r, bool is_filtered, struct error *err);
