/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - reads a trace in Chrome's JSON, {"traceEvents": [...], ...} or only the array.  It
 * returns the elements, and the keys around them, one by one in the order of the file.
 */
#pragma once

#include "convert/source/json/scan.h"

struct kineto_member { /* slices of the input */
	struct json key, value;
};

/* The members that have a field of their own; the others are kept as constants named ".name". */
#define KINETO_MEMBER_LIST(X) X(ph) X(cat) X(name) X(pid) X(tid) X(ts) X(dur) X(id)

struct kineto_event { /* an element of traceEvents; a missing member has the type JSON_END */
#define X(name) struct json name;
	KINETO_MEMBER_LIST(X)
#undef X
	struct buf args, others; /* struct kineto_member; slices of the scanner */
	bool has_ph;             /* it is an object whose "ph" is one letter */
	bool is_empty;           /* {}: TSL ends its lists with it, after the last comma */
	bool is_first;           /* first of the array, so that no comma precedes it */
	const char *text;        /* the element's text, from the end of the previous one */
	size_t text_len;
};

struct kineto_document {
	struct json_scan scan;
	enum kineto_found { KINETO_END, KINETO_EVENT, KINETO_KEY } found;
	struct kineto_event event;  /* valid for KINETO_EVENT */
	struct kineto_member key;   /* for KINETO_KEY: a top-level key and its raw value */
	bool may_stay_open;         /* accept an array whose last bracket is missing */
	bool in_events, has_events; /* the scanner is, or was, in traceEvents */
	bool is_bare;               /* the file is an array without keys around it */
	bool is_begun, has_elements, has_ph;
	uint64_t empty_count; /* number of elements {} */
	bool ends_empty;      /* the last element is {}; callers that skip elements clear it */
};

/* Starts at the current offset of `in`. */
void kineto_document_init(struct kineto_document *d, struct input *in);
void kineto_document_release(struct kineto_document *d);

/*
 * Reads the next element or key; d->found is KINETO_END after the last one.  Fails if the file is
 * not a trace.  An error of the input after the events began ends the document and is stored in
 * *fault.  `err` must not be NULL.
 */
enum status kineto_document_next(struct kineto_document *d, struct error *fault, struct error *err);

static inline size_t kineto_members(const struct buf *list, const struct kineto_member **out)
{
	*out = (const struct kineto_member *)(const void *)list->data;
	return list->len / sizeof(**out);
}
/* Lists the members of a raw object; the list is empty if the value is not an object. */
enum status kineto_members_read(struct buf *list, const struct json *object, struct error *err);
/* Returns NULL if there is no argument with this key. */
const struct kineto_member *kineto_find(const struct buf *list, const char *key);
/* Drops all but the last of several arguments with the same key, as other readers do. */
void kineto_drop_repeated(struct buf *list);

/* Returns how many elements {} do not end a list, which counts as damage. */
static inline uint64_t kineto_document_damaged(const struct kineto_document *d)
{
	return d->empty_count - d->ends_empty;
}

bool kineto_is(const struct json *value, const char *text); /* a string or key equal to `text` */

/* For bids: json_begins() returns whether a head begins as JSON, with '{' or '[' at *at; head_has()
 * whether it contains `text`. */
bool json_begins(const uint8_t *head, size_t len, size_t *at);
bool head_has(const uint8_t *head, size_t len, const char *text);
