/* SPDX-License-Identifier: Apache-2.0 */
/* Hangs: at the top of the page, and all groups in the report. */
#include "analyze/format/page/internal.h"

#include "analyze/report/report_list.h"

#include <stdio.h>
#include <string.h>

enum { ON_THE_PAGE = 3 };

/* Adds the ranks of Tacho logs that hung.  Those that are in no collective come first, because the
 * others may wait for them. */
static void add_ranks(const struct page *p, size_t most, struct blocks *b)
{
	struct view v = page_view(p, "hang_open");
	size_t shown = 0;

	for (int waits = 0; waits < 2; waits++)
		for (size_t i = 0; i < v.count && shown < most; i++) {
			const char *stacks = view_cell(&v, i, "stacks").text;

			bool is_waiting = view_cell(&v, i, "collective").text != NULL;

			if (is_waiting != (waits == 1))
				continue;
			struct block *new = add_block(b, BLOCK_WARNING);
			/* Without a report of the recorder it may have been a long evaluation, and
			 * the program may live. */
			new->callout.label = view_cell(&v, i, "recorder").text ? "HANG" : "CUT OFF";
			new->callout.first = view_cell(&v, i, "sentence").text;
			size_t len = !stacks              ? 0
				     : most > ON_THE_PAGE ? strlen(stacks)
							  : strcspn(stacks, ";");
			if (stacks)
				new->callout.second =
					blocks_text(b, "Python was in %.*s%s", (int)len, stacks,
						    stacks[len] ? "; ..." : ".");
			shown++;
		}
	if (shown < v.count)
		add_sentencef(b, ROLE_TEXT, 0, "%zu more ranks: --report hang", v.count - shown);
}

void build_hang(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "hang");
	size_t most = p->report == &report_hang ? SIZE_MAX : ON_THE_PAGE;

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
	add_ranks(p, v.count && most == ON_THE_PAGE ? 1 : most, b);
	if (!v.count && !page_view(p, "hang_open").count && p->report == &report_hang)
		add_sentence(
			b, ROLE_TEXT, 0,
			"No collective is open in these files, and no step hung. This report "
			"reads hangs from Tacho logs and from dumps of PyTorch's Flight Recorder, "
			"best those of all ranks.");
}
