/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - the columns of tables of events: the same cells in csv and sqlite.
 *
 *	time_ns     begin, ns since the Unix epoch (or since what the input counts from)
 *	dur_ns      duration; 0 of an instant
 *	kind        kernel, memcpy, api ... (schemas/model/event.h)
 *	class       within the kind: runtime, driver; HtoD; nvtx, cpu_op; flow_begin
 *	name        the event's own, else that of its counter, else the kind of copy or wait
 *	correlation  joins GPU work and the call that launched it, within a process; empty: none
 *	bytes        of copies, fills and memory
 *	address      of memory
 *	value        of a counter
 *	result       of a call, where it was recorded
 *	number       of a step; sequence number of a range; id of a flow
 *	state        began_earlier, never_ended, or empty
 *	host, rank, pid                   of the process; rank empty where it is unknown
 *	thread, device, context, stream   of the track, each empty where it has none
 */
#ifndef CONVERT_SINK_COLUMNS_H
#define CONVERT_SINK_COLUMNS_H

#include "convert/sink/template.h"

enum column {
	COLUMN_TIME,
	COLUMN_DURATION,
	COLUMN_KIND,
	COLUMN_CLASS,
	COLUMN_NAME,
	COLUMN_CORRELATION,
	COLUMN_BYTES,
	COLUMN_ADDRESS,
	COLUMN_VALUE,
	COLUMN_RESULT,
	COLUMN_NUMBER,
	COLUMN_STATE,
	COLUMN_EVENT_END,
	COLUMN_HOST = COLUMN_EVENT_END,
	COLUMN_RANK,
	COLUMN_PID,
	COLUMN_THREAD,
	COLUMN_DEVICE,
	COLUMN_CONTEXT,
	COLUMN_STREAM,
	COLUMN_END,
};

struct cell {
	enum {
		CELL_EMPTY,
		CELL_U64,
		CELL_I64,
		CELL_F64,
		CELL_WORD, /* a constant text of ours */
		CELL_TEXT, /* from the trace: any bytes */
	} type;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		size_t len;
	};
	const char *text; /* borrowed from the trace */
};

struct cell cell_u64(bool is_there, uint64_t u64);
struct cell cell_i64(bool is_there, uint64_t bits);          /* of ids: some writers have -1 */
struct cell cell_word(const char *word);                     /* empty without characters */
struct cell cell_name(const struct trace *t, uint32_t name); /* empty for name 0 */

/* Fills the columns before COLUMN_EVENT_END; those from it on. */
void columns_of_event(const struct trace *t, const struct event *e, struct cell cells[COLUMN_END]);
void columns_of_track(const struct trace *t, const struct track *k, struct cell cells[COLUMN_END]);

const char *track_type_word(unsigned type); /* "stream" */

/* Appends `count` attributes as one JSON object, nothing where there are none; `values` are those
 * of an event, NULL: the attributes' own. */
void put_json_attrs(struct buf *out, const struct trace *t, const struct attr *attrs, size_t count,
		    const uint64_t *values);

/* How a format spells one argument. */
struct arg_format {
	void (*put_key)(struct buf *out, const char *key, size_t len);
	void (*put_value)(struct buf *out, const struct trace *t, uint8_t type, uint64_t bits);
};
extern const struct arg_format json_args; /* `"key": value` */

/* All arguments that are known of events, under the names that the trace has for them. */
struct column_args {
	struct templates templates;
	const struct arg_format *format;
	bool all; /* also fields that Kineto does not write */
};
enum status column_args_init(struct column_args *a, const struct trace *t,
			     const struct arg_format *format, bool all, struct error *err);
void column_args_release(struct column_args *a); /* accepts a zeroed one */
/* Appends the arguments, `begin` before the first and ", " or the like before the others. */
enum status column_args_put(struct column_args *a, const struct event *e, const char *begin,
			    const char *between, struct buf *out, struct error *err);

#endif
