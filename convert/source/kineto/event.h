/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - one element of traceEvents: its members, in whatever order they stand there,
 * and what its category makes of it.
 */
#ifndef CONVERT_SOURCE_KINETO_EVENT_H
#define CONVERT_SOURCE_KINETO_EVENT_H

#include "convert/source/kineto/args.h"

/* Members that are looked at by themselves; others and odd ones are kept as ".name". */
#define KINETO_MEMBER_LIST(X) X(ph) X(cat) X(name) X(pid) X(tid) X(ts) X(dur) X(id)

struct kineto_event { /* type JSON_END: absent */
#define X(name) struct json name;
	KINETO_MEMBER_LIST(X)
#undef X
	struct buf args, others; /* struct kineto_member; slices as long as the scanner's */
	bool is_object;
	const char *text; /* all of it, from the end of the element before it on */
	size_t text_len;
	bool is_first; /* of the array: no comma stands before it */
};

void kineto_event_init(struct kineto_event *e);
void kineto_event_release(struct kineto_event *e);

/*
 * The next element of the array that the scanner is in; *end: there is none left.  Errors are
 * those of the input; everything before them was given.
 */
enum status kineto_event_next(struct kineto_event *e, struct json_scan *s, bool *end,
			      struct error *err);

static inline size_t kineto_members(const struct buf *list, const struct kineto_member **out)
{
	*out = (const struct kineto_member *)(const void *)list->data;
	return list->len / sizeof(**out);
}
/* NULL: it has no such argument. */
const struct kineto_member *kineto_find(const struct buf *list, const char *key);
/* Drops all but the last of arguments with the same key, which is what other readers see. */
void kineto_drop_repeated(struct buf *list);

bool kineto_is(const struct json *value, const char *text); /* a string, and this one */

/* What a category stands for. */
struct kineto_category {
	const char *word; /* case is ignored: those of 2021 begin with a capital */
	uint8_t kind, subkind;
	bool is_canonical; /* what the writer of such events writes by itself */
	bool shows_pid;    /* its pid is that of the process */
};
/* NULL: unknown. */
const struct kineto_category *kineto_category_find(const struct json *cat);
/* Arrows from calls to GPU work, which writers draw from correlation ids. */
bool kineto_is_derived_flow(const struct json *cat);

#endif
