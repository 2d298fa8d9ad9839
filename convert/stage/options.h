/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the options that tacho-convert and tacho-analyze share, besides those of the filter
 * (filter/filter.h).
 *
 * Texts are borrowed from argv and the environment.  For another default, a tool puts a row with
 * the same name and `at` into an earlier set.
 */
#pragma once

#include "convert/source/source.h"
#include "schemas/base/option.h"

#include <stdbool.h>

struct common_options {
	const char *output;    /* -o; NULL: standard output */
	uint64_t memory_bytes; /* about the peak of the whole tool */
	uint64_t threads;      /* cores to use; 0: all */
	bool strict, quiet, help, version;
};
extern const struct option common_options[]; /* rows for a set over struct common_options */

/*
 * Returns the readers' share of the memory limit: three eighths.  The rest is for tables, stages
 * and output.  `scratch` is borrowed.
 */
struct budget options_budget(const struct common_options *o, const char *scratch);
/* Returns the memory ceiling in bytes of one trace's tables: three eighths of the limit. */
size_t options_trace_ceiling(const struct common_options *o);

enum { OPTIONS_MEMORY_LEAST = 16 * 1024 * 1024 };
/* Returns ST_USAGE for options that cannot work.  Call it before anything is opened. */
enum status options_check(const struct common_options *o, struct error *err);
