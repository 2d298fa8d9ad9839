/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - what was accumulated from some inputs, before any report finishes: the tables, the
 * outcome of each input, and which windows of which ranks it holds.
 *
 * Results of disjoint inputs merge in any grouping and order to the same tables, and so finish to
 * the same bytes as one run over all of them.  Not thread-safe: the engine locks around it.
 */
#pragma once

#include "analyze/engine/report.h"

enum { ENGINE_REPORTS = 48 };

struct engine_outcome {     /* of an input */
	enum status status; /* ST_OK, or why it could not be read (to its end) */
	struct error error;
	bool is_in_tables; /* something of it was readable */
	uint64_t damaged;  /* records that were lost to damage */
};
struct engine_input {
	const char *path; /* a text of the tables */
	struct engine_outcome outcome;
};
struct engine_window { /* of a rank, in one input */
	uint64_t rank, pid, begin_ns, end_ns;
	const char *host; /* a text of the tables */
	const char *run;  /* its run id, also theirs; NULL: none, or of a partial result */
	size_t input;
	const char *path; /* of that input; set when the result is finished */
};
struct engine_result {                                         /* zeroed: nothing */
	const struct report_type *reports[ENGINE_REPORTS + 1]; /* and what they need; NULL ends */
	const struct table_type **types;
	struct tables *tables;
	struct engine_input *inputs;
	size_t input_count, input_cap;
	struct engine_window *windows;
	size_t window_count, window_cap;
};

/* Makes empty tables for the reports of `asked` and those that they need. */
enum status engine_result_init(struct engine_result *r, const struct report_type *const *asked,
			       size_t ceiling, struct error *err);
void engine_result_release(struct engine_result *r); /* also one that is zeroed */

enum status engine_result_input(struct engine_result *r, const char *path,
				const struct engine_outcome *outcome, struct error *err);
/* Adds a window of the input with index `input`; the host's name is copied. */
enum status engine_result_window(struct engine_result *r, const struct engine_window *window,
				 struct error *err);
/* Adds the windows in the tables of one input. */
enum status engine_result_windows(struct engine_result *r, struct tables *from, size_t input,
				  struct error *err);
/*
 * Calls finish() of all reports.  It is an error if nothing could be read, if a filter left
 * nothing, or if two inputs have one rank at the same time (the error names both).
 */
enum status engine_result_finish(struct engine_result *r, bool is_filtered, struct error *err);
