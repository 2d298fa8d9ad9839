/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/arena/texts.h"
#include "collector/probe/nvtx/names.h"
#include "collector/probe/nvtx/payload.h"
#include "convert/source/log/internal.h"
#include "schemas/base/buf.h"
#include "schemas/model/trace.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What a payload says, as one text: arguments, then const args, "key~=value key=value". */
static struct nvtx_draft draft;
static struct buf told;

static void note(const struct trace *t, const struct attr *a, uint64_t bits, const char *sign)
{
	size_t len;
	const char *text = trace_text(t, a->key, &len);
	double f64;

	if (told.len)
		buf_put_byte(&told, ' ');
	buf_put(&told, text, len);
	buf_put_text(&told, sign);
	memcpy(&f64, &bits, sizeof(f64));
	if (a->type == ATTR_U64)
		buf_putf(&told, "%llu", (unsigned long long)bits);
	else if (a->type == ATTR_I64)
		buf_putf(&told, "%lld", (long long)bits);
	else if (a->type == ATTR_F64)
		buf_putf(&told, "%g", f64);
	else
		buf_put_text(&told, trace_text(t, (uint32_t)bits, &len));
}

/* The argument schema that the collector gives an event with the payload of the draft. */
static uint32_t make_schema(struct trace *t, uint32_t domain, uint64_t schema, uint64_t *words)
{
	struct attr args[LOG_PAYLOAD_ARGS], consts[2];
	struct arg_schema s = { consts, args, 0, 0 };
	uint8_t *bytes = draft.bytes + sizeof(struct nvtx_tail);
	size_t size = draft.size - sizeof(struct nvtx_tail), at = 0;
	struct buf schemas;

	memset(bytes + size, 0, 8);
	for (; s.arg_count < NVTX_PAYLOAD_WORDS; at += 8) {
		words[s.arg_count] = at < size ? get_u64(bytes + at) : 0;
		args[s.arg_count++] =
			(struct attr){ .key = trace_name(t, NVTX_PAYLOAD_KEY, 8, NULL) };
	}
	buf_init(&schemas, 1 << 20);
	nvtx_schema_write(&schemas, domain, schema);
	if (at < size)
		consts[s.const_count++] =
			(struct attr){ .key = args[0].key,
				       .type = ATTR_TEXT,
				       .bits = trace_name(t, (const char *)bytes + at, size - at,
							  NULL) };
	if (schemas.len)
		consts[s.const_count++] =
			(struct attr){ .key = trace_name(t, NVTX_SCHEMAS_KEY, 8, NULL),
				       .type = ATTR_TEXT,
				       .bits = trace_name(t, buf_text(&schemas), schemas.len,
							  NULL) };
	buf_release(&schemas);
	return trace_schema(t, &s, NULL);
}

/* Through the draft, as a callback and the writer do it, and then as the source of logs does. */
static const char *tell(uint32_t domain, uint64_t schema, const void *bytes, size_t size)
{
	struct nvtx_data data = { schema, size, bytes };
	uint64_t words[LOG_PAYLOAD_ARGS];
	struct event e = { .kind = KIND_RANGE, .args = words };
	const struct arg_schema *s;
	struct trace *t;
	size_t len;

	nvtx_draft_init(&draft, domain);
	nvtx_payload_copy(&draft, domain, &data);
	buf_release(&told);
	buf_init(&told, 1 << 20);
	if (!nvtx_draft_tail(&draft)->payloads || !CHECK(trace_new(&t, 1 << 24, NULL) == ST_OK))
		return "nothing";
	e.schema = make_schema(t, domain, schema, words);
	log_payload_decode(t, &e, words);
	s = trace_get_schema(t, e.schema);
	for (uint32_t i = 0; i < s->arg_count; i++)
		note(t, &s->args[i], words[i], "~=");
	for (uint32_t i = 0; i < s->const_count; i++)
		note(t, &s->consts[i], s->consts[i].bits, "=");
	if (e.name)
		buf_putf(&told, " name=%s", trace_text(t, e.name, &len));
	trace_free(t);
	return buf_text(&told);
}

static uint64_t put_schema(uint32_t domain, uint64_t id, const struct nvtx_entry *entries,
			   size_t count, uint64_t type)
{
	struct nvtx_schema s = {
		.mask = NVTX_SCHEMA_TYPE | NVTX_SCHEMA_ENTRIES | NVTX_SCHEMA_COUNT |
			(id ? NVTX_SCHEMA_ID : 0),
		.name = "a schema",
		.type = type,
		.entries = entries,
		.entry_count = count,
		.id = id,
	};

	return nvtx_schema_put(domain, &s);
}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define STATIC(domain, id, entries)                                                                \
	put_schema(domain, id, entries, COUNT(entries), NVTX_SCHEMA_IS_STATIC)
#define DYNAMIC(domain, entries)                                                                   \
	put_schema(domain, 0, entries, COUNT(entries), NVTX_SCHEMA_IS_DYNAMIC)

void test_nvtx_payload_numbers(void)
{
	static const struct nvtx_entry entries[] = {
		{ .type = NVTX_TYPE_INT8, .name = "i8" },
		{ .type = NVTX_TYPE_UINT64, .name = "u64" },
		{ .type = NVTX_TYPE_FLOAT, .name = "f" },
		{ .type = NVTX_TYPE_DOUBLE, .name = "d" },
		{ .type = NVTX_TYPE_INT16, .name = "i16" },
		{ .type = NVTX_TYPE_FLOAT16, .name = "half" },
		{ .type = NVTX_TYPE_BF16, .name = "bf" },
		{ .type = NVTX_TYPE_CHAR, .name = "c" },
		{ .type = NVTX_TYPE_CHAR32, .name = "c32" },
	};
	const struct { /* natural alignment, no offset given */
		int8_t i8;
		uint64_t u64;
		float f;
		double d;
		int16_t i16;
		uint16_t half, bf;
		char c;
		uint32_t c32;
	} v = { -1, UINT64_MAX, 0.5f, -2.25, -300, 0xc100, 0x3fc0, 'x', 0x1f600 };
	static const char all[] = "i8~=-1 u64~=18446744073709551615 f~=0.5 d~=-2.25 i16~=-300 "
				  "half~=-2.5 bf~=1.5 c~=120 c32=\xf0\x9f\x98\x80";
	uint64_t id = STATIC(0, 0, entries);

	CHECK(id >= NVTX_SCHEMA_DYNAMIC);
	CHECK_STR(tell(0, id, &v, sizeof(v)), all);
	/* the same once more, and what is not there is not told */
	CHECK_U64(STATIC(0, 0, entries), id);
	CHECK_STR(tell(0, id, &v, 20), "i8~=-1 u64~=18446744073709551615 f~=0.5");
	CHECK_STR(tell(0, id, &v, SIZE_MAX), all); /* the size of the schema */
	CHECK_STR(tell(0, id, &v, 0), "nothing");
	CHECK_STR(tell(0, id, NULL, 8), "nothing");
}

void test_nvtx_payload_static_ids(void)
{
	static const struct nvtx_entry one[] = { { .type = NVTX_TYPE_INT, .name = "one" } };
	static const struct nvtx_entry two[] = { { .type = NVTX_TYPE_INT, .name = "two" } };
	const uint64_t id = NVTX_SCHEMA_STATIC + 5;
	const int v = 7;

	/* a library's own ids are of its domain; a new schema of one id takes its place */
	CHECK_U64(STATIC(1, id, one), id);
	CHECK_U64(STATIC(2, id, two), id);
	CHECK_STR(tell(1, id, &v, 4), "one~=7");
	CHECK_STR(tell(2, id, &v, 4), "two~=7");
	CHECK_STR(tell(3, id, &v, 4), "payload=07000000");
	CHECK_U64(STATIC(1, id, two), id);
	CHECK_STR(tell(1, id, &v, 4), "two~=7");
	CHECK_U64(STATIC(1, 12, one) >> 32, 1); /* no id of a schema: it gets one */
	CHECK_U64(STATIC(1, NVTX_SCHEMA_DYNAMIC + 1000, one) >> 32, 1);
}

/* NCCL's: a communicator, bytes, and an operation that is an enum. */
void test_nvtx_payload_nccl(void)
{
	static const struct nvtx_word words[] = { { "Sum", 0, 0 }, { "Prod", 1, 0 } };
	static const struct nvtx_entry entries[] = {
		{ .type = NVTX_TYPE_UINT64, .name = "NCCL communicator ID" },
		{ .type = NVTX_TYPE_SIZE, .name = "Message size [bytes]", .offset = 8 },
		{ .type = NVTX_SCHEMA_STATIC + 11, .name = "Reduction operation", .offset = 16 },
	};
	const struct nvtx_enum e = {
		.mask = NVTX_ENUM_ENTRIES | NVTX_ENUM_COUNT | NVTX_ENUM_SIZE | NVTX_ENUM_ID,
		.words = words,
		.word_count = 2,
		.size = sizeof(int),
		.id = NVTX_SCHEMA_STATIC + 11,
	};
	struct {
		uint64_t comm;
		size_t bytes;
		int op;
	} v = { 0xabcdef0123456789, 1 << 20, 1 };
	uint64_t id;

	CHECK_U64(nvtx_enum_put(9, &e), e.id);
	CHECK_U64(nvtx_enum_put(9, &e), e.id);
	id = STATIC(9, NVTX_SCHEMA_STATIC + 5, entries);
	CHECK_STR(tell(9, id, &v, sizeof(v)),
		  "NCCL communicator ID~=12379813738877118345 Message size [bytes]~=1048576 "
		  "Reduction operation=Prod");
	v.op = 77; /* of a newer library */
	CHECK_STR(tell(9, id, &v, sizeof(v)) + told.len - 22, "Reduction operation=77");
}

void test_nvtx_payload_flags(void)
{
	static const struct nvtx_word words[] = { { "READ", 1, 1 },
						  { "WRITE", 2, 1 },
						  { "NONE", 0, 0 } };
	const struct nvtx_enum e = { .mask = NVTX_ENUM_ENTRIES | NVTX_ENUM_COUNT,
				     .words = words,
				     .word_count = 3 };
	uint64_t id = nvtx_enum_put(0, &e);
	const struct nvtx_entry entries[] = { { .type = id, .name = "access" } };
	uint64_t schema = STATIC(0, 0, entries);
	int v = 3;

	CHECK(id >= NVTX_SCHEMA_DYNAMIC);
	CHECK_STR(tell(0, schema, &v, sizeof(v)), "access=READ|WRITE");
	v = 2;
	CHECK_STR(tell(0, schema, &v, sizeof(v)), "access=WRITE");
	v = 0;
	CHECK_STR(tell(0, schema, &v, sizeof(v)), "access=NONE");
	CHECK_STR(tell(0, id, &v, sizeof(v)), "payload=NONE"); /* the enum alone */
	CHECK_U64(nvtx_enum_put(0, NULL), 0);
}

void test_nvtx_payload_nested(void)
{
	static const struct nvtx_entry inner[] = {
		{ .type = NVTX_TYPE_INT, .name = "x" },
		{ .type = NVTX_TYPE_INT, .name = "y" },
	};
	uint64_t inner_id = STATIC(0, 0, inner);
	const struct nvtx_entry outer[] = {
		{ .type = NVTX_TYPE_INT8, .name = "first" },
		{ .type = inner_id, .name = "point" },
		{ .type = inner_id, .name = "more", .flags = NVTX_ENTRY_ARRAY_FIXED, .detail = 2 },
		{ .type = NVTX_TYPE_INT,
		  .name = "list",
		  .flags = NVTX_ENTRY_ARRAY_FIXED,
		  .detail = 3 },
		{ .type = NVTX_TYPE_CHAR,
		  .name = "text",
		  .flags = NVTX_ENTRY_ARRAY_FIXED,
		  .detail = 8 },
	};
	const struct {
		int8_t first;
		int point[2], more[4], list[3];
		char text[8];
	} v = { 1, { 2, 3 }, { 4, 5, 6, 7 }, { 8, -9, 10 }, "letters" };

	CHECK_STR(tell(0, STATIC(0, 0, outer), &v, sizeof(v)),
		  "first~=1 point.x~=2 point.y~=3 more[0].x~=4 more[0].y~=5 more[1].x~=6 "
		  "more[1].y~=7 list[0]~=8 list[1]~=-9 list[2]~=10 text=letters");
}

/* A schema that holds itself, which the program's own ids allow. */
void test_nvtx_payload_endless(void)
{
	static const struct nvtx_entry entries[] = {
		{ .type = NVTX_SCHEMA_STATIC + 77, .name = "self" },
		{ .type = NVTX_SCHEMA_STATIC + 77, .name = "again" },
		{ .type = NVTX_TYPE_INT8, .name = "n" },
	};
	const char bytes[64] = { 1, 2, 3 };
	uint64_t id = STATIC(0, NVTX_SCHEMA_STATIC + 77, entries);

	CHECK(strlen(tell(0, id, bytes, sizeof(bytes))) < 64 * 1024);
}

/* The same without any field: it still has to come to an end. */
void test_nvtx_payload_ring(void)
{
	const uint64_t id = NVTX_SCHEMA_STATIC + 78;
	struct nvtx_entry entries[100];
	struct nvtx_schema s = { .mask = NVTX_SCHEMA_ENTRIES | NVTX_SCHEMA_COUNT |
					 NVTX_SCHEMA_SIZE | NVTX_SCHEMA_ID,
				 .entries = entries,
				 .entry_count = COUNT(entries),
				 .size = 1,
				 .id = id };

	memset(entries, 0, sizeof(entries));
	for (size_t i = 0; i < COUNT(entries); i++)
		entries[i] = (struct nvtx_entry){ .type = id, .name = "self" };
	CHECK_U64(nvtx_schema_put(0, &s), id);
	CHECK_STR(tell(0, id, "x", 1), "");
}

void test_nvtx_payload_dynamic(void)
{
	static const struct nvtx_entry entries[] = {
		{ .type = NVTX_TYPE_UINT8, .name = "n" },
		{ .type = NVTX_TYPE_INT16,
		  .name = "list",
		  .flags = NVTX_ENTRY_ARRAY_COUNTED,
		  .detail = 0 },
		{ .type = NVTX_TYPE_CSTRING, .name = "text", .flags = NVTX_ENTRY_ARRAY_ZERO },
		{ .type = NVTX_TYPE_INT8, .name = "zero", .flags = NVTX_ENTRY_ARRAY_ZERO },
		{ .type = NVTX_TYPE_UINT8, .name = "last" },
	};
	uint64_t id = DYNAMIC(0, entries);
	static const uint8_t bytes[] = { 2, 0, 5, 0, 0xff, 0xff, 'a', 'b', 0, 7, 8, 0, 99 };
	size_t size;

	CHECK_STR(tell(0, id, bytes, sizeof(bytes)),
		  "n~=2 last~=99 list=[5,-1] text=ab zero=[7,8]");
	for (size = 0; size < sizeof(bytes); size++)
		CHECK(strstr(tell(0, id, bytes, size), "last") == NULL);
	CHECK_STR(tell(0, id, "\xff\0\1\0", 4), "n~=255 list=[1] text= zero=[]");
}

void test_nvtx_payload_texts(void)
{
	static const struct nvtx_entry entries[] = {
		{ .type = NVTX_TYPE_CSTRING, .name = "inline", .detail = 8 },
		{ .type = NVTX_TYPE_CSTRING, .name = "pointer" },
		{ .type = NVTX_TYPE_CSTRING_UTF8, .name = "flagged", .flags = NVTX_ENTRY_POINTER },
		{ .type = NVTX_TYPE_CSTRING_UTF16, .name = "wide", .detail = 4 },
		{ .type = NVTX_TYPE_NVTX_REGISTERED_STRING_HANDLE,
		  .name = "handle",
		  .flags = NVTX_ENTRY_MESSAGE },
		{ .type = NVTX_TYPE_INT, .name = "to ints", .flags = NVTX_ENTRY_POINTER },
	};
	struct {
		char text[8];
		const char *pointer, *flagged;
		uint16_t wide[4];
		uint64_t handle;
		const int *ints;
	} v = { "12345678",
		"elsewhere",
		"too",
		{ 'u', 0xd83d, 0xde00, 0 },
		name_find("registered"),
		(const int *)0x1000 };
	uint64_t id;

	memcpy(v.text, "12345678", 8); /* no zero at its end */
	id = STATIC(0, 0, entries);
	CHECK_STR(tell(0, id, &v, sizeof(v)),
		  "to ints~=4096 inline=12345678 pointer=elsewhere flagged=too "
		  "wide=u\xf0\x9f\x98\x80 name=registered");
	v.pointer = NULL;
	v.flagged = (const char *)8; /* nothing there: no fault */
	v.handle = UINT32_MAX;
	CHECK_STR(tell(0, id, &v, sizeof(v)),
		  "to ints~=4096 inline=12345678 pointer= flagged= wide=u\xf0\x9f\x98\x80 name=");
}

/* Texts that nested schemas refer to, in an array too. */
void test_nvtx_payload_nested_texts(void)
{
	static const struct nvtx_entry inner[] = {
		{ .type = NVTX_TYPE_NVTX_REGISTERED_STRING_HANDLE, .name = "handle" },
		{ .type = NVTX_TYPE_CSTRING, .name = "pointer" },
	};
	const struct nvtx_entry outer[] = {
		{ .type = STATIC(0, 0, inner),
		  .name = "both",
		  .flags = NVTX_ENTRY_ARRAY_FIXED,
		  .detail = 2 },
	};
	struct {
		uint64_t handle;
		const char *pointer;
	} v[2] = { { name_find("one"), "two" }, { name_find("three"), "four" } };

	CHECK_STR(tell(0, STATIC(0, 0, outer), &v, sizeof(v)),
		  "both[0].handle=one both[0].pointer=two both[1].handle=three "
		  "both[1].pointer=four");
}

/* A text that ends where memory does. */
void test_nvtx_payload_edge(void)
{
	static const struct nvtx_entry entries[] = { { .type = NVTX_TYPE_CSTRING, .name = "p" } };
	uint64_t id = STATIC(0, 0, entries);
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *text = page + 4096 - 5;

	if (!CHECK(page != MAP_FAILED) || !CHECK(munmap(page + 4096, 4096) == 0))
		return;
	memcpy(page + 4096 - 5, "abcde", 5);
	CHECK_STR(tell(0, id, &text, sizeof(text)), "p=abcde");
	munmap(page, 4096);
}

void test_nvtx_payload_plain(void)
{
	const uint8_t bytes[100] = { 1, 2, 0xff };
	const char *told_raw;

	CHECK_STR(tell(0, NVTX_SCHEMA_RAW, bytes, 3), "payload=0102ff");
	CHECK_STR(tell(0, UINT64_C(0x123456789abc), bytes, 3), "payload=0102ff");
	told_raw = tell(0, NVTX_SCHEMA_RAW, bytes, sizeof(bytes));
	CHECK_U64(strlen(told_raw), 8 + 128 + 3);
	CHECK_STR(told_raw + 136, "...");
	CHECK_STR(tell(0, NVTX_SCHEMA_REFERENCED, bytes, 3), "nothing");
	CHECK_STR(tell(0, NVTX_TYPE_INT, "\5\0\0\0", 4), "payload~=5");
	CHECK_STR(tell(0, NVTX_TYPE_INT, "\5", 1), "payload=05");
	CHECK_STR(tell(0, NVTX_TYPE_CSTRING, "a text", SIZE_MAX), "payload=a text");
}

/* More than a place of the ring holds is left out and counted. */
void test_nvtx_payload_large(void)
{
	static const uint8_t bytes[RING_TAIL_MAX];
	uint64_t lost = nvtx_lost();

	CHECK_STR(tell(0, NVTX_SCHEMA_RAW, bytes, sizeof(bytes)), "nothing");
	CHECK_U64(nvtx_lost() - lost, 1);
	tell(0, NVTX_SCHEMA_RAW, bytes, sizeof(bytes) - 64);
	CHECK_U64(nvtx_lost() - lost, 1);
}

/* Schemas and bytes that nobody would write: nothing beyond the bytes is looked at. */
void test_nvtx_payload_random(void)
{
	struct nvtx_entry entries[6];
	uint64_t ids[16] = { NVTX_TYPE_INT };
	uint32_t seed = 1, i, n, round;
	uint8_t *bytes;

	for (round = 0; round < 400; round++) {
		memset(entries, 0, sizeof(entries));
		for (i = 0; i < 6; i++) {
			seed = seed * 1664525 + 1013904223;
			entries[i].type = seed >> 30 ? seed >> 16 & 0x7f : ids[seed >> 8 & 15];
			entries[i].flags =
				(seed >> 24 & 15) == 3 ? seed >> 4 & 0x7e : (seed & 3) << 4;
			entries[i].detail = seed >> 12 & 31;
			entries[i].offset = seed >> 20 & 1 ? seed >> 10 & 63 : 0;
			entries[i].name = "n";
		}
		n = (seed >> 5) % 200;
		ids[round & 15] = put_schema(0, 0, entries, 6, 1 + (seed >> 9 & 1));
		bytes = malloc(n + 1); /* its own memory, for the sanitizer to stand behind */
		if (!CHECK(bytes != NULL))
			return;
		for (i = 0; i < n; i++)
			bytes[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
		/* addresses are looked at in a way that takes any */
		tell(0, ids[round & 15], bytes, n);
		free(bytes);
	}
	CHECK(ids[3] != 0);
	buf_release(&told);
}
