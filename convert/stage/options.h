/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the options that tacho-convert and tacho-analyze share, besides those of the filter
 * (filter/filter.h).
 *
 * Texts are borrowed from argv and the environment.  A tool that wants another default of a row
 * puts a row of its own with that name and `at` into a set before this one.
 */
#pragma once

#include "convert/source/source.h"
#include "schemas/base/option.h"

#include <stdbool.h>

struct common_options {
	const char *output;    /* -o; NULL: standard output */
	uint64_t memory_bytes; /* the whole tool's peak, more or less */
	uint64_t threads;      /* cores to use; 0: all that there are */
	bool strict, quiet, help, version;
};
extern const struct option common_options[]; /* rows for a set over struct common_options */

/*
 * What the readers may take of the memory asked for: three eighths; the rest is for tables,
 * stages and the output.  `scratch` is borrowed.
 */
struct budget options_budget(const struct common_options *o, const char *scratch);
/* The ceiling of one trace's tables: as much again. */
size_t options_trace_ceiling(const struct common_options *o);

enum { OPTIONS_MEMORY_LEAST = 16 * 1024 * 1024 };
/* What cannot work is refused before anything is opened. */
enum status options_check(const struct common_options *o, struct error *err);
