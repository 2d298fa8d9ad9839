/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - fields.c reads dictionaries of a snapshot, events.c creates events, and source.c
 * decides which events follow from which fields.
 */
#pragma once

#include "convert/source/import.h"
#include "convert/source/pickle/pickle.h"
#include "schemas/base/map.h"

enum { SNAPSHOT_DEVICES = 64, SNAPSHOT_US = 1000 /* nanoseconds */ };
enum { LIST_TRACES, LIST_SEGMENTS, LIST_ANNOTATIONS };

/* Sums of a segment at the end, and the names of the arguments of its mark. */
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

/* Texts that an entry may have; snapshot_text_keys contains the names of their attributes. */
enum { TEXT_METADATA, TEXT_CONTEXT, TEXT_CATEGORY, SNAPSHOT_TEXTS };
extern const char *const snapshot_text_keys[SNAPSHOT_TEXTS];

/* The position of memory, and the stack that allocated it. */
struct place {
	int64_t address, size, stream, pool[2];
	uint32_t stack, device; /* stack: index into `stacks` */
};
/* The fields of an entry of the ring, a segment or a block; values are borrowed from the pickle. */
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
struct stack { /* name ids: the innermost functions of the program, and all functions */
	uint32_t where, whole;
};
struct device_state {
	uint32_t pool, segments; /* track ids */
	int64_t entries, begin_us, last_us;
	struct place asked; /* free that was requested at asked_us, but not completed */
	int64_t asked_us;
	bool waits;
	uint64_t reserved; /* bytes reserved minus bytes released in the ring; may wrap */
};
struct open { /* a range that has begun */
	uint32_t name;
	int64_t begin_us;
};
struct snapshot {
	struct import to;
	struct pickle *values;
	struct device_state devices[SNAPSHOT_DEVICES];
	struct map live; /* address and device: index of the stack that allocated it in the ring */
	struct map field_of; /* id of a key: index of its field */
	struct map
		stack_of; /* id of a list of frames, or key of stack_named(): index into `stacks` */
	struct stack *stacks; /* the first is empty */
	struct segment *all;
	struct place *blocks; /* blocks in use at the end */
	struct place
		*earlier; /* allocated before the ring, freed in it; with the stack of the free */
	bool frees_have_stacks; /* else a free has the stack of the allocation */
	struct open *open;
	size_t stack_count, stack_cap, all_count, all_cap, block_count, block_cap;
	size_t earlier_count, earlier_cap;
	size_t open_count, open_cap;
	uint32_t key_where, key_stack, name_memory, name_segment;
};

/*
 * Finds or adds a stack that only has a text, which `kind` selects; the text may contain the
 * function of stack `of`, if that is not 0.  The same `kind` and `of` return the same *place.
 */
enum stack_kind { STACK_NONE, STACK_EARLIER, STACK_FREED, STACK_KINDS };
enum status stack_named(struct snapshot *s, enum stack_kind kind, uint32_t of, uint32_t *place,
			struct error *err);
/* Reads a dictionary.  Missing fields are 0, also sizes and times. */
enum status entry_read(struct snapshot *s, struct pickle_value *v, struct entry *out,
		       struct error *err);

/* Returns the state of a GPU and adds its tracks at the first call.  An ordinal of SNAPSHOT_DEVICES
 * or more is treated as GPU 0. */
enum status snapshot_device(struct snapshot *s, size_t ordinal, struct device_state **out,
			    struct error *err);
/* Adds the attributes that all events have: the code, the stream and the pool.  `e` may be NULL. */
enum status snapshot_put_place(struct snapshot *s, const struct place *at, const struct entry *e,
			       struct error *err);
/* Puts an event, with the attributes added so far. */
enum status snapshot_put_event(struct snapshot *s, struct event *e, int64_t at_us,
			       struct error *err);
/* Puts an allocation or free.  `from` is NULL if the memory was allocated before the ring began. */
enum status snapshot_put_pool(struct snapshot *s, enum kind kind, const struct place *at,
			      const struct entry *from, struct error *err);
/* Puts a mark for any other entry of the ring.  `from` may be NULL, except for "oom". */
enum status snapshot_put_mark(struct snapshot *s, const char *name, const struct place *at,
			      const struct entry *from, int64_t at_us, struct error *err);
