/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.h - hosts that are merged on one timeline get one clock (analyze/DEFINITIONS.md 7).
 *
 * The offset is a host's, never a rank's.  Sources give times of the host's own CLOCK_REALTIME, so
 * anchors leave nothing to shift: they say how exact that is, by what REALTIME did against
 * MONOTONIC.  All-reduces and barriers end on all ranks at once; where ranks of several hosts were
 * in one, the median of how far apart they saw its end refines the offset, and its drift when there
 * are enough of them.  A refinement that is larger than the anchors' error is reported and not
 * applied, unless the user asks for it: it may be the network that is slow, and not a clock that is
 * wrong.
 *
 * Needs a pass over one input of each host, beforehand; nothing is read where there is one host.
 */
#pragma once

#include "convert/spool/merge.h"

enum align_mode {
	ALIGN_ANCHORS,     /* refine within the anchors' error */
	ALIGN_COLLECTIVES, /* refine in any case */
	ALIGN_NONE,        /* clocks as they are, nothing is read */
};
/* false: no such word. */
bool align_mode_find(const char *word, enum align_mode *out);

struct align_request {
	struct trace *trace;
	struct run_input *inputs;
	size_t count;
	enum align_mode mode;
	const struct name_rules *rules; /* which kernels communicate; NULL: the default */
	const struct budget *budget;
	/* A line for the reader, without its end; NULL: nobody wants to know. */
	void (*report)(void *self, const char *line);
	void *self;
};
/* Sets the fits of the inputs, and moves rows of windows in the trace with their processes. */
enum status align_fit(const struct align_request *how, struct error *err);
