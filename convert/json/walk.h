/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json/walk.h - the top level of a trace in Chrome's JSON, whoever wrote it: {"traceEvents": [...],
 * ...} or the bare array.  Used while a source opens.
 */
#ifndef CONVERT_JSON_WALK_H
#define CONVERT_JSON_WALK_H

#include "convert/kineto/event.h"

struct json_walk {
	/* Set before: who takes what is found. */
	void *self;
	struct kineto_event *event; /* filled before each take_event() */
	enum status (*take_event)(void *self, struct error *err);
	/*
	 * False: the scanner has to read it.  Else the next element was taken and passed, without
	 * *event; it has a "ph".  May be NULL.
	 */
	bool (*take_known)(void *self, struct json_scan *s, enum status *status,
			   struct error *err);
	/* A key of the top level with its raw value. */
	enum status (*take_key)(void *self, const struct json *key, const struct json *value,
				struct error *err);
	/* The format lets writers leave out the last bracket of a bare array. */
	bool may_stay_open;

	struct json_scan scan;
	bool has_events, is_bare; /* "traceEvents", or an array */
	uint64_t elements, told;  /* of traceEvents; those of them with a "ph" */
};

/*
 * All of `in`.  What is no trace is refused, and what the takers say is returned; a fault of the
 * input behind the beginning of the events goes to *fault, and what came before it counts.
 */
enum status json_walk(struct json_walk *w, struct input *in, struct error *fault,
		      struct error *err);

#endif
