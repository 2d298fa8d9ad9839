/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_fast.h - elements of a Kineto file that differ from an earlier one in numbers only.
 *
 * While import.c makes an event of an element it notes which numbers of the text went where; the
 * text around them becomes a template (json/template_fast.h) with the event beside it.  An element
 * that matches a template is not scanned: it is that event with its own numbers.  Fewer than one
 * element in ten needs the scanner, which makes an import 2.5 times as fast.
 */
#pragma once

#include "convert/source/json/template_fast.h"
#include "schemas/model/event.h"

struct kineto_import;

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
	KINETO_ARROW, /* the id of an arrow that nobody needs; of Cuspy's a great one is needed */
};

struct kineto_fast {
	struct json_templates templates;
	struct json_placeholder numbers[JSON_PLACEHOLDERS_MOST + 1]; /* of the element at hand */
	unsigned number_count; /* 0 when a new element is scanned */
	bool is_off;           /* every element is scanned */
};

void kineto_fast_init(struct kineto_fast *f);
/* Takes the next element.  False: no template matches, and the scanner stands where it stood. */
bool kineto_fast_take(struct kineto_import *k, struct json_scan *s, enum status *status,
		      struct error *err);
/* A number of the element at hand, which another one may have otherwise.  Accepts NULL. */
void kineto_fast_number(struct kineto_fast *f, const struct json *number, enum kineto_use use);
/* The element became this event, which was put; NULL: an arrow that nobody needs. */
void kineto_fast_learn(struct kineto_import *k, const struct event *e);
