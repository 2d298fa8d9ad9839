/* SPDX-License-Identifier: Apache-2.0 */
/* page/fix.h - the verdict and what to change first, as every page shows them. */
#ifndef ANALYZE_PAGE_FIX_H
#define ANALYZE_PAGE_FIX_H

#include "analyze/text/page.h"

struct page_verdict {
	char words[32];       /* "INPUT BOUND"; "": nothing is known */
	const char *sentence; /* with its figures */
	const char *more;     /* NULL: nothing */
};
struct page_verdict verdict_take(const struct page *p);

#endif
