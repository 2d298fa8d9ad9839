/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main/scalars.h - beside TensorBoard's traces its scalars and summary: the roof's own meeting of a
 * sink and a report.  The inputs are read once more, for the report.
 */
#ifndef CONVERT_MAIN_SCALARS_H
#define CONVERT_MAIN_SCALARS_H

#include "convert/pump.h"

struct out;

struct scalars_request {
	char *const *paths;
	size_t count;
	const struct name_rules *rules;
	const struct cut *cut;
	size_t memory_bytes;
	const char *scratch;
	const char *folder; /* -o */
};

/* *out is to be committed with the rest, and freed; NULL when there is nothing to read again. */
enum status scalars_write(struct out **out, const struct scalars_request *how, struct error *err);

#endif
