/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - reads a trace in Chrome's JSON, {"traceEvents": [...], ...} or only the array.  It
 * returns the elements and the keys around them one by one, in the order of the file.
 */
#pragma once

#include "convert/source/json/scan.h"

struct kineto_member { /* slices of the input */
	struct json key, value;
};

/* Members that are looked at by themselves; others and odd ones are kept as ".name". */
#define KINETO_MEMBER_LIST(X) X(ph) X(cat) X(name) X(pid) X(tid) X(ts) X(dur) X(id)

struct kineto_event { /* one element of traceEvents; of a member that is absent the type is JSON_END
		       */
#define X(name) struct json name;
	KINETO_MEMBER_LIST(X)
#undef X
	struct buf args, others; /* struct kineto_member; slices as long as the scanner's */
	bool has_ph;             /* it is an object, with a letter as "ph" */
	bool is_empty;           /* {}: TSL ends its lists so, which saves it the last comma */
	bool is_first;           /* of the array: no comma stands before it */
	const char *text;        /* all of it, from the end of the element before it on */
	size_t text_len;
};

struct kineto_document {
	struct json_scan scan;
	enum kineto_found { KINETO_END, KINETO_EVENT, KINETO_KEY } found;
	struct kineto_event event;  /* KINETO_EVENT */
	struct kineto_member key;   /* KINETO_KEY: one of the top level, with its raw value */
	bool may_stay_open;         /* the last bracket of an array alone may be missing */
	bool in_events, has_events; /* the scanner is in traceEvents, or was */
	bool is_bare;               /* there are no keys around them */
	bool is_begun, has_elements, has_ph;
	uint64_t empty_count; /* elements {} */
	bool ends_empty;      /* the last element is one; who passes elements by himself says so */
};

/* Reads from where the input stands. */
void kineto_document_init(struct kineto_document *d, struct input *in);
void kineto_document_release(struct kineto_document *d);

/*
 * The next element or key, until d->found is KINETO_END.  What is no trace is refused; a fault of
 * the input after its events began is the end of it, and goes to *fault.  Needs `err`.
 */
enum status kineto_document_next(struct kineto_document *d, struct error *fault, struct error *err);

static inline size_t kineto_members(const struct buf *list, const struct kineto_member **out)
{
	*out = (const struct kineto_member *)(const void *)list->data;
	return list->len / sizeof(**out);
}
/* The members of a raw object, none where it is something else. */
enum status kineto_members_read(struct buf *list, const struct json *object, struct error *err);
/* NULL: it has no such argument. */
const struct kineto_member *kineto_find(const struct buf *list, const char *key);
/* Drops all but the last of arguments with the same key, which is what other readers see. */
void kineto_drop_repeated(struct buf *list);

/* How many elements {} stand where no list ends: they were something. */
static inline uint64_t kineto_document_damaged(const struct kineto_document *d)
{
	return d->empty_count - d->ends_empty;
}

bool kineto_is(const struct json *value, const char *text); /* a string, and this one */

/* For bids: whether a head begins as JSON, with '{' or '[' at *at; whether `text` is in it. */
bool json_begins(const uint8_t *head, size_t len, size_t *at);
bool head_has(const uint8_t *head, size_t len, const char *text);
