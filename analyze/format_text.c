/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal pages: the one page of `summary`, and every other report's tables as they are. */
#include "analyze/text/page.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH_LEAST = 60 /* below: only what the GPU did */ };

struct view page_view(const struct page *p, const char *table)
{
	return view_find(p->views, p->tables, table);
}

struct view page_of_rank(const struct page *p, const char *table, size_t rank)
{
	struct view all = page_view(p, table);

	return rank < p->ranks.count ? view_below(&all, p->ranks.rows[rank], RANK_KEYS) : all;
}

uint64_t page_sum(const struct view *v, const char *column)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < v->count; i++)
		sum += view_cell(v, i, column).u64;
	return sum;
}

char *rank_text(const struct page *p, size_t rank, char out[NUMBER_TEXT])
{
	uint64_t number = view_cell(&p->ranks, rank, "rank").u64;

	if (number == NO_U64)
		snprintf(out, NUMBER_TEXT, "pid %llu",
			 (unsigned long long)view_cell(&p->ranks, rank, "pid").u64);
	else
		snprintf(out, NUMBER_TEXT, "rank %llu", (unsigned long long)number);
	return out;
}

void page_init(struct page *p, const struct format_request *how, const struct view *views,
	       struct buf *out)
{
	struct view steps;
	size_t i;

	*p = (struct page){ .tables = how->tables, .views = views, .view = how->view };
	text_init(&p->text, how, out);
	p->ranks = page_view(p, "ranks");
	p->gpus = page_view(p, "gpus");
	p->trust = page_view(p, "trust");
	p->steps = page_sum(&p->ranks, "complete_steps");
	if (!p->steps)
		p->steps = 1;
	steps = page_view(p, "steps");
	for (i = 0; i < steps.count; i++)
		p->has_steps |= view_cell(&steps, i, "inferred").u64 != 1;
	for (i = 0; i < p->trust.count; i++)
		p->is_sampled |= view_cell(&p->trust, i, "sampled").u64 == 1;
}

static enum status put_page(struct page *p, struct error *err)
{
	page_head(p, "summary");
	page_distrust(p);
	page_verdict(p);
	if (p->gpus.count == 1)
		TRY(page_gpu_one(p, err));
	else if (p->gpus.count)
		page_gpu_many(p);
	if (p->text.width < WIDTH_LEAST) {
		page_fix(p);
		return ST_OK;
	}
	if (p->ranks.count == 1) {
		TRY(page_phases_one(p, err));
		TRY(page_steps_one(p, err));
		TRY(page_kernels_one(p, err));
	} else {
		TRY(page_steps_many(p, err));
		TRY(page_phases_many(p, err));
		TRY(page_kernels_many(p, err));
		TRY(page_waiting_brief(p, err));
	}
	page_copies(p);
	page_fix(p);
	page_trust(p);
	return ST_OK;
}

static enum status put_report(struct page *p, const struct report_type *type, bool is_first,
			      struct error *err)
{
	size_t i;
	struct view v;

	if (!is_first)
		text_end(&p->text);
	if (type == &report_summary)
		return put_page(p, err);
	if (type == &report_check)
		return page_check(p, err);
	if (type == &report_findings) {
		page_findings(p);
		return ST_OK;
	}
	if (type == &report_steps)
		return page_steps(p, err);
	if (type == &report_phases && p->view != VIEW_OWN)
		return page_phases_view(p, err);
	if (type == &report_idle)
		return page_idle(p, err);
	if (type == &report_launches)
		return page_launches(p, err);
	if (type == &report_comm)
		return page_comm(p, err);
	if (type == &report_ranks)
		return page_ranks(p, err);
	for (i = 0; type->tables[i]; i++) {
		v = page_view(p, type->tables[i]->name);
		if (v.type->nest == NEST_NEVER)
			continue;
		if (i)
			text_end(&p->text);
		page_table(p, &v);
	}
	return ST_OK;
}

static enum status text_write(const struct format_request *how, struct buf *out,
			      struct error *err)
{
	struct view *views;
	struct page page;
	enum status status = ST_OK;
	size_t i;

	TRY(views_new(&views, how->tables, err));
	page_init(&page, how, views, out);
	for (i = 0; how->reports[i] && status == ST_OK; i++)
		status = put_report(&page, how->reports[i], i == 0, err);
	views_free(views, how->tables);
	return status == ST_OK ? buf_status(out, err) : status;
}

const struct format_type format_text = {
	.name = "text",
	.help = "for a terminal: tables, bars, colour",
	.pictures = PICTURES_CELLS,
	.write = text_write,
};
