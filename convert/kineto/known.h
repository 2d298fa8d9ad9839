/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto/known.h - elements of a Kineto file that are one of before with other numbers
 * (json/known.h): the event that was made of that one, with those numbers.
 */
#ifndef CONVERT_KINETO_KNOWN_H
#define CONVERT_KINETO_KNOWN_H

#include "convert/kineto/import.h"

#define KINETO_TIME_MOST ((int64_t)1 << 61)

void kineto_known_init(struct kineto_import *k);

/* While k->event becomes an event: a number of it that another one may have otherwise. */
void kineto_known_hole(struct kineto_import *k, const struct json *number, enum kineto_use use);
/* What it became; NULL: a derived arrow. */
void kineto_known_learn(struct kineto_import *k, const struct event *e);

/* The take_known() of json/walk.h; `self` is the importer. */
bool kineto_known_take(void *self, struct json_scan *s, enum status *status, struct error *err);

bool kineto_launches(const struct event *e, const struct kineto_event *element);

#endif
