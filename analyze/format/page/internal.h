/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the sections of a page, and functions that their builders share. */
#pragma once

#include "analyze/format/page/page.h"
#include "schemas/base/sort.h"

#include <stdlib.h>

enum { RANK_LINES = 8 /* up to this many ranks or GPUs get a line each */ };
#define DOT " \xc2\xb7 "

struct view page_view(const struct page *p, const char *table);
/* Returns whether a requested report has the table. If not, missing rows mean nothing. */
bool page_has_table(const struct page *p, const char *table);
/* Returns the rows of one rank, which is the index of its row in `ranks`. */
struct view page_of_rank(const struct page *p, const char *table, size_t rank);
uint64_t page_sum(const struct view *v, const char *column);
/* Returns "rank 3", or "pid 17" if the file has no rank. */
const char *rank_text(const struct page *p, size_t rank, struct blocks *b);
/* Returns "step", or "window" if no step is marked: the unit over which means are taken. */
static inline const char *step_word(const struct page *p)
{
	return p->has_steps ? "step" : "window";
}
static inline bool is_text(const struct page *p)
{
	return p->medium == MEDIUM_TEXT;
}
/* Returns the most columns of a name that is designed for a page of LINE_WIDTH; a wider page gives
 * it the rest. */
static inline unsigned name_width(const struct page *p, unsigned designed)
{
	return p->width > LINE_WIDTH ? designed + p->width - LINE_WIDTH : designed;
}
/* Returns the name of row `i` in at most `width` columns; the second name that looks the same ends
 * in #2. `first` is the name in the first row; rows are `size` bytes apart. */
const char *show_nth_name(struct blocks *b, const char *const *first, size_t size, size_t i,
			  unsigned width);
/* Converts ns or a count of the windows to a mean per step of all ranks. */
static inline double per_step(const struct page *p, uint64_t value)
{
	return (double)value / (double)p->window_steps;
}
/* Returns a number without commas, "" if it is unknown. */
const char *show_id(struct blocks *b, const struct view *v, size_t row, const char *column);
/* Returns a cell, or 0 if it is unknown. For figures that are never 0. */
static inline uint64_t cell_or_0(const struct view *v, size_t row, const char *column)
{
	uint64_t value = view_cell(v, row, column).u64;

	return value == NO_U64 ? 0 : value;
}

/* Adds a section, or nothing if there is nothing to show or no memory. */
typedef void section_builder(const struct page *p, struct blocks *b);
section_builder build_hang, build_input, build_warnings, build_verdict, build_trust;
section_builder build_gpus, build_steps, build_phases, build_kernels, build_copies, build_fixes;
section_builder build_memory, build_snapshot, build_comm, build_comm_brief, build_waits,
	build_waits_brief, build_frontier, build_replay;
section_builder build_stragglers, build_steps_of_ranks, build_phases_of_ranks;
section_builder build_kernels_of_ranks;
/* These build the whole page of one report in a terminal. */
section_builder build_check, build_findings, build_idle, build_phases_view, build_flame,
	build_roofline, build_modules, build_stacks;
/* Adds a table as it is. */
void build_table(const struct page *p, const struct view *v, struct blocks *b);

/* Returns the place of a phase in a step; PHASE_OF_USER: only an annotation of the user has that
 * name. */
enum { PHASE_OF_USER = 7 };
unsigned page_phase_order(const char *name);

/* Wall times of the counted steps of one rank, in nanoseconds. */
struct step_times {
	double *in_order, *sorted; /* of the steps with a row */
	/* index of each item of in_order in the view of steps */
	size_t *rows;
	size_t count;                            /* number of items in in_order */
	size_t counted, all, settling, summed;   /* of all steps; summed: without a row */
	double min, median, p90, p99, max, mean; /* over all counted steps */
};
/* Fills `t`. `steps` are the rows of this rank. The lists belong to the blocks. */
void step_times_take(const struct page *p, size_t rank, const struct view *steps,
		     struct step_times *t, struct blocks *b);
