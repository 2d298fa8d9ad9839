/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome/plan.h - the text of one shape's arguments, with holes for what varies.
 *
 * Of chrome/args.c alone, which keeps the plans and fills the holes.
 */
#ifndef CONVERT_CHROME_PLAN_H
#define CONVERT_CHROME_PLAN_H

#include "convert/chrome/args.h"
#include "schemas/arena.h"

enum slot {
	SLOT_TEXT, /* nothing varies: `text` is all */
	SLOT_VARY,
	SLOT_JOIN,
	SLOT_BYTES,
	SLOT_DEVICE,
	SLOT_CONTEXT,
	SLOT_STREAM,
	SLOT_SIGNED_BYTES,
	SLOT_ADDRESS,
	SLOT_VALUE,
	SLOT_BANDWIDTH,
	SLOT_PER_SM, /* `amount` divided by the SMs of the device */
	SLOT_POOL_TYPE,
	SLOT_POOL_DEVICE,
};

struct piece { /* `"key": ` and then the value of the slot; texts hold whole pairs */
	const char *text;
	uint32_t len;
	uint8_t slot, type; /* type: enum attr_type of a vary word */
	uint16_t vary;
	double amount;
};
struct plan { /* of one shape when it is used by events of one kind and subkind */
	struct plan *next; /* of the same shape */
	uint8_t kind, subkind;
	struct chrome_members members;
	struct piece *pieces;
	size_t count;
};

struct chrome_args {
	const struct trace *trace;
	bool is_native, all_args;
	struct arena arena;     /* of plans; when it is full all are made again as needed */
	struct plan **by_shape; /* index: shape id */
	uint32_t *track_sms;    /* index: track id; 0 unknown */
	size_t shapes, tracks;
	struct buf text; /* scratch */
};

/* From the arena of `a`.  NULL: it is full, or there is no memory. */
struct plan *chrome_plan_make(struct chrome_args *a, const struct event *e);

#endif
