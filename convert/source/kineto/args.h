/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - the arguments of an event in Kineto's JSON as attributes.
 *
 * records.def defines where an argument goes, by the first record of the event's kind: into a
 * member of the event, its track, a constant of its argument schema, or a value of its own.  A key
 * that records.def does not know keeps its name: its numbers are values of the event, except for a
 * list of keys whose numbers repeat from event to event unless they have thousands of values, and
 * everything else is a constant.  A
 * value that its place could not give back (correlation 0, a number as text) is a constant too.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/kineto/document.h"

/* What the arguments give of an event's track. */
struct kineto_place {
	uint32_t device, context;
	int64_t stream;
	bool has_device, has_stream;
};

enum { KINETO_USES = 64 };
struct kineto_args {
	struct import *to;         /* borrowed: takes the attributes */
	struct kineto_fast *fast;  /* borrowed: learns where numbers went; NULL: nobody does */
	struct kineto_key *keys;   /* a cache: keys with what they are for each kind */
	struct buf text;           /* scratch */
	uint64_t event;            /* number of this event */
	uint64_t repairs;          /* of texts, in this event */
	bool repeated;             /* a key stood there twice */
	uint8_t uses[KINETO_USES]; /* enum kineto_use of the first members of the event */
};

/* All of these need `err`. */
enum status kineto_args_init(struct kineto_args *a, struct import *to, struct error *err);
void kineto_args_release(struct kineto_args *a);

/* Begins an event: its arguments go into *e, *place or the attributes, by e->kind. */
enum status kineto_args_take(struct kineto_args *a, struct kineto_event *element, struct event *e,
			     struct kineto_place *place, struct error *err);
/* A constant attribute, whatever the value is. */
enum status kineto_args_put_const(struct kineto_args *a, const char *key, size_t key_len,
				  const struct json *value, struct error *err);
/* The members of the element that are not looked at by themselves, as constants ".key". */
enum status kineto_args_put_others(struct kineto_args *a, const struct kineto_event *element,
				   struct error *err);
/* A member of another object than an event as a constant of `to`. */
enum status kineto_put_member(struct kineto_args *a, struct import *to,
			      const struct kineto_member *m, struct error *err);

/* The text of a string token as a name. */
enum status kineto_name(struct kineto_args *a, const struct json *text, uint32_t *name,
			struct error *err);
