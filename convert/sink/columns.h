/* SPDX-License-Identifier: Apache-2.0 */
/* columns.h - the columns of tables of events, which csv and sqlite share. */
#pragma once

#include "convert/sink/template.h"

/* The columns have the order and the names of csv. */
#define COLUMN_LIST(X)                                                                             \
	X(TIME, "time_ns") /* begin, ns since the Unix epoch or what the input counts from */      \
	X(DURATION, "dur_ns")                                                                      \
	X(KIND, "kind")   /* kernel, memcpy, api ... (schemas/model/event.h) */                    \
	X(CLASS, "class") /* within the kind: runtime, driver; HtoD; nvtx; flow_begin */           \
	X(NAME, "name")   /* else that of the counter, else the kind of copy or wait */            \
	X(HOST, "host")                                                                            \
	X(RANK, "rank") /* empty where it is unknown */                                            \
	X(PID, "pid")                                                                              \
	X(THREAD, "thread") /* of the track, as the three that follow, each empty without one */   \
	X(DEVICE, "device")                                                                        \
	X(CONTEXT, "context")                                                                      \
	X(STREAM, "stream")                                                                        \
	X(CORRELATION, "correlation") /* joins GPU work and its call, within a process */          \
	X(BYTES, "bytes")             /* of copies, fills and memory */                            \
	X(ADDRESS, "address")         /* of memory */                                              \
	X(VALUE, "value")             /* of a counter */                                           \
	X(RESULT, "result")           /* of a call, where it was recorded */                       \
	X(NUMBER, "number")           /* of a step; sequence number of a range; id of a flow */    \
	X(STATE, "state")             /* began_earlier, never_ended, or empty */

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
		CELL_I64, /* of ids: some writers have -1 */
		CELL_F64,
		CELL_WORD, /* a constant text of ours */
		CELL_TEXT, /* from the trace: any bytes */
	} type;
	union {
		uint64_t u64; /* CELL_I64: the same bits */
		double f64;
		size_t len;
	};
	const char *text; /* borrowed from the trace */
};

struct cell cell_u64(bool is_there, uint64_t u64);
struct cell cell_word(const char *word);                     /* empty without characters */
struct cell cell_name(const struct trace *t, uint32_t name); /* empty for name 0 */

/* Fills all columns except those of the process and the track. */
void columns_of_event(const struct trace *t, const struct event *e, struct cell cells[COLUMN_END]);
void columns_of_track(const struct trace *t, const struct track *k, struct cell cells[COLUMN_END]);

const char *track_type_word(unsigned type); /* "stream" */

/* Appends `count` attributes as one JSON object, or nothing if there are none.  `values` are those
 * of an event; NULL: the attributes have them. */
void put_json_attrs(struct buf *out, const struct trace *t, const struct attr *attrs, size_t count,
		    const uint64_t *values);

/* How a format spells one argument. */
struct arg_format {
	void (*put_key)(struct buf *out, const char *key, size_t len);
	void (*put_value)(struct buf *out, const struct trace *t, uint8_t type, uint64_t bits);
};
extern const struct arg_format json_args; /* `"key": value` */

/* All arguments of events, under their names in the trace. */
struct column_args {
	struct templates templates;
	const struct arg_format *format;
	bool all; /* also fields that Kineto does not write */
};
enum status column_args_init(struct column_args *a, const struct trace *t,
			     const struct arg_format *format, bool all, struct error *err);
/* Appends the arguments with `begin` before the first and a separator such as ", " before the
 * others. */
enum status column_args_put(struct column_args *a, const struct event *e, const char *begin,
			    const char *between, struct buf *out, struct error *err);
