/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - one run of tacho-convert: its options and its state.  One thread uses it, except for
 * the members that the progress line reads.
 */
#pragma once

#include "convert/stage/filter/filter.h"
#include "convert/input/input.h"
#include "convert/stage/lod/lod.h"
#include "convert/stage/options.h"
#include "convert/output/output.h"
#include "convert/base/messages.h"
#include "convert/stage/pump.h"
#include "convert/sink/sink.h"
#include "schemas/base/option.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- size.c: outputs under --max-size ----
 *
 * The first attempt writes the full output.  If a file is too large, it is removed, a threshold for
 * the level of detail (lod.h) is estimated, and the input is read again.  Further attempts bisect
 * the threshold until the file has 60 to 100 % of the bytes that it may have, which usually takes
 * three attempts.  A size is that of one file as its viewer unpacks it.
 */

enum {
	SIZE_ATTEMPTS = 10,
	SIZE_LENGTHS = 512, /* classes of durations: eight per octave */
};

/* The search for one process's threshold; element 0 is for a file of all processes. */
struct size_file {
	uint64_t bytes, most; /* last attempt: its size, and the tightest bound; 0: none */
	struct size_attempt { /* bytes 0: no such attempt */
		uint64_t min_ns, bytes;
	} large, fits;   /* the highest threshold that was too low, and the lowest that fits */
	bool is_settled; /* the next attempt repeats `fits` and is the last one */
	uint64_t counts[SIZE_LENGTHS]; /* number of events, by class of duration */
};
struct size_run { /* zeroed: no bound */
	bool is_on;
	unsigned attempt;           /* number of the attempt, from 1; 0: not begun */
	const struct trace *trace;  /* trace of the first attempt */
	uint64_t *min_ns;           /* thresholds by process */
	struct lod_request request; /* request of the next attempt */
	struct size_file *files;
	uint32_t process_count;
	struct lod_totals totals; /* totals of all written files */
	uint64_t summed;          /* events that the last attempt merged: intended losses */
	char copy_path[32];       /* path of standard input's copy; empty: none */
	int copy_fd;
	_Atomic uint64_t copied; /* bytes of the copy so far, for the progress line */
};

/* Copies standard input, so that it can be read more than once, and sets *path to the copy.  Call
 * it before an input is opened. */
enum status size_path(struct size_run *s, const char **path, const char *scratch,
		      struct error *err);
/* Begins another attempt.  The tables of the input must be complete. */
enum status size_begin(struct size_run *s, const struct trace *trace, struct error *err);
/* Counts events by their duration in the first attempt. */
enum status size_put(void *self, const struct batch *batch, struct error *err);
/* Notes the size of a written file; `most` 0: it has no bound. */
void size_note(struct size_run *s, uint32_t process, uint64_t bytes, uint64_t most);
/* Sets *again if a file noted since size_begin() has a wrong size and another attempt is worth it.
 */
enum status size_again(struct size_run *s, bool *again, struct error *err);
/* Adds the totals of the files that are kept; `lod` may be NULL. */
void size_keep(struct size_run *s, const struct source *lod);
void size_end(struct size_run *s); /* ends the search for these files */
void size_release(struct size_run *s);
/* Appends "1000 events: 200 kept, ...", or nothing if nothing was merged. */
void size_account(const struct size_run *s, struct buf *out);

/* ---- open.c: --open hands one file to Perfetto's user interface in the browser ----
 *
 * The interface is a page that fetches the trace from this machine, so nothing is uploaded.  It may
 * fetch only from port 9001 of the loopback address.  The path has a random part, only the
 * interface's origin may read answers, and requests for another host are refused, so that no other
 * page and no other user can read the trace.
 */

enum { OPEN_PORT = 9001 };

struct open_options {
	bool open;
	const char *viewer;  /* origin of the interface: "https://ui.perfetto.dev" */
	uint64_t timeout_ns; /* time after which the server gives up */
	char *temporary;     /* file made by open_begin(); NULL: none */
};
extern const struct option open_rows[]; /* rows for a set over struct open_options */

/* Returns ST_USAGE for outputs that cannot be shown.  Call it before the conversion.  `type` is the
 * output's format. */
enum status open_check(const struct open_options *o, const char *type, const char *output,
		       struct error *err);
/* Makes a temporary file in `scratch` if there is no -o. */
enum status open_begin(struct open_options *o, const char **output, const char *scratch,
		       struct error *err);
/*
 * Starts the browser, prints the address and serves the output, if the run wrote one, until it was
 * fetched once.  Removes the file of open_begin().
 */
enum status open_end(struct open_options *o, const char *output, bool was_written, bool quiet,
		     struct error *err);

/* ---- the run ---- */

/* Number of processes of one input that are written in one pass over it. */
enum { WRITERS = 8, ATTACHMENTS = 2 /* report.txt, report.json */, TEXT_CEILING = 1 << 20 };

struct own_options {
	const char *type, *args;
	const char *align, *run;
	uint64_t max_size; /* 0: no bound */
};
/* A file that is being written.  For a folder, a writer writes several files, one after the other.
 */
struct file_writer {
	struct out *out;
	struct sink *sink; /* NULL: no event yet; the first one names the file */
	struct run *run;
	struct trace *trace;
	uint32_t process;
	uint64_t viewer_bytes; /* size of the file that type->viewer_most limits */
};
struct before { /* the state to which a discarded attempt returns */
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
	const struct context *context; /* context of the inputs that are being read; NULL: none */
	struct budget budget;
	struct input_paths paths;
	bool is_folder, is_decided; /* whether -o is a folder; whether that is decided */
	struct file_writer writers[WRITERS];
	struct size_run size;
	struct before before;
	struct out *done;    /* files in the folder that attempts keep; NULL: none */
	struct out *scalars; /* for TensorBoard, next to the traces; NULL: none */
	struct buf names;    /* names of files in the folder so far, each with its NUL */
	enum status worst;   /* first error of an input after which the run continued */
	struct account account;
	uint64_t files;
	/* The report on the inputs, for a type that includes it. */
	struct buf pages[ATTACHMENTS];
	struct sink_attachment attachments[ATTACHMENTS]; /* borrow from `pages` */
	size_t attachment_count; /* 0 for inputs that can be read only once */
	pthread_mutex_t lock;    /* protects `reading`, which the progress line reads */
	struct input *reading;
	_Atomic uint64_t events; /* number of events so far, for the progress line */
};

/* Returns whether outputs show all arguments of events. */
static inline bool all_args(const struct run *r)
{
	return r->own.args ? !strcmp(r->own.args, "full") : r->type->shows_all_args;
}

/* main.c.  Prints the error of an input.  The run continues with the others. */
void note_fault(void *self, const char *file, const struct error *err);
/* Prints a line about the clocks of several hosts. */
void print_clocks(void *self, const char *line);
void print_error(const char *file, const struct error *err);
/* Sets the input that the progress line shows; NULL: none. */
void set_reading(struct run *r, struct input *in);
void note_events(void *self, uint64_t events);

/* outputs.c: files that are being written. */
enum status writer_open(struct run *r, size_t i, struct trace *trace, uint32_t process,
			struct error *err);
enum status pump_writers(struct run *r, struct source *top, size_t count, bool *source_failed,
			 struct error *err);
void attempt_begin(struct run *r);
/* Ends an attempt after `count` files were written.  *again: they had a wrong size and were
 * removed. */
enum status attempt_end(struct run *r, size_t count, const struct source *lod, bool *again,
			struct error *err);
/* Removes XProf's caches of the written runs: a rewritten run keeps its name, and XProf would show
 * the old one. */
enum status remove_xprof_caches(const struct run *r, struct error *err);

/* inputs.c: converts inputs into one output, or into one per process. */
bool is_one_output(const struct run *r);
enum status convert_whole(struct run *r, struct error *err, const char **file);
enum status convert_each(struct run *r, struct error *err);

/* reports.c: choice of a run; the report for a type that includes it; TensorBoard's scalars and
 * summary. */
/* Removes inputs of other runs than the wanted one from r->paths. */
enum status choose_run(struct run *r, struct error *err);
enum status make_attachments(struct run *r, struct error *err);
enum status make_scalars(struct run *r, struct error *err);
