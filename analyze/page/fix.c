/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/page/fix.h"

#include <stdio.h>
#include <string.h>

struct page_verdict verdict_take(const struct page *p)
{
	struct page_verdict out = { .words = "" };
	struct view v = page_view(p, "verdict");
	const char *bound;

	if (!v.count)
		return out;
	bound = view_cell(&v, 0, "bound").text;
	snprintf(out.words, sizeof(out.words), "%.16s%s", bound,
		 strncmp(bound, "NO ", 3) && strcmp(bound, "UNBALANCED") ? " BOUND" : "");
	out.sentence = view_cell(&v, 0, "sentence").text;
	out.more = view_cell(&v, 0, "more").text;
	return out;
}
