/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - one run of tacho-convert: what was asked for and what has been done so far.
 * One thread, except for what the progress line looks at.
 */
#ifndef CONVERT_CLI_INTERNAL_H
#define CONVERT_CLI_INTERNAL_H

#include "convert/stage/filter/filter.h"
#include "convert/input/input.h"
#include "convert/cli/open.h"
#include "convert/cli/size.h"
#include "convert/name/rules.h"
#include "convert/stage/options.h"
#include "convert/output/output.h"
#include "convert/base/account.h"
#include "convert/stage/pump.h"
#include "convert/sink/sink.h"

#include <pthread.h>
#include <stdatomic.h>

/* Processes of one input whose files are written side by side in one pass over it. */
enum { WRITERS = 8, ATTACHMENTS = 2 /* report.txt, report.json */, TEXT_CEILING = 1 << 20 };

struct own_options {
	const char *type, *args;
	const char *align;
	uint64_t max_size; /* 0: no bound */
};
/* One file being written; in a folder a writer writes one after the other. */
struct file_writer {
	struct out *out;
	struct sink *sink; /* NULL: waits for its first event, which names the file */
	struct run *run;
	struct trace *trace;
	uint32_t process;
	uint64_t viewer_bytes; /* of the file that type->viewer_most bounds */
};
struct before { /* an attempt: what it takes back when it is thrown away */
	struct account account;
	uint64_t files;
	size_t names_len;
	enum status worst;
};

struct run {
	struct own_options own;
	struct open_options open;
	struct common_options common;
	struct filter filter;
	const struct sink_type *type;
	struct name_rules *rules;
	const struct context *context; /* of the inputs that are being read; NULL: none */
	struct budget budget;
	struct input_paths paths;
	bool is_folder, is_decided; /* whether -o is a folder */
	struct file_writer writers[WRITERS];
	struct size_run size;
	struct before before;
	struct out *done;    /* files in the folder that stay, of attempts; NULL none */
	struct out *scalars; /* beside TensorBoard's traces; NULL none */
	struct buf names;    /* of files in the folder so far, each with its NUL */
	enum status worst;   /* of inputs that failed while the run went on */
	struct account account;
	uint64_t files;
	/* The report on the inputs, for a type that carries it. */
	struct buf pages[ATTACHMENTS];
	struct sink_attachment attachments[ATTACHMENTS]; /* borrow the pages */
	size_t attachment_count; /* 0: of inputs that can be read only once */
	pthread_mutex_t lock;    /* of `reading`, which the progress line looks at */
	struct input *reading;
	_Atomic uint64_t events; /* that passed, for the progress line */
};

/* main.c.  An input's fault is printed at once, and the run goes on. */
void note_fault(void *self, const char *file, const struct error *err);
/* Prints what was found of the clocks of several hosts. */
void print_clocks(void *self, const char *line);
void print_error(const char *file, const struct error *err);
/* For the progress line; NULL: none. */
void set_reading(struct run *r, struct input *in);
void note_events(void *self, uint64_t events);

/* outputs.c: files being written. */
enum status writer_open(struct run *r, size_t i, struct trace *trace, uint32_t process,
			struct error *err);
enum status pump_writers(struct run *r, struct source *top, size_t count, bool *source_failed,
			 struct error *err);
void attempt_begin(struct run *r);
/* After `count` files were written: *again is whether they were too large, and are gone. */
enum status attempt_end(struct run *r, size_t count, const struct source *lod, bool *again,
			struct error *err);
/* In TensorBoard's folder: a run that is written again keeps its name, and XProf would show what it
 * cached of the old one. */
enum status remove_xprof_caches(const struct run *r, struct error *err);

/* inputs.c: inputs, into one output or one for each process. */
bool is_one_output(const struct run *r);
enum status convert_whole(struct run *r, struct error *err, const char **file);
enum status convert_each(struct run *r, struct error *err);

/* reports.c: the report for a type that carries it; TensorBoard's scalars and its summary. */
enum status make_attachments(struct run *r, struct error *err);
enum status make_scalars(struct run *r, struct error *err);

#endif
