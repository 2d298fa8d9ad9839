/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - extended payloads of NVTX: schemas are registered, bytes are decoded to fields.
 *
 *	program's thread   nvtx_schema_put(), nvtx_enum_put(): copied once
 *	                   nvtx_payload_copy(): copies the bytes of an event
 *	writer thread      nvtx_payload_decode(): the fields of an event, one by one
 *
 * Static tables that only grow, up to a ceiling; lookups take no lock.  Bytes are not trusted, and
 * reading never passes their end.  Fields of nested schemas are named "outer.inner", elements of
 * short arrays "name[0]"; arrays without a constant length become one JSON text.
 */
#ifndef COLLECTOR_PROBE_NVTX_PAYLOAD_H
#define COLLECTOR_PROBE_NVTX_PAYLOAD_H

#include "collector/probe/nvtx/open.h"
#include "collector/probe/nvtx/abi.h"

struct buf;

/* The ids: the program's own, or new ones.  0: refused, or the table is full, which is counted. */
uint64_t nvtx_schema_put(uint32_t domain, const struct nvtx_schema *s);
uint64_t nvtx_enum_put(uint32_t domain, const struct nvtx_enum *e);

/*
 * Copies the payload into the draft, completely or not at all.  Where the schema has pointers to
 * texts, these are copied too; unmapped addresses are no error.
 */
void nvtx_payload_copy(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data,
		       bool at_end);

struct nvtx_field {
	const char *key; /* of the schema; "" where it has none */
	size_t key_len;
	uint8_t type;     /* enum attr_type */
	bool is_arg;      /* a number that may be another one each time */
	bool is_message;  /* the text of the event */
	uint64_t bits;    /* numbers */
	const char *text; /* texts and JSON, borrowed for the call */
	size_t len;
};
typedef void (*nvtx_tell)(const struct nvtx_field *f, void *arg);
/* `bytes`: p->size of payload, then p->extra. */
void nvtx_payload_decode(uint32_t domain, const struct nvtx_payload_header *p, const uint8_t *bytes,
			 nvtx_tell put, void *arg);
/* The name of a schema, an id of names.h; 0: none. */
uint32_t nvtx_schema_name(uint32_t domain, uint64_t schema);

uint64_t nvtx_payload_lost(void);

#endif
