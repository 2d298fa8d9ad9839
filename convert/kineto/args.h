/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto/args.h - the arguments of Kineto's events as attributes, and the shapes made of them.
 *
 * Where an argument goes is what records.def says of the first record of the event's kind: a
 * member of the event, its track, the shape, a varying word.  Keys that it does not know keep
 * their name: numbers vary but for a list of those that seldom do, all else is of the shape.
 * A value that the place would not give back (correlation 0, a number as text) is of the shape.
 */
#ifndef CONVERT_KINETO_ARGS_H
#define CONVERT_KINETO_ARGS_H

#include "convert/json/scan.h"
#include "schemas/event.h"
#include "schemas/trace.h"

struct kineto_member { /* slices of the input */
	struct json key, value;
};

/* What arguments say of an event's track. */
struct kineto_place {
	uint32_t device, context;
	int64_t stream;
	bool has_device, has_context, has_stream;
};

/* What became of a number. */
enum kineto_use {
	KINETO_KEPT,        /* it is of the shape or the track: another number, another row */
	KINETO_WORD,        /* of the event alone: a varying word */
	KINETO_JOIN,        /* ... event.number, above 0 */
	KINETO_BYTES,       /* ... event.bytes, above 0 */
	KINETO_MINUS_BYTES, /* ... event.bytes, without its minus */
	KINETO_BEGIN,
	KINETO_DURATION,
	KINETO_UNUSED,
};

struct kineto_args {
	struct trace *trace;
	struct kineto_key *keys;      /* those that were met, with their places */
	struct kineto_key **expected; /* per kind: the keys of the last event, in order */
	struct buf fixed, vary, words; /* struct attr, struct attr, uint64_t: of this event */
	struct buf text;               /* scratch */
	uint64_t event;                /* number of this event */
	uint64_t repairs;              /* of texts, in this event */
	unsigned at;                   /* arguments so far */
	enum kineto_use use;           /* of the one that was put last */
	bool repeated;                 /* a key stood there twice */
};

enum status kineto_args_init(struct kineto_args *a, struct trace *trace, struct error *err);
void kineto_args_release(struct kineto_args *a);

/* All of these need `err`. */
void kineto_args_begin(struct kineto_args *a);
/* Into *e, *place or the attributes, by e->kind. */
enum status kineto_args_put(struct kineto_args *a, const struct kineto_member *m, struct event *e,
			    struct kineto_place *place, struct error *err);
/* An attribute of the shape, whatever the value is. */
enum status kineto_args_put_fixed(struct kineto_args *a, const char *key, size_t key_len,
				  const struct json *value, struct error *err);
enum status kineto_args_put_attr(struct kineto_args *a, const char *key, size_t key_len,
				 uint8_t type, uint64_t bits, struct error *err);
/* The event's words stay in a->words until the next event.  *shape is 0 without attributes. */
enum status kineto_args_shape(struct kineto_args *a, uint32_t *shape, struct error *err);

/* The text of a string token as a name; 0 when the trace is full. */
uint32_t kineto_name(struct kineto_args *a, const struct json *text, struct error *err);
/* What a value is as an attribute; the key is left alone. */
enum status kineto_attr(struct kineto_args *a, const struct json *value, struct attr *out,
			struct error *err);

#endif
