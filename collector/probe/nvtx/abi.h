/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - the interface between NVTX 3 and its handler.
 *
 * NVTX consists of headers only: each shared object that uses it has its own table of functions,
 * and passes it once to the entry points of the library that NVTX_INJECTION64_PATH names.  These
 * are our own declarations; a test compares them with NVTX's headers if they are installed.  All
 * data here belongs to the program and is borrowed for the call; functions stay valid.
 */
#pragma once

#include "schemas/model/nvtx.h"

#include <stddef.h>
#include <stdint.h>

/* ---- the tables ---- */

enum nvtx_module {
	NVTX_CORE = 1,
	NVTX_CUDA = 2,
	NVTX_CUDART = 4,
	NVTX_CORE2 = 5,
	NVTX_PAYLOAD = 2, /* of extensions, which have their own numbers */
};
enum { NVTX_TABLE_CALLBACKS = 1 };

typedef void (*nvtx_function)(void);
typedef const void *(*nvtx_get_table)(uint32_t table);

struct nvtx_callbacks {
	size_t size; /* bytes of this struct */
	/* Sets *places to `count` places, the first of them unused.  Each points to the place for a
	 * function. */
	int (*module)(uint32_t module, nvtx_function ***places, unsigned *count);
};

struct nvtx_segment {
	size_t id, count;
	intptr_t *places;
};
struct nvtx_extension {
	uint16_t version, size, module, compatible;
	size_t segment_count;
	struct nvtx_segment *segments;
	intptr_t (*function)(uint32_t which);
	const void *info;
};

/* ---- an event ---- */

enum nvtx_message {
	NVTX_MESSAGE_ASCII = 1,
	NVTX_MESSAGE_WIDE = 2,
	NVTX_MESSAGE_REGISTERED = 3,
};
enum nvtx_value {
	NVTX_VALUE_NONE = 0,
	NVTX_VALUE_U64 = 1,
	NVTX_VALUE_I64 = 2,
	NVTX_VALUE_F64 = 3,
	NVTX_VALUE_U32 = 4,
	NVTX_VALUE_I32 = 5,
	NVTX_VALUE_F32 = 6,
};
#define NVTX_VALUE_EXTENDED INT32_C(-541261815) /* 0xDFBD0009: payloads with schemas */

/* Only the first `size` bytes are valid. */
struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type; /* 1: color is ARGB */
	uint32_t color;
	int32_t value_type;
	int32_t payload_count; /* used with NVTX_VALUE_EXTENDED */
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		uint32_t u32;
		int32_t i32;
		float f32;
	} value; /* or the address of an array of struct nvtx_data */
	int32_t message_type;
	const void *message; /* char *, wchar_t *, or the handle of a registered text */
};
struct nvtx_data {
	uint64_t schema;
	size_t size; /* SIZE_MAX: as the schema defines */
	const void *bytes;
};

enum nvtx_resource_type {
	NVTX_RESOURCE_THREAD = 0x10003,
	NVTX_RESOURCE_PTHREAD = 0x10004,
	NVTX_RESOURCE_CU_DEVICE = 0x40001,
	NVTX_RESOURCE_CU_STREAM = 0x40003,
	NVTX_RESOURCE_CUDA_DEVICE = 0x50000,
	NVTX_RESOURCE_CUDA_STREAM = 0x50001,
};
struct nvtx_resource {
	uint16_t version, size;
	int32_t type;
	uint64_t id;
	int32_t message_type;
	const void *message;
};

/* ---- schemas of payloads ---- */

#define NVTX_SCHEMA_REFERENCED UINT64_C(1022) /* bytes that other payloads point into */
#define NVTX_SCHEMA_RAW        UINT64_C(1023)
#define NVTX_SCHEMA_STATIC     (UINT64_C(1) << 24) /* first id of the program's schemas */
#define NVTX_SCHEMA_DYNAMIC    (UINT64_C(1) << 32) /* first id of schemas that we number */

struct nvtx_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail; /* length of a text or an array */
	uint64_t offset; /* 0: after the previous entry */
	const void *semantics, *reserved;
};

enum nvtx_schema_type { NVTX_SCHEMA_IS_STATIC = 1, NVTX_SCHEMA_IS_DYNAMIC = 2 };
enum nvtx_schema_field { /* bits of `mask` */
			 NVTX_SCHEMA_TYPE = 1 << 2,
			 NVTX_SCHEMA_ENTRIES = 1 << 4,
			 NVTX_SCHEMA_COUNT = 1 << 5,
			 NVTX_SCHEMA_SIZE = 1 << 6,
			 NVTX_SCHEMA_ALIGN = 1 << 7,
			 NVTX_SCHEMA_ID = 1 << 8,
};
struct nvtx_schema {
	uint64_t mask;
	const char *name;
	uint64_t type, flags;
	const struct nvtx_entry *entries;
	size_t entry_count, size, align;
	uint64_t id;
	void *extension;
};

enum nvtx_enum_field {
	NVTX_ENUM_ENTRIES = 1 << 2,
	NVTX_ENUM_COUNT = 1 << 3,
	NVTX_ENUM_SIZE = 1 << 4,
	NVTX_ENUM_ID = 1 << 5,
};
struct nvtx_word {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};
struct nvtx_enum {
	uint64_t mask;
	const char *name;
	const struct nvtx_word *words;
	size_t word_count, size;
	uint64_t id;
	void *extension;
};
