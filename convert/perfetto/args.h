/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto/args.h - the arguments of a slice, as bytes made once for each shape, with holes.
 *
 * Lean: what the name does not say and people ask for: bytes and bandwidth of copies, results of
 * calls that failed, what is wrong with the times.  Full: everything known.  Texts are numbers
 * (perfetto/file.h), so a plan is short whatever the texts are.
 */
#ifndef CONVERT_PERFETTO_ARGS_H
#define CONVERT_PERFETTO_ARGS_H

#include "convert/perfetto/file.h"
#include "schemas/arena.h"
#include "schemas/event.h"

struct perfetto_hole {
	uint8_t slot, type; /* type: enum attr_type of a vary word */
	uint16_t vary;
	uint8_t head[11], len; /* the key */
};
struct perfetto_plan { /* of one shape when it is used by events of one kind and subkind */
	struct perfetto_plan *next; /* of the same shape */
	uint8_t kind, subkind;
	bool has_text;     /* a word that varies is a text */
	uint64_t category;
	uint64_t name;     /* of an event without one; 0: it is to be made */
	const uint8_t *fixed;
	uint32_t fixed_len;
	uint32_t hole_count, rare_count; /* holes of every event, behind them those of few */
	uint32_t most, rare_most; /* bytes of all arguments, at most; more with those of few */
	struct perfetto_hole *holes;
};

struct perfetto_args {
	struct perfetto_file *file;
	bool all;
	struct arena arena; /* of plans; when it is full all are made again as needed */
	struct perfetto_plan **by_shape;
	size_t shapes;
	unsigned forgotten; /* how often */
	struct buf text;
};

enum status perfetto_args_init(struct perfetto_args *a, struct perfetto_file *file, bool all,
			       struct error *err);
void perfetto_args_release(struct perfetto_args *a); /* accepts a zeroed one */

enum status perfetto_plan_make(struct perfetto_args *a, const struct event *e,
			       const struct perfetto_plan **out, struct error *err);
/* How to write an event's arguments; the texts that they point to are in the file. */
static inline enum status perfetto_plan(struct perfetto_args *a, const struct event *e,
					const struct perfetto_plan **out, struct error *err)
{
	const struct perfetto_plan *p = a->by_shape[e->shape < a->shapes ? e->shape : 0];

	while (p && (p->kind != e->kind || p->subkind != e->subkind))
		p = p->next;
	*out = p;
	return p && !p->has_text ? ST_OK : perfetto_plan_make(a, e, out, err);
}

/* A call that failed, or times that are not the event's own. */
static inline bool perfetto_is_rare(const struct event *e)
{
	return (e->flags & (EVENT_BEGAN_EARLIER | EVENT_NEVER_ENDED)) ||
	       (e->flags & EVENT_RESULT && e->result);
}

enum { PERFETTO_ARGS_SLACK = 16 }; /* room that is used behind the arguments */
/* Appends the arguments, at most plan->most or ->rare_most bytes; returns their end. */
uint8_t *perfetto_put_args(uint8_t *p, const struct perfetto_plan *plan, const struct event *e,
			   const struct track *k);

#endif
