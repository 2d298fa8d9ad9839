/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_fast.h - elements of a Kineto file that differ from an earlier one in numbers only.
 *
 * While import.c makes an event of an element it notes which numbers of the text went where; the
 * text around them becomes a template (json/template_fast.h) with the event beside it.  An element
 * that matches a template is not scanned: it is that event with its own numbers.  Fewer than one
 * element in ten needs the scanner, which makes an import 2.5 times as fast.
 *
 * All functions accept a NULL `f` and do nothing then.
 */
#ifndef CONVERT_SOURCE_KINETO_IMPORT_FAST_H
#define CONVERT_SOURCE_KINETO_IMPORT_FAST_H

#include "convert/source/kineto/import.h"

/* NULL when there is no memory. */
struct kineto_fast *kineto_fast_new(void);
void kineto_fast_free(struct kineto_fast *f);

/* Takes the next element.  False: no template matches, and the scanner stands where it stood. */
bool kineto_fast_take(struct kineto_import *k, struct json_scan *s, enum status *status,
		      struct error *err);

/* A new element is scanned. */
void kineto_fast_begin(struct kineto_fast *f);
/* A number of that element, which another one may have otherwise. */
void kineto_fast_number(struct kineto_fast *f, const struct json *number, enum kineto_use use);
/* The element became this event, which was put; NULL: an arrow that nobody needs. */
void kineto_fast_learn(struct kineto_import *k, const struct event *e);
/* The same elements mean something else from now on. */
void kineto_fast_forget(struct kineto_fast *f);

/* How many elements were taken and learnt so far. */
struct kineto_fast_totals {
	uint64_t taken, learnt;
};
struct kineto_fast_totals kineto_fast_totals(const struct kineto_fast *f);

#endif
