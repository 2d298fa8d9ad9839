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
 * To add a format: write sink_NAME.c that exports `const struct sink_type sink_NAME`, add X(NAME)
 * to SINK_LIST, rows in tests/cli/CASES, its real reader in tests/clients/.
 */
#ifndef CONVERT_SINK_H
#define CONVERT_SINK_H

#include "convert/pump.h"

struct buf;
struct out; /* one output file or folder (convert/out.h) */

enum sink_scope {
	SINK_WHOLE,       /* one output, all inputs merged on one clock: log, text */
	SINK_PER_PROCESS, /* one for each process, never merged: chrome, memory; with more than
	                   * one process -o names a folder */
	SINK_EITHER,      /* one for each process where -o names a folder, else one of all */
};

struct sink_paper { /* a page that the roof has made for a sink that carries it */
	const char *name; /* of a file */
	const void *bytes;
	size_t len;
};

struct sink_request {
	struct trace *trace;         /* borrowed until free(); a sink adds losses only */
	const struct budget *budget; /* borrowed until free() */
	uint32_t process;            /* of a file for each process; else 0 */
	const struct source *step;   /* of NEED_STEP: asked after each put for stretches and marks */
	const struct name_rules *rules; /* borrowed until free(); NULL: none are known */
	bool all_args;               /* --args full */
	struct out *out;             /* borrowed until free() */
	const struct sink_paper *papers; /* of wants_report; borrowed until free() */
	size_t paper_count;
	struct buf *names; /* of an is_folder's files: those of the run so far, each with its NUL;
			    * borrowed until free() */
	bool may_exceed;   /* viewer_most is looked after above: a larger file is thrown away */
	bool is_per_node;  /* one file for all ranks of a host, where the format has such */
};

struct sink {
	const struct sink_type *type;
	/* For the account of the run: events that are in the output, and those that are no business
	 * of the format (all but samples of memory, for memory). */
	uint64_t written, left_out;
	uint64_t viewer_bytes; /* after close(): of the file that viewer_most is for */
};

struct sink_type {
	const char *name; /* as in -t NAME */
	const char *help; /* one line */
	enum sink_scope scope;
	bool is_folder;   /* -o names a folder, not a file */
	bool is_binary;   /* nothing for a terminal */
	uint64_t viewer_most; /* bytes of a file, unpacked, beyond which its viewer fails; 0: none */
	bool wants_report; /* the report on the inputs goes with it, as papers */
	/* Of a file for each process, in a folder; {host} {pid} {ns} are filled in,
	 * and {rank} as r3, or p1234 where the rank is unknown. */
	const char *file_name;
	unsigned needs;   /* enum need */
	enum status (*open)(struct sink **out, const struct sink_request *req, struct error *err);
	enum status (*put)(struct sink *s, const struct event *events, size_t count,
			   struct error *err);
	enum status (*close)(struct sink *s, struct error *err); /* may be NULL */
	void (*free)(struct sink *s); /* after close, or instead of it: then nothing was made */
};

#define SINK_LIST(X) X(chrome) X(perfetto) X(memory) X(text) X(csv) X(sqlite) X(bundle) \
	X(log) X(tensorboard)
#define X(name) extern const struct sink_type sink_##name;
SINK_LIST(X)
#undef X

const struct sink_type *sink_find(const char *name); /* NULL when there is none */
const struct sink_type *sink_at(size_t i);           /* NULL past the last: for --help */

/* Appends the name of a process's file by `file_name` of its type, no NUL; `ns` is for {ns}. */
void sink_put_file_name(const struct sink_type *type, const struct trace *trace, uint32_t process,
			uint64_t ns, struct buf *out);
/* Appends a name and its NUL to `names`, which holds such, that none of them is. */
enum status sink_put_new_name(const struct sink_type *type, const struct trace *trace,
			      uint32_t process, uint64_t ns, struct buf *names, struct error *err);

#endif
