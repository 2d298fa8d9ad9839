/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - fields.c reads dictionaries of a snapshot, events.c makes events, and source.c
 * decides which events follow from which fields.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/pickle/pickle.h"
#include "schemas/base/map.h"

enum { SNAPSHOT_DEVICES = 64, SNAPSHOT_US = 1000 /* nanoseconds */ };
enum { LIST_TRACES, LIST_SEGMENTS, LIST_ANNOTATIONS };

/* Sums of a segment at the end, and under which name they are arguments of its mark. */
#define SEGMENT_LIST(X)                                                                            \
	X(TOTAL, "bytes", "of the segment")                                                        \
	X(ALLOCATED, "allocated_bytes", "of blocks in use")                                        \
	X(PENDING, "pending_bytes", "of blocks that another stream still uses")                    \
	X(REQUESTED, "requested_bytes", "what the program asked for, of blocks in use")            \
	X(INACTIVE, "inactive_bytes", "of free blocks")                                            \
	X(LARGEST, "largest_inactive_bytes", "of the largest free block")                          \
	X(BLOCKS, "blocks", "blocks in use or pending")                                            \
	X(FREE_BLOCKS, "free_blocks", "free blocks")
enum segment_sum {
#define X(name, key, text) SEGMENT_##name,
	SEGMENT_LIST(X)
#undef X
		SEGMENT_SUMS,
};

/* Texts that an entry may have, and as which attribute. */
enum { TEXT_METADATA, TEXT_CONTEXT, TEXT_CATEGORY, SNAPSHOT_TEXTS };
extern const char *const snapshot_text_keys[SNAPSHOT_TEXTS];

/* Where memory is, and who took it. */
struct place {
	int64_t address, size, stream, pool[2];
	uint32_t stack, device; /* stack: place in `stacks` */
};
/* What an entry of the ring, a segment or a block says; values are borrowed from the pickle. */
struct entry {
	struct place at;
	const struct pickle_value *action, *state, *blocks, *type, *name, *stage;
	const struct pickle_value *texts[SNAPSHOT_TEXTS];
	int64_t requested, total, time_us, device, device_free, is_expandable;
	bool has_time, has_address;
};
struct segment {
	struct place at;
	uint64_t sums[SEGMENT_SUMS];
	bool is_large, is_expandable;
};
struct stack { /* of the trace: texts of the innermost functions of the program, and of all */
	uint32_t where, whole;
};
struct device_state {
	uint32_t pool, segments; /* tracks */
	int64_t entries, begin_us, last_us;
	struct place asked; /* to be freed, but not yet done, since asked_us */
	int64_t asked_us;
	bool waits;
	uint64_t reserved; /* bytes that came in the ring, less those that went; may wrap */
};
struct open { /* a range that has begun */
	uint32_t name;
	int64_t begin_us;
};
struct snapshot {
	struct import to;
	struct pickle *values;
	struct device_state devices[SNAPSHOT_DEVICES];
	struct map live;     /* address and device: stack that allocated it, as the ring says */
	struct map field_of; /* id of a key: its field + 1 */
	struct map
		stack_of; /* id of a list of frames, or key of stack_named(): place in `stacks` */
	struct stack *stacks; /* the first is empty */
	struct segment *all;
	struct place *blocks; /* in use at the end */
	struct place
		*earlier; /* taken before the ring, freed in it; the stack is that of the free */
	bool frees_have_stacks; /* of their own; else a free has the stack that allocated */
	struct open *open;
	size_t stack_count, stack_cap, all_count, all_cap, block_count, block_cap;
	size_t earlier_count, earlier_cap;
	size_t open_count, open_cap;
	uint32_t key_where, key_stack, name_memory, name_segment;
};

/*
 * The place of a stack that a text describes, followed by where stack `of` is if that is not 0.
 * The same text and stack give the same place; `kind`, below STACK_KINDS, stands for the text.
 */
enum stack_kind { STACK_NONE, STACK_EARLIER, STACK_FREED, STACK_KINDS };
enum status stack_named(struct snapshot *s, enum stack_kind kind, uint32_t of, uint32_t *place,
			struct error *err);
/* Reads a dictionary; what is missing is 0, sizes and times too. */
enum status entry_read(struct snapshot *s, struct pickle_value *v, struct entry *out,
		       struct error *err);

/* The tracks of a GPU, made when it is first seen; one beyond SNAPSHOT_DEVICES is the first. */
enum status snapshot_device(struct snapshot *s, size_t ordinal, struct device_state **out,
			    struct error *err);
/* What all events have: where in the program, on which stream and of which pool.  `e` may be NULL.
 */
enum status snapshot_put_place(struct snapshot *s, const struct place *at, const struct entry *e,
			       struct error *err);
/* An event whose attributes are there. */
enum status snapshot_put_event(struct snapshot *s, struct event *e, int64_t at_us,
			       struct error *err);
/* Memory taken or given back.  Without an entry of the ring: taken before it began. */
enum status snapshot_put_pool(struct snapshot *s, enum kind kind, const struct place *at,
			      const struct entry *from, struct error *err);
/* Anything else that the ring has; `from` may be NULL but for "oom". */
enum status snapshot_put_mark(struct snapshot *s, const char *name, const struct place *at,
			      const struct entry *from, int64_t at_us, struct error *err);
