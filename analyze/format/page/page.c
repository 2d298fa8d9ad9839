/* SPDX-License-Identifier: Apache-2.0 */
/* The sections and tables of a page, and their order. */
#include "analyze/format/page/internal.h"

#include "analyze/report/hta/hta.h"
#include "analyze/report/report_list.h"

enum { WIDTH_LEAST = 60 /* a narrower terminal shows only GPU time and findings */ };

static void page_init(struct page *p, const struct format_request *how, enum medium medium,
		      const struct view *views)
{
	struct view steps;

	*p = (struct page){ .how = how,
			    .medium = medium,
			    .width = how->width < LINE_MOST ? how->width : LINE_MOST,
			    .views = views };
	p->ranks = page_view(p, "ranks");
	p->gpus = page_view(p, "gpus");
	p->trust = page_view(p, "trust");
	p->inputs = page_view(p, "inputs");
	p->steps = later(page_sum(&p->ranks, "complete_steps"), 1);
	p->window_steps = later(page_sum(&p->ranks, "window_steps"), p->steps);
	steps = page_view(p, "steps");
	for (size_t i = 0; i < steps.count; i++)
		p->has_steps |= view_u64(&steps, i, "inferred") != 1;
	for (size_t i = 0; i < p->trust.count; i++)
		p->is_sampled |= view_u64(&p->trust, i, "sampled") == 1;
}

/* ---- the summary page ------------------------------------------------------------------- */

static section_builder *const text_narrow[] = { build_input, build_warnings, build_verdict,
						build_gpus,  build_fixes,    NULL };
static section_builder *const text_one[] = { build_input,  build_warnings, build_verdict,
					     build_gpus,   build_snapshot, build_phases,
					     build_steps,  build_kernels,  build_comm_brief,
					     build_copies, build_fixes,    build_trust,
					     NULL };
static section_builder *const text_many[] = { build_input,
					      build_warnings,
					      build_verdict,
					      build_gpus,
					      build_snapshot,
					      build_steps_of_ranks,
					      build_phases_of_ranks,
					      build_kernels_of_ranks,
					      build_waits_brief,
					      build_copies,
					      build_fixes,
					      build_trust,
					      NULL };
static section_builder *const html[] = {
	build_input,   build_warnings, build_verdict,  build_gpus,
	build_fixes,   build_steps,    build_phases,   build_memory,
	build_kernels, build_flame,    build_roofline, build_comm,
	build_waits,   build_frontier, build_copies,   build_trust,
	NULL
};
static section_builder *const md[] = { build_input,    build_warnings, build_verdict, build_gpus,
				       build_snapshot, build_fixes,    build_phases,  build_steps,
				       build_kernels,  build_copies,   build_trust,   NULL };
/* Reports with a page of their own in a terminal. */
static section_builder *const comm[] = { build_comm, NULL };
static section_builder *const comm_of_ranks[] = { build_comm, build_waits, NULL };
static section_builder *const findings[] = { build_input, build_verdict, build_findings, NULL };
static section_builder *const ranks[] = { build_waits,
					  build_stragglers,
					  build_frontier,
					  build_steps_of_ranks,
					  build_phases_of_ranks,
					  build_kernels_of_ranks,
					  NULL };

static void build_all(const struct page *p, section_builder *const *sections, struct blocks *b)
{
	for (; *sections; sections++)
		(*sections)(p, b);
}

/* ---- reports ---------------------------------------------------------------------------- */

/* Tables of a report in another order than the report's; tables that are not listed are left
 * out. */
static const struct {
	const struct report_type *report;
	const char *tables[6];
	bool has_empty; /* show tables without rows */
} orders[] = {
	{ &report_steps,
	  { "step_stats", "steps_summed", "slow_steps", "steps", "step_gpus", NULL },
	  false },
	{ &report_launches, { "launch_queues", "launches", NULL }, true },
};

static void build_tables(const struct page *p, struct blocks *b)
{
	for (size_t i = 0; is_text(p) && i < sizeof(orders) / sizeof(orders[0]); i++) {
		if (orders[i].report != p->report)
			continue;
		for (size_t k = 0; orders[i].tables[k]; k++) {
			struct view v = page_view(p, orders[i].tables[k]);

			if (v.count || orders[i].has_empty)
				build_table(p, &v, b);
		}
		return;
	}
	for (size_t i = 0; p->report->tables[i]; i++) {
		struct view v = page_view(p, p->report->tables[i]->name);

		if (v.type->nest != NEST_NEVER && (v.count || is_text(p)))
			build_table(p, &v, b);
	}
}

static void build_report(const struct page *p, struct blocks *b)
{
	const struct report_type *r = p->report;

	if (r == &report_summary)
		build_all(p,
			  p->medium == MEDIUM_HTML ? html
			  : p->medium == MEDIUM_MD ? md
			  : p->width < WIDTH_LEAST ? text_narrow
			  : p->ranks.count == 1    ? text_one
						   : text_many,
			  b);
	else if (is_text(p) && r == &report_check)
		build_check(p, b);
	else if (is_text(p) && r == &report_findings)
		build_all(p, findings, b);
	else if (is_text(p) && r == &report_phases && p->how->view != VIEW_OWN)
		build_phases_view(p, b);
	else if (is_text(p) && r == &report_hang)
		build_hang(p, b);
	else if (is_text(p) && r == &report_idle)
		build_idle(p, b);
	else if (is_text(p) && r == &report_modules)
		build_modules(p, b);
	else if (is_text(p) && r == &report_stacks)
		build_stacks(p, b);
	else if (is_text(p) && r == &report_comm)
		build_all(p, p->ranks.count > 1 ? comm_of_ranks : comm, b);
	else if (is_text(p) && r == &report_ranks) {
		struct block *head = add_section(b, "Ranks", NULL);
		size_t count = p->ranks.count;

		add_sentence(b, ROLE_TEXT, head->section.note_at,
			     count < 2 ? "only one rank: nothing to compare"
				       : blocks_text(b, "%s given", show_count(b, count)));
		if (count > 1)
			build_all(p, ranks, b);
	} else {
		if (r == &report_replay)
			build_replay(p, b);
		build_tables(p, b);
	}
}

/* Returns whether the HTML page leaves out a report, because sections or other formats show it. */
static bool is_left_out(const struct report_type *report)
{
	static const struct report_type *const left_out[] = {
		&report_summary, &report_phases,     &report_steps,    &report_kernels,
		&report_copies,  &report_slow,       &report_idle,     &report_launches,
		&report_memory,  &report_comm,       &report_ranks,    &report_findings,
		&report_check,   &report_compat_hta, &report_critical,
	};

	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (left_out[i] == report)
			return true;
	return false;
}

enum status page_write(const struct format_request *how, enum medium medium, page_renderer *draw,
		       struct buf *out, struct error *err)
{
	struct blocks blocks;
	struct view *views;
	struct page page;

	TRY(views_new(&views, how->tables, err));
	page_init(&page, how, medium, views);
	blocks_init(&blocks);
	if (page.medium == MEDIUM_HTML) {
		page.report = &report_summary;
		build_report(&page, &blocks);
	}
	for (size_t i = 0; page.how->reports[i]; i++) {
		const struct block *before = blocks.last;

		page.report = page.how->reports[i];
		if (page.report == how->hidden)
			continue;
		if (page.medium != MEDIUM_HTML || !is_left_out(page.report))
			build_report(&page, &blocks);
		if (is_text(&page) && before && blocks.last == before)
			add_sentence(&blocks, ROLE_TEXT, 0,
				     ""); /* the report has nothing to show */
	}
	enum status status = blocks_status(&blocks, err);
	if (status == ST_OK)
		draw(&page, &blocks, out);
	blocks_release(&blocks);
	views_free(views, how->tables);
	return status == ST_OK ? buf_status(out, err) : status;
}
