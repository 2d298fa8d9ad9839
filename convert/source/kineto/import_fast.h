/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_fast.h - imports elements of a Kineto file that differ from an earlier one only in
 * numbers.
 *
 * While import.c converts an element to an event, it records which number of the text went where.
 * The text around the numbers becomes a template (json/template_fast.h) with the event as its
 * payload.  An element that matches a template is not scanned: it becomes the same event with its
 * own numbers.  Fewer than one element in ten needs the scanner, which makes an import 2.5 times as
 * fast.
 */
#pragma once

#include "convert/source/json/template_fast.h"
#include "schemas/model/event.h"

struct kineto_import;

/* Where a number of an element went. */
enum kineto_use {
	KINETO_KEPT,        /* a constant or the track, so another number makes another template */
	KINETO_WORD,        /* an argument value of the event */
	KINETO_CORRELATION, /* event.number, greater than 0 */
	KINETO_BYTES,       /* event.bytes, greater than 0 */
	KINETO_MINUS_BYTES, /* event.bytes, negated */
	KINETO_BEGIN,
	KINETO_DURATION,
	KINETO_UNUSED,
	KINETO_ARROW, /* the id of a derived arrow, below CUSPY_DEPENDENCIES */
};

struct kineto_fast {
	struct json_templates templates;
	struct json_placeholder numbers[JSON_PLACEHOLDERS_MOST + 1]; /* the element's numbers */
	unsigned number_count; /* 0 when a new element is scanned */
	bool is_off;           /* templates are disabled */
};

void kineto_fast_init(struct kineto_fast *f);
/* Converts the next element if a template matches it.  Returns false without moving the scanner if
 * none does. */
bool kineto_fast_take(struct kineto_import *k, struct json_scan *s, enum status *status,
		      struct error *err);
/* Records that the number may differ in elements of the same template.  `f` may be NULL. */
void kineto_fast_number(struct kineto_fast *f, const struct json *number, enum kineto_use use);
/* Adds a template for the current element, which became the event `e`; NULL: a derived arrow. */
void kineto_fast_learn(struct kineto_import *k, const struct event *e);
