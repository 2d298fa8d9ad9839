/* SPDX-License-Identifier: Apache-2.0 */
/* Hangs: at the top of the page, and all groups in the report. */
#include "analyze/format/page/internal.h"

#include "analyze/report/report_list.h"

#include <stdio.h>

enum { ON_THE_PAGE = 3 };

void build_hang(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "hang");
	size_t most = p->report == &report_hang ? v.count : ON_THE_PAGE;

	for (size_t i = 0; i < v.count && i < most; i++) {
		struct block *new = add_block(b, BLOCK_WARNING);

		new->callout.label = view_cell(&v, i, "waiting").text ? "HANG" : "NO DUMP";
		new->callout.first = view_cell(&v, i, "sentence").text;
		/* What is known about the cause: a mismatch, how long the late rank was away, and
		 * where it is. */
		const char *mismatch = view_cell(&v, i, "mismatch").text;
		const char *where = view_cell(&v, i, "where").text;
		const char *never = view_cell(&v, i, "never_came").text;
		uint64_t gap = cell_or_0(&v, i, "gap_ns");
		char away[64] = "";

		if (never && gap)
			snprintf(away, sizeof(away), "Its last collective was %.1f ms before. ",
				 (double)gap / 1e6);
		new->callout.second = blocks_text(
			b, "%s%s%s%s%s%s%s", mismatch ? "Mismatch, " : "", mismatch ? mismatch : "",
			mismatch ? ". " : "", away, where ? never ? "It was last in " : "At " : "",
			where ? where : "", where ? "." : "");
		if (!new->callout.second[0])
			new->callout.second = NULL;
	}
	if (v.count > most)
		add_sentencef(b, ROLE_TEXT, 0, "%zu more process groups: --report hang",
			      v.count - most);
	if (!v.count && p->report == &report_hang)
		add_sentence(b, ROLE_TEXT, 0,
			     "No collective is open in these files. This report reads hangs from "
			     "dumps of PyTorch's Flight Recorder, best those of all ranks.");
}
