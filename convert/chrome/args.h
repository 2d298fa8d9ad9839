/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome/args.h - what Kineto writes between the braces of "args", and the members around it.
 *
 * The text of a shape is made once: constant pieces with holes for what varies.  records.def says
 * how Kineto spells our fields; keys that it does not know stand under their own name.
 */
#ifndef CONVERT_CHROME_ARGS_H
#define CONVERT_CHROME_ARGS_H

#include "convert/chrome/text.h"
#include "schemas/buf.h"
#include "schemas/event.h"
#include "schemas/trace.h"

struct chrome_args;
struct plan;

/* Members of the event itself that its source kept because they differ from what the sink would
 * write (attributes ".cat", ".tid" ...): JSON values, borrowed; NULL: the sink's own. */
struct chrome_members {
	const char *cat, *ph, *pid, *tid;
	const char *rest; /* others, as `, "s": "g"`; never NULL */
};

/*
 * `is_native`: recorded by us, so that what Kineto computes is added (memory bandwidth, blocks per
 * SM, External id 0).  `all_args`: fields that Kineto does not write stand under their own names.
 */
enum status chrome_args_new(struct chrome_args **out, const struct trace *trace, bool is_native,
			    bool all_args, struct error *err);
void chrome_args_free(struct chrome_args *a); /* accepts NULL */

/*
 * How to write the event: *members are set.  All is valid until the next call.  NULL: no memory, or
 * texts of one shape that are over any reason.
 */
const struct plan *chrome_args_plan(struct chrome_args *a, const struct event *e,
				    struct chrome_members *members);
/* Appends `, "args": {...}` to `b`, or nothing where there is none; `holes` are of `b`. */
void chrome_args_put(const struct chrome_args *a, const struct plan *p, struct buf *b,
		     const struct event *e, struct chrome_holes *holes);

/* "Stream Sync" of CUPTI's number of a wait; NULL when it has none. */
const char *chrome_sync_name(unsigned type);

#endif
