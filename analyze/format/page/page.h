/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - what a page is made of: the tables of a run, as sections of blocks.
 *
 * To add a section: write a builder (internal.h) and name it in the orders of page.c.  A report
 * without a section needs nothing: its tables are shown as they are.
 */
#pragma once

#include "analyze/format/format.h"
#include "analyze/format/page/block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page {
	const struct format_request *how;
	const struct report_type *report; /* that is being built */
	enum medium medium;
	unsigned width; /* columns of a terminal */
	const struct view *views;
	struct view ranks, gpus, trust, inputs;
	uint64_t steps;        /* complete ones of all ranks; at least 1 */
	uint64_t window_steps; /* what sums over windows are divided by; at least 1 */
	bool has_steps;        /* marked ones */
	bool is_sampled;       /* the file of any rank holds only some of its events */
};

/* Draws the blocks of a page; `how` is that of the page. */
typedef void page_renderer(const struct page *p, const struct blocks *b, struct buf *out);

/*
 * Builds all reports of the request, one after the other, and draws them.  HTML has one page
 * whatever was asked for.
 */
enum status page_write(const struct format_request *how, enum medium medium, page_renderer *draw,
		       struct buf *out, struct error *err);

/* How many columns of a terminal texts and shares take. */

enum {
	LINE_WIDTH = 100, /* that pages are designed for */
	LINE_MOST = 200,  /* what a terminal has beyond is not used: such lines are hard to read */
};

/*
 * Columns that a terminal of the process's locale takes for a character: 1 for what it does not
 * show or obeys, as a question mark stands there.
 */
unsigned utf8_columns(uint32_t c);
unsigned text_width(const char *words);
/* What stands for a character where the locale has no UTF-8; "?" for most. */
const char *plain_glyph(uint32_t c);

/*
 * Shares `total` columns out to the parts, by largest remainder; a part that is not nothing may
 * still get none.
 */
void share_out(const double *parts, size_t count, unsigned total, unsigned *columns);
