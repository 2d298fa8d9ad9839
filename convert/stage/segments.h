/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - segments of PyTorch's caching allocator and blocks in use at an instant.
 *
 * A memory snapshot has the segments at its end, and a ring of the allocator's earlier CUDA
 * operations.  Earlier states follow from the end by undoing operations, the last one first.
 */
#pragma once

#include "schemas/base/map.h"
#include "schemas/base/status.h"
#include "schemas/model/event.h"
#include "schemas/model/trace.h"

enum { SEGMENT_GRAIN = 512 /* PyTorch rounds sizes of blocks to it */ };
struct segment_range {
	uint64_t begin, end; /* addresses */
	uint32_t device, schema;
};
struct segment_ranges {
	struct segment_range *items;
	size_t count, cap;
};
struct segment_operation {
	struct segment_range at;
	bool adds;
};
enum segment_mark {               /* the meaning of a mark in a snapshot */
		    MARK_SEGMENT, /* a segment that exists at the end */
		    MARK_OOM,
		    MARK_FREE_REQUESTED,
		    MARK_SEGMENT_ALLOC,
		    MARK_SEGMENT_MAP,
		    MARK_SEGMENT_FREE,
		    MARK_SEGMENT_UNMAP,
		    SEGMENT_MARKS,
};
struct segments {                      /* zeroed: empty */
	uint32_t names[SEGMENT_MARKS]; /* interned names of the marks */
	struct segment_ranges end;
	struct segment_operation *operations;
	size_t operation_count, operation_cap;
};

struct live_block {
	uint64_t address, bytes, asked_ns; /* asked_ns: its free was requested; 0: no */
	uint32_t device, schema;
};
struct live_blocks {       /* zeroed: empty */
	struct map places; /* index into `items`, by address and device */
	struct live_block *items;
	size_t count, cap;
};
void live_release(struct live_blocks *l);
/* Returns the block at an address, or NULL.  It is valid until the next block is added or removed.
 */
struct live_block *live_find(const struct live_blocks *l, uint64_t address, uint32_t device);
enum status live_put(struct live_blocks *l, const struct event *e, uint32_t device,
		     struct error *err);
void live_remove(struct live_blocks *l, struct live_block *b);

/* Looks up the names of marks.  Returns false if the trace is not from a snapshot. */
bool segments_begin(struct segments *s, const struct trace *t);
void segments_release(struct segments *s);
/* Returns the argument `key` of an event, or 0 if the event has none. */
uint64_t segment_number(const struct trace *t, const struct event *e, const char *key);
/* Stores a segment or an operation from a mark, and returns the meaning of the mark in *which
 * (SEGMENT_MARKS: not one of ours).  The device is that of the mark's track. */
enum status segments_put(struct segments *s, const struct trace *t, const struct event *e,
			 enum segment_mark *which, struct error *err);
/* Returns the segments of `device` (NO_ID: of all devices) after the first `operations` operations,
 * ordered by device and address.  The caller frees `out->items`. */
enum status segments_at(const struct segments *s, size_t operations, uint32_t device,
			struct segment_ranges *out, struct error *err);
