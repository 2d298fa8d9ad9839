/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/fold.h - all reports of a run over one input: pull, sweep, fold, in one pass.
 *
 * One thread.  What it makes is a set of tables, complete up to where the input could be read.
 */
#ifndef ANALYZE_ENGINE_FOLD_H
#define ANALYZE_ENGINE_FOLD_H

#include "analyze/report.h"

struct fold_request {
	const struct report_type *const *reports; /* ends with NULL; report_base among them */
	const struct name_rules *rules;
	const struct cut *cut;
	const char *path;
	bool per_step;
	enum pictures pictures;
	bool is_alone;  /* no other input is or will be added */
	size_t ceiling; /* of the sweep's waiting work */
	pump_progress progress;
	void *progress_self;
};

/* Everything that `reports` fill; ends with NULL, freed with free().  NULL without memory. */
const struct table_type **fold_tables(const struct report_type *const *reports);

/*
 * `p` is open and stays the caller's.  A fault of the source is returned after what came before it
 * is in `into`; *source_failed tells it from others, after which `into` is not to be used.
 */
enum status fold_run(struct tables *into, struct trace *trace, const struct pipeline *p,
		     const struct fold_request *how, bool *source_failed, struct error *err);

#endif
