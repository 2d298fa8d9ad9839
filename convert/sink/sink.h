/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - writers of formats.  Push on this side: open, put batch after batch, close.
 *
 * The trace's tables are complete at open() (trace.h): string tables, descriptors, Kineto's
 * distributedInfo are written there.  What is known only at the end - XSpace lengths, a cell that
 * closes a step - waits in a spool of the sink's own and is written by close().  A sink holds no
 * event: what put() was given is gone when it returns.
 *
 * A sink writes through `struct out` only: a temporary name, gzip by the name's ending, renamed by
 * out_commit() after close() succeeded; without it nothing is left behind.  It knows no source
 * and no report.
 *
 * An event that the format cannot hold is counted (trace_lose, LOSS_NO_PLACE), never dropped in
 * silence.  Names may hold any byte; what is written is valid.
 *
 * To add a format: write NAME/sink.c that exports `const struct sink_type sink_NAME`, add X(NAME)
 * to sink_list.h, rows in tests/cli/CASES, its real reader in tests/clients/.
 */
#ifndef CONVERT_SINK_SINK_H
#define CONVERT_SINK_SINK_H

#include "convert/stage/pump.h"

struct buf;
struct out; /* one output file or folder (convert/output/output.h) */

enum sink_scope {
	SINK_WHOLE,       /* one output, all inputs merged on one clock: log, text */
	SINK_PER_PROCESS, /* one for each process, never merged: chrome, memory; with more than
			   * one process -o names a folder */
	SINK_EITHER,      /* one for each process where -o names a folder, else one of all */
};

struct sink_attachment {  /* a report on the inputs that the sink carries */
	const char *name; /* of a file */
	const void *bytes;
	size_t len;
};

struct sink_request {
	struct trace *trace;            /* borrowed until free(); a sink adds losses only */
	const struct budget *budget;    /* borrowed until free() */
	uint32_t process;               /* of a file for each process; else 0 */
	const struct context *context;  /* for NEED_STEP and NEED_LINK: phases, marks; or NULL */
	const struct name_rules *rules; /* borrowed until free(); NULL: none are known */
	bool all_args;                  /* --args full */
	struct out *out;                /* borrowed until free() */
	const struct sink_attachment *attachments; /* of wants_report; borrowed until free() */
	size_t attachment_count;
	struct buf *names; /* of an is_folder's files: those of the run so far, each with its NUL;
			    * borrowed until free() */
	bool may_exceed;   /* viewer_most is looked after above: a larger file is thrown away */
};

struct sink {
	const struct sink_type *type;
	/* For the summary of the run: events in the output, and events that the format has nothing
	 * to do with (for memory: all but samples of memory). */
	uint64_t written, left_out;
	uint64_t viewer_bytes; /* after close(): of the file that viewer_most is for */
};

struct sink_type {
	const char *name; /* as in -t NAME */
	const char *help; /* one line */
	enum sink_scope scope;
	bool is_folder; /* -o names a folder, not a file */
	bool is_binary; /* nothing for a terminal */
	uint64_t
		viewer_most; /* bytes of a file, unpacked, beyond which its viewer fails; 0: none */
	bool wants_report;   /* the report on the inputs goes with it, as attachments */
	/* Of a file for each process, in a folder; {host} {pid} {ns} are filled in,
	 * and {rank} as r3, or p1234 where the rank is unknown. */
	const char *file_name;
	unsigned needs; /* enum need */
	enum status (*open)(struct sink **out, const struct sink_request *req, struct error *err);
	enum status (*put)(struct sink *s, const struct batch *batch, struct error *err);
	enum status (*close)(struct sink *s, struct error *err); /* may be NULL */
	void (*free)(struct sink *s); /* after close, or instead of it: then nothing was made */
};

/* Appends the name of a process's file by `file_name` of its type, no NUL; `ns` is for {ns}. */
void sink_put_file_name(const struct sink_type *type, const struct trace *trace, uint32_t process,
			uint64_t ns, struct buf *out);
/* Of names that end with a NUL each: whether one of those before names->data + at is equal to it.
 */
bool sink_is_name_taken(const struct buf *names, size_t at);
/* Appends a name and its NUL to `names`, which no name in it is equal to. */
enum status sink_put_new_name(const struct sink_type *type, const struct trace *trace,
			      uint32_t process, uint64_t ns, struct buf *names, struct error *err);

/*
 * Appends a text as valid UTF-8: each byte that belongs to no character becomes U+FFFD, as does a
 * NUL unless `keeps_nul`.  Returns whether any byte did.
 */
bool sink_put_utf8(const char *text, size_t len, bool keeps_nul, struct buf *out);

#endif
