/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx.h - extended payloads of NVTX: the types of their fields, and how a log stores them.
 *
 * The collector stores the bytes of a payload and the schemas that describe them; the source of
 * logs turns them into arguments.  LOG.md, section 12, defines the bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Keys of the arguments that hold an event's payloads. */
#define NVTX_PAYLOAD_KEY ".payload"
#define NVTX_SCHEMAS_KEY ".schemas"
enum {
	NVTX_PAYLOAD_WORDS = 32,      /* most argument values with NVTX_PAYLOAD_KEY */
	NVTX_PAYLOAD_WORDS_LEAST = 4, /* their number is a power of two, which keeps layouts few */
};

/* The header of a payload, before its `size` and `extra` bytes.  Zeros follow the last payload. */
struct nvtx_payload_header {
	uint64_t schema;      /* the program's id, or a type below NVTX_TYPE_END */
	uint16_t size, extra; /* extra: texts that fields refer to, each as offset, length, bytes */
	uint32_t spare;
};

enum nvtx_form {
	NVTX_FORM_NONE, /* a type that is unknown here */
	NVTX_FORM_SIGNED,
	NVTX_FORM_UNSIGNED,
	NVTX_FORM_FLOAT,
	NVTX_FORM_BFLOAT,
	NVTX_FORM_LETTER,
	NVTX_FORM_TEXT,
	NVTX_FORM_REFERENCE, /* a pointer or a handle, whose text is among the extra bytes */
	/* Forms of registered schemas, whose numbers are in the log. */
	NVTX_FORM_ENUM = 8,
	NVTX_FORM_STATIC = 9,   /* its entries have offsets */
	NVTX_FORM_DYNAMIC = 10, /* its entries follow one another */
};

/* The types of entries, which are the schema ids below 2^24, with the sizes of this machine. */
/* clang-format off */
#define NVTX_TYPE_LIST(X)                                                                          \
	X(CHAR, 1, SIGNED, char) X(UCHAR, 2, UNSIGNED, unsigned char)                              \
	X(SHORT, 3, SIGNED, short) X(USHORT, 4, UNSIGNED, unsigned short)                          \
	X(INT, 5, SIGNED, int) X(UINT, 6, UNSIGNED, unsigned)                                      \
	X(LONG, 7, SIGNED, long) X(ULONG, 8, UNSIGNED, unsigned long)                              \
	X(LONGLONG, 9, SIGNED, long long) X(ULONGLONG, 10, UNSIGNED, unsigned long long)           \
	X(INT8, 11, SIGNED, int8_t) X(UINT8, 12, UNSIGNED, uint8_t)                                \
	X(INT16, 13, SIGNED, int16_t) X(UINT16, 14, UNSIGNED, uint16_t)                            \
	X(INT32, 15, SIGNED, int32_t) X(UINT32, 16, UNSIGNED, uint32_t)                            \
	X(INT64, 17, SIGNED, int64_t) X(UINT64, 18, UNSIGNED, uint64_t)                            \
	X(FLOAT, 19, FLOAT, float) X(DOUBLE, 20, FLOAT, double)                                    \
	X(LONGDOUBLE, 21, FLOAT, long double)                                                      \
	X(SIZE, 22, UNSIGNED, size_t) X(ADDRESS, 23, UNSIGNED, void *)                             \
	X(WCHAR, 24, LETTER, wchar_t) X(CHAR8, 25, LETTER, char) X(CHAR16, 26, LETTER, uint16_t)   \
	X(CHAR32, 27, LETTER, uint32_t)                                                            \
	X(BYTE, 32, UNSIGNED, uint8_t)                                                             \
	X(FLOAT16, 42, FLOAT, uint16_t) X(FLOAT32, 43, FLOAT, float) X(FLOAT64, 44, FLOAT, double) \
	X(BF16, 50, BFLOAT, uint16_t) X(TF32, 52, FLOAT, float)                                    \
	X(CATEGORY, 68, UNSIGNED, uint32_t) X(COLOR_ARGB, 69, UNSIGNED, uint32_t)                  \
	X(SCOPE_ID, 70, UNSIGNED, uint64_t)                                                        \
	X(PID_UINT32, 71, UNSIGNED, uint32_t) X(PID_UINT64, 72, UNSIGNED, uint64_t)                \
	X(TID_UINT32, 73, UNSIGNED, uint32_t) X(TID_UINT64, 74, UNSIGNED, uint64_t)                \
	X(CSTRING, 75, TEXT, char) X(CSTRING_UTF8, 76, TEXT, char)                                 \
	X(CSTRING_UTF16, 77, TEXT, uint16_t) X(CSTRING_UTF32, 78, TEXT, uint32_t)                  \
	X(NVTX_REGISTERED_STRING_HANDLE, 80, REFERENCE, void *)
/* clang-format on */
enum nvtx_type_number {
#define X(name, number, form, type) NVTX_TYPE_##name = number,
	NVTX_TYPE_LIST(X)
#undef X
		NVTX_TYPE_END,
};

/* Bits of an entry's flags. */
enum nvtx_entry_flag {
	NVTX_ENTRY_POINTER = 1 << 1,
	NVTX_ENTRY_FROM_BASE = 1 << 2,
	NVTX_ENTRY_FROM_HERE = 1 << 3,
	NVTX_ENTRY_ARRAY = 7 << 4, /* one of the next four */
	NVTX_ENTRY_ARRAY_FIXED = 1 << 4,
	NVTX_ENTRY_ARRAY_ZERO = 2 << 4,
	NVTX_ENTRY_ARRAY_COUNTED =
		3 << 4, /* `length` is the number of the entry that has its length */
	NVTX_ENTRY_ARRAY_ELSEWHERE = 4 << 4,
	NVTX_ENTRY_DEEP_COPY = 1 << 8,
	NVTX_ENTRY_HIDE = 1 << 9,
	NVTX_ENTRY_MESSAGE = 1 << 10,
};

struct nvtx_type {
	uint8_t form; /* enum nvtx_form */
	uint16_t size, align;
};
/* Returns a type below NVTX_TYPE_END, or form NONE and size 0 if it is unknown. */
struct nvtx_type nvtx_type_find(uint64_t type);
