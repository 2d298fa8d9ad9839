/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - writers of formats.  The caller pushes data: open, put for each batch, close.
 *
 * The trace's tables are complete at open() (trace.h), so string tables, descriptors and Kineto's
 * distributedInfo are written there.  What is final only at the end, such as the lengths in an
 * XSpace, waits in the sink's spool until close() writes it.  A sink must not keep pointers to
 * events, which are valid only during put().
 *
 * A sink writes only through `struct out`, which handles temporary names and gzip and is committed
 * after close() succeeded.  It depends on no source and no report.
 *
 * A sink counts each event that the format cannot hold (trace_lose, LOSS_NO_PLACE).  Names may
 * contain any byte, but outputs must be valid.
 *
 * To add a format, write NAME/sink.c that exports `const struct sink_type sink_NAME`, add X(NAME)
 * to SINK_LIST below, rows in tests/cli/CASES, and a check with its real reader in tests/clients/.
 */
#pragma once

#include "convert/stage/pump.h"
#include "schemas/base/buf.h"

struct out; /* one output file or folder (convert/output/output.h) */

enum sink_scope {
	SINK_WHOLE,       /* one output, all inputs merged on one clock: log, text */
	SINK_PER_PROCESS, /* one output per process, never merged: chrome, memory; with more than
			   * one process -o names a folder */
	SINK_EITHER,      /* one output per process if -o names a folder, otherwise one for all */
};

struct sink_attachment {  /* a report on the inputs that the sink includes in its output */
	const char *name; /* name of the attached file */
	const void *bytes;
	size_t len;
};

struct sink_request {
	struct trace *trace;            /* borrowed until free(); a sink may only add losses */
	const struct budget *budget;    /* borrowed until free() */
	uint32_t process;               /* the process of a file per process; otherwise 0 */
	const struct context *context;  /* phases and marks, for NEED_STEP and NEED_LINK; or NULL */
	const struct name_rules *rules; /* borrowed until free(); NULL: none */
	const struct filter *filter; /* for a type with `cuts`; borrowed until free(); NULL: all */
	bool all_args;               /* --args full */
	bool is_linked;              /* batches have launches even if the sink does not need them */
	bool is_alone;               /* no input has another process */
	struct out *out;             /* borrowed until free() */
	const struct sink_attachment *attachments; /* for wants_report; borrowed until free() */
	size_t attachment_count;
	struct buf *names; /* file names of the run so far, each with its NUL, for a type with
			    * is_folder; borrowed until free() */
	bool may_exceed;   /* the caller enforces viewer_most and removes a larger file */
};

/* The part that all sinks share; the state of each sink begins with it. */
struct sink {
	const struct sink_type *type;
	struct trace *trace; /* these three are from the request */
	struct out *out;
	uint32_t process;
	/* For the summary of the run: the number of events in the output, and of events that are
	 * outside the format's subject (for memory: all except samples of memory). */
	uint64_t written, left_out;
	bool has_launches, has_launched; /* for draws_arrows: there are calls, and GPU work, with
					  * correlation ids */
	uint64_t viewer_bytes; /* after close(): unpacked size of the file for the viewer */
	struct buf lines;      /* bytes that sink_flush() writes */
};

struct sink_type {
	const char *name; /* as in -t NAME */
	const char *help; /* one line */
	enum sink_scope scope;
	bool is_folder;        /* -o names a folder, not a file */
	bool is_binary;        /* not to be written to a terminal */
	bool shows_all_args;   /* the default of --args is full */
	bool draws_arrows;     /* the format or its viewer draws arrows from calls to their work */
	bool cuts;             /* it receives all events, and filters them itself */
	bool wants_report;     /* the report on the inputs is passed as attachments */
	uint64_t viewer_most;  /* bytes unpacked that its viewer opens; 0: no limit */
	const char *file_name; /* form of a file name per process: see sink_put_name() */
	unsigned needs;        /* enum need */
	unsigned needs_for_args; /* the same, if all arguments are shown */
	size_t size; /* size of the sink's state, which is zeroed except for struct sink */
	enum status (*open)(struct sink *s, const struct sink_request *req, struct error *err);
	/* A sink has one of these two functions: for a batch, or for each event of its process (for
	 * each event of all, if one file has all processes). */
	enum status (*put)(struct sink *s, const struct batch *batch, struct error *err);
	enum status (*put_event)(struct sink *s, const struct event *e, struct error *err);
	enum status (*close)(struct sink *s, struct error *err); /* NULL: only sink_flush() */
	void (*release)(struct sink *s); /* undoes open(), even a failed one; may be NULL */
};

enum status sink_open(struct sink **out, const struct sink_type *type,
		      const struct sink_request *req, struct error *err);
enum status sink_put(struct sink *s, const struct batch *batch, struct error *err);
enum status sink_close(struct sink *s, struct error *err);
void sink_free(struct sink *s); /* without close() there is no output; accepts NULL */

/* Writes s->lines if there are at least `least` bytes. */
enum status sink_flush(struct sink *s, size_t least, struct error *err);
enum { SINK_LINES_BYTES = 32 * 1024 };

/*
 * Appends a new name for a process's file and its NUL to `names`: `folder`, then `form`, in which
 * {host} {pid} {ns} are filled in, {rank} becomes r3, or p1234 if the rank is unknown, and {n.} or
 * {.n} becomes "2." or ".2" if `names` has the name already.
 */
enum status sink_put_name(const char *folder, const char *form, const struct trace *trace,
			  uint32_t process, uint64_t ns, struct buf *names, struct error *err);

/* Returns the word of an event's kind; for a range its class, for a call of the driver "driver";
 * "": unknown. */
const char *sink_kind_word(const struct event *e);

/*
 * Appends a text as valid UTF-8: each byte that belongs to no character becomes U+FFFD, and so does
 * a NUL unless `keeps_nul`.  Returns whether it replaced any byte.
 */
bool sink_put_utf8(const char *text, size_t len, bool keeps_nul, struct buf *out);

/* The registry of writers of formats, in the order of --help. */

/* clang-format off */
#define SINK_LIST(X)                                                                               \
	X(chrome) X(perfetto) X(memory) X(text) X(csv) X(sqlite) X(parquet) X(bundle) X(log)       \
	X(tensorboard) X(folded) X(pprof) X(snapshot)
/* clang-format on */

#define X(name) extern const struct sink_type sink_##name;
SINK_LIST(X)
#undef X

extern const struct sink_type *const sink_types[];   /* ends with NULL */
const struct sink_type *sink_find(const char *name); /* NULL: there is none */
