/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - from the planes of an XSpace to events in a spool.  An importer is used while an
 * XSpace source opens, and is released when it has.
 *
 * GPU planes give streams, /host:CPU threads, every other plane threads that are kept apart by
 * track.context (the plane's number, from 1).  TraceMe events are ranges, calls with a correlation
 * id API events, _r with a step number steps, MemoryAllocation and MemoryDeallocation allocations.
 */
#ifndef CONVERT_SOURCE_XPLANE_IMPORT_H
#define CONVERT_SOURCE_XPLANE_IMPORT_H

#include "convert/source/import.h"
#include "convert/source/xplane/names.h"

struct xplane_import {
	struct import to;
	struct xplane_file *file; /* borrowed */
	struct xplane_names names;
	int64_t base_ns;  /* begin of the profile since the epoch; 0 unknown */
	bool is_absolute; /* some line has times since the epoch */
};

struct xplane_place {    /* where the events of a line are */
	uint32_t plane;  /* its number in the file, from 1 */
	uint32_t device; /* NO_ID: no GPU */
	bool is_gpu, is_host, is_counters, is_derived;
	bool is_waits; /* our own plane of what stands on streams and is no work */
	int64_t timestamp_ns;
	struct track track;
	uint32_t track_id; /* 0: not made yet */
};

/* `process` is a row of the trace.  All need `err`. */
void xplane_import_init(struct xplane_import *x, struct trace *trace, struct spool *spool,
			struct xplane_file *file, uint32_t process);
void xplane_import_release(struct xplane_import *x);

/* Reads a plane: its names, its stats where it is a GPU, its events.  Damage is counted. */
enum status xplane_import_plane(struct xplane_import *x, struct xplane_span plane, const char *name,
				uint32_t number, struct error *err);

/* One XEvent in memory. */
enum status xplane_import_event(struct xplane_import *x, struct bytes event,
				struct xplane_place *place, struct error *err);

/* attrs.c: attributes of the event or device at hand.  The first of several with a name counts. */
enum status xplane_attr(struct xplane_import *x, const char *key, uint8_t type, uint64_t bits,
			bool is_arg, struct error *err);
void xplane_attr_value(struct xplane_import *x, const struct xplane_value *v);
/* "grid:1,2,3 regs:32 num_bytes:4096" becomes fields of the event's kind.  *taken is false where
 * something in the text is unknown. */
enum status xplane_attr_details(struct xplane_import *x, const struct xplane_value *v,
				struct event *e, bool *taken, struct error *err);

#endif
