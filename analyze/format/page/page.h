/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - builds a page from the tables of a run, as sections of blocks.
 *
 * To add a section: write a builder (internal.h) and add it to the lists in page.c. A report
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
	const struct report_type *report; /* the report that is being built */
	enum medium medium;
	unsigned width; /* columns of a terminal */
	const struct view *views;
	struct view ranks, gpus, trust, inputs;
	uint64_t steps;        /* complete steps of all ranks; at least 1 */
	uint64_t window_steps; /* divisor of sums over windows; at least 1 */
	bool has_steps;        /* there are marked steps */
	bool is_sampled;       /* some rank's file contains only a sample of its events */
};

/* Draws the blocks of a page. */
typedef void page_renderer(const struct page *p, const struct blocks *b, struct buf *out);

/* Builds all reports of the request, one after the other, and draws them. HTML has one page,
 * whatever was requested. */
enum status page_write(const struct format_request *how, enum medium medium, page_renderer *draw,
		       struct buf *out, struct error *err);

enum {
	LINE_WIDTH = 100, /* for which pages are designed */
	LINE_MOST = 200,  /* longer lines are hard to read */
};

/* Returns the columns that a terminal of the process's locale uses for a character; 1 for control
 * and invisible characters, which become a question mark. */
unsigned utf8_columns(uint32_t c);
unsigned text_width(const char *words);
/* Returns the replacement of a character in a locale without UTF-8; "?" for most. */
const char *plain_glyph(uint32_t c);

/* Distributes `total` columns among the parts, by largest remainder. A part greater than 0 may
 * still get none. */
void share_out(const double *parts, size_t count, unsigned total, unsigned *columns);
