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
	const struct edit_set *edits; /* of --what-if */
	size_t edit_count;
	const struct peaks_file *peaks; /* of --peaks */
	enum pictures pictures;
	bool is_alone;  /* no other input is or will be added */
	size_t ceiling; /* of the sweep's waiting work */
	pump_progress progress;
	void *progress_self;
};

/* The tables that `reports` fill; ends with NULL; free it with free().  NULL: out of memory. */
const struct table_type **acc_tables(const struct report_type *const *reports);

/*
 * `p` is open, and the caller closes it.  An error of the source is returned after all events
 * before it are in `into`.  After any other error *source_failed is false, and `into` must not be
 * used.
 */
enum status acc_run(struct tables *into, struct trace *trace, const struct pipeline *p,
		    const struct acc_request *how, bool *source_failed, struct error *err);
