/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "schemas/model/records.h"

#include <string.h>

#if defined(__has_include)
#if __has_include(<cupti_activity.h>) && __has_include(<cuda.h>)
#define HAVE_CUPTI 1
#include <cuda.h>
#include <cupti.h>
#endif
#endif

/* What log, sinks and collector take for granted of the list. */
void test_records_tables(void)
{
	size_t count, i, j, fields = 0;
	const struct record *r = records(&count);
	uint64_t numbers = 0, bad = 0;

	for (i = 0; i < count; i++) {
		bad += r[i].number >= 64 || (numbers >> r[i].number & 1);
		numbers |= UINT64_C(1) << r[i].number;
		bad += r[i].kind == KIND_UNKNOWN || r[i].kind >= KIND_END;
		bad += !r[i].word[0] || !r[i].help[0];
		bad += r[i].field_count < 2 || strcmp(r[i].fields[0].name, "begin") != 0;
		bad += r[i].fields[0].place != PLACE_BEGIN;
		for (j = 0; j < r[i].field_count; j++) {
			const struct field *f = &r[i].fields[j];

			bad += f->from_cupti && !r[i].cupti;
			bad += f->from_cupti && f->offset < 4; /* the kind stands there */
			bad += f->type == FIELD_JSON && f->place != PLACE_CONST;
			bad += f->type == FIELD_STR && f->place == PLACE_ARG;
			bad += record_field(&r[i], f->name, strlen(f->name)) != f;
		}
		fields += r[i].field_count;
	}
	CHECK_U64(bad, 0);
	CHECK(count >= 20);
	CHECK(fields > 200);
	CHECK_STR(r[0].word, "kernel");
	for (i = 1; i < KIND_END; i++)
		if (!CHECK(record_of_kind((unsigned)i) != NULL))
			return;
	CHECK(record_of_kind(KIND_UNKNOWN) == NULL);
}

void test_records_lookups(void)
{
	const struct record *kernel = record_of_kind(KIND_KERNEL);
	const struct field *f = record_field(kernel, "grid_y", 6);

	if (!CHECK(f != NULL))
		return;
	CHECK_U64(f->offset, 56);
	CHECK_U64(f->type, FIELD_I32);
	CHECK_U64(f->unit, UNIT_COUNT);
	CHECK_U64(f->place, PLACE_CONST);
	CHECK_STR(f->arg, "grid[1]");
	CHECK(record_arg(kernel, "grid[1]", 7) == f);
	CHECK(record_field(kernel, "grid_", 5) == NULL);
	CHECK(record_field(kernel, "grid_y\0", 7) == NULL);
	CHECK_STR(record_arg(kernel, "shared memory", 13)->name, "shared");
	CHECK_STR(kind_field(KIND_MEMCPY, "bytes", 5)->arg, "bytes");
	CHECK_STR(kind_field(KIND_ALLOC, "total_reserved", 14)->arg, "Total Reserved");
	CHECK(kind_field(77, "begin", 5) == NULL);
	CHECK_U64(record_of_kind(KIND_ALLOC)->cupti, 0);
	CHECK_U64(record_of_kind(KIND_MARK)->cupti, 0);
}

void test_records_words(void)
{
	CHECK_STR(kind_word(KIND_OVERHEAD), "overhead");
	CHECK_STR(kind_word(99), "");
	CHECK_U64(kind_of_word("memset", 6), KIND_MEMSET);
	CHECK_U64(kind_of_word("memse", 5), KIND_UNKNOWN);
	CHECK_U64(kind_of_word("", 0), KIND_UNKNOWN);
	CHECK_STR(range_class_word(RANGE_OP), "cpu_op");
	CHECK_STR(range_class_word(200), "range");
	CHECK_STR(copy_kind_word(8), "DtoD");
	CHECK_STR(copy_kind_word(0), "");
	CHECK_STR(copy_kind_word(12), "UnifiedDtoH");
	CHECK_STR(copy_kind_word(14), "");
	CHECK_U64(copy_kind_of_word("PtoP", 4), 10);
	CHECK_U64(copy_kind_of_word("Hto", 3), 0);
	CHECK_STR(unit_name(UNIT_NS), "ns");
	CHECK_STR(unit_name(UNIT_NONE), "");
	CHECK_STR(unit_name(200), "");
}

#if defined(HAVE_CUPTI) && CUPTI_API_VERSION >= 130000

/* A field that came with a later version has no member in older headers. */
#if CUPTI_API_VERSION >= 130400
typedef CUpti_ActivityKernel13 struct_KERNEL;
typedef CUpti_ActivityMemcpy7 struct_MEMCPY;
typedef CUpti_ActivityMemset5 struct_MEMSET;
#else
#if CUPTI_API_VERSION >= 130300
typedef CUpti_ActivityKernel12 struct_KERNEL;
#elif CUPTI_API_VERSION >= 130100
typedef CUpti_ActivityKernel11 struct_KERNEL;
#else
typedef CUpti_ActivityKernel10 struct_KERNEL;
#endif
typedef CUpti_ActivityMemcpy6 struct_MEMCPY;
typedef CUpti_ActivityMemset4 struct_MEMSET;
#endif
#if CUPTI_API_VERSION >= 130500
typedef CUpti_ActivityCudaEvent3 struct_CUDA_EVENT;
#else
typedef CUpti_ActivityCudaEvent2 struct_CUDA_EVENT;
#endif
#if CUPTI_API_VERSION >= 130100
#define OFFSET_130100(record, offset, member) OFFSET_0(record, offset, member)
#else
#define OFFSET_130100(record, offset, member) true
#endif
#if CUPTI_API_VERSION >= 130300
#define OFFSET_130300(record, offset, member) OFFSET_0(record, offset, member)
#else
#define OFFSET_130300(record, offset, member) true
#endif
#if CUPTI_API_VERSION >= 130400
#define OFFSET_130400(record, offset, member) OFFSET_0(record, offset, member)
#else
#define OFFSET_130400(record, offset, member) true
#endif
#if CUPTI_API_VERSION >= 130500
#define OFFSET_130500(record, offset, member) OFFSET_0(record, offset, member)
#else
#define OFFSET_130500(record, offset, member) true
#endif
typedef CUpti_ActivityMemcpyPtoP4 struct_MEMCPY_PTOP;
typedef CUpti_ActivityMemDecompress struct_DECOMPRESS;
typedef CUpti_ActivityGraphTrace2 struct_GRAPH;
typedef CUpti_ActivityAPI struct_API;
typedef CUpti_ActivityAPI struct_DRIVER;
typedef CUpti_ActivitySynchronization2 struct_SYNC;
typedef CUpti_ActivityJit2 struct_JIT;
typedef CUpti_ActivityOverhead3 struct_OVERHEAD;
typedef CUpti_ActivityMemoryPool3 struct_MEMORY_POOL;
typedef CUpti_ActivityMemory4 struct_DEVICE_ALLOC;
typedef CUpti_ActivityMemory4 struct_DEVICE_FREE;

enum {
	SIZE_U8 = 1,
	SIZE_U16 = 2,
	SIZE_U32 = 4,
	SIZE_U64 = 8,
	SIZE_I32 = 4,
	SIZE_I64 = 8,
	SIZE_STR = sizeof(char *),
};

#define OFFSET_0(record, offset, member)      (offsetof(struct_##record, member) == (offset))
#define OFFSET_130000(record, offset, member) OFFSET_0(record, offset, member)
#define SIZE_0(record, type, member)          (sizeof(((struct_##record *)0)->member) == SIZE_##type)
#define SIZE_130000(record, type, member)     SIZE_0(record, type, member)
#define SIZE_130100(record, type, member)     true
#define SIZE_130300(record, type, member)     true
#define SIZE_130400(record, type, member)     true
#define SIZE_130500(record, type, member)     true

void test_records_offsets(void)
{
#define F(record, field, type, unit, place, offset, member, since, arg)                            \
	CHECK(OFFSET_##since(record, offset, member) && #record "." #field);                       \
	CHECK(SIZE_##since(record, type, member) && #record "." #field);
#include "schemas/model/records.def"
}

#else

void test_records_offsets(void)
{
	SKIP("no headers of CUPTI 13.0 or later here");
}

#endif
