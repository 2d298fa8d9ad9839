/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - what Kineto writes between the braces of "args", and the members around it.
 *
 * The text for one argument schema is made once, as a template.
 */
#ifndef CONVERT_SINK_CHROME_ARGS_H
#define CONVERT_SINK_CHROME_ARGS_H

#include "convert/sink/chrome/text_fast.h"
#include "convert/sink/template.h"

/* Members of the event itself that its source kept because they differ from what the sink would
 * write (attributes ".cat", ".tid" ...): JSON values, borrowed; NULL: the sink's own. */
struct chrome_members {
	const char *cat, *ph, *pid, *tid;
	const char *rest; /* others, as `, "s": "g"`; never NULL */
};
struct chrome_template {
	struct template base;
	struct chrome_members members;
};

struct chrome_args {
	struct templates templates;
	bool is_native, all_args;
	uint32_t *track_sms; /* index: track; multiprocessors of its device, 0: unknown */
	size_t tracks;
};

/*
 * `is_native`: recorded by us, so that what Kineto computes is added (memory bandwidth, blocks per
 * SM, External id 0).  `all_args`: fields that Kineto does not write stand under their own names.
 */
enum status chrome_args_init(struct chrome_args *a, const struct trace *trace, bool is_native,
			     bool all_args, struct error *err);
void chrome_args_release(struct chrome_args *a); /* accepts a zeroed one */

/* How to write the event; valid until the next call. */
enum status chrome_args_find(struct chrome_args *a, const struct event *e,
			     const struct chrome_template **out, struct error *err);
/*
 * Appends `, "args": {...}` to `b`, or nothing where there is none; notes in `notes`, which is of
 * `b`, where the values stand.
 */
void chrome_args_put(const struct chrome_args *a, const struct template *p, struct buf *b,
		     const struct event *e, struct chrome_notes *notes);

#endif
