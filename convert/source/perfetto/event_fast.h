/* SPDX-License-Identifier: Apache-2.0 */
/* event_fast.h - the fast path for begins and ends like an earlier one, and what event.c shares
 * with it. */
#pragma once

#include "convert/source/kineto/import_fast.h"
#include "convert/source/perfetto/internal.h"

/* What became of an annotation, beside enum kineto_use. */
enum pftrace_use {
	PFTRACE_WHOLE = 16, /* of a template: it has to be the same */
	PFTRACE_ODD,        /* unknown, or lost: the event is no template */
	PFTRACE_UNUSED,
	PFTRACE_NUMBER, /* these three: of our writer, members of the event */
	PFTRACE_BYTES,
	PFTRACE_RESULT,
	PFTRACE_MEMBER = 32, /* and its place among the members that kineto_args_take() gets */
};

/* *is_taken: it was a begin or an end like one before. */
enum status pftrace_take_like(struct pftrace_reader *r, struct bytes packet, bool *is_taken,
			      struct error *err);
/* Keeps a begin at r->annotations that became *e, but for its arrows and times. */
void pftrace_learn(struct pftrace_reader *r, const struct pftrace_sequence *q, uint64_t track,
		   uint64_t name, uint64_t category, const struct event *e);
/* The parts of pftrace_take_event() that it goes on with: arrows at r->refs, begin, end. */
enum status pftrace_flows(struct pftrace_reader *r, struct event *e, uint64_t gpu_correlation,
			  int64_t at_ns, struct error *err);
enum status pftrace_begin(struct pftrace_reader *r, struct pftrace_track *t, struct event *e,
			  uint32_t pair, const struct pftrace_template *like, int64_t at_ns,
			  struct error *err);
enum status pftrace_end(struct pftrace_reader *r, struct pftrace_sequence *q,
			struct pftrace_track *t, int64_t at_ns, struct error *err);
bool pftrace_templates_new(struct pftrace_reader *r); /* false: no memory */
bool pftrace_template_launches(const struct pftrace_template *t);
