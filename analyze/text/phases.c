/* SPDX-License-Identifier: Apache-2.0 */
/* PHASES of one rank: the host's time beside the GPU's, on one scale. */
#include "analyze/page/phases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the columns stand: bars are as wide as there is room. */
struct layout {
	unsigned bar, host_bar, busy_end, idle_end, gpu_bar;
};

static struct layout layout_of(const struct page *p)
{
	unsigned bar = p->text.width >= LINE_WIDTH ? 22 : p->text.width >= 72 ? 8 : 0;
	unsigned shift = 22 - bar + (bar ? 0 : 2);

	return (struct layout){ bar, 34, 67 - shift, 76 - shift, 78 - shift };
}

static void put_gpu_bar(struct page *p, const struct layout *l, const struct phase_row *r,
			double most_ns)
{
	static const char letters[PARTS] = { 'c', 'm', 'd', 'i' };
	double whole = phase_row_gpu_ns(r) + r->gpu_ns[PART_DURING];
	unsigned columns[PARTS], column = l->gpu_bar;
	size_t i;

	if (!(most_ns > 0))
		return;
	share_out(r->gpu_ns, PARTS, (unsigned)lround(whole / most_ns * l->bar), columns);
	for (i = 0; i < PARTS; i++) {
		char letter = p->is_sampled && i == PART_DURING ? 'u' : letters[i];

		column = text_fill(&p->text, column, columns[i], token_of(letter),
				   glyph_of(letter));
	}
}

static void put_row(struct page *p, const struct layout *l, const struct phase_rows *all, size_t i,
		    double most_ns, int tenths, const struct time_unit *unit)
{
	const struct phase_row *r = &all->rows[i];
	char text[NUMBER_TEXT];

	text_cut(&p->text, 0, 15, TOKEN_TEXT, r->label);
	text_right(&p->text, 21, TOKEN_TEXT, time_text(text, r->wall_ns, unit));
	text_right(&p->text, 32, TOKEN_TEXT, percent_text(text, tenths));
	if (l->bar && most_ns > 0)
		text_bar(&p->text, l->host_bar, token_of_phase(r->name),
			 r->wall_ns / most_ns * l->bar);
	if (all->has_gpu) {
		text_right(&p->text, l->busy_end, TOKEN_TEXT, time_text(text, phase_row_gpu_ns(r), unit));
		text_right(&p->text, l->idle_end, TOKEN_TEXT,
			   time_text(text, r->gpu_ns[PART_DURING], unit));
		put_gpu_bar(p, l, r, most_ns);
	}
	text_end(&p->text);
}

static void put_titles(struct page *p, const struct layout *l, bool has_gpu,
		       const struct time_unit *unit)
{
	char text[64];
	unsigned column;

	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "PHASES");
	snprintf(text, sizeof(text), "host %s", unit->name);
	text_right(&p->text, 21, TOKEN_DIM, text);
	text_at(&p->text, 23, TOKEN_DIM, p->has_steps ? "% of step" : "% of window");
	if (has_gpu) {
		text_right(&p->text, l->busy_end, TOKEN_DIM, "GPU busy");
		text_right(&p->text, l->idle_end, TOKEN_DIM, p->is_sampled ? "unseen" : "idle");
	}
	if (has_gpu && l->bar >= 20) {
		column = text_at(&p->text, l->gpu_bar, TOKEN_DIM, "\xe2\x96\x88 from it ");
		text_at(&p->text, column, TOKEN_DIM,
			p->is_sampled ? "\xe2\x95\xb1 unseen" : "\xe2\x96\x91 meanwhile");
	}
	text_end(&p->text);
}

static void put_sum(struct page *p, const struct layout *l, const struct phase_rows *all,
		    const struct time_unit *unit)
{
	const struct phase_row *sum = &all->sum;
	char text[NUMBER_TEXT];

	text_right(&p->text, 21, TOKEN_DIM, time_text(text, sum->wall_ns, unit));
	text_right(&p->text, 32, TOKEN_DIM, "100.0");
	if (all->has_gpu) {
		text_right(&p->text, l->busy_end, TOKEN_DIM, time_text(text, phase_row_gpu_ns(sum), unit));
		text_right(&p->text, l->idle_end, TOKEN_DIM,
			   time_text(text, sum->gpu_ns[PART_DURING], unit));
		if (l->bar >= 20)
			text_atf(&p->text, l->gpu_bar, TOKEN_DIM, "%s = window / %llu",
				 time_text(text, phase_row_gpu_ns(sum) + sum->gpu_ns[PART_DURING], unit),
				 (unsigned long long)p->steps);
	}
	text_end(&p->text);
}

enum status page_phases_one(struct page *p, struct error *err)
{
	struct phase_rows all;
	struct layout l = layout_of(p);
	struct time_unit unit;
	int *tenths = NULL;
	enum status status = phase_rows_take(p, &all, err);
	size_t i;

	if (status == ST_OK && all.count)
		status = phase_rows_percents(&all, &tenths, err);
	if (status != ST_OK || !all.count)
		goto out;
	unit = time_unit_of(all.sum.wall_ns, 1);
	put_titles(p, &l, all.has_gpu, &unit);
	for (i = 0; i < all.count; i++)
		put_row(p, &l, &all, i, phase_rows_most_ns(&all), tenths[i], &unit);
	put_sum(p, &l, &all, &unit);
out:
	free(tenths);
	phase_rows_release(&all);
	return status;
}
