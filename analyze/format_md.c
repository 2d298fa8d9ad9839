/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown for a review or an issue: the figures of the page as tables; every other report's too. */
#include "analyze/page/fix.h"
#include "analyze/page/gpus.h"
#include "analyze/page/phases.h"
#include "analyze/page/talk.h"
#include "analyze/page/walls.h"
#include "analyze/page/work.h"
#include "schemas/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_ROWS = 10, NAME_WIDTH = 70, COPY_ROWS = 16, TABLE_ROWS = 50 };

struct md {
	struct page page;
	struct buf *out;
};
struct md_talk {
	struct talk talk;
	struct md *md;
};

/* What Markdown or a browser would obey is escaped; a line stays a line. */
static void put_text(struct buf *out, const char *text)
{
	char bytes[4];

	while (text && *text) {
		uint32_t c = utf8_next(&text);

		if (c < 0x80 && strchr("\\`*_{}[]<>#|~&", (int)c))
			buf_put_byte(out, '\\');
		if (c < ' ' || c == 0x7F)
			c = 0xFFFD;
		buf_put(out, bytes, utf8_put(bytes, c));
	}
}

static void put_cell(struct md *m, const char *text)
{
	buf_put_text(m->out, " ");
	put_text(m->out, text);
	buf_put_text(m->out, " |");
}

static void put_words(struct talk *talk, enum token token, const char *words)
{
	put_text(((struct md_talk *)talk)->md->out, words);
}

static void end_line(struct talk *talk)
{
	buf_put_text(((struct md_talk *)talk)->md->out, "  \n");
}

static void put_distrust(struct talk *talk, const char *word, const char *first,
			 const char *second)
{
	struct buf *out = ((struct md_talk *)talk)->md->out;

	buf_putf(out, "> **! %s** ", word);
	put_text(out, first);
	buf_put_text(out, second ? " " : "");
	put_text(out, second);
	buf_put_text(out, "\n\n");
}

static struct md_talk talk_to(struct md *m)
{
	return (struct md_talk){
		.talk = { .words = put_words, .end = end_line, .distrust = put_distrust },
		.md = m,
	};
}

static void put_head(struct md *m)
{
	struct view inputs = page_view(&m->page, "inputs");
	struct md_talk t = talk_to(m);

	buf_put_text(m->out, "# ");
	put_text(m->out, inputs.count ? view_cell(&inputs, 0, "path").text : "?");
	if (inputs.count > 1)
		buf_putf(m->out, " and %zu more", inputs.count - 1);
	buf_put_text(m->out, "\n\n");
	talk_head(&m->page, &t.talk);
	buf_put_text(m->out, "\n\n");
	talk_distrust(&m->page, &t.talk);
}

static void put_verdict(struct md *m)
{
	struct page_verdict v = verdict_take(&m->page);

	if (!v.words[0])
		return;
	buf_putf(m->out, "**%s** ", v.words);
	put_text(m->out, v.sentence);
	buf_put_text(m->out, v.more ? " " : "");
	put_text(m->out, v.more);
	buf_put_text(m->out, "\n\n");
}

static void put_fixes(struct md *m)
{
	struct view v = page_view(&m->page, "findings");
	struct time_unit unit = { 1e6, 1, "ms" };
	char text[NUMBER_TEXT];
	size_t i;

	if (!v.count)
		return;
	buf_putf(m->out, "## Fix first\n\n| at most, ms per %s | rule | evidence | change |\n"
			 "|---:|---|---|---|\n", m->page.has_steps ? "step" : "window");
	for (i = 0; i < v.count; i++) {
		buf_put_text(m->out, "|");
		put_cell(m, time_text(text, (double)view_cell(&v, i, "saving_ns_per_step").u64,
				      &unit));
		put_cell(m, view_cell(&v, i, "rule").text);
		put_cell(m, view_cell(&v, i, "evidence").text);
		put_cell(m, view_cell(&v, i, "advice").text);
		buf_put_text(m->out, "\n");
	}
	buf_put_text(m->out, "\nSavings are upper bounds and overlap: they do not add up.\n\n");
}

static void put_gpu(struct md *m, size_t gpu, const struct time_unit *unit)
{
	struct page *p = &m->page;
	double parts[CLASS_ROWS], window = (double)view_cell(&p->gpus, gpu, "window_ns").u64;
	char text[NUMBER_TEXT], label[GPU_LABEL];
	int tenths[CLASS_ROWS];
	size_t i;

	gpu_parts(&p->gpus, gpu, parts);
	percents(parts, CLASS_ROWS, window, CLASS_IDLE_ROW, tenths);
	buf_put_text(m->out, "|");
	put_cell(m, gpu_label(p, gpu, label));
	for (i = 0; i < CLASS_ROWS; i++)
		put_cell(m, percent_text(text, tenths[i]));
	put_cell(m, time_text(text, window, unit));
	buf_put_text(m->out, "\n");
}

static void put_gpus(struct md *m)
{
	size_t chosen[RANK_LINES], count = gpus_choose(&m->page, chosen), i;
	struct time_unit unit = { 1e6, 1, "ms" };

	if (!m->page.gpus.count)
		return;
	buf_put_text(m->out, "## GPU time\n\n| % of window |");
	for (i = 0; i < CLASS_ROWS; i++)
		put_cell(m, m->page.is_sampled && i == CLASS_IDLE_ROW ? "nothing seen"
								      : gpu_classes[i].label);
	buf_put_text(m->out, " window ms |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
	for (i = 0; i < count; i++)
		put_gpu(m, chosen[i], &unit);
	buf_put_text(m->out, "\n");
}

static enum status put_steps(struct md *m, struct error *err)
{
	struct view steps = page_of_rank(&m->page, "steps", 0);
	struct time_unit unit = { 1e6, 1, "ms" };
	char text[3][NUMBER_TEXT];
	struct walls w;
	enum status status = walls_take(&steps, &w, err);

	if (status == ST_OK && m->page.has_steps && w.count)
		buf_putf(m->out, "## Steps\n\n%zu of %zu counted%s, wall ms: min %s, median %s, max "
				 "%s\n\n", w.count, w.all,
			 m->page.ranks.count > 1 ? ", first rank" : "",
			 time_text(text[0], w.sorted[0], &unit), time_text(text[1], w.median, &unit),
			 time_text(text[2], w.sorted[w.count - 1], &unit));
	walls_release(&w);
	return status;
}

static enum status put_phases(struct md *m, struct error *err)
{
	struct time_unit unit = { 1e6, 1, "ms" };
	struct phase_rows all;
	int *tenths = NULL;
	char text[NUMBER_TEXT];
	enum status status = phase_rows_take(&m->page, &all, err);
	size_t i;

	if (status == ST_OK && all.count)
		status = phase_rows_percents(&all, &tenths, err);
	if (status != ST_OK || !all.count)
		goto out;
	buf_putf(m->out, "## Phases\n\n| phase | host ms | %% of %s | GPU busy for it, ms | GPU idle "
			 "meanwhile, ms |\n|---|---:|---:|---:|---:|\n",
		 m->page.has_steps ? "step" : "window");
	for (i = 0; i < all.count; i++) {
		const struct phase_row *r = &all.rows[i];

		buf_put_text(m->out, "|");
		put_cell(m, r->label);
		put_cell(m, time_text(text, r->wall_ns, &unit));
		put_cell(m, percent_text(text, tenths[i]));
		put_cell(m, time_text(text, phase_row_gpu_ns(r), &unit));
		put_cell(m, time_text(text, r->gpu_ns[PART_DURING], &unit));
		buf_put_text(m->out, "\n");
	}
	buf_put_text(m->out, "\n");
out:
	free(tenths);
	phase_rows_release(&all);
	return status;
}

static void put_kernel(struct md *m, const struct kernel_rows *all, size_t i, double whole)
{
	const struct kernel_row *r = &all->rows[i];
	struct time_unit ms = { 1e6, 2, "ms" }, us = { 1e3, 0, "" };
	char text[NUMBER_TEXT], name[KERNEL_NAME];
	double per_step = 1.0 / (double)m->page.steps;

	kernel_name(all->rows, i, NAME_WIDTH, name);
	buf_put_text(m->out, "|");
	put_cell(m, name);
	put_cell(m, number_text(text, (double)r->calls * per_step, 0));
	put_cell(m, time_text(text, (double)r->total_ns * per_step, &ms));
	put_cell(m, number_text(text, 100 * (double)r->total_ns / whole, 1));
	put_cell(m, r->median_ns == NO_U64 ? "" : time_text(text, (double)r->median_ns, &us));
	put_cell(m, time_text(text, (double)r->max_ns, &us));
	buf_put_text(m->out, "\n");
}

static enum status put_kernels(struct md *m, struct error *err)
{
	struct kernel_rows all;
	enum status status = kernel_rows_take(&m->page, &all, err);
	size_t i;

	if (status == ST_OK && all.count) {
		buf_putf(m->out, "## Kernels\n\n| kernel | calls per %s | ms | %% of kernel time | "
				 "median \xc2\xb5s | max \xc2\xb5s |\n|---|---:|---:|---:|---:|---:|\n",
			 m->page.has_steps ? "step" : "window");
		for (i = 0; i < all.count && i < KERNEL_ROWS; i++)
			put_kernel(m, &all, i, (double)kernel_sums_of(&all, 0).total_ns);
		if (all.count > KERNEL_ROWS)
			buf_putf(m->out, "\n%zu more names\n", all.count - KERNEL_ROWS);
		buf_put_text(m->out, "\n");
	}
	kernel_rows_release(&all);
	return status;
}

static void put_copies(struct md *m)
{
	struct copy_row rows[COPY_ROWS];
	struct view v = page_view(&m->page, "copies");
	size_t count = copy_rows_take(&v, rows, COPY_ROWS), i;
	struct time_unit unit = { 1e6, 2, "ms" };
	double per_step = 1.0 / (double)m->page.steps;
	char text[NUMBER_TEXT], label[COPY_LABEL];

	if (!count)
		return;
	buf_putf(m->out, "## Copies\n\n| per %s | calls | ms | exposed ms | MiB |\n"
			 "|---|---:|---:|---:|---:|\n", m->page.has_steps ? "step" : "window");
	for (i = 0; i < count; i++) {
		buf_put_text(m->out, "|");
		put_cell(m, copy_row_label(&rows[i], label));
		put_cell(m, number_text(text, (double)rows[i].count * per_step, 0));
		put_cell(m, time_text(text, (double)rows[i].total_ns * per_step, &unit));
		put_cell(m, time_text(text, (double)rows[i].exposed_ns * per_step, &unit));
		put_cell(m, number_text(text, (double)rows[i].bytes * per_step / 1048576, 1));
		buf_put_text(m->out, "\n");
	}
	buf_put_text(m->out, "\n");
}

static enum status put_page(struct md *m, struct error *err)
{
	struct md_talk t = talk_to(m);

	put_head(m);
	put_verdict(m);
	put_gpus(m);
	put_fixes(m);
	TRY(put_phases(m, err));
	TRY(put_steps(m, err));
	TRY(put_kernels(m, err));
	put_copies(m);
	buf_put_text(m->out, "## Trust\n\n");
	talk_trust(&m->page, &t.talk);
	return ST_OK;
}

static void put_value(struct md *m, const struct column *c, union value v)
{
	char text[NUMBER_TEXT] = "";

	if (column_is_text(c)) {
		put_cell(m, v.text ? v.text : "");
		return;
	}
	if (c->cell == CELL_BOOL && v.u64 != NO_U64)
		put_cell(m, v.u64 ? "yes" : "no");
	else if (c->cell == CELL_F64 && isfinite(v.f64))
		put_cell(m, number_text(text, v.f64, 1));
	else if (c->cell == CELL_U64 && v.u64 != NO_U64)
		put_cell(m, count_text(text, v.u64));
	else
		put_cell(m, "");
}

/* Exact values; what a column is stands in its name. */
static void put_table(struct md *m, const struct view *v)
{
	size_t columns = table_columns(v->type), i, k;

	buf_putf(m->out, "## %s\n\n", v->type->name);
	if (!view_is_shown(v)) {
		buf_putf(m->out, "%zu rows: --format json\n\n", v->count);
		return;
	}
	buf_put_text(m->out, "|");
	for (i = 0; i < columns; i++)
		if (v->type->columns[i].title)
			put_cell(m, v->type->columns[i].name);
	buf_put_text(m->out, "\n|");
	for (i = 0; i < columns; i++)
		if (v->type->columns[i].title)
			buf_put_text(m->out, v->type->columns[i].cell == CELL_TEXT ? "---|" : "---:|");
	buf_put_text(m->out, "\n");
	for (k = 0; k < v->count && k < TABLE_ROWS; k++) {
		buf_put_text(m->out, "|");
		for (i = 0; i < columns; i++)
			if (v->type->columns[i].title)
				put_value(m, &v->type->columns[i], v->rows[k][i]);
		buf_put_text(m->out, "\n");
	}
	if (v->count > TABLE_ROWS)
		buf_putf(m->out, "\n%zu more rows\n", v->count - TABLE_ROWS);
	buf_put_text(m->out, "\n");
}

static enum status put_report(struct md *m, const struct report_type *type, struct error *err)
{
	size_t i;

	if (type == &report_summary)
		return put_page(m, err);
	for (i = 0; type->tables[i]; i++) {
		struct view v = page_view(&m->page, type->tables[i]->name);

		if (v.type->nest != NEST_NEVER && v.count)
			put_table(m, &v);
	}
	return ST_OK;
}

static enum status md_write(const struct format_request *how, struct buf *out, struct error *err)
{
	struct md m = { .out = out };
	struct view *views;
	enum status status = ST_OK;
	size_t i;

	TRY(views_new(&views, how->tables, err));
	page_init(&m.page, how, views, out);
	for (i = 0; how->reports[i] && status == ST_OK; i++)
		status = put_report(&m, how->reports[i], err);
	views_free(views, how->tables);
	return status == ST_OK ? buf_status(out, err) : status;
}

const struct format_type format_md = {
	.name = "md",
	.help = "Markdown tables, for a review",
	.write = md_write,
};
