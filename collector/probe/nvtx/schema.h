/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - internals of payload.h: schemas and enums as they were registered.
 *
 * Rows that lookups can find are complete and constant.  A schema that is registered again gets a
 * new row, and the newest row counts.
 */
#ifndef COLLECTOR_PROBE_NVTX_SCHEMA_H
#define COLLECTOR_PROBE_NVTX_SCHEMA_H

#include "collector/probe/nvtx/payload.h"

enum nvtx_form {
	NVTX_FORM_NONE, /* a type that is unknown here */
	NVTX_FORM_SIGNED,
	NVTX_FORM_UNSIGNED,
	NVTX_FORM_FLOAT,
	NVTX_FORM_BFLOAT,
	NVTX_FORM_LETTER,
	NVTX_FORM_TEXT,
	NVTX_FORM_REGISTERED,
	NVTX_FORM_ENUM,
	NVTX_FORM_SCHEMA,
};

struct nvtx_word_row {
	uint64_t value;
	uint32_t name;
	bool is_flag;
};
struct nvtx_entry_row {
	uint64_t type, array_length;
	uint32_t flags, name; /* name: id of names.h */
	uint32_t offset;      /* in a static schema */
};
struct nvtx_schema_row {
	uint64_t id;
	uint32_t domain, name;
	uint8_t form; /* NVTX_FORM_ENUM or NVTX_FORM_SCHEMA; NONE: a union, bytes alone */
	bool is_dynamic;
	bool points; /* entries point at texts */
	uint16_t align;
	uint32_t size;         /* bytes; 0: unknown */
	uint32_t first, count; /* of the entries, of an enum's words */
};

/* What a type is made of; `row`: of an enum or a schema. */
struct nvtx_unit {
	uint8_t form;
	bool is_char; /* C's: a number alone, a text as an array */
	uint32_t size, align;
	const struct nvtx_schema_row *row;
};
struct nvtx_unit nvtx_unit_find(uint32_t domain, uint64_t type);
const struct nvtx_schema_row *nvtx_schema_find(uint32_t domain, uint64_t id);
const struct nvtx_entry_row *nvtx_schema_entries(const struct nvtx_schema_row *row);
const struct nvtx_word_row *nvtx_schema_words(const struct nvtx_schema_row *row);

/* The entry holds the address of a text of bytes. */
bool nvtx_entry_points(const struct nvtx_entry_row *e, const struct nvtx_unit *unit);

/* Something of a payload, or a schema, did not fit. */
void nvtx_payload_lose(void);

#endif
