/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - what the ids in an event mean: names, tracks, shapes, sites, and the books of a run.
 *
 * A source fills it while it opens; when open() returns, processes, tracks, names, shapes and
 * sites are complete ("tables first"), so a sink can write its string table, descriptors or
 * preamble before the first event and never needs the end of the input for it.  Afterwards only
 * losses are added.  Ids are dense, start at 1 and never change.  Texts and rows are borrowed
 * until trace_free(): memory is one arena with a ceiling, ST_CEILING beyond it.
 *
 * Many inputs into one timeline share one trace: equal names and equal shapes become one id (a
 * shape holds no track, so 1,024 ranks of one job share theirs); a source keeps one word per
 * local id to translate.  One trace belongs to one thread; folds that run side by side have one
 * each and meet as tables, by text (analyze/table.h).  The collector's writer has one as well:
 * the rows that are new since its last block are what it writes as table blocks.
 */
#ifndef SCHEMAS_TRACE_H
#define SCHEMAS_TRACE_H

#include "schemas/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

#define NO_RANK UINT32_MAX
struct process {
	uint32_t host, command; /* names; the host is also the clock domain */
	uint32_t pid, rank, world_size; /* rank NO_RANK, world_size 0: unknown */
	uint32_t shape; /* all else that is known of it, as attributes: versions, pg_config ... */
};
struct device {
	uint32_t process, id, name; /* id: CUDA's ordinal in this process */
	uint32_t shape;             /* SMs, memory, capability, uuid ... as attributes */
};

enum home { HOME_STREAM, HOME_THREAD, HOME_POOL, HOME_COUNTER };
#define NO_ID UINT32_MAX
struct track {
	enum home home;
	uint32_t process, name;
	uint32_t device;  /* NO_ID: none (a host thread, host memory) */
	uint32_t context; /* NO_ID: unknown */
	uint64_t id;      /* stream id, tid (also of the thread that used a pool), or 0 */
	uint8_t unit;     /* enum unit of records.h; counters only */
};

enum attr_type { ATTR_U64, ATTR_I64, ATTR_F64, ATTR_TEXT, ATTR_JSON /* verbatim, valid JSON */ };
/*
 * A key that begins with "." is no argument but a member of the event itself in the format that
 * it came from (".cat", ".tid", ".s" of Chrome JSON): kept where it differs from what our writer
 * of that format would write by itself.
 */
struct attr {
	uint32_t key; /* a name: the field's in records.def, or what the file called it */
	uint8_t type, unit;
	uint64_t bits; /* the value; for ATTR_TEXT and ATTR_JSON a name */
};
struct shape {
	const struct attr *fixed; /* the same for each event of this shape */
	const struct attr *vary;  /* keys of event.vary, in its order; bits unused */
	uint32_t fixed_count, vary_count;
};

/* What repeats of an event, whole: one row of the dictionary that the log's column points to. */
struct site {
	uint32_t track, name, shape;
	uint8_t kind, subkind;
};

/* A stretch that was recorded.  Without any row the whole input is one window. */
struct window {
	uint32_t process;
	uint32_t spec;             /* name: what was asked for, as text; 0 unknown */
	uint64_t begin_ns, end_ns; /* what was got; end_ns 0: never closed */
	uint64_t own_ns;           /* time the collector took inside it, by its own account */
	bool cut_short;            /* ended before what was asked for */
};

/* The same instant on three clocks of one process. */
struct anchor {
	uint32_t process;
	uint64_t realtime_ns, monotonic_ns;
	uint64_t cupti_ns; /* 0: no CUPTI */
};

/* Why records are missing.  One list for collector, sources, cuts and sinks; rows are on disk. */
#define LOSS_LIST(X)                                                                               \
	X(CUPTI, 1, "dropped by CUPTI")                                                            \
	X(RING, 2, "ring full")                                                                    \
	X(BUFFER, 3, "no buffer left")                                                             \
	X(CEILING, 4, "over a ceiling")                                                            \
	X(NO_TIME, 5, "without usable times")                                                      \
	X(DAMAGED, 6, "damaged")                                                                   \
	X(CUT_OUT, 7, "cut out by an option")                                                      \
	X(SUMMED, 8, "summed up by --max-size")                                                    \
	X(NO_PLACE, 9, "not representable in the output format")                                   \
	X(DERIVED, 10, "arrows that are drawn again from correlation ids")                         \
	X(DISK, 11, "not written: disk full or over --max-disk")                                   \
	X(ORDER, 12, "moved up to keep time order")                                                \
	X(UNREAD, 13, "rows of tables that are not read")
enum loss {
#define X(name, number, text) LOSS_##name = number,
	LOSS_LIST(X)
#undef X
	LOSS_END,
};
const char *loss_text(enum loss why); /* "damaged"; "unknown" for numbers of a newer writer */

/* What an input says of itself as a whole. */
struct provenance {
	uint32_t format;       /* name: "Tacho log", "Kineto JSON" */
	bool is_whole;         /* it says that it was closed properly */
	bool is_synthetic;     /* made by a generator */
	bool epoch_known;      /* times are since the Unix epoch, not since something else */
	uint64_t events;       /* that open() knows of; 0 unknown */
	uint64_t unread_bytes; /* left after the last whole block or event */
};

enum status trace_new(struct trace **out, size_t ceiling, struct error *err);
void trace_free(struct trace *t); /* accepts NULL */

/* Find or add; equal input gives the equal id.  0 and *err on a ceiling.  Inputs are copied. */
uint32_t trace_name(struct trace *t, const char *text, size_t len, struct error *err);
uint32_t trace_process(struct trace *t, const struct process *p, struct error *err);
uint32_t trace_device(struct trace *t, const struct device *d, struct error *err);
uint32_t trace_track(struct trace *t, const struct track *k, struct error *err);
uint32_t trace_shape(struct trace *t, const struct shape *s, struct error *err);
uint32_t trace_site(struct trace *t, const struct site *s, struct error *err);
/* Always added. */
uint32_t trace_window(struct trace *t, const struct window *w, struct error *err);
uint32_t trace_anchor(struct trace *t, const struct anchor *a, struct error *err);

/*
 * A track's identity is (home, process, device, context, id), for a counter the name too.  A
 * thread's name may come later than the thread: it is set here, not part of the identity.
 * Likewise what is learnt late of a process; the row's identity is (host, pid, rank).
 */
void trace_set_track_name(struct trace *t, uint32_t track, uint32_t name);
void trace_set_process(struct trace *t, uint32_t process, const struct process *p);
void trace_add_launches(struct trace *t, uint32_t track, uint64_t count);
void trace_set_window(struct trace *t, uint32_t window, const struct window *w);

enum trace_table {
	TRACE_NAMES, TRACE_PROCESSES, TRACE_DEVICES, TRACE_TRACKS, TRACE_SHAPES, TRACE_SITES,
	TRACE_WINDOWS, TRACE_ANCHORS,
	TRACE_TABLE_COUNT,
};
/* Rows so far: ids are 1 .. trace_count(). */
uint32_t trace_count(const struct trace *t, enum trace_table table);

/* By id; id 0 and ids out of range give an empty text or a zeroed row, never NULL. */
const char *trace_text(const struct trace *t, uint32_t name, size_t *len); /* NUL-terminated */
const struct process *trace_get_process(const struct trace *t, uint32_t id);
const struct device *trace_get_device(const struct trace *t, uint32_t id);
const struct track *trace_get_track(const struct trace *t, uint32_t id);
const struct shape *trace_get_shape(const struct trace *t, uint32_t id);
const struct site *trace_get_site(const struct trace *t, uint32_t id);
const struct window *trace_get_window(const struct trace *t, uint32_t id);
const struct anchor *trace_get_anchor(const struct trace *t, uint32_t id);
uint64_t trace_launches(const struct trace *t, uint32_t track);
/* The row of (process, CUDA's ordinal), or 0. */
uint32_t trace_find_device(const struct trace *t, uint32_t process, uint32_t id);
/* A name that is there already, or 0: for tables of well-known names. */
uint32_t trace_find_name(const struct trace *t, const char *text, size_t len);
/* The fixed attribute `key` of a shape, or NULL. */
const struct attr *trace_find_attr(const struct trace *t, uint32_t shape, const char *key);

/* process 0: of the input as a whole. */
void trace_lose(struct trace *t, uint32_t process, enum loss why, uint64_t count);
/* Where it is known: a stretch of which records of any process are missing.  What is too much to
 * keep makes the last stretch longer. */
struct lost_span {
	uint64_t begin_ns, end_ns;
};
void trace_lose_between(struct trace *t, uint64_t begin_ns, uint64_t end_ns);
size_t trace_lost_spans(const struct trace *t, const struct lost_span **out);
/* Sum over all processes when `process` is 0. */
uint64_t trace_lost(const struct trace *t, uint32_t process, enum loss why);
/* All reasons; DERIVED, CUT_OUT, ORDER and UNREAD lose nothing that was asked for: left out. */
uint64_t trace_lost_total(const struct trace *t, uint32_t process);

struct provenance *trace_provenance(struct trace *t); /* the caller may write; never NULL */

#endif
