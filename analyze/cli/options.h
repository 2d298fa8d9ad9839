/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the options that tacho-analyze alone has.  Texts are borrowed from argv and the
 * environment.
 */
#ifndef ANALYZE_CLI_OPTIONS_H
#define ANALYZE_CLI_OPTIONS_H

#include "analyze/format/format.h"
#include "analyze/engine/report.h"
#include "schemas/base/option.h"

struct analyze_options {
	const char *report, *format, *phases, *peaks, *view, *what_if, *run, *capture;
	bool per_step;
	const char *partial, *compat, *explain, *mcp, *baseline, *junit;
	double fail_over; /* share of A's mean step */
	bool diff, merge, schema, annotate;
};
extern const struct option analyze_options[]; /* rows for a set over struct analyze_options */
extern const struct option analyze_memory[];  /* over struct common_options, before its own */

/* What does not go together is ST_USAGE. */
enum status analyze_options_check(const struct analyze_options *o, struct error *err);

/* The N of --run N; 0: it is not there, or is "all" */
size_t run_number(const struct analyze_options *o);

enum wording options_view(const struct analyze_options *o);

enum { REPORTS_ASKED = 32 };
/* "phases,steps" to a list that ends with NULL; "all": every one. */
enum status reports_parse(const char *text, const struct report_type *out[REPORTS_ASKED + 1],
			  struct error *err);
/* What --what-if asks for besides; in place of the summary, which is the default. */
void what_if_report(const struct report_type *out[REPORTS_ASKED + 1]);
/* What --compat asks for instead. */
void compat_report(const char *name, const struct report_type *out[REPORTS_ASKED + 1]);

#endif
