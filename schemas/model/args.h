/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - the arguments of events: the spelling and type of each, and where its value is.
 *
 * All writers of formats loop over this list and differ only in what they leave out and how they
 * encode it.  It is made from records.def and the argument schema, for all events of one kind and
 * schema.
 */
#pragma once

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

#include <string.h>

struct buf;

enum arg_source {
	ARG_CONST,       /* the argument schema has the value */
	ARG_EVENT,       /* event.args[index] */
	ARG_CORRELATION, /* members of the event; CORRELATION is also its number */
	ARG_ADDRESS,
	ARG_BYTES,
	ARG_SIGNED_BYTES, /* below 0 for freed memory */
	ARG_VALUE,
	ARG_RESULT,
	ARG_BANDWIDTH, /* bytes per nanosecond, which is GB/s */
	ARG_STEP,
	ARG_BEGAN_EARLIER, /* flags: 1, or absent */
	ARG_NEVER_ENDED,
	ARG_DEVICE, /* members of the track */
	ARG_CONTEXT,
	ARG_STREAM,
	ARG_ALLOCATOR_TYPE,   /* PyTorch's numbers of devices: 0 is the CPU, 1 is CUDA */
	ARG_ALLOCATOR_DEVICE, /* -1: the CPU */
	ARG_ALLOCATOR_THREAD,
	ARG_SOURCES, /* writers give their own sources numbers from here on */
};

/* The variable part of a template, between two constant texts. */
struct placeholder {
	uint8_t source; /* enum arg_source, or the writer's own */
	uint8_t type;   /* enum attr_type */
	uint16_t index; /* ARG_EVENT: into event.args */
};

/*
 * Returns whether the event has a value for the placeholder, and sets *bits to it as the type
 * stores it.  `k` is the event's track.
 */
static inline bool arg_bits(struct placeholder p, const struct event *e, const struct track *k,
			    uint64_t *bits)
{
	double f64;

	switch (p.source) {
	case ARG_EVENT:
		*bits = e->args ? e->args[p.index] : 0;
		return e->args != NULL;
	case ARG_CORRELATION:
		*bits = e->correlation;
		return e->correlation || e->kind == KIND_STEP;
	case ARG_ADDRESS:
		*bits = e->address;
		return true;
	case ARG_BYTES:
	case ARG_VALUE: /* it shares a union with `bytes` */
		*bits = e->bytes;
		return true;
	case ARG_SIGNED_BYTES:
		*bits = e->kind == KIND_FREE ? 0 - e->bytes : e->bytes;
		return true;
	case ARG_RESULT:
		*bits = (uint64_t)e->result;
		return (e->flags & EVENT_RESULT) && e->result;
	case ARG_BANDWIDTH:
		f64 = (double)e->bytes / (double)(e->end_ns - e->begin_ns);
		memcpy(bits, &f64, sizeof(f64));
		return e->end_ns != e->begin_ns;
	case ARG_STEP:
		*bits = e->step - 1;
		return e->step && !(e->step & STEP_GAP);
	case ARG_BEGAN_EARLIER:
		*bits = 1;
		return e->flags & EVENT_BEGAN_EARLIER;
	case ARG_NEVER_ENDED:
		*bits = 1;
		return e->flags & EVENT_NEVER_ENDED;
	case ARG_DEVICE:
		*bits = k->device;
		return k->device != NO_ID;
	case ARG_CONTEXT:
		*bits = k->context;
		return k->context != NO_ID;
	case ARG_STREAM:
		*bits = k->id;
		return k->type == TRACK_STREAM;
	case ARG_ALLOCATOR_TYPE:
		*bits = k->context == NO_ID ? k->device != NO_ID : k->context;
		return true;
	case ARG_ALLOCATOR_DEVICE:
		*bits = k->device == NO_ID ? UINT64_MAX : k->device;
		return true;
	case ARG_ALLOCATOR_THREAD:
		*bits = k->id;
		return k->id != 0;
	}
	return false;
}

struct arg {
	const char *name; /* the field's name in records.def, or the input's */
	const char *word; /* Kineto's spelling, or `name` if it is no field; NULL: Kineto does not
			     write the field */
	size_t name_len, word_len;
	uint32_t name_id; /* name id in the trace; 0: a member of the event or its track */
	bool is_field;    /* records.def has a field of this name */
	int place;        /* ARG_CONST: index in an array such as "grid[0]"; -1: no element */
	struct placeholder at;
	uint64_t bits; /* ARG_CONST: the value */
};

/* A writer owns a list, which is zeroed at first, and fills it again for each kind and schema. */
struct arg_list {
	struct arg *args;
	size_t count, cap;
};
void arg_list_release(struct arg_list *l);

/*
 * Lists the arguments of events of one kind and schema: first those whose values differ from event
 * to event, then the members that Kineto writes as arguments, then the constant ones.  Names are
 * borrowed from the trace.  With `is_import` only the first record of the kind counts, as for
 * readers of Kineto's files, so that an import keeps its spelling.
 */
enum status arg_list_make(struct arg_list *l, const struct trace *t, unsigned kind, uint32_t schema,
			  bool is_import, struct error *err);

enum { ARG_PLACES = 3 };
/*
 * Lists the constant arguments of an array, in order, if it begins with args[first].  Returns their
 * number, or 0 if the array begins with another argument.
 */
size_t arg_array(const struct arg_list *l, size_t first, const struct arg *items[ARG_PLACES]);
/*
 * Sets *sum to the sum of all fields that have the word of args[first], which begins with "+".
 * Returns false if an argument before args[first] has the same word, because that one has the sum.
 */
bool arg_sum(const struct arg_list *l, size_t first, uint64_t *sum);

/*
 * Returns the event's argument with the name `key` (an id of the trace, 0: none) and its value as
 * the attribute's type stores it, or NULL if the event has none.
 */
const struct attr *event_arg(const struct trace *t, const struct event *e, uint32_t key,
			     uint64_t *bits);

/*
 * Appends the value of an argument as JSON.  `bits` is the value as `type` (enum attr_type) stores
 * it; an argument that was read as JSON is written as it was read.
 */
void json_put_value(struct buf *b, const struct trace *t, uint8_t type, uint64_t bits);
