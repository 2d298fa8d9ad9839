/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - extended payloads of NVTX: registers schemas and copies bytes, which both go into the
 * log unchanged.  The source of logs decodes them (schemas/model/nvtx.h).
 *
 *	program's thread   nvtx_schema_put(), nvtx_enum_put(): copied once
 *	                   nvtx_payload_copy(): copies the bytes of an event
 *	writer thread      nvtx_schema_write(): the schemas that a payload needs
 *
 * The tables are in the arena and only grow, up to a ceiling; lookups take no lock.
 */
#pragma once

#include "collector/probe/nvtx/open.h"
#include "collector/probe/nvtx/abi.h"

struct buf;

/* Register a schema or enum and return its id, which is the program's own or a new one.  Return 0
 * if it is invalid, or if the table is full, which is counted. */
uint64_t nvtx_schema_put(uint32_t domain, const struct nvtx_schema *s);
uint64_t nvtx_enum_put(uint32_t domain, const struct nvtx_enum *e);

/*
 * Copies the payload into the draft, completely or not at all.  The texts of string handles and
 * pointers in it are also copied if their offsets are fixed; unmapped addresses are no error.
 */
void nvtx_payload_copy(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data);

/* Appends the schema `id` and all schemas that it consists of; appends nothing for types without a
 * schema. */
void nvtx_schema_write(struct buf *out, uint32_t domain, uint64_t id);
