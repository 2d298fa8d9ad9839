/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - the top level of a trace in Chrome's JSON, whoever wrote it: {"traceEvents": [...],
 * ...} or the array alone.  Used while a source opens.
 */
#ifndef CONVERT_SOURCE_KINETO_DOCUMENT_H
#define CONVERT_SOURCE_KINETO_DOCUMENT_H

#include "convert/source/kineto/event.h"

struct json_walk {
	/* Set before: who takes what is found. */
	void *self;
	struct kineto_event *event; /* filled before each take_event() */
	enum status (*take_event)(void *self, struct error *err);
	/*
	 * May take and pass the next element without *event, which has a "ph" then.  False: the
	 * scanner has to read the element.  May be NULL.
	 */
	bool (*take_fast)(void *self, struct json_scan *s, enum status *status, struct error *err);
	/* A key of the top level with its raw value. */
	enum status (*take_key)(void *self, const struct json *key, const struct json *value,
				struct error *err);
	/* The format lets writers leave out the last bracket of such an array. */
	bool may_stay_open;

	struct json_scan scan;
	bool has_events, is_bare;   /* "traceEvents", or an array */
	uint64_t elements, with_ph; /* of traceEvents, and those of them with a "ph" */
};

/*
 * Reads all of `in`.  What is no trace is refused, and what the takers return is returned.  A fault
 * of the input after its events began goes to *fault, and what came before it counts.
 */
enum status json_walk(struct json_walk *w, struct input *in, struct error *fault,
		      struct error *err);

/* For bids: whether a head begins as JSON, with '{' or '[' at *at; whether `text` is in it. */
bool json_begins(const uint8_t *head, size_t len, size_t *at);
bool head_has(const uint8_t *head, size_t len, const char *text);

#endif
