/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - which inputs of a folder belong to the same run of a job.
 *
 * Inputs of one run have the same run id, an attribute `run_id` of their processes, or none. Among
 * inputs with one id, and among those without, inputs are taken in the order of their first
 * instants. An input starts a new run if it cannot belong to the current one, as after a restart:
 * one of its processes has the same rank as a process of that run, and one of the two had ended
 * before the other began. The same holds for two processes of one host of which one has no rank, if
 * there is no id.
 */
#pragma once

#include "analyze/engine/engine.h"
#include "convert/input/input.h"

enum { NO_RUN = 0 };

struct run_of_inputs {
	uint64_t begin_ns;
	const char *id;   /* run id, borrowed from the result; NULL: unknown */
	const char *path; /* path of the input that begins first; borrowed from the result */
	size_t inputs;
};
struct runs {
	struct run_of_inputs *all; /* in order of their begins; run 1 is all[0] */
	size_t count;
	uint32_t *of_input; /* run number of each input; NO_RUN: nothing in it could be read */
};

/* Groups the inputs of `r` into runs. Call it before the result is finished. Release *out also
 * after an error. */
enum status runs_find(struct runs *out, const struct engine_result *r, struct error *err);
void runs_release(struct runs *r);

/* The row of option --run, which two tools have: the number of a run, or "all". */
#define RUN_OPTION(at)                                                                             \
	{                                                                                          \
		"run", 0, OPTION_TEXT, "N",                                                        \
			"the Nth of several runs in a folder, or all of them as one (default: "    \
			"the latest)",                                                             \
			at, NULL                                                                   \
	}
enum status runs_option_check(const char *option, struct error *err);
/* Returns whether a run has to be chosen: --run was given, or files were found in a folder. */
bool runs_matter(const char *option, const struct input_paths *paths);

struct run_choice {
	const char *option, *tool, *verb; /* value of --run or NULL; tool's name; "analysed" */
	bool is_quiet;
	size_t number;   /* out: the run that was chosen */
	size_t left_out; /* out: how many paths belong to other runs */
};
/* Prints which runs there are, and removes the paths of other runs than the chosen one. */
enum status runs_choose(struct run_choice *c, const struct runs *runs, struct input_paths *paths,
			struct error *err);
/* Reads what is needed to tell runs apart. It reads whole inputs and ignores the filter of
 * `how`. */
enum status runs_read(struct engine_result *out, const struct engine_request *how,
		      struct error *err);
/* The table `runs`, which is shown only if there are several runs. */
extern const struct table_type table_runs;
/* Adds rows to the table `runs`. `number` is the run that all other tables describe. */
enum status runs_put(const struct runs *r, size_t number, struct tables *tables, struct error *err);
