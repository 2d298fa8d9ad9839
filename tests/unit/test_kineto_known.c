/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements that are found again instead of scanned: the same events, tables, losses and faults.
 */
#include "convert/source/json/number_fast.h"
#include "tests/unit/folder.h"
#include "tests/unit/kineto_twice.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_twice(const char *path, struct kineto_digest *known)
{
	struct kineto_digest scanned;
	bool same;

	kineto_digest_init(&scanned, path, true);
	kineto_digest_init(known, path, false);
	CHECK_U64(scanned.fast.taken, 0);
	same = CHECK_U64(known->events, scanned.events) &&
	       CHECK(kineto_digest_same(known, &scanned));
	kineto_digest_release(&scanned);
	kineto_digest_release(known);
	return same;
}

struct seen {
	uint64_t found, events;
};

static void check_known(const char *path, void *arg)
{
	struct kineto_digest known;
	struct seen *seen = arg;

	if (!same_twice(path, &known))
		printf("# %s\n", path);
	seen->found += known.fast.taken;
	seen->events += known.events;
}

void test_known_real_files(void)
{
	struct seen seen = { .found = 0 };

	if (unit_kineto_traces(check_known, &seen))
		CHECK(seen.found > seen.events / 2); /* most of them, or it is no help */
}

static const char *const elements[] = {
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 5, \"tid\": 6, "
	"\"ts\": 1000, \"dur\": 7, \"args\": {\"External id\": 3, \"Ev Idx\": 9}}",
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, "
	"\"ts\": 1010.250, \"dur\": 4, \"args\": {\"device\": 0, \"stream\": 7, "
	"\"correlation\": 12, \"blocks per SM\": 6.4, \"grid\": [1, 2, 3], \"queued\": 0}}",
	"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 5, "
	"\"tid\": 6, \"ts\": 1001, \"dur\": 2, \"args\": {\"cbid\": 211, \"correlation\": 12}}",
	"{\"ph\": \"s\", \"id\": 12, \"pid\": 5, \"tid\": 6, \"ts\": 1001, \"cat\": \"ac2g\", "
	"\"name\": \"ac2g\"}",
	"{\"ph\": \"f\", \"id\": 12, \"pid\": 0, \"tid\": 7, \"ts\": 1010, \"cat\": \"fwdbwd\", "
	"\"name\": \"fwdbwd\", \"bp\": \"e\"}",
	"{\"ph\": \"i\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": 5, \"tid\": 6, "
	"\"ts\": 1020.5, \"args\": {\"Bytes\": -512, \"Addr\": 4096, \"Device Id\": 0, "
	"\"Device Type\": 1, \"Total Allocated\": 99}}",
	"{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable -> Device)\", "
	"\"pid\": 0, \"tid\": 7, \"ts\": 1030, \"dur\": 1, \"args\": {\"device\": 0, "
	"\"stream\": 7, \"correlation\": 13, \"bytes\": 4096, \"memory bandwidth (GB/s)\": 1.5}}",
	"{\"ph\": \"X\", \"cat\": \"strange\", \"name\": \"x\", \"pid\": 0, \"tid\": 7, "
	"\"ts\": 1031, \"dur\": 1, \"args\": {\"device\": 0, \"stream\": 7, \"Count\": 2}}",
};
enum { ELEMENTS = sizeof(elements) / sizeof(*elements) };

static void put_elements(struct buf *text, unsigned times)
{
	buf_put_text(text, "{\"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"x\", \"ts\": 0}");
	for (unsigned i = 0; i < times * ELEMENTS; i++)
		buf_putf(text, ",\n%s", elements[i % ELEMENTS]);
	buf_put_text(text, "\n]}");
}

static bool same_text(struct folder *folder, const struct buf *text, struct kineto_digest *known)
{
	return same_twice(folder_write(folder, "a.json", text->data, text->len), known);
}

void test_known_all_kinds(void)
{
	struct kineto_digest known;
	struct folder folder;
	struct buf text;

	folder_make(&folder);
	buf_init(&text, 1 << 20);
	put_elements(&text, 10);
	same_text(&folder, &text, &known);
	/* all but the first of each, and that of a category nobody knows on a GPU */
	CHECK(known.fast.taken >= 9 * (ELEMENTS - 1));
	buf_release(&text);
	folder_remove(&folder);
}

static void check_text(const char *json, uint64_t found)
{
	struct kineto_digest known;
	struct folder folder;
	struct buf text;

	folder_make(&folder);
	buf_init(&text, 1 << 20);
	buf_putf(&text, "%s%200s", json, ""); /* the last bytes of a file are always scanned */
	same_text(&folder, &text, &known);
	CHECK_U64(known.fast.taken, found);
	buf_release(&text);
	folder_remove(&folder);
}

/* The pid of the process is learnt late, and the same element is on another track from then on. */
void test_known_late_pid(void)
{
#define SPAN(cat, ts)                                                                              \
	",{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"o\",\"pid\":5,\"tid\":6,\"ts\":" #ts        \
	",\"dur\":1}"
#define OVERHEAD(ts) SPAN("overhead", ts)
#define OP(ts)       SPAN("cpu_op", ts)
#define META         "{\"ph\":\"M\"}"
#define LABELS       ",{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":5,\"args\":{\"labels\":\"CPU\"}}"

	check_text("[" META OVERHEAD(1) OVERHEAD(2) OP(3) OVERHEAD(4) OVERHEAD(5) OP(6) "]", 3);
	check_text("[" META OVERHEAD(1) OVERHEAD(2) LABELS OVERHEAD(4) OVERHEAD(5) OP(6) OP(7) "]",
		   3);
}

/* A comma is of an element but the first, also in an array that comes again. */
void test_known_second_array(void)
{
#define EVENTS "\"traceEvents\":["
	check_text("{" EVENTS META OP(1) OP(2) "]," EVENTS OP(3) "]}", 1);
	check_text("{" EVENTS META OP(1) OP(2) "]," EVENTS META OP(3) OP(4) "]}", 3);
}

/* What may stand for a number, and what may not. */
static const char *const written_numbers[] = {
	"0",
	"1",
	"-1",
	"-0",
	"00",
	"01",
	"-",
	"1.",
	".5",
	"1.5",
	"-2.25",
	"0.0",
	"-0.0",
	"1e3",
	"1E-2",
	"1.5e",
	"12345678",
	"123456789012345678",
	"9999999999999999999",
	"18446744073709551615",
	"18446744073709551616",
	"9223372036854775808",
	"-9223372036854775808",
	"-9223372036854775809",
	"1000.1234",
	"1000.12345678901234",
	"0.1234567890123456789",
	"null",
	"\"7\"",
	"\"-7.5e1\"",
	"\"7x\"",
	"\"1.2.3\"",
	"\"\"",
	"NaN",
	"1 2",
	"[1]",
	"true",
	"1000.",
	"+1",
	"4611686018427387905",
	"-4611686018427387905",
	"99999999.999",
	"1x",
	"1,2",
	"",
};
static const char *const number_keys[] = {
	"\"ts\": ", "\"dur\": ",         "\"correlation\": ",   "\"bytes\": ",  "\"Bytes\": ",
	"\"id\": ", "\"External id\": ", "\"blocks per SM\": ", "\"device\": ", "\"pid\": ",
};

/* Elements of which one number is another: as it may be written, and as it may not. */
void test_known_numbers(void)
{
	struct folder folder;

	folder_make(&folder);
	for (size_t k = 0; k < sizeof(number_keys) / sizeof(*number_keys); k++)
		for (size_t n = 0; n < sizeof(written_numbers) / sizeof(*written_numbers); n++) {
			struct kineto_digest known;
			struct buf text;

			buf_init(&text, 1 << 20);
			put_elements(&text, 3);
			text.len -= 3;
			for (unsigned i = 0; i < ELEMENTS; i++) {
				const char *at = strstr(elements[i], number_keys[k]);

				if (!at)
					continue;
				at += strlen(number_keys[k]);
				buf_put_text(&text, ",\n");
				buf_put(&text, elements[i], (size_t)(at - elements[i]));
				buf_put_text(&text, written_numbers[n]);
				buf_put_text(&text, at + strcspn(at, ",}"));
			}
			buf_put_text(&text, "\n]}");
			if (!same_text(&folder, &text, &known))
				printf("# %s%s\n", number_keys[k], written_numbers[n]);
			buf_release(&text);
		}
	folder_remove(&folder);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One byte is another one, or a piece comes twice, or is gone. */
static void mutate(struct buf *text, uint64_t *seed)
{
	static const char bytes[] = "0123456789-.,:\"{}[]eE \\ntrue";
	size_t at = 40 + random_next(seed) % (text->len - 80), len = 1 + random_next(seed) % 30;

	switch (random_next(seed) % 4) {
	case 0:
		memmove(text->data + at, text->data + at + len, text->len - at - len);
		text->len -= len;
		break;
	case 1:
		if (!buf_reserve(text, len))
			return;
		memmove(text->data + at + len, text->data + at, text->len - at);
		text->len += len;
		break;
	default:
		text->data[at] = (uint8_t)bytes[random_next(seed) % (sizeof(bytes) - 1)];
	}
}

void test_known_mutated(void)
{
	uint64_t seed = 0x1234567;
	struct folder folder;
	struct buf text;

	folder_make(&folder);
	for (int i = 0; i < 3000; i++) {
		struct kineto_digest known;

		buf_init(&text, 1 << 20);
		put_elements(&text, 4);
		for (uint64_t n = 1 + random_next(&seed) % 3; n; n--)
			mutate(&text, &seed);
		if (!same_text(&folder, &text, &known)) {
			printf("# round %d: %.*s\n", i, (int)text.len, (const char *)text.data);
			i = 3000;
		}
		buf_release(&text);
	}
	folder_remove(&folder);
}

/* More than it may keep: it forgets, and goes on. */
void test_known_forgets(void)
{
	struct kineto_digest known;
	struct folder folder;
	struct buf text;

	folder_make(&folder);
	buf_init(&text, 64 << 20);
	buf_put_text(&text, "[{\"ph\": \"M\"}");
	for (unsigned i = 0; i < 30000; i++) {
		unsigned name = i < 20000 ? i : i % 20000 / 5001;

		buf_putf(&text,
			 ",\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a name of an "
			 "operator that is not so short %u\", \"pid\": 5, \"tid\": 6, "
			 "\"ts\": %u, \"dur\": 7, \"args\": {\"External id\": %u}}",
			 name, i, i);
	}
	buf_put_text(&text, "]");
	same_text(&folder, &text, &known);
	CHECK(known.fast.learnt >= 20000);
	CHECK(known.fast.taken >= 9000);
	buf_release(&text);
	folder_remove(&folder);
}

void test_known_read_numbers(void)
{
	uint64_t seed = 99;

	for (int i = 0; i < 200000; i++) {
		struct json_number n;
		uint64_t v = random_next(&seed) >> random_next(&seed) % 64;
		unsigned decimals = (unsigned)(random_next(&seed) % 12);
		int64_t ns = 0, want = 0;
		char text[64] = { 0 };
		size_t len = (size_t)snprintf(text, sizeof(text), "%s%llu", i % 3 ? "" : "-",
					      (unsigned long long)v);

		if (i % 2)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ".%0*llu",
						(int)decimals + 1,
						(unsigned long long)random_next(&seed) % 1000);
		text[len] = ",}] e"[i % 4];
		if (!json_number_read(text, text + sizeof(text), &n))
			continue;
		CHECK_U64(n.len, len);
		CHECK(json_number_f64(&n) == json_f64(text, len));
		CHECK(signbit(json_number_f64(&n)) == signbit(json_f64(text, len)));
		if (CHECK(json_number_us_to_ns(&n, &ns) == json_us_to_ns(text, len, &want)) &&
		    !CHECK_I64(ns, want))
			return;
		if (n.class == JSON_WHOLE)
			CHECK(json_u64(text, len, &v) && v == n.digits);
	}
}
