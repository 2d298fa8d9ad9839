/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - turns the planes of an XSpace into events in a spool.
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
 * file.c: protobuf messages of any size in an input, read through one window.  A message is a span
 * of the file; its fields are read one after the other, and what is not looked into costs its key
 * and length only.  Damage ends the span it is found in, never the one around it; a file that
 * cannot be read has no further fields, and its fault stays.
 */
enum { XPLANE_WINDOW = 256 * 1024 }; /* bytes; the most that xplane_bytes() shows */

struct xplane_file {
	const struct input *in; /* borrowed; after input_random() */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;
	struct error fault;
};

struct xplane_span { /* a message's bytes in the file: at <= end <= size */
	uint64_t at, end;
	bool is_truncated;
};
struct xplane_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t u64;
	struct xplane_span span; /* PB_BYTES; where it reached beyond the message it ends there */
};

/*
 * False at the end of the message, or where it is damaged: s->is_truncated.  A field that reaches
 * beyond the message is given, as far as it is there, and is the last.
 */
bool xplane_next(struct xplane_file *f, struct xplane_span *s, struct xplane_field *out);
/* The same, but passes over fields that are not messages or texts of this number. */
bool xplane_find(struct xplane_file *f, struct xplane_span *s, uint32_t number,
		 struct xplane_field *out);
/* A whole message or text in memory, borrowed until the next call on `f`; is_truncated: it is
 * longer than XPLANE_WINDOW. */
struct bytes xplane_bytes(struct xplane_file *f, const struct xplane_span *s);

/*
 * names.c: what the ids in one plane mean, names of events and of stats, and stats as values.  One
 * plane at a time; texts become names of the trace.
 */

/* Stats that are looked at by themselves; all others are attributes under their own name. */
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
	uint32_t key;       /* a name; 0: the stat's metadata is missing, or it has no value */
	uint8_t role, type; /* enum attr_type */
	bool is_constant;   /* stands with the name: the same for all its events */
	uint64_t bits;
};
struct xplane_stat_name {
	int64_t id;
	uint32_t name, key; /* the text of a reference; the key of an attribute */
	uint8_t role;
};
struct xplane_event_name {
	int64_t id;
	uint32_t name;
	uint32_t first, count; /* of its constant stats, in `values` */
};

struct xplane_import { /* used while the source opens */
	struct import to;
	struct xplane_file file;
	struct buf stats, events;       /* struct xplane_stat_name, struct xplane_event_name */
	struct map stat_ids, event_ids; /* their ids to the index there */
	struct buf values;              /* struct xplane_value */
	struct buf text;                /* scratch */
	uint64_t damaged, left_out;     /* stats without meaning; texts that are too long */
	uint64_t program_bytes;         /* of all programs so far */
	int64_t base_ns;                /* begin of the profile since the epoch; 0 unknown */
	bool is_absolute;               /* some line has times since the epoch */
};

/* All of the following need `err`.  Reads the names of the plane, in place of the ones before. */
enum status xplane_names_read(struct xplane_import *x, struct xplane_span plane, struct error *err);
/* The names of stats alone. */
enum status xplane_stats_read(struct xplane_import *x, struct xplane_span plane, struct error *err);
/* The name of a stat; 0: there is none. */
uint32_t xplane_stat_name(const struct xplane_import *x, int64_t id);
/* NULL: there is none. */
const struct xplane_event_name *xplane_event_name(const struct xplane_import *x, int64_t id);
/* A text in the file as a name; one that is too long keeps its beginning. */
enum status xplane_text(struct xplane_import *x, const struct xplane_span *text, uint32_t *name,
			struct error *err);
/* An XStat in memory; key 0 when it has no meaning. */
enum status xplane_value_take(struct xplane_import *x, struct bytes stat, struct xplane_value *out,
			      struct error *err);
/* The same where the message may be long: Hlo Proto and its like are passed over. */
enum status xplane_value_read(struct xplane_import *x, const struct xplane_span *stat,
			      struct xplane_value *out, struct error *err);
/* A whole number >= 0, of whatever type the writer chose. */
bool xplane_value_u64(const struct xplane_import *x, const struct xplane_value *v, uint64_t *out);

struct xplane_place {    /* where the events of a line are */
	uint32_t plane;  /* its number in the file, from 1 */
	uint32_t device; /* NO_ID: no GPU */
	bool is_gpu, is_host, is_counters, is_derived;
	bool is_tpu;   /* a device of XLA that is no GPU: its lines say what their events are */
	bool is_waits; /* our own plane of what stands on streams and is no work */
	int64_t timestamp_ns;
	struct track track;
	uint32_t track_id; /* 0: not made yet */
};

/* plane.c: reads a plane: its names, its stats where it is a GPU, its events.  Damage is counted.
 */
enum status xplane_import_plane(struct xplane_import *x, struct xplane_span plane, const char *name,
				uint32_t number, struct error *err);
/* program.c: the programs of the compiler in /host:metadata become attributes of the process, under
 * XSPACE_PROGRAM_KEY.  Between import_begin() and the schema of the process. */
enum status xplane_import_programs(struct xplane_import *x, struct xplane_span plane,
				   struct error *err);
/* event.c: one XEvent in memory. */
enum status xplane_import_event(struct xplane_import *x, struct bytes event,
				struct xplane_place *place, struct error *err);

/* attrs.c: attributes of the event or device at hand.  The first of several with a name counts. */
enum status xplane_attr(struct xplane_import *x, const char *key, uint8_t type, uint64_t bits,
			bool is_arg, struct error *err);
enum status xplane_attr_value(struct xplane_import *x, const struct xplane_value *v,
			      struct error *err);
/* "grid:1,2,3 regs:32 num_bytes:4096" becomes fields of the event's kind.  *taken is false where
 * something in the text is unknown. */
enum status xplane_attr_details(struct xplane_import *x, const struct xplane_value *v,
				struct event *e, bool *taken, struct error *err);
