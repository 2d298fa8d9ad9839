/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - sections of a page, and what their builders share. */
#pragma once

#include "analyze/format/page/page.h"
#include "schemas/base/sort.h"

#include <stdlib.h>

enum { RANK_LINES = 8 /* as many ranks or GPUs have a line each */ };
#define DOT " \xc2\xb7 "

struct view page_view(const struct page *p, const char *table);
/* Whether a report that was asked for has the table; its lack of rows says nothing otherwise. */
bool page_has_table(const struct page *p, const char *table);
/* The rows of one rank, given by its row in `ranks`. */
struct view page_of_rank(const struct page *p, const char *table, size_t rank);
uint64_t page_sum(const struct view *v, const char *column);
/* "rank 3"; "pid 17" where the file has no rank. */
const char *rank_text(const struct page *p, size_t rank, struct blocks *b);
/* "step", or "window" where no step is marked: what means are taken over. */
static inline const char *step_word(const struct page *p)
{
	return p->has_steps ? "step" : "window";
}
static inline bool is_text(const struct page *p)
{
	return p->medium == MEDIUM_TEXT;
}
/* Most columns of a name that has so many in a page of LINE_WIDTH; a narrower one cuts it. */
static inline unsigned name_width(const struct page *p, unsigned designed)
{
	return p->width > LINE_WIDTH ? designed + p->width - LINE_WIDTH : designed;
}
/*
 * The name of row `i` in so many columns; the second that reads alike ends in #2.  `first` is the
 * name in the first of the rows, which are `size` bytes apart.
 */
const char *show_nth_name(struct blocks *b, const char *const *first, size_t size, size_t i,
			  unsigned width);
/* ns or a count of the windows, per step of all ranks. */
static inline double per_step(const struct page *p, uint64_t value)
{
	return (double)value / (double)p->window_steps;
}
/* A number without commas, "" where the table does not know it. */
const char *show_id(struct blocks *b, const struct view *v, size_t row, const char *column);
/* A cell that is never nothing: 0 where the table does not know it. */
static inline uint64_t cell_or_0(const struct view *v, size_t row, const char *column)
{
	uint64_t value = view_cell(v, row, column).u64;

	return value == NO_U64 ? 0 : value;
}

/* A builder adds its section, or nothing where there is nothing to say or no memory. */
typedef void section_builder(const struct page *p, struct blocks *b);
section_builder build_hang, build_input, build_warnings, build_verdict, build_trust;
section_builder build_gpus, build_steps, build_phases, build_kernels, build_copies, build_fixes;
section_builder build_memory, build_snapshot, build_comm, build_comm_brief, build_waits,
	build_waits_brief, build_frontier, build_replay;
section_builder build_stragglers, build_steps_of_ranks, build_phases_of_ranks;
section_builder build_kernels_of_ranks;
/* Whole pages of one report in a terminal. */
section_builder build_check, build_findings, build_idle, build_phases_view, build_flame,
	build_roofline, build_modules, build_stacks;
/* A table as it is. */
void build_table(const struct page *p, const struct view *v, struct blocks *b);

/* The place of a phase in a step; PHASE_OF_USER: only an annotation of the user names it. */
enum { PHASE_OF_USER = 7 };
unsigned page_phase_order(const char *name);

/* Wall times of the counted steps of one rank, in nanoseconds. */
struct step_times {
	double *in_order, *sorted;               /* of those that have a row */
	size_t *rows;                            /* of in_order, in the view of steps */
	size_t count;                            /* of in_order */
	size_t counted, all, settling, summed;   /* of all; summed: that have no row */
	double min, median, p90, p99, max, mean; /* of all that are counted */
};
/* `steps` are those of this rank.  The lists belong to the blocks. */
void step_times_take(const struct page *p, size_t rank, const struct view *steps,
		     struct step_times *t, struct blocks *b);
