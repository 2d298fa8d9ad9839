/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - extended payloads of NVTX: schemas are registered and bytes are copied, and both go
 * into the log as they are.  The source of logs decodes them (schemas/model/nvtx.h).
 *
 *	program's thread   nvtx_schema_put(), nvtx_enum_put(): copied once
 *	                   nvtx_payload_copy(): copies the bytes of an event
 *	writer thread      nvtx_schema_write(): the schemas that a payload needs
 *
 * Tables in the arena that only grow, up to a ceiling; lookups take no lock.
 */
#pragma once

#include "collector/probe/nvtx/open.h"
#include "collector/probe/nvtx/abi.h"

struct buf;

/* The ids: the program's own, or new ones.  0: refused, or the table is full, which is counted. */
uint64_t nvtx_schema_put(uint32_t domain, const struct nvtx_schema *s);
uint64_t nvtx_enum_put(uint32_t domain, const struct nvtx_enum *e);

/*
 * Copies the payload into the draft, completely or not at all.  The texts of string handles and of
 * pointers in it are copied too, where their places are fixed; unmapped addresses are no error.
 */
void nvtx_payload_copy(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data);

/* Appends the schema `id` and all that it is made of; nothing for types that need none. */
void nvtx_schema_write(struct buf *out, uint32_t domain, uint64_t id);
