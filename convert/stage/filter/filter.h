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
	/* Texts from the option table; borrowed. */
	const char *steps, *from, *to, *ranks, *devices, *kinds, *names;
	/* Made from the texts by filter_parse(). */
	bool has_steps, has_ranks, has_devices;
	uint64_t first_step, end_step; /* half-open */
	uint64_t from_ns, to_ns;       /* 0, UINT64_MAX: no bound */
	bool times_relative;           /* to the first event, not to the epoch */
	bool has_origin; /* of filter_find_origin(); else it is that of the stage's input */
	uint64_t origin_ns;
	uint32_t kinds_mask; /* bit of enum kind; 0: all */
	struct filter_list { /* "0,2-5" */
		uint32_t first[64], last[64];
		size_t count;
	} rank_list, device_list;
};
extern const struct option filter_options[]; /* rows for a set over struct filter */

/* "10-20" is ten steps; a single number is one. */
enum status filter_parse(struct filter *filter, struct error *err);
bool filter_is_empty(const struct filter *filter); /* nothing was asked for */
bool filter_lists(const struct filter_list *list, uint32_t number);
/* Returns the bounds as instants for an input whose first event begins at `first_ns`. */
void filter_times(const struct filter *filter, uint64_t first_ns, uint64_t *from_ns,
		  uint64_t *to_ns);
bool filter_wants_rank(const struct filter *filter, uint32_t rank);

/*
 * Relative times of several inputs count from the first event of all, so this opens each input
 * once, if they have one clock.  Faults are left to the later reading; standard input is ST_USAGE.
 */
enum status filter_find_origin(struct filter *filter, char *const *paths, size_t count,
			       const struct budget *budget, struct error *err);

/* Takes over `below`, even on failure.  `filter` is borrowed until close. */
enum status filter_open(struct source **out, struct source *below, struct trace *trace,
			const struct filter *filter, struct error *err);
