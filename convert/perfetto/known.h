/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto/known.h - what was found out of a name in events of one shape, to be used again: the
 * numbers of its name and category as bytes, how its arguments are written, and what it stands for.
 *
 * A table of one place for each hash: what comes later takes the place.
 */
#ifndef CONVERT_PERFETTO_KNOWN_H
#define CONVERT_PERFETTO_KNOWN_H

#include "convert/perfetto/args.h"
#include "schemas/hash.h"

enum perfetto_flag { NAME_KNOWN = 1, NAME_COMMUNICATES = 2, NAME_LAUNCHES = 4 };

struct perfetto_known {
	uint64_t which; /* name and shape */
	const struct perfetto_plan *plan;
	uint16_t what;  /* kind and subkind */
	bool is_taken;
	uint8_t flags;  /* enum perfetto_flag */
	uint8_t len;    /* of the bytes; 0: the name is made of the event's number */
	uint8_t bytes[16];
};
enum { PERFETTO_KNOWN = 4096 };
struct perfetto_names {
	struct perfetto_args *args; /* borrowed */
	unsigned forgotten;         /* of the plans */
	struct perfetto_known *known;
	struct perfetto_known odd;  /* of an event whose texts vary: not kept */
};

enum status perfetto_names_init(struct perfetto_names *n, struct perfetto_args *args,
				struct error *err);
void perfetto_names_release(struct perfetto_names *n); /* accepts a zeroed one */

static inline struct perfetto_known *perfetto_known_place(struct perfetto_names *n, uint64_t which,
							  uint16_t what)
{
	return &n->known[hash_fold(which ^ HASH_A, what ^ HASH_B) % PERFETTO_KNOWN];
}

enum status perfetto_known_make(struct perfetto_names *n, const struct event *e, unsigned flags,
				const struct perfetto_known **out, struct error *err);
/* NULL: it has to be made.  Valid until the next is made. */
static inline const struct perfetto_known *perfetto_known_find(struct perfetto_names *n,
							       const struct event *e)
{
	uint64_t which = (uint64_t)e->shape << 32 | e->name;
	uint16_t what = (uint16_t)(e->subkind << 8 | e->kind);
	const struct perfetto_known *k = perfetto_known_place(n, which, what);

	return k->which == which && k->what == what && k->is_taken ? k : NULL;
}

#endif
