/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - which inputs of a folder belong to the same run of a job.
 *
 * Inputs of one run have the same run id, an attribute `run_id` of their processes, or none.  Among
 * inputs of one id, and among those of none, a new run begins in the order of their first instants
 * with an input that cannot be of the run so far, as after a restart: a process of it has the rank
 * of a process of that run, and one of the two had ended before the other began.  The same holds
 * for processes of one host of which one has no rank, where no id is known.
 */
#pragma once

#include "analyze/engine/engine.h"
#include "convert/input/input.h"

enum { NO_RUN = 0 };

struct run_of_inputs {
	uint64_t begin_ns;
	const char *id;   /* borrowed from the result; NULL: none is known */
	const char *path; /* of the input that begins first; borrowed as well */
	size_t inputs;
};
struct runs {
	struct run_of_inputs *all; /* by begin; the first is number 1 */
	size_t count;
	uint32_t *of_input; /* number of each input's run; NO_RUN: nothing of it could be read */
};

/* Call it before the result is finished; release *out also after an error. */
enum status runs_find(struct runs *out, const struct engine_result *r, struct error *err);
void runs_release(struct runs *r);

/* The option --run of both tools: the number of a run, or "all". */
#define RUN_OPTION(at)                                                                             \
	{                                                                                          \
		"run", 0, OPTION_TEXT, "N",                                                        \
			"the Nth of several runs in a folder, or all of them as one (default: "    \
			"the latest)",                                                             \
			at, NULL                                                                   \
	}
enum status runs_option_check(const char *option, struct error *err);
/* Whether a run has to be chosen: one was asked for, or files were found in a folder. */
bool runs_matter(const char *option, const struct input_paths *paths);

struct run_choice {
	const char *option, *tool, *verb; /* of --run; NULL: the latest; "analysed" */
	bool is_quiet;
	size_t number;   /* the run that was chosen */
	size_t left_out; /* how many paths are of others */
};
/* Says which runs there are, and leaves paths of others than the wanted one out. */
enum status runs_choose(struct run_choice *c, const struct runs *runs, struct input_paths *paths,
			struct error *err);
/* Reads what tells runs apart, whole inputs whatever the filter of `how`. */
enum status runs_read(struct engine_result *out, const struct engine_request *how,
		      struct error *err);
/* Shown only if there are several runs. */
extern const struct table_type table_runs;
/* Adds rows to the table `runs`; `number` is the run that all other tables describe. */
enum status runs_put(const struct runs *r, size_t number, struct tables *tables, struct error *err);
