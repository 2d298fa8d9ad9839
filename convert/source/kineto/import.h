/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - converts the elements and keys of a Kineto file to events in a spool.  An importer
 * exists only while a Kineto source opens.
 */
#pragma once

#include "convert/source/kineto/import_fast.h"
#include "convert/source/kineto/tracks.h"

struct kineto_head {         /* the keys around the events; each may follow the events */
	struct import attrs; /* all keys but the GPUs, in file order */
	struct buf members;  /* scratch memory */
	struct buf devices;  /* struct device; its process is set at the end */
	uint64_t base_ns, damaged;
	uint32_t host, rank, world_size;
	bool is_synthetic;
};

/*
 * Marks of steps by torch.profiler.  If Python functions are recorded, some versions of PyTorch end
 * a mark together with the function that created it, although the step lasts until the next mark.
 */
struct kineto_steps {
	struct kineto_step {
		uint64_t begin_ns, end_ns; /* times as in the spool, with the bias */
		uint32_t name, track;
	} * items;
	size_t count, cap, at; /* `at`: index of the next mark to match */
	bool has_function;     /* a function that creates marks was seen */
};
/* Records `e` if it is a mark or a function that creates marks. */
enum status kineto_steps_note(struct kineto_steps *s, const struct json *name,
			      const struct event *e, struct error *err);
/* Keeps only the marks that must be extended, with their new ends, sorted by time. */
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

/* Sets the kind and subkind for a category, for some categories also by the name.  Returns false if
 * the category is unknown. */
bool kineto_category(const struct json *cat, const struct json *name, struct event *e);
/* Sets the subkind of a copy or a wait from its name. */
void kineto_name_subkind(const struct json *name, struct event *e);

/* `process` is a row of the trace that kineto_import_finish() completes.  *k must not move. */
enum status kineto_import_init(struct kineto_import *k, struct trace *trace, struct spool *spool,
			       uint32_t process, struct error *err);
void kineto_import_release(struct kineto_import *k);

/* Reads all of `in`.  An error of the input after its events began is stored in *fault.  `err` must
 * not be NULL. */
enum status kineto_import_read(struct kineto_import *k, struct input *in, struct error *fault,
			       struct error *err);
/* Completes the process and the GPUs.  `err` must not be NULL. */
enum status kineto_import_finish(struct kineto_import *k, const char *path, struct error *err);

/* In head.c: versions, rank, GPUs and the base of the times. */
enum status kineto_head_init(struct kineto_import *k, struct error *err);
void kineto_head_release(struct kineto_head *h);
/* Reads one top-level key with its raw value. */
enum status kineto_head_put(struct kineto_import *k, const struct kineto_member *m,
			    struct error *err);
/* Completes the process with everything that was read, and adds its GPUs. */
enum status kineto_head_finish(struct kineto_import *k, uint32_t command, const char *path,
			       struct error *err);
