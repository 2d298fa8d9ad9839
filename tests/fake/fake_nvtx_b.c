/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: a domain like NCCL's, whose ranges carry a schema with communicator, bytes and
 * operation; one like XLA's "TSL", with registered titles and string handles in the payload; a
 * schema with every type that an entry can have.  Fields are set by hand: NVTX's macros for
 * extended payloads do not compile as C.
 */
#include "tests/fake/fake_nvtx.h"

#include <nvtx3/nvToolsExtPayload.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS                                                                                     \
	(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |               \
	 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |     \
	 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t make_schema(nvtxDomainHandle_t domain, const char *name, uint64_t id,
			    const nvtxPayloadSchemaEntry_t *entries, size_t count, size_t size)
{
	nvtxPayloadSchemaAttr_t a;

	memset(&a, 0, sizeof(a));
	a.fieldMask = FIELDS | (id ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID : 0);
	a.name = name;
	a.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
	a.entries = entries;
	a.numEntries = count;
	a.payloadStaticSize = size;
	a.schemaId = id;
	return nvtxPayloadSchemaRegister(domain, &a);
}

/* An event whose payload is described by a schema. */
static nvtxEventAttributes_t event(const char *name, nvtxPayloadData_t *payload, size_t count)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = name;
	a.payloadType = (int32_t)NVTX_PAYLOAD_TYPE_EXT;
	a.reserved0 = (int32_t)count;
	a.payload.ullValue = (uint64_t)(uintptr_t)payload;
	return a;
}

/* ---- NCCL ---- */

struct reduce {
	uint64_t communicator;
	size_t bytes;
	int operation;
};
enum {
	REDUCE_ID = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 3,
	OPERATION_ID = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 100
};

static void register_operations(nvtxDomainHandle_t domain, fake_nvtx_tell tell)
{
	static const nvtxPayloadEnum_t names[] = {
		{ "Sum", 0, 0 }, { "Product", 1, 0 }, { "Max", 2, 0 },
		{ "Min", 3, 0 }, { "Avg", 4, 0 },
	};
	nvtxPayloadEnumAttr_t a;

	memset(&a, 0, sizeof(a));
	a.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
		      NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE |
		      NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
	a.name = "ncclRedOp_t";
	a.entries = names;
	a.numEntries = COUNT(names);
	a.sizeOfEnum = sizeof(int);
	a.schemaId = OPERATION_ID;
	nvtxPayloadEnumRegister(domain, &a);
	tell("NCCL", "enum", "ncclRedOp_t", 1, "Sum Product Max Min Avg");
}

static void nccl(fake_nvtx_tell tell, unsigned rounds)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", NULL, 0,
		  offsetof(struct reduce, communicator), NULL, NULL },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0,
		  offsetof(struct reduce, bytes), NULL, NULL },
		{ 0, OPERATION_ID, "Reduction operation", NULL, 0,
		  offsetof(struct reduce, operation), NULL, NULL },
	};
	nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
	char detail[120];
	unsigned i;

	register_operations(domain, tell);
	make_schema(domain, "AllReduce", REDUCE_ID, entries, COUNT(entries), sizeof(struct reduce));
	tell("NCCL", "domain", "NCCL", 1, NULL);
	tell("NCCL", "schema", "AllReduce", 1, NULL);
	for (i = 0; i < rounds; i++) {
		struct reduce r = { 0xabcdef0123456789, (size_t)1024 << i, (int)(i % 5) };
		nvtxPayloadData_t p = { REDUCE_ID, sizeof(r), &r };
		nvtxEventAttributes_t a = event("ncclAllReduce", &p, 1);

		nvtxDomainRangePushEx(domain, &a);
		memset(&r, 0xEE, sizeof(r)); /* it was copied, or is lost */
		nvtxDomainRangePop(domain);
		snprintf(detail, sizeof(detail), "communicator=%llu bytes=%zu operation=%u",
			 0xabcdef0123456789ull, (size_t)1024 << i, i % 5);
		tell("NCCL", "push", "ncclAllReduce", 1, detail);
	}
}

/* ---- XLA ---- */

struct module {
	nvtxStringHandle_t name;
	int32_t id;
	nvtxStringHandle_t op;
};

static void tsl(fake_nvtx_tell tell, unsigned rounds)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "hlo_module", NULL, 0,
		  offsetof(struct module, name), NULL, NULL },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "program_id", NULL, 0,
		  offsetof(struct module, id), NULL, NULL },
		{ 0, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "hlo_op", NULL, 0,
		  offsetof(struct module, op), NULL, NULL },
	};
	static const char title[] =
		"XlaModule:#prefix=jit(train),hlo_module=jit_train,program_id=7#";
	static const char thunk[] = "Thunk:#name=jit(train)/dot_general,hlo_op=gemm_fusion.4#";
	nvtxDomainHandle_t domain = nvtxDomainCreateA("TSL");
	struct module m = { nvtxDomainRegisterStringA(domain, "jit_train"), 7,
			    nvtxDomainRegisterStringA(domain, "gemm_fusion.4") };
	uint64_t id = make_schema(domain, "XlaModule", 0, entries, COUNT(entries), sizeof(m));
	nvtxPayloadData_t p = { id, sizeof(m), &m };
	nvtxEventAttributes_t a = event(NULL, &p, 1), plain = event(thunk, NULL, 0);
	unsigned i;

	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = nvtxDomainRegisterStringA(domain, title);
	plain.payloadType = NVTX_PAYLOAD_UNKNOWN;
	for (i = 0; i < rounds; i++) {
		nvtxDomainRangePushEx(domain, &a);
		nvtxDomainRangePushEx(domain, &plain);
		nvtxDomainRangePop(domain);
		nvtxDomainRangePop(domain);
	}
	tell("TSL", "domain", "TSL", 1, NULL);
	tell("TSL", "schema", "XlaModule", 1, id >> 32 ? "dynamic" : "no handler");
	tell("TSL", "push", title, rounds,
	     "hlo_module=jit_train program_id=7 hlo_op=gemm_fusion.4");
	tell("TSL", "push", thunk, rounds, NULL);
}

/* ---- every type ---- */

struct all {
	int8_t i8;
	uint8_t u8;
	int16_t i16;
	uint16_t u16;
	int32_t i32;
	uint32_t u32;
	int64_t i64;
	uint64_t u64;
	float f32;
	double f64;
	size_t size;
	void *address;
	char c;
	char text[8];
	const char *string;
	int32_t array[3];
};
#define ENTRY(type, member, flags, detail)                                                         \
	{                                                                                          \
		(flags), NVTX_PAYLOAD_ENTRY_TYPE_##type, #member, NULL, (detail),                  \
			offsetof(struct all, member), NULL, NULL                                   \
	}

static void every_type(fake_nvtx_tell tell)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		ENTRY(INT8, i8, 0, 0),
		ENTRY(UINT8, u8, 0, 0),
		ENTRY(INT16, i16, 0, 0),
		ENTRY(UINT16, u16, 0, 0),
		ENTRY(INT32, i32, 0, 0),
		ENTRY(UINT32, u32, 0, 0),
		ENTRY(INT64, i64, 0, 0),
		ENTRY(UINT64, u64, 0, 0),
		ENTRY(FLOAT, f32, 0, 0),
		ENTRY(DOUBLE, f64, 0, 0),
		ENTRY(SIZE, size, 0, 0),
		ENTRY(ADDRESS, address, 0, 0),
		ENTRY(CHAR, c, 0, 0),
		ENTRY(CSTRING, text, 0, 8),
		ENTRY(CSTRING_UTF8, string, NVTX_PAYLOAD_ENTRY_FLAG_POINTER, 0),
		ENTRY(INT32, array, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, 3),
	};
	nvtxDomainHandle_t domain = nvtxDomainCreateA("types");
	struct all v = { -8,  200,          -16000,     60000,       -32,  4000000000u,
			 -64, ~UINT64_C(0), 1.5f,       -2.25,       4096, (void *)0x7000,
			 'x', "inline",     "a string", { 1, -2, 3 } };
	nvtxPayloadData_t p = { 0, sizeof(v), &v };
	nvtxRangeId_t range;
	uint64_t id;

	id = make_schema(domain, "all types", 0, entries, COUNT(entries), sizeof(v));
	p.schemaId = id;
	nvtxMarkPayload(domain, &p, 1);
	nvtxRangePushPayload(domain, &p, 1);
	nvtxRangePopPayload(domain, &p, 1);
	range = nvtxRangeStartPayload(domain, &p, 1);
	nvtxRangeEndPayload(domain, range, &p, 1);
	tell("types", "schema", "all types", 1, NULL);
	tell("types", "mark", "", 1, "i8=-8 u8=200 u64=18446744073709551615 f64=-2.25");
	tell("types", "push", "", 1, "payload at push and at pop");
	tell("types", "start", "", 1, "payload at start and at end");
}

/* Payloads that a careful handler survives: raw, text, empty, two at once, no such schema. */
static void strange_payloads(fake_nvtx_tell tell)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("strange");
	char raw[5] = { 1, 2, 3, 4, 5 };
	nvtxPayloadData_t several[] = {
		{ NVTX_TYPE_PAYLOAD_SCHEMA_RAW, sizeof(raw), raw },
		{ NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, SIZE_MAX, "text without a size" },
		{ UINT64_C(0x123456789abc), 8, "12345678" },
		{ REDUCE_ID, 3, "ab" },
		{ REDUCE_ID, 0, NULL },
	};
	nvtxEventAttributes_t a;
	size_t i;

	for (i = 0; i < COUNT(several); i++) {
		a = event("one payload", &several[i], 1);
		nvtxDomainMarkEx(domain, &a);
	}
	a = event("several payloads", several, COUNT(several));
	nvtxDomainMarkEx(domain, &a);
	a = event("none", NULL, 3);
	nvtxDomainMarkEx(domain, &a);
	tell("strange", "mark", "one payload", COUNT(several), NULL);
	tell("strange", "mark", "several payloads", 1, NULL);
	tell("strange", "mark", "none", 1, NULL);
}

/* XLA cuts at 65330 bytes; longer ones come from others. */
static void long_names(fake_nvtx_tell tell)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("long");
	char *name = malloc(100001);
	nvtxEventAttributes_t a;

	if (!name)
		return;
	memset(name, 'n', 100000);
	name[100000] = '\0';
	a = event(name, NULL, 0);
	a.payloadType = NVTX_PAYLOAD_UNKNOWN;
	nvtxDomainMarkEx(domain, &a);
	free(name);
	tell("long", "mark", "100000 times n", 1, "long");
}

void fake_nvtx_part_b(fake_nvtx_tell tell, unsigned rounds)
{
	nccl(tell, rounds);
	tsl(tell, rounds);
	every_type(tell);
	strange_payloads(tell);
	long_names(tell);
}
