/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx/payload.h - extended payloads of NVTX: schemas are registered, bytes are told as fields.
 *
 *	program's thread   nvtx_schema_put(), nvtx_enum_put(): copied, once each
 *	                   nvtx_payload_copy(): the bytes of an event, at once
 *	writer thread      nvtx_payload_tell(): what they say, field by field
 *
 * Static tables that only grow, to a ceiling; looking up takes no lock.  Bytes are not trusted:
 * what is beyond them is not there.  Nested schemas make "outer.inner", short arrays "name[0]";
 * what has no length of its own is one text of JSON.
 */
#ifndef COLLECTOR_NVTX_PAYLOAD_H
#define COLLECTOR_NVTX_PAYLOAD_H

#include "collector/nvtx/open.h"
#include "collector/nvtx/tables.h"

struct buf;

/* Their ids: the program's own, or a new one; 0: refused, or no room (counted). */
uint64_t nvtx_schema_put(uint32_t domain, const struct nvtx_schema *s);
uint64_t nvtx_enum_put(uint32_t domain, const struct nvtx_enum *e);

/*
 * The payload as a piece of the draft: all of it, or nothing.  Texts that it points at are copied
 * too where the schema says that there are texts; memory that is not there is no fault.
 */
void nvtx_payload_copy(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data,
		       bool at_end);

struct nvtx_field {
	const char *key; /* of the schema; "" where it has none */
	size_t key_len;
	uint8_t type;    /* enum attr_type */
	bool varies;     /* a number that may be another one each time */
	bool is_message; /* the text of the event */
	uint64_t bits;   /* numbers */
	const char *text; /* texts and JSON, borrowed for the call */
	size_t len;
};
typedef void (*nvtx_tell)(const struct nvtx_field *f, void *arg);
/* `bytes`: p->size of payload, then p->extra. */
void nvtx_payload_tell(uint32_t domain, const struct nvtx_piece *p, const uint8_t *bytes,
		       nvtx_tell tell, void *arg);
/* The name of a schema, an id of names.h; 0: none. */
uint32_t nvtx_schema_name(uint32_t domain, uint64_t schema);

uint64_t nvtx_payload_lost(void);

#endif
