/* SPDX-License-Identifier: Apache-2.0 */
/* event_fast.h - fast paths for begins and ends that equal an earlier one, and the functions that
 * event.c shares with them. */
#pragma once

#include "convert/source/kineto/import_fast.h"
#include "convert/source/perfetto/internal.h"

/* Where an annotation went, in addition to enum kineto_use. */
enum pftrace_use {
	PFTRACE_WHOLE = 16, /* part of a template: it must be the same */
	PFTRACE_ODD,        /* unknown or lost: the event gets no template */
	PFTRACE_UNUSED,
	PFTRACE_NUMBER, /* these three are members of events in our own files */
	PFTRACE_BYTES,
	PFTRACE_RESULT,
	PFTRACE_MEMBER = 32, /* plus its index among the members for kineto_args_take() */
};

/* same_fast.c: returns true if a packet contains nothing that events of other packets need; false
 * if it may. */
bool pftrace_is_event_alone(struct pftrace_reader *r, const struct bytes *packet);
/* Skips packets that certainly contain nothing else, and passes the others to r->take. */
enum status pftrace_pass_alone(struct pftrace_reader *r, struct bytes *packets, struct error *err);
/* Converts packets that equal an earlier one except for their time; passes others to r->take. */
enum status pftrace_take_sames(struct pftrace_reader *r, struct bytes *packets, struct error *err);
/* Remembers the packet of an end (`e` is NULL) or of a begin *e on a thread, whose descriptor is
 * interned. */
enum status pftrace_same_learn(struct pftrace_reader *r, const struct bytes *packet, uint64_t time,
			       const struct pftrace_sequence *q, const struct pftrace_track *t,
			       const struct event *e, bool launches, struct error *err);
bool pftrace_sames_new(struct pftrace_reader *r); /* false: no memory */
void pftrace_sames_free(struct pftrace_reader *r);
/* source.c: converts a packet of the second pass. */
enum status pftrace_take_any(struct pftrace_reader *r, const struct bytes *packet,
			     struct error *err);
/* Like pftrace_take_any(), but fast for a begin or end that equals an earlier one. */
enum status pftrace_take_fast(struct pftrace_reader *r, const struct bytes *packet,
			      struct error *err);
/* Adds a template for a begin or instant with r->annotations that became *e; its arrows and times
 * may differ. */
void pftrace_learn(struct pftrace_reader *r, const struct pftrace_sequence *q,
		   const struct pftrace_track *track, uint64_t name, uint64_t category,
		   bool is_instant, const struct event *e);
/* The steps of pftrace_take_event() after parsing: arrows in r->refs, begin, end. */
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
/* Appends category and name of a begin that are not interned to its annotations. */
static inline void pftrace_texts(struct bytes category, struct bytes name, struct bytes *all,
				 unsigned *count)
{
	if (category.at < category.end)
		all[(*count)++] = category;
	if (name.at < name.end)
		all[(*count)++] = name;
}
/* clocks.c: pftrace_time() for a time of `clock`; 0: the sequence's clock. */
bool pftrace_time_at(struct pftrace_reader *r, struct pftrace_sequence *q, uint32_t machine,
		     uint32_t clock, uint64_t time, int64_t *out);
/* Returns the time of an event of an old writer, in microseconds of the monotonic clock or as a
 * delta to the previous event; the descriptor of a thread contains the first event's time. */
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
static inline bool pftrace_in_range(int64_t ns)
{
	return (uint64_t)(ns + IMPORT_TIME_MOST) <= 2 * (uint64_t)IMPORT_TIME_MOST;
}
/* Returns a sequence that was found recently, or NULL if the map must be searched. */
static inline struct pftrace_sequence *pftrace_near_sequence(const struct pftrace_reader *r,
							     uint64_t id)
{
	uint32_t near = r->near_sequences[id % PFTRACE_NEAR];

	return near < r->sequence_count && r->sequences[near].id == id ? &r->sequences[near] : NULL;
}
