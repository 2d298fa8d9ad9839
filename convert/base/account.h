/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - the account of a run: events in, events out, and why the two differ.
 */
#ifndef CONVERT_BASE_ACCOUNT_H
#define CONVERT_BASE_ACCOUNT_H

#include "schemas/base/buf.h"
#include "schemas/model/trace.h"

struct account { /* zeroed: nothing yet */
	uint64_t events_in, events_out;
	uint64_t unknown_kind; /* in the output, as far as it can hold them */
	uint64_t left_out;     /* that the output has no place for and was not meant for */
	uint64_t lost[LOSS_END];
	uint64_t lost_all; /* without what only was left out or moved (trace_lost_total) */
};

/* What the reading of a trace found and lost; once, at its end. */
void account_add(struct account *a, struct trace *t);
/* "35 events in, 35 out (21 arrows ...)"; `output` is what has no place for the left out. */
void account_put(const struct account *a, const char *output, struct buf *out);

#endif
