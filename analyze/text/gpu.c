/* SPDX-License-Identifier: Apache-2.0 */
/* GPU TIME: the identity of one GPU in full, of several in a line each. */
#include "analyze/page/gpus.h"

#include <stdio.h>

static void put_bar(struct page *p, unsigned column, unsigned cells, const double *parts)
{
	double shown[CLASS_ROWS];
	unsigned columns[CLASS_ROWS];
	size_t i;

	for (i = 0; i < CLASS_ROWS; i++)
		shown[i] = parts[i];
	if (p->is_sampled) { /* one part: nothing seen */
		shown[CLASS_IDLE_ROW] += parts[4] + parts[5];
		shown[4] = shown[5] = 0;
	}
	share_out(shown, CLASS_ROWS, cells, columns);
	for (i = 0; i < CLASS_ROWS; i++)
		column = text_fill(&p->text, column, columns[i], token_of(gpu_class_letter(p, i)),
				   glyph_of(gpu_class_letter(p, i)));
}

struct class_line {
	size_t row;
	double ns;
	int tenths;
};

static void put_class(struct page *p, const struct class_line *l, const struct time_unit *unit)
{
	size_t row = l->row;
	char text[NUMBER_TEXT];
	const char *label = gpu_classes[row].label;

	text_fill(&p->text, 0, 1, token_of(gpu_class_letter(p, row)), glyph_of(gpu_class_letter(p, row)));
	if (p->is_sampled && row == CLASS_IDLE_ROW)
		label = "nothing seen";
	text_at(&p->text, 2, TOKEN_TEXT, label);
	text_right(&p->text, 27, TOKEN_TEXT, time_text(text, l->ns, unit));
	text_right(&p->text, 34, TOKEN_TEXT, percent_text(text, l->tenths));
}

/* Of idle, lead and tail as they are printed. */
static int not_busy_tenths(const int tenths[CLASS_ROWS])
{
	int sum = 0;
	size_t i;

	for (i = CLASS_IDLE_ROW; i < CLASS_ROWS; i++)
		sum += tenths[i] > 0 ? tenths[i] : 0;
	return sum;
}

static enum status put_classes(struct page *p, const double parts[CLASS_ROWS],
			       const int tenths[CLASS_ROWS], double window,
			       const struct time_unit *unit, struct error *err)
{
	struct class_line lines[CLASS_ROWS];
	struct cause_lines causes;
	size_t count = 0, i;

	for (i = 0; i < CLASS_ROWS; i++)
		if (gpu_classes[i].always || parts[i] > 0)
			lines[count++] = (struct class_line){ i, parts[i], tenths[i] };
	TRY(page_causes(p, count, window, not_busy_tenths(tenths), &causes, err));
	text_right(&p->text, 27, TOKEN_DIM, unit->name);
	text_right(&p->text, 34, TOKEN_DIM, "%");
	page_cause(p, &causes, CAUSE_LINES, unit);
	text_end(&p->text);
	for (i = 0; i < count; i++) {
		put_class(p, &lines[i], unit);
		page_cause(p, &causes, i, unit);
		text_end(&p->text);
	}
	return ST_OK;
}

enum status page_gpu_one(struct page *p, struct error *err)
{
	double parts[CLASS_ROWS], window = (double)view_cell(&p->gpus, 0, "window_ns").u64;
	struct time_unit unit = time_unit_of(window, 1);
	int tenths[CLASS_ROWS];
	char text[NUMBER_TEXT], whole[NUMBER_TEXT + 32];

	gpu_parts(&p->gpus, 0, parts);
	percents(parts, CLASS_ROWS, window, CLASS_IDLE_ROW, tenths);
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, p->is_sampled ? "GPU TIME SEEN" : "GPU TIME");
	snprintf(whole, sizeof(whole), "100 %% = window %s %s", time_text(text, window, &unit),
		 unit.name);
	text_right(&p->text, p->text.width, TOKEN_DIM, whole);
	text_end(&p->text);
	put_bar(p, 0, p->text.width, parts);
	text_end(&p->text);
	return put_classes(p, parts, tenths, window, &unit, err);
}

/* ---- several ---------------------------------------------------------------------------- */

static void put_label(struct page *p, size_t gpu)
{
	char label[GPU_LABEL];

	gpu_label(p, gpu, label);
	label[9] = '\0';
	text_at(&p->text, 0, TOKEN_TEXT, label);
}

/* Ends of the columns. */
enum {
	END_COMPUTE = 20, END_COMM = 41, END_COPY = 56, END_IDLE = 73, END_WINDOW = 85,
	END_SUM = 95,
};

static void put_titles(struct page *p, const struct time_unit *unit)
{
	char text[64];

	text_at(&p->text, 0, TOKEN_DIM, "%");
	text_right(&p->text, END_COMPUTE, TOKEN_DIM, "compute \xe2\x96\x88");
	text_right(&p->text, END_COMM, TOKEN_DIM, "comm, no compute \xe2\x96\x93");
	text_right(&p->text, END_COPY, TOKEN_DIM, "copy alone \xe2\x96\x92");
	text_right(&p->text, END_IDLE, TOKEN_DIM,
		   p->is_sampled ? "nothing seen \xe2\x95\xb1" : "not busy \xe2\x96\x91");
	snprintf(text, sizeof(text), "window %s", unit->name);
	text_right(&p->text, END_WINDOW, TOKEN_DIM, text);
	snprintf(text, sizeof(text), "comm %s", unit->name);
	text_right(&p->text, END_SUM, TOKEN_DIM, text);
	text_end(&p->text);
}

static void put_gpu(struct page *p, size_t gpu, const struct time_unit *unit)
{
	static const unsigned ends[] = { END_COMPUTE, END_COMM, END_COPY, END_IDLE };
	double all[CLASS_ROWS], parts[4], window = 0;
	char text[NUMBER_TEXT];
	int tenths[4];
	size_t i;

	gpu_parts(&p->gpus, gpu, all);
	for (i = 0; i < 3; i++)
		parts[i] = all[i];
	parts[3] = all[3] + all[4] + all[5];
	for (i = 0; i < 4; i++)
		window += parts[i];
	percents(parts, 4, window, 3, tenths);
	put_label(p, gpu);
	for (i = 0; i < 4; i++)
		text_right(&p->text, ends[i], p->is_sampled && i == 3 ? TOKEN_WARN : TOKEN_TEXT,
			   percent_text(text, tenths[i]));
	text_right(&p->text, END_WINDOW, TOKEN_TEXT, time_text(text, window, unit));
	text_right(&p->text, END_SUM, TOKEN_TEXT,
		   time_text(text, (double)view_cell(&p->gpus, gpu, "comm_ns").u64, unit));
	text_end(&p->text);
}

void page_gpu_many(struct page *p)
{
	size_t chosen[RANK_LINES], count = gpus_choose(p, chosen), i;
	double parts[CLASS_ROWS], most = 0;
	struct time_unit unit;

	for (i = 0; i < p->gpus.count; i++)
		if ((double)view_cell(&p->gpus, i, "window_ns").u64 > most)
			most = (double)view_cell(&p->gpus, i, "window_ns").u64;
	unit = time_unit_of(most, 1);
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, p->is_sampled ? "GPU TIME SEEN" : "GPU TIME");
	if (count < p->gpus.count)
		text_at(&p->text, 16, TOKEN_DIM, "least, median and worst not busy");
	text_right(&p->text, p->text.width, TOKEN_DIM,
		   p->ranks.count == 1 ? "100 % = window of the GPU"
				       : "100 % = window of the rank");
	text_end(&p->text);
	for (i = 0; i < count; i++) {
		gpu_parts(&p->gpus, chosen[i], parts);
		put_label(p, chosen[i]);
		put_bar(p, 9, p->text.width > 9 ? p->text.width - 9 : 0, parts);
		text_end(&p->text);
	}
	put_titles(p, &unit);
	for (i = 0; i < count; i++)
		put_gpu(p, chosen[i], &unit);
}
