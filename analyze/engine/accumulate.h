/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate.h - runs all reports over one input in one pass: read, sweep, accumulate.
 *
 * It runs on the caller's thread.  The tables are complete up to where the input could be read.
 */
#pragma once

#include "analyze/engine/report.h"

struct acc_request {
	const struct report_type *const *reports; /* ends with NULL; report_base among them */
	const struct name_rules *rules;
	const struct filter *filter;
	const char *path;
	bool per_step;
	const struct edit_set *edits; /* the edits of --what-if, borrowed */
	size_t edit_count;
	const struct peaks_file *peaks; /* the file of --peaks, borrowed; NULL: data sheets */
	enum pictures pictures;
	bool is_alone;  /* no other input is or will be added */
	size_t ceiling; /* bytes that the sweep may hold for running work */
	pump_progress progress;
	void *progress_self;
};

/* Returns the tables that `reports` fill, ending with NULL. The caller frees the array. NULL: out
 * of memory. */
const struct table_type **acc_tables(const struct report_type *const *reports);

/* Reads `p`, which the caller has opened and closes, into the tables. After an error of the source
 * (*source_failed is true) `into` holds all events before the error. After any other error `into`
 * must not be used. */
enum status acc_run(struct tables *into, struct trace *trace, const struct pipeline *p,
		    const struct acc_request *how, bool *source_failed, struct error *err);
