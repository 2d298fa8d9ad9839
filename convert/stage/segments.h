/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h - segments of PyTorch's caching allocator and blocks in use at an instant.
 *
 * A memory snapshot has them as of its end, and a ring of the allocator's earlier CUDA operations.
 * Earlier states follow from the end by undoing operations, the last one first.
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
enum segment_mark {               /* the meaning of a mark of a snapshot */
		    MARK_SEGMENT, /* as it is at the end */
		    MARK_OOM,
		    MARK_FREE_REQUESTED,
		    MARK_SEGMENT_ALLOC,
		    MARK_SEGMENT_MAP,
		    MARK_SEGMENT_FREE,
		    MARK_SEGMENT_UNMAP,
		    SEGMENT_MARKS,
};
struct segments {                      /* zeroed: empty */
	uint32_t names[SEGMENT_MARKS]; /* of marks, as interned */
	struct segment_ranges end;
	struct segment_operation *operations;
	size_t operation_count, operation_cap;
};

struct live_block {
	uint64_t address, bytes, asked_ns; /* asked_ns: when its free was requested; 0: not yet */
	uint32_t device, schema;
};
struct live_blocks {       /* zeroed: empty */
	struct map places; /* by address and device */
	struct live_block *items;
	size_t count, cap;
};
void live_release(struct live_blocks *l);
/* Returns a block, which is valid until the next one is put or removed, or NULL. */
struct live_block *live_find(const struct live_blocks *l, uint64_t address, uint32_t device);
enum status live_put(struct live_blocks *l, const struct event *e, uint32_t device,
		     struct error *err);
void live_remove(struct live_blocks *l, struct live_block *b);

/* Returns false if the trace is not from a snapshot. */
bool segments_begin(struct segments *s, const struct trace *t);
void segments_release(struct segments *s);
/* Returns an argument of an event, or 0. */
uint64_t segment_number(const struct trace *t, const struct event *e, const char *key);
/* Takes a mark of the track of `device` and returns which it is. */
enum status segments_put(struct segments *s, const struct trace *t, const struct event *e,
			 enum segment_mark *which, struct error *err);
/* Returns the segments of a device (NO_ID: all) after so many operations, by address; the caller
 * frees the items. */
enum status segments_at(const struct segments *s, size_t operations, uint32_t device,
			struct segment_ranges *out, struct error *err);
