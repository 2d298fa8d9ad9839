/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx_abi.c - our words for NVTX (collector/probe/nvtx/abi.h) against NVTX's own headers.
 *
 * Compiled where those are installed.  What does not agree does not compile; the program says how
 * many things were compared.
 */
#include "collector/probe/nvtx/abi.h"

#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <stdio.h>

#define SIZES(X)                                                                                   \
	X(struct nvtx_attributes, nvtxEventAttributes_t)                                           \
	X(struct nvtx_resource, nvtxResourceAttributes_t)                                          \
	X(struct nvtx_data, nvtxPayloadData_t)                                                     \
	X(struct nvtx_entry, nvtxPayloadSchemaEntry_t)                                             \
	X(struct nvtx_schema, nvtxPayloadSchemaAttr_t)                                             \
	X(struct nvtx_word, nvtxPayloadEnum_t)                                                     \
	X(struct nvtx_enum, nvtxPayloadEnumAttr_t)                                                 \
	X(struct nvtx_callbacks, NvtxExportTableCallbacks)                                         \
	X(struct nvtx_segment, nvtxExtModuleSegment_t)                                             \
	X(struct nvtx_extension, nvtxExtModuleInfo_t)

/* Ours, its member; theirs, its member. */
#define MEMBERS(X)                                                                                 \
	X(struct nvtx_attributes, version, nvtxEventAttributes_t, version)                         \
	X(struct nvtx_attributes, size, nvtxEventAttributes_t, size)                               \
	X(struct nvtx_attributes, category, nvtxEventAttributes_t, category)                       \
	X(struct nvtx_attributes, color_type, nvtxEventAttributes_t, colorType)                    \
	X(struct nvtx_attributes, color, nvtxEventAttributes_t, color)                             \
	X(struct nvtx_attributes, value_type, nvtxEventAttributes_t, payloadType)                  \
	X(struct nvtx_attributes, payload_count, nvtxEventAttributes_t, reserved0)                 \
	X(struct nvtx_attributes, value, nvtxEventAttributes_t, payload)                           \
	X(struct nvtx_attributes, message_type, nvtxEventAttributes_t, messageType)                \
	X(struct nvtx_attributes, message, nvtxEventAttributes_t, message)                         \
	X(struct nvtx_resource, version, nvtxResourceAttributes_t, version)                        \
	X(struct nvtx_resource, size, nvtxResourceAttributes_t, size)                              \
	X(struct nvtx_resource, type, nvtxResourceAttributes_t, identifierType)                    \
	X(struct nvtx_resource, id, nvtxResourceAttributes_t, identifier)                          \
	X(struct nvtx_resource, message_type, nvtxResourceAttributes_t, messageType)               \
	X(struct nvtx_resource, message, nvtxResourceAttributes_t, message)                        \
	X(struct nvtx_data, schema, nvtxPayloadData_t, schemaId)                                   \
	X(struct nvtx_data, size, nvtxPayloadData_t, size)                                         \
	X(struct nvtx_data, bytes, nvtxPayloadData_t, payload)                                     \
	X(struct nvtx_entry, flags, nvtxPayloadSchemaEntry_t, flags)                               \
	X(struct nvtx_entry, type, nvtxPayloadSchemaEntry_t, type)                                 \
	X(struct nvtx_entry, name, nvtxPayloadSchemaEntry_t, name)                                 \
	X(struct nvtx_entry, description, nvtxPayloadSchemaEntry_t, description)                   \
	X(struct nvtx_entry, detail, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail)                 \
	X(struct nvtx_entry, offset, nvtxPayloadSchemaEntry_t, offset)                             \
	X(struct nvtx_schema, mask, nvtxPayloadSchemaAttr_t, fieldMask)                            \
	X(struct nvtx_schema, name, nvtxPayloadSchemaAttr_t, name)                                 \
	X(struct nvtx_schema, type, nvtxPayloadSchemaAttr_t, type)                                 \
	X(struct nvtx_schema, flags, nvtxPayloadSchemaAttr_t, flags)                               \
	X(struct nvtx_schema, entries, nvtxPayloadSchemaAttr_t, entries)                           \
	X(struct nvtx_schema, entry_count, nvtxPayloadSchemaAttr_t, numEntries)                    \
	X(struct nvtx_schema, size, nvtxPayloadSchemaAttr_t, payloadStaticSize)                    \
	X(struct nvtx_schema, align, nvtxPayloadSchemaAttr_t, packAlign)                           \
	X(struct nvtx_schema, id, nvtxPayloadSchemaAttr_t, schemaId)                               \
	X(struct nvtx_word, name, nvtxPayloadEnum_t, name)                                         \
	X(struct nvtx_word, value, nvtxPayloadEnum_t, value)                                       \
	X(struct nvtx_word, is_flag, nvtxPayloadEnum_t, isFlag)                                    \
	X(struct nvtx_enum, mask, nvtxPayloadEnumAttr_t, fieldMask)                                \
	X(struct nvtx_enum, words, nvtxPayloadEnumAttr_t, entries)                                 \
	X(struct nvtx_enum, word_count, nvtxPayloadEnumAttr_t, numEntries)                         \
	X(struct nvtx_enum, size, nvtxPayloadEnumAttr_t, sizeOfEnum)                               \
	X(struct nvtx_enum, id, nvtxPayloadEnumAttr_t, schemaId)                                   \
	X(struct nvtx_callbacks, module, NvtxExportTableCallbacks, GetModuleFunctionTable)         \
	X(struct nvtx_segment, count, nvtxExtModuleSegment_t, slotCount)                           \
	X(struct nvtx_segment, places, nvtxExtModuleSegment_t, functionSlots)                      \
	X(struct nvtx_extension, size, nvtxExtModuleInfo_t, structSize)                            \
	X(struct nvtx_extension, module, nvtxExtModuleInfo_t, moduleId)                            \
	X(struct nvtx_extension, segment_count, nvtxExtModuleInfo_t, segmentsCount)                \
	X(struct nvtx_extension, segments, nvtxExtModuleInfo_t, segments)

/* clang-format off */
#define NUMBERS(X)                                                                                 \
	X(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS)                                               \
	X(NVTX_CORE, NVTX_CB_MODULE_CORE) X(NVTX_CUDA, NVTX_CB_MODULE_CUDA)                        \
	X(NVTX_CORE2, NVTX_CB_MODULE_CORE2) X(NVTX_PAYLOAD, NVTX_EXT_PAYLOAD_MODULEID)             \
	X(NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII)                                             \
	X(NVTX_MESSAGE_WIDE, NVTX_MESSAGE_TYPE_UNICODE)                                            \
	X(NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED)                                   \
	X(1, NVTX_COLOR_ARGB)                                                                      \
	X(NVTX_VALUE_U64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)                                        \
	X(NVTX_VALUE_I64, NVTX_PAYLOAD_TYPE_INT64) X(NVTX_VALUE_F64, NVTX_PAYLOAD_TYPE_DOUBLE)     \
	X(NVTX_VALUE_U32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32)                                        \
	X(NVTX_VALUE_I32, NVTX_PAYLOAD_TYPE_INT32) X(NVTX_VALUE_F32, NVTX_PAYLOAD_TYPE_FLOAT)      \
	X(NVTX_VALUE_EXTENDED, NVTX_PAYLOAD_TYPE_EXT)                                              \
	X(NVTX_RESOURCE_THREAD, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE)                          \
	X(NVTX_RESOURCE_PTHREAD, NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX)                          \
	X(NVTX_RESOURCE_CU_DEVICE, NVTX_RESOURCE_TYPE_CUDA_DEVICE)                                 \
	X(NVTX_RESOURCE_CU_STREAM, NVTX_RESOURCE_TYPE_CUDA_STREAM)                                 \
	X(NVTX_RESOURCE_CUDA_DEVICE, NVTX_RESOURCE_TYPE_CUDART_DEVICE)                             \
	X(NVTX_RESOURCE_CUDA_STREAM, NVTX_RESOURCE_TYPE_CUDART_STREAM)                               \
	X(NVTX_SCHEMA_REFERENCED, NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED)                             \
	X(NVTX_SCHEMA_RAW, NVTX_TYPE_PAYLOAD_SCHEMA_RAW)                                           \
	X(NVTX_SCHEMA_STATIC, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START)                                 \
	X(NVTX_SCHEMA_DYNAMIC, NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START)                               \
	X(NVTX_ENTRY_POINTER, NVTX_PAYLOAD_ENTRY_FLAG_POINTER)                                     \
	X(NVTX_ENTRY_FROM_BASE, NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE)                          \
	X(NVTX_ENTRY_FROM_HERE, NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE)                          \
	X(NVTX_ENTRY_ARRAY_FIXED, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE)                        \
	X(NVTX_ENTRY_ARRAY_ZERO, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED)                    \
	X(NVTX_ENTRY_ARRAY_COUNTED, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX)                    \
	X(NVTX_ENTRY_ARRAY_ELSEWHERE, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX)          \
	X(NVTX_ENTRY_DEEP_COPY, NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY)                                 \
	X(NVTX_ENTRY_HIDE, NVTX_PAYLOAD_ENTRY_FLAG_HIDE)                                           \
	X(NVTX_ENTRY_MESSAGE, NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE)                               \
	X(NVTX_SCHEMA_IS_STATIC, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC)                                  \
	X(NVTX_SCHEMA_IS_DYNAMIC, NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC)                                \
	X(NVTX_SCHEMA_TYPE, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE)                                   \
	X(NVTX_SCHEMA_ENTRIES, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES)                             \
	X(NVTX_SCHEMA_COUNT, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES)                           \
	X(NVTX_SCHEMA_SIZE, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE)                            \
	X(NVTX_SCHEMA_ALIGN, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT)                             \
	X(NVTX_SCHEMA_ID, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID)                                \
	X(NVTX_ENUM_ENTRIES, NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES)                                 \
	X(NVTX_ENUM_COUNT, NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES)                               \
	X(NVTX_ENUM_SIZE, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE)                                       \
	X(NVTX_ENUM_ID, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID)
/* clang-format on */

/* Our slot tables (watch_nvtx.c) go by number: module, place, name. */
/* clang-format off */
#define PLACES(X)                                                                                  \
	X(1, CORE_MarkEx) X(2, CORE_MarkA) X(3, CORE_MarkW) X(4, CORE_RangeStartEx)                \
	X(5, CORE_RangeStartA) X(6, CORE_RangeStartW) X(7, CORE_RangeEnd) X(8, CORE_RangePushEx)   \
	X(9, CORE_RangePushA) X(10, CORE_RangePushW) X(11, CORE_RangePop)                          \
	X(12, CORE_NameCategoryA) X(13, CORE_NameCategoryW) X(14, CORE_NameOsThreadA)              \
	X(15, CORE_NameOsThreadW)                                                                  \
	X(1, CUDA_NameCuDeviceA) X(2, CUDA_NameCuDeviceW) X(3, CUDA_NameCuContextA)                \
	X(4, CUDA_NameCuContextW) X(5, CUDA_NameCuStreamA) X(6, CUDA_NameCuStreamW)                \
	X(7, CUDA_NameCuEventA) X(8, CUDA_NameCuEventW)                                            \
	X(1, CUDART_NameCudaDeviceA) X(2, CUDART_NameCudaDeviceW) X(3, CUDART_NameCudaStreamA)     \
	X(4, CUDART_NameCudaStreamW) X(5, CUDART_NameCudaEventA) X(6, CUDART_NameCudaEventW)       \
	X(1, CORE2_DomainMarkEx) X(2, CORE2_DomainRangeStartEx) X(3, CORE2_DomainRangeEnd)         \
	X(4, CORE2_DomainRangePushEx) X(5, CORE2_DomainRangePop) X(6, CORE2_DomainResourceCreate)  \
	X(7, CORE2_DomainResourceDestroy) X(8, CORE2_DomainNameCategoryA)                          \
	X(9, CORE2_DomainNameCategoryW) X(10, CORE2_DomainRegisterStringA)                         \
	X(11, CORE2_DomainRegisterStringW) X(12, CORE2_DomainCreateA) X(13, CORE2_DomainCreateW)   \
	X(14, CORE2_DomainDestroy)
/* clang-format on */
/* clang-format off */
#define PAYLOAD_PLACES(X)                                                                          \
	X(0, nvtxPayloadSchemaRegister) X(1, nvtxPayloadEnumRegister) X(2, nvtxMarkPayload)        \
	X(3, nvtxRangePushPayload) X(4, nvtxRangePopPayload) X(5, nvtxRangeStartPayload)           \
	X(6, nvtxRangeEndPayload) X(7, nvtxDomainIsEnabled)
/* clang-format on */

#define SAME(a, b)      _Static_assert((long long)(a) == (long long)(b), #a " is not " #b);
#define X(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
SIZES(X)
#undef X
#define X(ours, a, theirs, b)                                                                      \
	SAME(offsetof(ours, a), offsetof(theirs, b))                                               \
	SAME(sizeof(((ours *)0)->a), sizeof(((theirs *)0)->b))
MEMBERS(X)
#undef X
NUMBERS(SAME)
#define X(name, number, form, type) SAME(NVTX_TYPE_##name, NVTX_PAYLOAD_ENTRY_TYPE_##name)
NVTX_TYPE_LIST(X)
#undef X
#define X(number, name) SAME(number, NVTX_CBID_##name)
PLACES(X)
#undef X
#define X(number, name) SAME(number, NVTX3EXT_CBID_##name)
PAYLOAD_PLACES(X)
#undef X

/* Lengths of types: the program's copy of NVTX has them in a table. */
static unsigned compare_types(unsigned *bad)
{
	const nvtxPayloadEntryTypeInfo_t *info =
		NVTX_EXT_PAYLOAD_VERSIONED_ID(nvtxExtPayloadTypeInfo);
	static const struct {
		unsigned number, size, align;
	} ours[] = {
#define X(name, number, form, type) { number, sizeof(type), _Alignof(type) },
		NVTX_TYPE_LIST(X)
#undef X
	};
	unsigned count = 0;
	size_t i;

	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		const nvtxPayloadEntryTypeInfo_t *t = &info[ours[i].number];

		if (ours[i].number >= NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE || !t->size)
			continue;
		count++;
		if (t->size == ours[i].size && t->align == ours[i].align)
			continue;
		printf("# type %u: %u bytes, not %u\n", ours[i].number, t->size, ours[i].size);
		++*bad;
	}
	return count;
}

int main(void)
{
	unsigned bad = 0, count = compare_types(&bad);

#define X(...) +1
	count += 0 SIZES(X) MEMBERS(X) NUMBERS(X) NVTX_TYPE_LIST(X) PLACES(X) PAYLOAD_PLACES(X);
#undef X
	printf("%s - nvtx: %u things are as in NVTX's headers\n", bad ? "not ok" : "ok", count);
	return bad != 0 || count < 200;
}
