/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.h - fits the clocks of hosts that are merged on one timeline (analyze/DEFINITIONS.md 7).
 *
 * Each host has one offset.  Sources return times of the host's CLOCK_REALTIME, so anchors do not
 * shift them, but the variation of REALTIME - MONOTONIC among the anchors shows how exact these
 * times are.  All-reduces and barriers end on all ranks at once.  If several hosts took part in
 * them, the median difference of their ends refines the offset, and with enough of them also the
 * drift.  A refinement beyond the anchors' error is reported, and applied only if the user asks for
 * it, because a slow network may be the cause.
 *
 * This needs an earlier pass over one input of each host.  With one host nothing is read.
 */
#pragma once

#include "convert/spool/merge.h"

enum align_mode {
	ALIGN_ANCHORS,     /* refine within the anchors' error */
	ALIGN_COLLECTIVES, /* refine in any case */
	ALIGN_NONE,        /* clocks as they are, nothing is read */
};
/* Reads the word of a mode.  Returns false if there is no such word. */
bool align_mode_find(const char *word, enum align_mode *out);

struct align_request {
	struct trace *trace;
	struct run_input *inputs;
	size_t count;
	enum align_mode mode;
	const struct name_rules *rules; /* to find communication kernels; NULL: default rules */
	const struct budget *budget;
	/* Receives a line for the user, without a line end; may be NULL. */
	void (*report)(void *self, const char *line);
	void *self;
};
/* Sets the clock fits of the inputs, and shifts the windows of their processes in the trace. */
enum status align_fit(const struct align_request *how, struct error *err);
