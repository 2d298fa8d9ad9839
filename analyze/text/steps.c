/* SPDX-License-Identifier: Apache-2.0 */
/* STEPS of one rank: how long they took, and a picture of the one nearest to the median. */
#include "analyze/page/walls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPARK_MAX = 60 };

static unsigned put_figure(struct page *p, unsigned column, const char *name, double ns,
			   const struct time_unit *unit)
{
	char text[NUMBER_TEXT];

	return text_atf(&p->text, column, TOKEN_TEXT, "%s %s", name, time_text(text, ns, unit));
}

static unsigned put_count(struct page *p, const struct walls *w)
{
	char settling[48] = "";

	if (w->count == w->all)
		return text_atf(&p->text, 14, TOKEN_TEXT, "%zu complete, ", w->count);
	if (w->settling)
		snprintf(settling, sizeof(settling), "%zu settling, ", w->settling);
	return text_atf(&p->text, 14, TOKEN_TEXT, "%zu of %zu %s, %s", w->count, w->all,
			w->settling ? "counted" : "complete", settling);
}

static unsigned put_walls(struct page *p, const struct walls *w)
{
	struct time_unit unit = time_unit_of(w->sorted[w->count - 1], 1);
	unsigned column = put_count(p, w);

	if (w->count == 1) {
		column = put_figure(p, column, "wall", w->in_order[0], &unit);
		return text_atf(&p->text, column, TOKEN_TEXT, " %s", unit.name);
	}
	column = text_atf(&p->text, column, TOKEN_TEXT, "wall %s: ", unit.name);
	column = put_figure(p, column, "min", w->sorted[0], &unit);
	column = put_figure(p, column, " \xc2\xb7 median", w->median, &unit);
	if (w->count >= P90_FROM)
		column = put_figure(p, column, " \xc2\xb7 p90", walls_quantile(w, 0.90), &unit);
	if (w->count >= P99_FROM)
		column = put_figure(p, column, " \xc2\xb7 p99", walls_quantile(w, 0.99), &unit);
	return put_figure(p, column, " \xc2\xb7 max", w->sorted[w->count - 1], &unit);
}

/* Step numbers at both ends, between them a cell for each step or for the longest of several. */
static unsigned spark_cells(const struct walls *w)
{
	return w->count < SPARK_MAX ? (unsigned)w->count : SPARK_MAX;
}

static unsigned put_cells(struct page *p, unsigned column, const struct walls *w)
{
	unsigned cells = spark_cells(w), i;
	double low = w->sorted[0], range = w->sorted[w->count - 1] - low;

	if (walls_are_flat(w))
		return text_at(&p->text, column, TOKEN_TEXT, "flat");
	for (i = 0; i < cells; i++) {
		size_t from = i * w->count / cells, to = (i + 1) * w->count / cells;
		double most = 0;

		for (; from < to; from++)
			most = w->in_order[from] > most ? w->in_order[from] : most;
		column = text_fill(&p->text, column, 1, TOKEN_TEXT,
				   0x2581u + (uint32_t)lround((most - low) / range * 7));
	}
	return column;
}

static void put_spark(struct page *p, unsigned column, const struct view *steps,
		      const struct walls *w)
{
	char first[NUMBER_TEXT], last[NUMBER_TEXT];
	unsigned width;

	if (w->count < 2 || !p->text.is_utf8)
		return;
	snprintf(first, sizeof(first), "%llu ",
		 (unsigned long long)view_cell(steps, w->rows[0], "step").u64);
	snprintf(last, sizeof(last), " %llu",
		 (unsigned long long)view_cell(steps, w->rows[w->count - 1], "step").u64);
	width = text_width(first) + text_width(last) + (walls_are_flat(w) ? 4 : spark_cells(w));
	if (column + 2 + width <= p->text.width) {
		column = p->text.width - width;
	} else {
		text_end(&p->text);
		column = 14;
	}
	column = text_at(&p->text, column, TOKEN_DIM, first);
	text_at(&p->text, put_cells(p, column, w), TOKEN_DIM, last);
}

/* ---- the picture ------------------------------------------------------------------------ */

static void put_host(struct page *p, const char *letters)
{
	static const struct {
		char letter;
		enum token token;
	} rows[] = {
		{ 'd', TOKEN_DATA }, { 'f', TOKEN_FORWARD }, { 'b', TOKEN_BACKWARD },
		{ 'o', TOKEN_OPTIMIZER }, { 'c', TOKEN_COMM }, { 'k', TOKEN_ASIDE },
		{ 'v', TOKEN_ASIDE }, { 'u', TOKEN_OTHER }, { '.', TOKEN_OTHER },
	};
	unsigned column = 14;
	size_t i;

	for (; *letters; letters++) {
		for (i = 0; i + 1 < sizeof(rows) / sizeof(rows[0]); i++)
			if (rows[i].letter == *letters)
				break;
		column = text_fill(&p->text, column, 1, rows[i].token,
				   *letters == '.' ? 0xb7u : (uint32_t)(unsigned char)*letters);
	}
}

static void put_gpu(struct page *p, const char *letters)
{
	unsigned column = 14;

	for (; *letters; letters++) {
		bool unseen = p->is_sampled && (*letters == 'i' || *letters == 'l');
		char letter = unseen ? 'u' : *letters;

		column = text_fill(&p->text, column, 1, token_of(letter), glyph_of(letter));
	}
}

/* The picture of the counted step that is nearest to the median; of two the later. */
static const union value *choose(const struct page *p, const struct view *steps,
				 const struct walls *w, struct view *strips)
{
	struct view all = page_view(p, "strips"), found;
	const union value *best = NULL;
	double least = INFINITY, off;
	size_t i;

	for (i = 0; i < w->count; i++) {
		off = fabs(w->in_order[i] - w->median);
		if (off > least)
			continue;
		found = view_below(&all, steps->rows[w->rows[i]], table_keys(steps->type));
		if (!found.count)
			continue;
		least = off;
		best = found.rows[0];
		*strips = found;
	}
	return best;
}

static void put_strip(struct page *p, const struct view *steps, const struct walls *w)
{
	struct view strips;
	const char *host, *gpu;
	char number[NUMBER_TEXT];
	unsigned end;

	if (p->gpus.count > 1 || p->text.width < LINE_WIDTH || !choose(p, steps, w, &strips))
		return;
	host = view_cell(&strips, 0, "host_cells").text;
	gpu = view_cell(&strips, 0, "gpu_cells").text;
	snprintf(number, sizeof(number), "%llu",
		 (unsigned long long)view_cell(&strips, 0, "step").u64);
	end = text_width(number) > 4 ? text_width(number) : 4;
	text_right(&p->text, end < 6 ? end : 6, TOKEN_TEXT, number);
	text_at(&p->text, 7, TOKEN_TEXT, "host");
	put_host(p, host ? host : "");
	text_end(&p->text);
	if (!gpu || !p->gpus.count)
		return;
	text_at(&p->text, 7, TOKEN_TEXT, "GPU");
	put_gpu(p, gpu);
	text_end(&p->text);
}

enum status page_steps_one(struct page *p, struct error *err)
{
	struct view steps = page_of_rank(p, "steps", 0);
	struct walls w;
	enum status status = walls_take(&steps, &w, err);

	if (status != ST_OK)
		goto out;
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "STEPS");
	if (!p->has_steps || !w.count)
		text_at(&p->text, 14, TOKEN_TEXT, "none marked; the window counts as one step "
						  "\xe2\x86\x92 tacho_step()");
	else
		put_spark(p, put_walls(p, &w), &steps, &w);
	text_end(&p->text);
	if (p->has_steps && w.count)
		put_strip(p, &steps, &w);
out:
	walls_release(&w);
	return status;
}
