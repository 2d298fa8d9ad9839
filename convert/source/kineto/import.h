/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - turns the elements and keys of a Kineto file into events in a spool.  An importer
 * exists only while a Kineto source opens.
 */
#pragma once

#include "convert/source/kineto/import_fast.h"
#include "convert/source/kineto/tracks.h"

struct kineto_head {         /* what stands around the events: any of it may stand after them */
	struct import attrs; /* its constants: all keys but the GPUs, in the order of the file */
	struct buf members;  /* scratch */
	struct buf devices;  /* struct device, process 0 */
	uint64_t base_ns, damaged;
	uint32_t host, rank, world_size;
	bool is_synthetic;
};

/* Marks of steps by torch.profiler.  With Python functions some versions end a mark with the
 * function that made it, though the step goes on to the next mark. */
struct kineto_steps {
	struct kineto_step {
		uint64_t begin_ns, end_ns; /* as in the spool */
		uint32_t name, track;
	} * items;
	size_t count, cap, at; /* at: those before have been given */
	bool has_function;     /* one that makes marks is in the file */
};
/* Notes an event that may be a mark, or a function that makes them. */
enum status kineto_steps_note(struct kineto_steps *s, const struct json *name,
			      const struct event *e, struct error *err);
/* Keeps those that are to go on, with their ends. */
void kineto_steps_resolve(struct kineto_steps *s);

struct kineto_import {
	struct kineto_steps steps;
	struct import to;
	struct kineto_args args;
	struct kineto_tracks tracks;
	struct kineto_document document;
	struct kineto_head head;
	struct kineto_fast fast;
};

/* Kind and subkind that a category stands for, with some names; false: none that is known. */
bool kineto_category(const struct json *cat, const struct json *name, struct event *e);
/* What the name of a copy or a wait says of its subkind. */
void kineto_name_subkind(const struct json *name, struct event *e);

/* `process` is a row of the trace that kineto_import_finish() completes.  *k must not move. */
enum status kineto_import_init(struct kineto_import *k, struct trace *trace, struct spool *spool,
			       uint32_t process, struct error *err);
void kineto_import_release(struct kineto_import *k);

/* Reads all of `in`.  A fault of the input after its events began goes to *fault.  Needs `err`. */
enum status kineto_import_read(struct kineto_import *k, struct input *in, struct error *fault,
			       struct error *err);
/* Completes the process and the GPUs; needs `err`. */
enum status kineto_import_finish(struct kineto_import *k, const char *path, struct error *err);

/* head.c: versions, rank, GPUs, the base of the times. */
enum status kineto_head_init(struct kineto_import *k, struct error *err);
void kineto_head_release(struct kineto_head *h);
/* Takes one key of the top level with its raw value. */
enum status kineto_head_put(struct kineto_import *k, const struct kineto_member *m,
			    struct error *err);
/* Completes the process by all that was read, and adds its GPUs. */
enum status kineto_head_finish(struct kineto_import *k, uint32_t command, const char *path,
			       struct error *err);
