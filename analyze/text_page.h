/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_page.h - the blocks of the one page; each writes its lines and the blank one before it.
 */
#ifndef ANALYZE_TEXT_PAGE_H
#define ANALYZE_TEXT_PAGE_H

#include "analyze/text_line.h"
#include "analyze/text_number.h"

enum { RANK_LINES = 8 /* a line each up to here */, KERNEL_LINES = 5 };

struct page {
	struct text text;
	const struct tables *tables;
	const struct view *views;
	struct view ranks, gpus, trust;
	uint64_t steps;   /* complete ones of all ranks; at least 1 */
	bool has_steps;   /* marked ones */
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

void page_head(struct page *p);
void page_distrust(struct page *p);
void page_gpu_one(struct page *p);
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

/* Recordings, worst first. */
enum status page_check(struct page *p, struct error *err);

/* Any table as it is. */
void page_table(struct page *p, const struct view *v);

#endif
