/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - converts the planes of an XSpace to events in a spool.
 *
 * GPU planes have streams, /host:CPU has threads, and every other plane has threads that are
 * distinguished by track.context (the plane's number, from 1).  TraceMe events become ranges, calls
 * with a correlation id API events (by their name or details of GPU work), _r with a step number
 * steps, and MemoryAllocation and MemoryDeallocation allocations.
 */
#pragma once

#include "convert/source/import.h"
#include "schemas/base/map.h"
#include "schemas/base/pb.h"
#include "schemas/proto/xspace.h"

struct input;

/*
 * file.c: reads protobuf messages of any size in an input through one window.  A message is a span
 * of the file; its fields are read one after the other, and a field that is not needed costs only
 * reading its key and length.  Damage ends the span in which it is found, never the enclosing one.
 * After a read error there are no further fields, and `fault` contains the error.
 */
enum { XPLANE_WINDOW = 256 * 1024 }; /* bytes; the most that xplane_bytes() returns */

struct xplane_file {
	const struct input *in; /* borrowed; after input_random() */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;
	struct error fault;
};

struct xplane_span { /* bytes of a message in the file: at <= end <= size */
	uint64_t at, end;
	bool is_truncated;
};
struct xplane_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t u64;
	struct xplane_span span; /* for PB_BYTES; cut off at the end of the message */
};

/*
 * Reads the next field.  Returns false at the end of the message, or if it is damaged
 * (s->is_truncated).  A field that reaches beyond the message is cut off and is the last one.
 */
bool xplane_next(struct xplane_file *f, struct xplane_span *s, struct xplane_field *out);
/* Like xplane_next(), but skips fields that are not messages or texts with this number. */
bool xplane_find(struct xplane_file *f, struct xplane_span *s, uint32_t number,
		 struct xplane_field *out);
/* Returns a whole message or text in memory, borrowed until the next call on `f`.  is_truncated: it
 * is longer than XPLANE_WINDOW or cannot be read. */
struct bytes xplane_bytes(struct xplane_file *f, const struct xplane_span *s);

/*
 * names.c: resolves the ids in one plane at a time: names of events and of stats, and values of
 * stats.  Texts become names of the trace.
 */

/* Stats with a special meaning; all others are attributes under their own name. */
/* clang-format off */
#define XPLANE_ROLE_LIST(X)                                                                  \
	X(CORRELATION, "correlation_id") X(KERNEL_DETAILS, "kernel_details")                 \
	X(MEMCPY_DETAILS, "memcpy_details") X(MEMSET_DETAILS, "Memset_details")              \
	X(ROOT, "_r") X(STEP_NUM, "step_num") X(ITER_NUM, "iter_num")                        \
	X(ADDRESS, "addr") X(ALLOCATED, "bytes_allocated") X(TAKEN, "allocation_bytes")      \
	X(ALLOCATOR, "allocator_name") X(ORDINAL, "device_ordinal")                          \
	X(GRAPH_EXEC, "cuda_graph_exec_id") X(CLASS, XSTAT_CLASS_NAME) X(KIND, XSTAT_KIND_NAME)
/* clang-format on */
enum xplane_role {
	XROLE_NONE,
#define X(name, text) XROLE_##name,
	XPLANE_ROLE_LIST(X)
#undef X
		XROLE_END,
};

struct xplane_value {
	uint32_t key;       /* name id; 0: the stat's metadata is missing, or it has no value */
	uint8_t role, type; /* enum attr_type */
	bool is_constant;   /* belongs to the event's name, so all its events share it */
	uint64_t bits;
};
struct xplane_stat_name {
	int64_t id;
	uint32_t name, key; /* text if a value refers to it; key as an attribute */
	uint8_t role;
};
struct xplane_event_name {
	int64_t id;
	uint32_t name;
	uint32_t first, count; /* constant stats of the name, in `values` */
};

struct xplane_import { /* exists while the source opens */
	struct import to;
	struct xplane_file file;
	struct buf stats, events;       /* struct xplane_stat_name, struct xplane_event_name */
	struct map stat_ids, event_ids; /* ids to indices into the two */
	struct buf values;              /* struct xplane_value */
	struct buf text;                /* scratch memory */
	uint64_t damaged, left_out;     /* invalid stats; texts and values that are not kept */
	uint64_t program_bytes;         /* total size of the programs so far */
	int64_t base_ns;                /* begin of the profile since the epoch; 0: unknown */
	bool is_absolute;               /* some line has times since the epoch */
};

/* None of the following accepts NULL for `err`.  Reads the names of the plane and drops those of
 * the previous one. */
enum status xplane_names_read(struct xplane_import *x, struct xplane_span plane, struct error *err);
/* Reads only the names of stats. */
enum status xplane_stats_read(struct xplane_import *x, struct xplane_span plane, struct error *err);
/* Returns the name of a stat, or 0 if there is none. */
uint32_t xplane_stat_name(const struct xplane_import *x, int64_t id);
/* Returns the name of an event, or NULL if there is none. */
const struct xplane_event_name *xplane_event_name(const struct xplane_import *x, int64_t id);
/* Interns a text in the file, shortened if it is too long. */
enum status xplane_text(struct xplane_import *x, const struct xplane_span *text, uint32_t *name,
			struct error *err);
/* Reads an XStat in memory; out->key is 0 if it has no meaning. */
enum status xplane_value_take(struct xplane_import *x, struct bytes stat, struct xplane_value *out,
			      struct error *err);
/* Reads an XStat that may be long; one longer than the window, such as Hlo Proto, is skipped. */
enum status xplane_value_read(struct xplane_import *x, const struct xplane_span *stat,
			      struct xplane_value *out, struct error *err);
/* Reads a whole number >= 0, whichever type the writer chose. */
bool xplane_value_u64(const struct xplane_import *x, const struct xplane_value *v, uint64_t *out);

struct xplane_place {    /* the line to which events belong */
	uint32_t plane;  /* its number in the file, from 1 */
	uint32_t device; /* NO_ID: no GPU */
	bool is_gpu, is_host, is_counters, is_derived;
	bool is_tpu;   /* an XLA device, not a GPU; its lines determine kinds */
	bool is_waits; /* Tacho's own plane for events on streams that are not work */
	int64_t timestamp_ns;
	struct track track;
	uint32_t track_id; /* 0: not added yet */
};

/* plane.c: reads a plane: its names, the stats of a GPU, its events.  Damage is counted. */
enum status xplane_import_plane(struct xplane_import *x, struct xplane_span plane, const char *name,
				uint32_t number, struct error *err);
/* program.c: adds the compiler's programs in /host:metadata to the attributes of the process, under
 * XSPACE_PROGRAM_KEY.  Must be called between import_begin() and the schema of the process. */
enum status xplane_import_programs(struct xplane_import *x, struct xplane_span plane,
				   struct error *err);
/* event.c: converts one XEvent in memory. */
enum status xplane_import_event(struct xplane_import *x, struct bytes event,
				struct xplane_place *place, struct error *err);

/* attrs.c: adds attributes of the current event or device.  The first one with a given name wins.
 * */
enum status xplane_attr(struct xplane_import *x, const char *key, uint8_t type, uint64_t bits,
			bool is_arg, struct error *err);
enum status xplane_attr_value(struct xplane_import *x, const struct xplane_value *v,
			      struct error *err);
/* Converts a text such as "grid:1,2,3 regs:32 num_bytes:4096" to fields of the event's kind.
 * *taken is false if some part of the text is unknown. */
enum status xplane_attr_details(struct xplane_import *x, const struct xplane_value *v,
				struct event *e, bool *taken, struct error *err);
