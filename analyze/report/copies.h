/* SPDX-License-Identifier: Apache-2.0 */
/* copies.h - what a copy is. */
#ifndef ANALYZE_REPORT_COPIES_H
#define ANALYZE_REPORT_COPIES_H

#include "analyze/engine/report.h"

enum { COPY_TEXT = 200 };
/* "HtoD Pageable Device": direction and kinds of memory, as far as they are known; "memset". */
void copy_text(const struct accumulator *f, const struct event *e, char out[COPY_TEXT]);

#endif
