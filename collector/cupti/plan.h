/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/plan.h - what of a CUPTI record goes where in an event, made from records.def.
 *
 *	record bytes --mask--> what repeats: track, name, shape, subkind   (one site of the log)
 *	             \-------> begin, end, join, amount, varying numbers   (columns)
 *
 * A family of records (one number of CUPTI's) has several plans, because some fields cost a column
 * only where they say something:
 *
 *	PLAN_COMPLETED  `completed` is not `end`; else it is left out, and means the same
 *	PLAN_NODE       the record is of a graph's node: its id varies; else it is 0, in the shape
 *	PLAN_LATENCY    `queued` or `submitted` is known; else both are left out
 *	PLAN_EXTERNAL   somebody pushed an id for this call
 *
 * A field is read when it lies in the loaded library's record and is as old as its version says.
 * Bytes that no field has (padding, what a newer CUPTI added) are not looked at.  Texts are
 * expected as ids of names.h in the low half of the pointer's place (cupti/names.h).
 *
 * Made once by cupti_plan_open(), constant afterwards.
 */
#ifndef COLLECTOR_CUPTI_PLAN_H
#define COLLECTOR_CUPTI_PLAN_H

#include "collector/cupti/lib.h"
#include "schemas/event.h"
#include "schemas/records.h"
#include "schemas/trace.h"

#include <string.h>

enum {
	PLAN_COMPLETED = 1, PLAN_NODE = 2, PLAN_LATENCY = 4, PLAN_EXTERNAL = 8, PLAN_FLAVOURS = 16,
	PLAN_WORDS = 32, /* of eight bytes: what is looked at of a record */
	PLAN_VARY = 8,
	PLAN_FIXED = 48,
	PLAN_TEXTS = 2,
};
/* Places in CUpti_ActivityAPI: kind and cbid, times, thread (high half), correlation, result. */
enum { CALL_WHO = 0, CALL_BEGIN = 8, CALL_END = 16, CALL_THREAD = 24, CALL_JOIN = 32,
       CALL_BYTES = 40 };
#define CALL_MASK UINT64_C(0xffffffff00000000) /* of cbid and thread in their words */

/* Of CUPTI's numbers only those that are handled by name. */
enum cupti_kind {
	CUPTI_KERNEL_SERIAL = 3, CUPTI_DEVICE = 8, CUPTI_CONTEXT = 9, CUPTI_KERNEL = 10,
	CUPTI_OVERHEAD = 17, CUPTI_CUDA_EVENT = 36, CUPTI_STREAM = 37,
	CUPTI_EXTERNAL_CORRELATION = 39, CUPTI_MEMORY2 = 49, CUPTI_GRAPH_TRACE = 51,
};

struct cupti_family;
/* Of a number that is not there the mask is 0. */
struct plan_number {
	uint64_t mask, sign; /* sign: its highest bit, where it is signed */
	uint16_t at;
	uint8_t bytes; /* 0: there is none */
	bool is_time;
};
struct cupti_plan {
	const struct record *record;
	const struct cupti_family *family;
	uint16_t index;  /* of all plans */
	uint16_t words;  /* of the mask, a multiple of four */
	uint8_t subkind; /* when the record has none */
	uint8_t flags;   /* of each event */
	bool wanted;     /* by --kinds */
	uint8_t flavour;
	bool is_node;    /* PLAN_NODE */
	struct plan_number begin, end, join, amount, kind;
	struct plan_number device, context, stream, thread;
	struct plan_number vary[PLAN_VARY];
	uint8_t vary_count;
	uint8_t fixed_count;
	const struct field *vary_fields[PLAN_VARY];
	const struct field *fixed_fields[PLAN_FIXED];
	uint16_t name_at; /* 0: the record has none */
	bool is_call;     /* CUpti_ActivityAPI, as it always was, and nothing varies */
	bool is_work;     /* on a GPU, with begin and end in eight bytes each */
	_Alignas(16) uint64_t mask[PLAN_WORDS];
};

struct cupti_family {
	const struct cupti_plan *plans[PLAN_FLAVOURS]; /* all the same where flavours are */
	uint16_t completed_at, end_at, node_at, queued_at, submitted_at, correlation_at; /* 0: none */
	uint16_t texts[PLAN_TEXTS];             /* where pointers to text stand; 0: none */
	uint8_t flavours;                       /* what flavours there are */
	bool is_plain;                          /* its bytes say nothing about the flavour */
	bool is_call, is_work;                  /* as its first plan is */
	uint16_t size;
};

/* `kinds_mask`: bits of enum kind.  Again for another library: plans of the one before are gone. */
void cupti_plan_open(const struct cupti_lib *lib, uint32_t kinds_mask);
/* By CUPTI's number; two for MEMORY2: an allocation, a release. */
extern const struct cupti_family *cupti_families[CUPTI_KINDS][2];
/* Where pointers to text stand in any record of the number. */
const uint16_t *cupti_family_texts(uint32_t number);
size_t cupti_plan_count(void);

static inline uint64_t plan_word(const uint8_t *record, size_t at)
{
	uint64_t w;

	memcpy(&w, record + at, sizeof(w));
	return w;
}

static inline struct plan_number plan_number_at(uint16_t at, uint8_t bytes, bool is_signed)
{
	uint64_t sign = bytes ? UINT64_C(1) << (8 * bytes - 1) : 0;

	return (struct plan_number){ .at = at, .bytes = bytes, .sign = is_signed ? sign : 0,
				     .mask = sign | (sign - (bytes != 0)) };
}

/* Widened, signed where the field is; 0 where there is none. */
static inline uint64_t plan_number(const uint8_t *record, const struct plan_number *n)
{
	return ((plan_word(record, n->at) & n->mask) ^ n->sign) - n->sign;
}

/* NULL: no record of that number becomes events.  `record`: for numbers of two records. */
static inline const struct cupti_family *cupti_family_of(uint32_t number, const uint8_t *record)
{
	enum { RELEASED = 2 }; /* CUpti_ActivityMemoryOperationType */
	bool second = number == CUPTI_MEMORY2 && plan_word(record, 0) >> 32 == RELEASED;

	return number < CUPTI_KINDS ? cupti_families[number][second] : NULL;
}

static inline const struct cupti_plan *cupti_plan_of(const struct cupti_family *f,
						     const uint8_t *record, unsigned external)
{
	unsigned flavour = external;

	if (f->is_plain)
		return f->plans[flavour & f->flavours];
	if (f->completed_at && plan_word(record, f->completed_at) != plan_word(record, f->end_at))
		flavour |= PLAN_COMPLETED;
	if (f->node_at && plan_word(record, f->node_at))
		flavour |= PLAN_NODE;
	if (f->queued_at &&
	    (plan_word(record, f->queued_at) | plan_word(record, f->submitted_at)))
		flavour |= PLAN_LATENCY;
	return f->plans[flavour & f->flavours];
}

#endif
