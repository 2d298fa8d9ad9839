/* SPDX-License-Identifier: Apache-2.0 */
/* columns.h - the columns of tables of events, which csv and sqlite share. */
#pragma once

#include "convert/sink/template.h"

/* The columns have the order and the names of csv. */
#define COLUMN_LIST(X)                                                                             \
	X(TIME, "time_ns") /* begin in ns since the Unix epoch, or since the input's own origin */ \
	X(DURATION, "dur_ns")                                                                      \
	X(KIND, "kind")   /* kernel, memcpy, api ... (schemas/model/event.h) */                    \
	X(CLASS, "class") /* class within the kind: runtime, driver; HtoD; nvtx; flow_begin */     \
	X(NAME, "name")   /* if the event has none: the counter's, or the kind of copy or wait */  \
	X(HOST, "host")                                                                            \
	X(RANK, "rank") /* empty if unknown */                                                     \
	X(PID, "pid")                                                                              \
	X(THREAD, "thread") /* this and the next three are the track's; each may be empty */       \
	X(DEVICE, "device")                                                                        \
	X(CONTEXT, "context")                                                                      \
	X(STREAM, "stream")                                                                        \
	X(CORRELATION, "correlation") /* joins GPU work and its call within a process */           \
	X(BYTES, "bytes")             /* size of copies, fills, allocations and frees */           \
	X(ADDRESS, "address")         /* address of allocations and frees */                       \
	X(VALUE, "value")             /* value of a counter */                                     \
	X(RESULT, "result")           /* result of a call, if it was recorded */                   \
	X(NUMBER, "number") /* number of a step, sequence number of a range, id of a flow */       \
	X(STATE, "state")   /* began_earlier, never_ended, or empty */

enum column {
#define X(column, name) COLUMN_##column,
	COLUMN_LIST(X)
#undef X
		COLUMN_END,
};

struct cell {
	enum {
		CELL_EMPTY,
		CELL_U64,
		CELL_I64, /* ids, because some writers use -1 */
		CELL_F64,
		CELL_WORD, /* a constant text of this program */
		CELL_TEXT, /* a text of the trace, which may contain any bytes */
	} type;
	union {
		uint64_t u64; /* also the bits of CELL_I64 */
		double f64;
		size_t len;
	};
	const char *text; /* borrowed from the trace */
};

struct cell cell_u64(bool is_there, uint64_t u64);
struct cell cell_word(const char *word);                     /* empty for "" */
struct cell cell_name(const struct trace *t, uint32_t name); /* empty for name 0 */

/* Fills all columns except those of the process and the track. */
void columns_of_event(const struct trace *t, const struct event *e, struct cell cells[COLUMN_END]);
void columns_of_track(const struct trace *t, const struct track *k, struct cell cells[COLUMN_END]);

const char *track_type_word(unsigned type); /* returns "stream" etc. */

/* Appends `count` attributes as one JSON object, or nothing if there are none.  `values` are the
 * values of an event's arguments; NULL: the attributes are constants with their own values. */
void put_json_attrs(struct buf *out, const struct trace *t, const struct attr *attrs, size_t count,
		    const uint64_t *values);

/* How a format writes one argument. */
struct arg_format {
	void (*put_key)(struct buf *out, const char *key, size_t len);
	void (*put_value)(struct buf *out, const struct trace *t, uint8_t type, uint64_t bits);
};
extern const struct arg_format json_args; /* `"key": value` */

/* Writes all arguments of events under their names in the trace. */
struct column_args {
	struct templates templates;
	const struct arg_format *format;
	bool all; /* includes fields that Kineto does not write */
};
enum status column_args_init(struct column_args *a, const struct trace *t,
			     const struct arg_format *format, bool all, struct error *err);
/* Appends the arguments, with `begin` before the first one and `between`, such as ", ", before the
 * others. */
enum status column_args_put(struct column_args *a, const struct event *e, const char *begin,
			    const char *between, struct buf *out, struct error *err);
