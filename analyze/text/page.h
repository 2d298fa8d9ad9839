/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text/page.h - the blocks of the one page; each writes its lines and the blank one before it.
 */
#ifndef ANALYZE_TEXT_PAGE_H
#define ANALYZE_TEXT_PAGE_H

#include "analyze/text/line.h"
#include "analyze/text/number.h"

enum { RANK_LINES = 8 /* a line each up to here */, KERNEL_LINES = 5 };

struct page {
	struct text text;
	const struct tables *tables;
	const struct view *views;
	struct view ranks, gpus, trust;
	uint64_t steps;   /* complete ones of all ranks; at least 1 */
	bool has_steps;   /* marked ones */
	enum wording view;
	bool is_sampled;  /* any rank */
};

/* `views` of the tables of `how`; what is borrowed must outlive the page. */
void page_init(struct page *p, const struct format_request *how, const struct view *views,
	       struct buf *out);
struct view page_view(const struct page *p, const char *table);
/* Of one rank: the row of `ranks`. */
struct view page_of_rank(const struct page *p, const char *table, size_t rank);
uint64_t page_sum(const struct view *v, const char *column);
/* "rank 3", "pid 17" where the file has no rank. */
char *rank_text(const struct page *p, size_t rank, char out[NUMBER_TEXT]);

void page_head(struct page *p, const char *report);
void page_distrust(struct page *p);
/* NOT BUSY, BY CAUSE: to the right of the rows of GPU TIME, at most so many lines. */
enum { CAUSE_LINES = 8, CAUSES_AT = 40 };
struct cause_line {
	char name[28];
	enum token token;
	double ns;
	int tenths; /* of a percent of the window */
};
struct cause_lines {
	struct cause_line lines[CAUSE_LINES];
	size_t count;
	const char *instead; /* words, where there are no causes; or NULL */
};
/* Of the only GPU; `whole_tenths`: what the lines have to add up to. */
enum status page_causes(const struct page *p, size_t most, double window_ns, int whole_tenths,
			struct cause_lines *out, struct error *err);
void page_cause(struct page *p, const struct cause_lines *causes, size_t line,
		const struct time_unit *unit);
/* The pages of reports of these names. */
enum status page_steps(struct page *p, struct error *err);
enum status page_phases_view(struct page *p, struct error *err);
enum status page_idle(struct page *p, struct error *err);
enum status page_launches(struct page *p, struct error *err);

void page_verdict(struct page *p);
void page_fix(struct page *p);
void page_findings(struct page *p); /* the whole report of this name */
enum status page_gpu_one(struct page *p, struct error *err);
void page_gpu_many(struct page *p);
enum status page_phases_one(struct page *p, struct error *err);
enum status page_steps_one(struct page *p, struct error *err);
enum status page_kernels_one(struct page *p, struct error *err);
void page_copies(struct page *p);
void page_trust(struct page *p);

/* Several ranks. */
enum status page_steps_many(struct page *p, struct error *err);
enum status page_phases_many(struct page *p, struct error *err);
enum status page_kernels_many(struct page *p, struct error *err);
/* Collectives; who waits for whom; in two lines; ranks side by side. */
enum status page_comm(struct page *p, struct error *err);
enum status page_waiting(struct page *p, struct error *err);
enum status page_waiting_brief(struct page *p, struct error *err);
enum status page_ranks(struct page *p, struct error *err);
void page_frontier(struct page *p);

/* Recordings, worst first. */
enum status page_check(struct page *p, struct error *err);

/* Any table as it is. */
void page_table(struct page *p, const struct view *v);

#endif
