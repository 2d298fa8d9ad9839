/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - from elements of traceEvents to events in a spool.  An importer is used while a
 * Kineto source opens, and is released when it has.
 */
#ifndef CONVERT_SOURCE_KINETO_IMPORT_H
#define CONVERT_SOURCE_KINETO_IMPORT_H

#include "convert/source/import.h"
#include "convert/source/kineto/event.h"
#include "convert/source/kineto/head.h"
#include "convert/source/kineto/tracks.h"

struct kineto_fast;

struct kineto_import {
	struct import to;
	struct kineto_args args;
	struct kineto_tracks tracks;
	struct kineto_event event; /* the element at hand */
	struct kineto_head head;
	struct kineto_fast *fast; /* import_fast.h; NULL: every element is scanned */
};

/* `process` is a row of the trace that kineto_import_finish() completes.  *k must not move. */
enum status kineto_import_init(struct kineto_import *k, struct trace *trace, struct spool *spool,
			       uint32_t process, struct error *err);
void kineto_import_release(struct kineto_import *k);

/* Reads all of `in`.  A fault of the input after its events began goes to *fault.  Needs `err`. */
enum status kineto_import_read(struct kineto_import *k, struct input *in, struct error *fault,
			       struct error *err);
/* Completes the process and the GPUs; needs `err`. */
enum status kineto_import_finish(struct kineto_import *k, const char *path, struct error *err);

/* The arguments of an element into *e, *place and the attributes; `fast` learns which numbers went
 * where. */
enum status kineto_take_args(struct kineto_args *a, struct kineto_event *element, struct event *e,
			     struct kineto_place *place, struct kineto_fast *fast,
			     struct error *err);

#endif
