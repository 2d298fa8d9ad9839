/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main/report.h - of the roof: the report on the inputs of a conversion, for sinks that carry it.
 */
#ifndef CONVERT_MAIN_REPORT_H
#define CONVERT_MAIN_REPORT_H

#include "convert/pump.h"
#include "convert/sink.h"
#include "schemas/buf.h"

enum { REPORT_PAPERS = 2 }; /* report.txt, report.json */

struct report_request {
	char *const *paths;
	size_t count;
	const struct name_rules *rules;
	const struct cut *cut;
	size_t memory_bytes;
	const char *scratch;
};
struct report_papers {
	struct buf pages[REPORT_PAPERS];
	struct sink_paper papers[REPORT_PAPERS]; /* borrow the pages */
	size_t count; /* 0: inputs that can be read only once have none */
};

/* A pass of its own over the inputs.  Their faults are told by whoever reads them next. */
enum status report_papers_make(struct report_papers *p, const struct report_request *how,
			       struct error *err);
void report_papers_release(struct report_papers *p); /* accepts a zeroed one */

#endif
