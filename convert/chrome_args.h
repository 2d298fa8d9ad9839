/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome_args.h - what Kineto writes between the braces of "args", and the members around it.
 *
 * The text of a shape is made once: constant pieces with holes for what varies.  records.def says
 * how Kineto spells our fields; keys that it does not know stand under their own name.
 */
#ifndef CONVERT_CHROME_ARGS_H
#define CONVERT_CHROME_ARGS_H

#include "schemas/buf.h"
#include "schemas/event.h"
#include "schemas/trace.h"

struct chrome_args;

/* Members of the event itself that its source kept because they differ from what the sink would
 * write (attributes ".cat", ".tid" ...): JSON values, borrowed; NULL: the sink's own. */
struct chrome_members {
	const char *cat, *ph, *pid, *tid;
	const char *rest; /* others, as `, "s": "g"`; never NULL */
};

enum status chrome_args_new(struct chrome_args **out, const struct trace *trace,
			    struct error *err);
void chrome_args_free(struct chrome_args *a); /* accepts NULL */

/*
 * Appends `"args": {...}` to `b`, or nothing where there is none.  `is_native`: recorded by us, so
 * that what Kineto computes is added (memory bandwidth, External id 0).  Sets *members, valid until
 * chrome_args_free().  False: no memory.
 */
bool chrome_args_put(struct chrome_args *a, struct buf *b, const struct event *e, bool is_native,
		     struct chrome_members *members);

/* A value as JSON. */
void chrome_put_attr(struct buf *b, const struct trace *trace, const struct attr *attr);

#endif
