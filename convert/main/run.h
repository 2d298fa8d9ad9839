/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main/run.h - one run of tacho-convert: what was asked for and what has been done so far.  Of the
 * roof.  One thread, but for what the progress line looks at.
 */
#ifndef CONVERT_MAIN_RUN_H
#define CONVERT_MAIN_RUN_H

#include "convert/cut.h"
#include "convert/input.h"
#include "convert/main/open.h"
#include "convert/main/report.h"
#include "convert/main/size.h"
#include "convert/name_rules.h"
#include "convert/options.h"
#include "convert/out.h"
#include "convert/progress_account.h"
#include "convert/pump.h"
#include "convert/sink.h"

#include <pthread.h>
#include <stdatomic.h>

/* Processes of one input whose files are written side by side in one pass over it. */
enum { LANES = 8, TEXT_CEILING = 1 << 20 };

struct own_options {
	const char *type, *args;
	const char *align;
	uint64_t max_size; /* 0: no bound */
	bool per_node;
};
/* One file being written; in a folder a lane writes one after the other. */
struct lane {
	struct out *out;
	struct sink *sink; /* NULL: waits for its first event, which names the file */
	struct run *run;
	struct trace *trace;
	uint32_t process;
	uint64_t viewer_bytes; /* of the file that type->viewer_most bounds */
};
struct kept { /* what an attempt that is thrown away takes back */
	struct account account;
	uint64_t files;
	size_t names_len;
	enum status worst;
};

struct run {
	struct own_options own;
	struct open_options open;
	struct common_options common;
	struct cut cut;
	const struct sink_type *type;
	struct name_rules *rules;
	const struct source *step; /* stage of the inputs that are being read; NULL none */
	struct budget budget;
	struct input_paths paths;
	bool is_folder, is_decided; /* whether -o is a folder */
	struct lane lanes[LANES];
	struct size_run size;
	struct kept before; /* the attempt at hand */
	struct out *done;   /* files in the folder that stay, of attempts; NULL none */
	struct out *scalars; /* beside TensorBoard's traces; NULL none */
	struct buf names; /* of files in the folder so far, each with its NUL */
	enum status worst; /* of inputs that failed while the run went on */
	struct account account;
	uint64_t files;
	struct report_papers report; /* of a type that carries it */
	pthread_mutex_t lock;   /* for `reading`, which the progress line looks at */
	struct input *reading;
	_Atomic uint64_t events; /* that passed, for the progress line */
};

/* An input's fault: told at once; the run goes on. */
void note_fault(void *self, const char *file, const struct error *err);
/* What was found of the clocks of several hosts. */
void tell_clocks(void *self, const char *line);
void say(const char *file, const struct error *err);
/* For the progress line; NULL: none. */
void set_reading(struct run *r, struct input *in);
void passed(void *self, uint64_t events);

/* main/lanes.c: files being written. */
enum status lane_open(struct run *r, size_t i, struct trace *trace, uint32_t process,
		      struct error *err);
enum status pump_lanes(struct run *r, struct source *top, size_t count, bool *source_failed,
		       struct error *err);
void attempt_begin(struct run *r);
/* After `count` lanes were written: *again is whether they were too large, and are gone. */
enum status attempt_end(struct run *r, size_t count, const struct source *detail, bool *again,
			struct error *err);

/* main/inputs.c: inputs, into one output or one for each process. */
bool is_one_output(const struct run *r);
enum status convert_whole(struct run *r, struct error *err, const char **file);
enum status convert_each(struct run *r, struct error *err);

#endif
