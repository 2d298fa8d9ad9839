/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - keeps the steps, times, ranks, devices, kinds and names that the user asked for.
 * analyze/DEFINITIONS.md 1 says how filtering changes figures.
 *
 * The stage follows `context`, because launches outside the output still decide in which step and
 * phase GPU work was launched.  Durations are clipped at `from` and `to`: an event that began
 * before gets EVENT_BEGAN_EARLIER and no longer counts as a call.  All ranges are half-open.
 * Events outside are counted as LOSS_CUT_OUT.
 */
#pragma once

#include "convert/source/source.h"
#include "schemas/base/option.h"

struct filter { /* zeroed: everything */
	/* Values of the options; borrowed. */
	const char *steps, *from, *to, *ranks, *devices, *kinds, *names;
	/* Made from the texts by filter_parse(). */
	bool has_steps, has_ranks, has_devices;
	uint64_t first_step, end_step; /* half-open */
	uint64_t from_ns, to_ns;       /* 0, UINT64_MAX: no bound */
	bool times_relative;           /* bounds count from the first event, not from the epoch */
	bool has_origin; /* `origin_ns` is set; otherwise the input's first event counts */
	uint64_t origin_ns;
	uint32_t kinds_mask; /* a bit for each enum kind; 0: all */
	struct filter_list { /* "0,2-5" */
		uint32_t first[64], last[64];
		size_t count;
	} rank_list, device_list;
};
extern const struct option filter_options[]; /* rows for a set over struct filter */

/* Parses the texts.  Steps "10-20" are ten steps; a single number is one step. */
enum status filter_parse(struct filter *filter, struct error *err);
bool filter_is_empty(const struct filter *filter); /* true: nothing is filtered out */
bool filter_lists(const struct filter_list *list, uint32_t number);
/* Returns the bounds as instants for an input whose first event begins at `first_ns`. */
void filter_times(const struct filter *filter, uint64_t first_ns, uint64_t *from_ns,
		  uint64_t *to_ns);
bool filter_wants_rank(const struct filter *filter, uint32_t rank);

/*
 * Sets the origin of relative times, which for several inputs is the first event of all.  For this
 * it opens each input once, if all have one clock.  Errors in an input are left to the later
 * reading.  Standard input, which can be read only once, is ST_USAGE.
 */
enum status filter_find_origin(struct filter *filter, char *const *paths, size_t count,
			       const struct budget *budget, struct error *err);

/* Opens the stage, which owns `below`, even on failure.  `filter` is borrowed until close.  An
 * empty filter gives *out = below. */
enum status filter_open(struct source **out, struct source *below, struct trace *trace,
			const struct filter *filter, struct error *err);
