/* SPDX-License-Identifier: Apache-2.0 */
/* event_fast.h - the fast paths for begins and ends like an earlier one, and what event.c shares
 * with them. */
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

/* same_fast.c: a packet that says nothing that events of other packets need.  False: perhaps it
 * does. */
bool pftrace_is_event_alone(struct pftrace_reader *r, const struct bytes *packet);
/* Passes over packets of which that is known at once; r->take takes the others ... */
enum status pftrace_pass_alone(struct pftrace_reader *r, struct bytes *packets, struct error *err);
/* ... and takes those that equal an earlier one but for their time. */
enum status pftrace_take_sames(struct pftrace_reader *r, struct bytes *packets, struct error *err);
/* That of an end, or of the begin *e, whose descriptor exists and whose track is that of a thread.
 */
enum status pftrace_same_learn(struct pftrace_reader *r, const struct bytes *packet, uint64_t time,
			       const struct pftrace_sequence *q, const struct pftrace_track *t,
			       const struct event *e, bool launches, struct error *err);
bool pftrace_sames_new(struct pftrace_reader *r); /* false: no memory */
void pftrace_sames_free(struct pftrace_reader *r);
/* source.c: takes a packet of the second pass. */
enum status pftrace_take_any(struct pftrace_reader *r, const struct bytes *packet,
			     struct error *err);
/* The same, at once if it is a begin or an end like one before. */
enum status pftrace_take_fast(struct pftrace_reader *r, const struct bytes *packet,
			      struct error *err);
/* Keeps a begin or instant at r->annotations that became *e, but for its arrows and times. */
void pftrace_learn(struct pftrace_reader *r, const struct pftrace_sequence *q,
		   const struct pftrace_track *track, uint64_t name, uint64_t category,
		   bool is_instant, const struct event *e);
/* The parts of pftrace_take_event() that it goes on with: arrows at r->refs, begin, end. */
enum status pftrace_flows(struct pftrace_reader *r, struct event *e, uint64_t gpu_correlation,
			  int64_t at_ns, struct error *err);
enum status pftrace_begin(struct pftrace_reader *r, struct pftrace_track *t, struct event *e,
			  uint32_t pair, const struct pftrace_template *like, int64_t at_ns,
			  struct error *err);
enum status pftrace_end(struct pftrace_reader *r, struct pftrace_sequence *q,
			struct pftrace_track *t, int64_t at_ns, struct error *err);
bool pftrace_templates_new(struct pftrace_reader *r); /* false: no memory */
void pftrace_templates_free(struct pftrace_reader *r);
bool pftrace_template_launches(const struct pftrace_template *t);
/* Category and name of a begin that are no interned ones count as annotations behind the others. */
static inline void pftrace_texts(struct bytes category, struct bytes name, struct bytes *all,
				 unsigned *count)
{
	if (category.at < category.end)
		all[(*count)++] = category;
	if (name.at < name.end)
		all[(*count)++] = name;
}
/* clocks.c: pftrace_time(); clock 0: that of the sequence. */
bool pftrace_time_at(struct pftrace_reader *r, struct pftrace_sequence *q, uint32_t machine,
		     uint32_t clock, uint64_t time, int64_t *out);
/* The time of an old event, in microseconds of the monotonic clock, or since the one before; the
 * descriptor of a thread says when the first one was. */
bool pftrace_old_time(struct pftrace_reader *r, struct pftrace_sequence *q, uint32_t machine,
		      uint64_t time_us, bool is_delta, int64_t *out);
void pftrace_old_begin(struct pftrace_sequence *q, struct bytes thread);
static inline bool pftrace_time_of(struct pftrace_reader *r, struct pftrace_sequence *q,
				   uint64_t time, int64_t *out)
{
	const struct pftrace_reading *x = &r->last_reading;

	*out = (int64_t)time + x->shift_ns;
	return (time - (uint64_t)x->ns < x->span_ns &&
		x->clock == (q->clock ? q->clock : PFTRACE_BOOTTIME)) ||
	       pftrace_time_at(r, q, 0, 0, time, out);
}
/* A sequence that was found before, or NULL: find it in the map. */
static inline struct pftrace_sequence *pftrace_near_sequence(const struct pftrace_reader *r,
							     uint64_t id)
{
	uint32_t near = r->near_sequences[id % PFTRACE_NEAR];

	return near < r->sequence_count && r->sequences[near].id == id ? &r->sequences[near] : NULL;
}
