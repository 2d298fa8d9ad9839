/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - maps the bytes of a CUPTI record to parts of an event, derived from records.def.
 *
 *	record bytes --mask--> what repeats: track, name, arguments, subkind   (a descriptor)
 *	             \-------> begin, end, correlation, value, argument values (columns)
 *
 * A family of records (one activity kind of CUPTI) has several layouts, because some fields get a
 * column only where they carry information:
 *
 *	LAYOUT_COMPLETED  `completed` differs from `end`; otherwise it is left out
 *	LAYOUT_NODE       the record is of a graph's node, whose id varies; otherwise it is 0
 *	LAYOUT_LATENCY    `queued` or `submitted` is set; otherwise both are left out
 *	LAYOUT_EXTERNAL   a tool pushed an external id for this call
 *	LAYOUT_WIDE       the log has many descriptors: numbers that launches may differ in, such as
 *	                  a grid, get columns, too
 *
 * A field is read when it lies within the loaded library's record and that library is new enough
 * for it.  Bytes without a field (padding, what a newer CUPTI added) are ignored.  Texts have been
 * replaced by ids of arena/texts.h in the low half of the pointer (internal.h).
 *
 * Layouts are made once by cupti_layouts_open() and constant afterwards.
 */
#pragma once

#include "collector/probe/cupti/lib.h"
#include "schemas/base/bytes.h"
#include "schemas/model/event.h"
#include "schemas/model/records.h"
#include "schemas/model/trace.h"

#include <string.h>

enum {
	LAYOUT_COMPLETED = 1,
	LAYOUT_NODE = 2,
	LAYOUT_LATENCY = 4,
	LAYOUT_EXTERNAL = 8,
	LAYOUT_WIDE = 16,
	LAYOUT_VARIANTS = 32,
	LAYOUT_WORDS = 32, /* words of eight bytes that a mask covers */
	LAYOUT_ARGS = 32,
	LAYOUT_CONSTS = 48,
	LAYOUT_TEXTS = 2,
};
/* Those of CUPTI's kinds that are handled by name. */
enum cupti_kind {
	CUPTI_KERNEL_SERIAL = 3,
	CUPTI_DRIVER_CALL = 4,
	CUPTI_RUNTIME_CALL = 5,
	CUPTI_DEVICE = 8,
	CUPTI_CONTEXT = 9,
	CUPTI_KERNEL = 10,
	CUPTI_OVERHEAD = 17,
	CUPTI_CUDA_EVENT = 36,
	CUPTI_STREAM = 37,
	CUPTI_EXTERNAL_CORRELATION = 39,
	CUPTI_MEMORY2 = 49,
	CUPTI_GRAPH_TRACE = 51,
};

static inline bool cupti_is_table(uint32_t kind)
{
	return kind == CUPTI_DEVICE || kind == CUPTI_CONTEXT || kind == CUPTI_STREAM;
}

enum { API_CBID = 4, API_BEGIN = 8, API_CORRELATION = 32 }; /* offsets in the record of a call */
struct cupti_family;
/* A number in a record.  If the record does not have it, the mask is 0. */
struct cupti_number {
	uint64_t mask, sign; /* sign: highest bit of a signed number, otherwise 0 */
	uint16_t at;
	uint8_t bytes; /* 0: the record does not have the number */
	bool is_time;
};
struct cupti_layout {
	const struct record *record;
	uint16_t index;  /* index among all layouts */
	uint16_t words;  /* words of the mask, a multiple of two */
	uint8_t subkind; /* subkind for records without one */
	uint8_t flags;   /* flags of each event */
	bool wanted;     /* --kinds includes the kind */
	bool is_node;    /* LAYOUT_NODE */
	struct cupti_number begin, end, correlation, value, kind;
	struct cupti_number device, context, stream, thread;
	struct cupti_number args[LAYOUT_ARGS];
	uint8_t arg_count;
	uint8_t const_count;
	const struct field *arg_fields[LAYOUT_ARGS];
	const struct field *const_fields[LAYOUT_CONSTS];
	uint16_t name_at; /* 0: the record has no name */
	uint64_t mask[LAYOUT_WORDS];
};

struct cupti_family {
	const struct cupti_layout *layouts[LAYOUT_VARIANTS]; /* by variant; some are equal */
	uint16_t completed_at, end_at, node_at, queued_at, submitted_at,
		correlation_at;       /* offsets of members; 0: none */
	uint16_t texts[LAYOUT_TEXTS]; /* offsets of pointers to text; 0: none */
	uint8_t variants;             /* variant bits that occur */
	bool is_plain;                /* the variant does not depend on the bytes of a record */
	uint16_t size;
};

/* Makes the layouts.  `kinds_mask` has bits of enum kind.  Another call, for another library,
 * replaces the layouts. */
void cupti_layouts_open(const struct cupti_lib *lib, uint32_t kinds_mask);
/* Families by CUPTI's kind.  MEMORY2 has two: one for allocations and one for releases. */
extern const struct cupti_family *cupti_families[CUPTI_KINDS][2];
/* Returns the offsets of pointers to text in any record of the kind. */
const uint16_t *cupti_family_texts(uint32_t number);

static inline uint64_t read_word(const uint8_t *record, size_t at)
{
	return get_u64(record + at);
}

static inline struct cupti_number number_at(uint16_t at, uint8_t bytes, bool is_signed)
{
	uint64_t sign = bytes ? UINT64_C(1) << (8 * bytes - 1) : 0;

	return (struct cupti_number){ .at = at,
				      .bytes = bytes,
				      .sign = is_signed ? sign : 0,
				      .mask = sign | (sign - (bytes != 0)) };
}

/* Returns the number for a field of CUPTI's record. */
struct cupti_number cupti_number_of(const struct field *f);
/* Reads a number, with its sign extended if the field is signed; returns 0 if the record has
 * none. */
static inline uint64_t read_number(const uint8_t *record, const struct cupti_number *n)
{
	return ((read_word(record, n->at) & n->mask) ^ n->sign) - n->sign;
}

/* Returns the family of a record of CUPTI's kind `number`, or NULL if such records do not become
 * events. */
static inline const struct cupti_family *cupti_family_of(uint32_t number, const uint8_t *record)
{
	enum { RELEASED = 2 }; /* CUpti_ActivityMemoryOperationType */
	bool second = number == CUPTI_MEMORY2 && read_word(record, 0) >> 32 == RELEASED;

	return number < CUPTI_KINDS ? cupti_families[number][second] : NULL;
}

static inline const struct cupti_layout *cupti_layout_of(const struct cupti_family *f,
							 const uint8_t *record, unsigned variant)
{
	if (f->is_plain)
		return f->layouts[variant & f->variants];
	if (f->completed_at && read_word(record, f->completed_at) != read_word(record, f->end_at))
		variant |= LAYOUT_COMPLETED;
	if (f->node_at && read_word(record, f->node_at))
		variant |= LAYOUT_NODE;
	if (f->queued_at && (read_word(record, f->queued_at) | read_word(record, f->submitted_at)))
		variant |= LAYOUT_LATENCY;
	return f->layouts[variant & f->variants];
}
