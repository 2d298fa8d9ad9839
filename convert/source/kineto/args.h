/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - converts the arguments of an event in Kineto's JSON to attributes.
 *
 * records.def defines where an argument goes, by the first record of the event's kind: into a
 * member of the event, its track, a constant of its argument schema, or an argument value of the
 * event.  A key that records.def does not list keeps its name: its numbers become argument values,
 * except for a list of keys whose numbers repeat from event to event (unless they have thousands of
 * values), and everything else becomes a constant.  A value that a sink could not restore from its
 * place (correlation 0, a number written as text) becomes a constant too.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/kineto/document.h"

/* The part of an event's track that the arguments contain. */
struct kineto_place {
	uint32_t device, context;
	int64_t stream;
	bool has_device, has_stream;
};

enum { KINETO_USES = 64 };
struct kineto_args {
	struct import *to;         /* borrowed; receives the attributes */
	struct kineto_fast *fast;  /* borrowed; records where numbers went; or NULL */
	struct kineto_key *keys;   /* cache of the meaning of keys for each kind */
	struct buf text;           /* scratch memory */
	uint64_t event;            /* number of the current event */
	uint64_t repairs;          /* invalid texts repaired in the current event */
	bool repeated;             /* some key occurred twice in the event */
	uint8_t uses[KINETO_USES]; /* enum kineto_use of the event's first arguments */
};

/* None of these accepts NULL for `err`. */
enum status kineto_args_init(struct kineto_args *a, struct import *to, struct error *err);
void kineto_args_release(struct kineto_args *a);

/* Begins an event of kind e->kind and stores its arguments in *e, *place or attributes of `to`. */
enum status kineto_args_take(struct kineto_args *a, struct kineto_event *element, struct event *e,
			     struct kineto_place *place, struct error *err);
/* Adds a constant attribute with any value. */
enum status kineto_args_put_const(struct kineto_args *a, const char *key, size_t key_len,
				  const struct json *value, struct error *err);
/* Adds the members of the element that are not in KINETO_MEMBER_LIST as constants named ".key". */
enum status kineto_args_put_others(struct kineto_args *a, const struct kineto_event *element,
				   struct error *err);
/* Adds a member of an object that is not an event as a constant of `to`. */
enum status kineto_put_member(struct kineto_args *a, struct import *to,
			      const struct kineto_member *m, struct error *err);

/* Interns the decoded text of a string token. */
enum status kineto_name(struct kineto_args *a, const struct json *text, uint32_t *name,
			struct error *err);
