/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - tables that the ids of events refer to, and counts of lost records.
 *
 *	names       interned texts
 *	processes   host, command, pid, rank; devices are GPUs of a process
 *	tracks      a stream, thread, allocator or counter of a process, which has events
 *	schemas     argument schemas: const args with their values, keys of argument values
 *	descs       event descriptors: (track, name, schema, kind, subkind), interned
 *	windows     the time spans that were recorded
 *	anchors     readings of several clocks at one instant
 *	losses      counts of missing records, by reason and process
 *
 * A source fills a trace while it opens.  When open() returns, all tables but the losses are
 * complete, so a sink can write its string table or preamble before the first event and does not
 * need the end of the input for it.  Ids are dense, start at 1 and never change; 0 means none.
 * Texts and rows are borrowed until trace_free().  All memory is one arena; beyond its ceiling
 * calls return ST_CEILING.
 *
 * Inputs that are merged share one trace: equal names and equal schemas get one id (a schema holds
 * no track, so the ranks of a job share theirs), and a source keeps one word for each id of its
 * file to translate it.  A trace belongs to one thread.  Accumulators that run in parallel have one
 * trace each, and their tables are combined by text (analyze/engine/table.h).  The collector's
 * writer has a trace too: rows that are new since its last block become table blocks of the log.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

#define NO_RANK UINT32_MAX
struct process {
	uint32_t host, command;         /* name ids; a host is also a clock domain */
	uint32_t pid, rank, world_size; /* rank NO_RANK, world_size 0: unknown */
	uint32_t schema;                /* other attributes as const args: versions, pg_config */
};
struct device {
	uint32_t process, id, name; /* id: CUDA's ordinal in this process */
	uint32_t schema;            /* SMs, memory, capability, uuid, as const args */
};

enum track_type { TRACK_STREAM, TRACK_THREAD, TRACK_ALLOCATOR, TRACK_COUNTER };
#define NO_ID UINT32_MAX
struct track {
	enum track_type type;
	uint32_t process, name;
	uint32_t device;  /* NO_ID: none (a host thread, host memory) */
	uint32_t context; /* NO_ID: unknown */
	uint64_t id;  /* stream id; tid (for an allocator that of the thread that used it); or 0 */
	uint8_t unit; /* enum unit of records.h, for counters */
};

enum attr_type {
	ATTR_U64,
	ATTR_I64,
	ATTR_F64,
	ATTR_TEXT,
	ATTR_JSON /* verbatim, valid JSON */
};
/* A row of the table of tracks: a track and how many of its calls launched GPU work. */
struct track_row {
	struct track track;
	uint64_t launches;
};

/*
 * An argument, or an attribute of a process or device.
 *
 * A key that begins with "." is not an argument but a member of the event in the input's format
 * (".cat", ".tid", ".s" of Chrome JSON).  It is kept if our writer of that format would write
 * another value.
 */
struct attr {
	uint32_t key; /* name id: the field's name in records.def, or the file's */
	uint8_t type, unit;
	uint64_t bits; /* the value; for ATTR_TEXT and ATTR_JSON a name id */
};
struct arg_schema {
	const struct attr *consts; /* const args: the same in each event with this schema */
	const struct attr *args;   /* keys of event.args, in its order; bits unused */
	uint32_t const_count, arg_count;
};

/* An event descriptor holds what many events share.  In a log one column refers to it. */
struct event_desc {
	uint32_t track, name, schema;
	uint8_t kind, subkind;
};

/* A time span that was recorded.  If there is no row, the whole input is one window. */
struct window {
	uint32_t process;
	uint32_t spec;             /* name id: the window as the user specified it; 0: unknown */
	uint64_t begin_ns, end_ns; /* recorded time span; end_ns 0: never closed */
	uint64_t own_ns;           /* time that the collector took, as measured by it */
	bool cut_short;            /* the window ended early */
};

/* The same instant on three clocks of one process. */
struct anchor {
	uint32_t process;
	uint64_t realtime_ns, monotonic_ns;
	uint64_t cupti_ns; /* 0: no CUPTI */
};

/* The reasons why records are missing, for the collector, sources, filters and sinks.  The numbers
 * are on disk: append only. */
#define LOSS_LIST(X)                                                                               \
	X(CUPTI, 1, "dropped by CUPTI")                                                            \
	X(RING, 2, "ring full")                                                                    \
	X(BUFFER, 3, "no buffer left")                                                             \
	X(CEILING, 4, "over a memory limit")                                                       \
	X(NO_TIME, 5, "without usable times")                                                      \
	X(DAMAGED, 6, "damaged")                                                                   \
	X(CUT_OUT, 7, "cut out by an option")                                                      \
	X(SUMMED, 8, "summed up by --max-size")                                                    \
	X(NO_PLACE, 9, "not representable in the output format")                                   \
	X(DERIVED, 10, "flow events that repeat correlation ids")                                  \
	X(DISK, 11, "not written: disk full or over --max-disk")                                   \
	X(ORDER, 12, "moved up to keep time order")                                                \
	X(UNREAD, 13, "rows of tables that are not read")                                          \
	X(DEATH, 14, "or more of the last second, held by CUPTI when the process died")
enum loss {
#define X(name, number, text) LOSS_##name = number,
	LOSS_LIST(X)
#undef X
		LOSS_END,
};
const char *loss_text(enum loss why); /* "damaged"; "unknown" for numbers of a newer writer */

/* What is known about an input as a whole. */
struct provenance {
	uint32_t format;       /* name id: "Tacho log", "Kineto JSON" */
	uint32_t sources;      /* name id: the files that an output was made from, each as
				  input_identity() and a line feed */
	bool is_whole;         /* the input was closed properly */
	bool is_synthetic;     /* made by a generator, not by a run */
	bool epoch_known;      /* times are since the Unix epoch, not since something else */
	uint64_t events;       /* number of events; 0: unknown when open() returns */
	uint64_t unread_bytes; /* bytes after the last whole block or event */
};

/*
 * A node of the calling-context tree stands for the ranges that were open on a thread, from the
 * outermost to the innermost.  Threads of a process share the tree.  Marks of steps are no nodes,
 * so a call path has one node in all steps.
 */
struct path_node {
	uint32_t parent; /* 0: the root of a process */
	uint32_t name;   /* name id; for a root the process */
	uint32_t owner;  /* trace_owner() */
	uint8_t class;   /* enum range_class, enum path_class */
	bool has_range;  /* the path has an operator, annotation or phase, so `owner` is no Python
			    function */
	uint8_t pass;    /* enum path_pass, from the innermost mark of the path */
	uint16_t depth;  /* number of ancestors */
};
enum { PATHS_MAX = 1 << 18 };

/* Nodes that are no ranges.  A node BACKWARD below a forward operator contains what autograd does
 * for that operator, and RECOMPUTE contains the forward pass that activation checkpointing repeats.
 * These two marks have the name of the surrounding range, for trace_owner().  Code that sums by
 * path adds the leaves WORK and IDLE. */
enum path_class {
	PATH_IDLE = 250, /* name: cause of the idle time, set by the report that adds the leaf */
	PATH_WORK,       /* name id of the GPU work */
	PATH_BACKWARD,
	PATH_RECOMPUTE,
	PATH_ROOT,
	PATH_OTHER,
};
enum path_pass { PASS_FORWARD, PASS_BACKWARD, PASS_RECOMPUTE };

enum status trace_new(struct trace **out, size_t ceiling, struct error *err);
void trace_free(struct trace *t); /* accepts NULL */

/* These find or add a row and copy their input; equal rows get one id.  They return 0 and *err if
 * memory or the ceiling does not suffice. */
uint32_t trace_name(struct trace *t, const char *text, size_t len, struct error *err);
uint32_t trace_process(struct trace *t, const struct process *p, struct error *err);
uint32_t trace_device(struct trace *t, const struct device *d, struct error *err);
uint32_t trace_track(struct trace *t, const struct track *k, struct error *err);
uint32_t trace_schema(struct trace *t, const struct arg_schema *s, struct error *err);
uint32_t trace_desc(struct trace *t, const struct event_desc *s, struct error *err);
/*
 * Returns the node below `parent` for a range of this name and enum range_class.  If `parent` is 0,
 * it is the root of the process `name`.  Beyond PATHS_MAX nodes, new ones become "(other)" below
 * the same parent.  Returns 0 without memory; callers continue without a path.
 */
uint32_t trace_path(struct trace *t, uint32_t parent, uint32_t name, unsigned class);
/* Returns the mark BACKWARD or RECOMPUTE below `parent`, a node of another time or thread.  `open`
 * is the node where it happens, whose owner becomes that of the mark. */
uint32_t trace_path_mark(struct trace *t, uint32_t parent, uint32_t open, enum path_class class);
/* These always add a row. */
uint32_t trace_window(struct trace *t, const struct window *w, struct error *err);
uint32_t trace_anchor(struct trace *t, const struct anchor *a, struct error *err);

/*
 * A track is identified by (track type, process, device, context, id), a counter by its name too.
 * The name of a thread may come later than the thread, and is set here.  A process is identified by
 * (host, pid, rank); everything else may be set later.
 */
void trace_set_track_name(struct trace *t, uint32_t track, uint32_t name);
void trace_set_process(struct trace *t, uint32_t process, const struct process *p);
/* Counts calls of a thread that launch GPU work: the thread with most of them is the step thread of
 * its process.  Every source that makes api events has to call this. */
void trace_add_launches(struct trace *t, uint32_t track, uint64_t count);
void trace_set_window(struct trace *t, uint32_t window, const struct window *w);
/* Makes one window of those of a process that follow each other without a gap, as they do in logs
 * that continue each other.  Ids of windows change. */
void trace_join_windows(struct trace *t);

enum trace_table {
	TRACE_NAMES,
	TRACE_PROCESSES,
	TRACE_DEVICES,
	TRACE_TRACKS,
	TRACE_SCHEMAS,
	TRACE_DESCS,
	TRACE_WINDOWS,
	TRACE_ANCHORS,
	TRACE_PATHS,
	TRACE_TABLE_COUNT,
};
/* Returns the number of rows; ids are 1 .. trace_count(). */
uint32_t trace_count(const struct trace *t, enum trace_table table);

/* These look up an id; 0 and ids out of range give an empty text or a zeroed row, never NULL. */
const char *trace_text(const struct trace *t, uint32_t name, size_t *len); /* NUL-terminated */
const void *trace_row(const struct trace *t, enum trace_table table,
		      uint32_t id); /* not TRACE_NAMES */
#define TRACE_GET(name, type, table)                                                               \
	static inline const struct type *trace_get_##name(const struct trace *t, uint32_t id)      \
	{                                                                                          \
		return trace_row(t, table, id);                                                    \
	}
TRACE_GET(process, process, TRACE_PROCESSES)
TRACE_GET(device, device, TRACE_DEVICES)
TRACE_GET(track, track, TRACE_TRACKS) /* the first member of a struct track_row */
TRACE_GET(schema, arg_schema, TRACE_SCHEMAS)
TRACE_GET(desc, event_desc, TRACE_DESCS)
TRACE_GET(window, window, TRACE_WINDOWS)
TRACE_GET(anchor, anchor, TRACE_ANCHORS)
TRACE_GET(path, path_node, TRACE_PATHS)
#undef TRACE_GET
/* Returns the name of the range that owns what happens at a node: the innermost operator,
 * annotation or phase, otherwise the innermost Python function; 0: none. */
static inline uint32_t trace_owner(const struct trace *t, uint32_t path)
{
	return trace_get_path(t, path)->owner;
}
uint64_t trace_launches(const struct trace *t, uint32_t track);
/* Returns the device with this process and ordinal of CUDA, or 0. */
uint32_t trace_find_device(const struct trace *t, uint32_t process, uint32_t id);
/* Returns a name only if it was added before, otherwise 0, for tables of common names. */
uint32_t trace_find_name(const struct trace *t, const char *text, size_t len);
/* Returns the const arg `key` of an argument schema, or NULL. */
const struct attr *trace_find_attr(const struct trace *t, uint32_t schema, const char *key);
/* Returns the text of a const arg if it is a text or JSON, otherwise NULL. */
const char *trace_attr_text(const struct trace *t, uint32_t schema, const char *key);
/* Returns the number of a const arg if it is a whole number, otherwise 0. */
uint64_t trace_attr_number(const struct trace *t, uint32_t schema, const char *key);

/* Counts missing records of a process, or of the input as a whole if `process` is 0. */
void trace_lose(struct trace *t, uint32_t process, enum loss why, uint64_t count);
/* A time span in which records are missing, according to the input.  Their number is bounded;
 * further ones extend the last span. */
struct lost_span {
	uint64_t begin_ns, end_ns;
};
void trace_lose_between(struct trace *t, uint64_t begin_ns, uint64_t end_ns);
size_t trace_lost_spans(const struct trace *t, const struct lost_span **out);
/* Returns the sum over all processes if `process` is 0. */
uint64_t trace_lost(const struct trace *t, uint32_t process, enum loss why);
/* Sums all reasons except DERIVED, CUT_OUT, ORDER and UNREAD, which lose nothing that the user
 * wants. */
uint64_t trace_lost_total(const struct trace *t, uint32_t process);

struct provenance *trace_provenance(struct trace *t); /* the caller may write; never NULL */
