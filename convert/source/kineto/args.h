/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - the arguments of an event in Kineto's JSON as attributes.
 *
 * records.def defines where an argument goes, by the first record of the event's kind: into a
 * member of the event, its track, a constant of its argument schema, or a value of its own.  A key
 * that records.def does not know keeps its name: its numbers are values of the event, except for a
 * list of keys whose numbers repeat from event to event, and everything else is a constant.  A
 * value that its place could not give back (correlation 0, a number as text) is a constant too.
 */
#ifndef CONVERT_SOURCE_KINETO_ARGS_H
#define CONVERT_SOURCE_KINETO_ARGS_H

#include "convert/source/import.h"
#include "convert/source/json/scan.h"

struct kineto_member { /* slices of the input */
	struct json key, value;
};

/* What the arguments give of an event's track. */
struct kineto_place {
	uint32_t device, context;
	int64_t stream;
	bool has_device, has_stream;
};

/* What became of a number of an element. */
enum kineto_use {
	KINETO_KEPT,        /* it is a constant or of the track: another number, another event */
	KINETO_WORD,        /* it is an argument value of this event */
	KINETO_CORRELATION, /* it is event.number, above 0 */
	KINETO_BYTES,       /* it is event.bytes, above 0 */
	KINETO_MINUS_BYTES, /* it is event.bytes with a minus */
	KINETO_BEGIN,
	KINETO_DURATION,
	KINETO_UNUSED,
};

struct kineto_args {
	struct import *to;            /* borrowed: takes the attributes */
	struct kineto_key *keys;      /* a cache: keys with what they are for each kind */
	struct kineto_key **expected; /* per kind: the keys of the last event, in order */
	struct buf text;              /* scratch */
	uint64_t event;               /* number of this event */
	uint64_t repairs;             /* of texts, in this event */
	unsigned at;                  /* arguments so far */
	enum kineto_use use;          /* of the argument that was put last */
	bool repeated;                /* a key stood there twice */
};

enum status kineto_args_init(struct kineto_args *a, struct import *to, struct error *err);
void kineto_args_release(struct kineto_args *a);

/* All of these need `err`. */
void kineto_args_begin(struct kineto_args *a);
/* Puts an argument into *e, *place or the attributes, by e->kind. */
enum status kineto_args_put(struct kineto_args *a, const struct kineto_member *m, struct event *e,
			    struct kineto_place *place, struct error *err);
/* A constant attribute, whatever the value is. */
enum status kineto_args_put_const(struct kineto_args *a, const char *key, size_t key_len,
				  const struct json *value, struct error *err);
/* A member of the element, kept as the constant ".key". */
enum status kineto_args_put_member(struct kineto_args *a, const struct kineto_member *m,
				   struct error *err);

/* The text of a string token as a name; 0 when the trace is full. */
uint32_t kineto_name(struct kineto_args *a, const struct json *text, struct error *err);
/* Makes a value an attribute; out->key is left alone. */
enum status kineto_attr(struct kineto_args *a, const struct json *value, struct attr *out,
			struct error *err);
/* Appends a key with its value to a list of struct attr. */
enum status kineto_attr_append(struct kineto_args *a, struct buf *list, const struct json *key,
			       const struct json *value, struct error *err);
/* A list of struct attr as a schema of constants; 0: none, or the trace is full. */
uint32_t kineto_schema_of(struct trace *trace, const struct buf *list, struct error *err);

#endif
