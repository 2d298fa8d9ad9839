/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/events.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "convert/input/input.h"
#include "convert/source/json/scan.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_FILE = 24 << 20 }; /* larger ones would take cJSON a gigabyte */

/* Each token as a letter and its text: {"a":[1]} is "{ Ka [ N1 ] } ." */
static void put_tokens(struct json_scan *s, struct buf *out, enum status *status, struct error *err)
{
	static const char letters[] = ".{}[]KSNtfn?";
	struct json token;

	*err = (struct error){ 0 };
	for (;;) {
		*status = json_next(s, &token, err);
		if (*status != ST_OK)
			return;
		if (out->len)
			buf_put_byte(out, ' ');
		buf_put_byte(out, (uint8_t)letters[token.type]);
		if (token.type == JSON_KEY || token.type == JSON_STRING)
			json_decode(token.text, token.len, out);
		else if (token.type == JSON_NUMBER || token.type == JSON_ODD)
			buf_put(out, token.text, token.len);
		if (token.type == JSON_END)
			return;
	}
}

static void check_tokens(const char *text, const char *want)
{
	struct json_scan s;
	struct error err;
	enum status status;
	struct buf out;

	buf_init(&out, 1 << 20);
	json_open_text(&s, text, strlen(text));
	put_tokens(&s, &out, &status, &err);
	CHECK_OK(status, &err);
	CHECK_STR(buf_text(&out), want);
	buf_release(&out);
}

void test_json_tokens(void)
{
	check_tokens("{\"a\":[1]}", "{ Ka [ N1 ] } .");
	check_tokens(" \n{ \"a\" : [ ] , \"b\":{}\t}\r\n", "{ Ka [ ] Kb { } } .");
	check_tokens("[true,false,null,-0,0.5e+3,1E9]", "[ t f n N-0 N0.5e+3 N1E9 ] .");
	check_tokens("[0x1aF,(nil),ncclInt8,Unknown,0]",
		     "[ S0x1aF S(nil) SncclInt8 SUnknown N0 ] .");
	check_tokens("[NaN,Infinity,-Infinity,N/A,-5]", "[ ?NaN ?Infinity ?-Infinity ?N/A N-5 ] .");
	check_tokens("\"x\"", "Sx .");
	check_tokens("12", "N12 .");
	check_tokens("\xef\xbb\xbf[]", "[ ] .");
	check_tokens("[\"tab\there\",\"\x01\"]", "[ Stab\there S\x01 ] .");
	check_tokens("[[[[]]],{\"\":{\"\":[{}]}}]", "[ [ [ [ ] ] ] { K { K [ { } ] } } ] .");
}

static void check_fault(const char *text, enum status want, uint64_t at, const char *sentence)
{
	struct json_scan s;
	struct error err;
	enum status status;
	struct buf out;

	buf_init(&out, 1 << 20);
	json_open_text(&s, text, strlen(text));
	put_tokens(&s, &out, &status, &err);
	CHECK_U64(status, want);
	CHECK_U64(err.at, at);
	CHECK_STR(err.text, sentence);
	buf_release(&out);
}

void test_json_faults(void)
{
	check_fault("", ST_FORMAT, 0, "the file contains no JSON");
	check_fault(" \n", ST_FORMAT, 2, "the file contains no JSON");
	check_fault("{\"a\":\"b", ST_TRUNCATED, 7, "JSON is truncated inside a string");
	check_fault("{\"a\":\"b\\", ST_TRUNCATED, 8, "JSON is truncated inside a string");
	check_fault("{\"a", ST_TRUNCATED, 3, "JSON is truncated inside a string");
	check_fault("[12", ST_TRUNCATED, 3, "JSON is truncated inside a value");
	check_fault("[0x", ST_TRUNCATED, 3, "JSON is truncated inside a value");
	check_fault("[nccl", ST_TRUNCATED, 5, "JSON is truncated inside a value");
	check_fault("[tr", ST_TRUNCATED, 3, "JSON is truncated inside a value");
	check_fault("[[1,", ST_TRUNCATED, 4, "JSON is truncated inside an array at depth 2");
	check_fault("{\"a\":", ST_TRUNCATED, 5, "JSON is truncated inside an object at depth 1");
	check_fault("hello", ST_FORMAT, 0, "invalid JSON: 'h' instead of a value");
	check_fault("[1 2]", ST_FORMAT, 3, "invalid JSON: '2' instead of a comma, ] or }");
	check_fault("[1,]", ST_FORMAT, 3, "invalid JSON: ']' instead of a value");
	check_fault("{\"a\" 1}", ST_FORMAT, 5, "invalid JSON: '1' instead of a colon");
	check_fault("{a:1}", ST_FORMAT, 1, "invalid JSON: 'a' instead of a key in quotes or }");
	check_fault("{\"a\":1,}", ST_FORMAT, 7, "invalid JSON: '}' instead of a key in quotes");
	check_fault("{\"a\":1]", ST_FORMAT, 6, "invalid JSON: ']' instead of a comma, ] or }");
	check_fault("[1] x", ST_FORMAT, 4, "invalid JSON: 'x' instead of the end");
	check_fault("[01]", ST_FORMAT, 2, "invalid JSON: '1' instead of a comma, ] or }");
	check_fault("[1.]", ST_FORMAT, 1,
		    "invalid JSON: '1' instead of a number with all its digits");
	check_fault("[-5e+]", ST_FORMAT, 1,
		    "invalid JSON: '-' instead of a number with all its digits");
	check_fault("[\x7f]", ST_FORMAT, 1, "invalid JSON: byte 0x7f instead of a value or ]");
}

void test_json_deep(void)
{
	char text[2 * JSON_DEPTH_MAX + 3];
	struct json_scan s;
	struct error err;
	enum status status;
	struct buf out;
	int i;

	for (i = 0; i < JSON_DEPTH_MAX; i++) {
		text[i] = '[';
		text[JSON_DEPTH_MAX + i] = ']';
	}
	buf_init(&out, 1 << 20);
	json_open_text(&s, text, 2 * JSON_DEPTH_MAX);
	put_tokens(&s, &out, &status, &err);
	CHECK_OK(status, &err);
	text[JSON_DEPTH_MAX] = '[';
	json_open_text(&s, text, 2 * JSON_DEPTH_MAX);
	put_tokens(&s, &out, &status, &err);
	CHECK_U64(status, ST_CEILING);
	CHECK_STR(err.text, "JSON is nested deeper than 512 levels");
	buf_release(&out);
}

/* Every prefix of a text ends in a fault, with the tokens of the whole before it. */
void test_json_prefixes(void)
{
	static const char text[] = "{\"a\\u00e9\": [1.5e3, \"\\\\\", null], \"b\": {\"c\": NaN}}";
	struct buf whole, part;
	struct json_scan s;
	struct error err;
	enum status status;
	size_t len;

	buf_init(&whole, 1 << 20);
	buf_init(&part, 1 << 20);
	json_open_text(&s, text, sizeof(text) - 1);
	put_tokens(&s, &whole, &status, &err);
	CHECK_OK(status, &err);
	for (len = 1; len < sizeof(text) - 1; len++) {
		buf_clear(&part);
		json_open_text(&s, text, len);
		put_tokens(&s, &part, &status, &err);
		CHECK_U64(status, ST_TRUNCATED);
		CHECK_U64(err.at, len);
		CHECK(part.len <= whole.len);
		CHECK_MEM(part.data, whole.data, part.len);
	}
	buf_release(&whole);
	buf_release(&part);
}

static void check_decode(const char *text, const char *want, size_t repairs)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	CHECK_U64(json_decode(text, strlen(text), &out), repairs);
	CHECK_STR(buf_text(&out), want);
	buf_release(&out);
}

void test_json_decode(void)
{
	check_decode("plain", "plain", 0);
	check_decode("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 0);
	check_decode("\\u0041\\u00e9\\u20AC", "A\xc3\xa9\xe2\x82\xac", 0);
	check_decode("\\ud83d\\ude00!", "\xf0\x9f\x98\x80!", 0);
	check_decode("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		     0);
	check_decode("\\ud83d", "\xef\xbf\xbd", 1);
	check_decode("\\ud83d\\u0041",
		     "\xef\xbf\xbd"
		     "A",
		     1);
	check_decode("\\ude00x",
		     "\xef\xbf\xbd"
		     "x",
		     1);
	check_decode("a\xffz", "a\xef\xbf\xbdz", 1);
	check_decode("\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd", 2);
	check_decode("\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", 2);
	check_decode("\\u12",
		     "\xef\xbf\xbd"
		     "12",
		     1);
	check_decode("\\q", "\xef\xbf\xbd", 1);
}

static void check_minify(const char *text, const char *want, size_t repairs)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	CHECK_U64(json_minify(text, strlen(text), &out), repairs);
	CHECK_STR(buf_text(&out), want);
	buf_release(&out);
}

void test_json_minify(void)
{
	check_minify("[ 1 , [2,\n\t3] ]", "[1,[2,3]]", 0);
	check_minify("{ \"a b\" : \" x \\\" , \" }", "{\"a b\":\" x \\\" , \"}", 0);
	check_minify("[null, true, -1.50e0]", "[null,true,-1.50e0]", 0);
	check_minify("[0x1a, {\"k\": (nil)}, ncclHalf, Unknown, null]",
		     "[\"0x1a\",{\"k\":\"(nil)\"},\"ncclHalf\",\"Unknown\",null]", 0);
	check_minify("[NaN, {\"k\": Infinity}, nan, 2]", "[\"NaN\",{\"k\":\"Infinity\"},\"nan\",2]",
		     0);
	check_minify("[\"a\tb\"]", "[\"a\\tb\"]", 0);
	check_minify("[\"\xc3\xa9\", \"\xff\"]", "[\"\xc3\xa9\",\"\xef\xbf\xbd\"]", 1);
}

static void check_ns(const char *text, int64_t want)
{
	int64_t ns = -1;

	CHECK(json_us_to_ns(text, strlen(text), &ns));
	CHECK_I64(ns, want);
}

void test_json_numbers(void)
{
	uint64_t u;
	int64_t i;

	CHECK(json_u64("18446744073709551615", 20, &u));
	CHECK_U64(u, UINT64_MAX);
	CHECK(!json_u64("18446744073709551616", 20, &u));
	CHECK(!json_u64("-1", 2, &u) && !json_u64("1.0", 3, &u) && !json_u64("", 0, &u));
	CHECK(json_i64("-9223372036854775808", 20, &i));
	CHECK_I64(i, INT64_MIN);
	CHECK(!json_i64("9223372036854775808", 19, &i) && !json_i64("-", 1, &i));
	check_ns("123.456", 123456);
	check_ns("4458676522690.655", INT64_C(4458676522690655));
	check_ns("1694039968956739", INT64_C(1694039968956739000));
	check_ns("0", 0);
	check_ns("1.5", 1500);
	check_ns("0.0004", 0);
	check_ns("0.0005", 1);
	check_ns("0.00049999999", 0);
	check_ns("-2.0015", -2002);
	check_ns("1.2345e3", 1234500);
	check_ns("12345e-4", 1235);
	check_ns("1E+2", 100000);
	check_ns("1e-400", 0);
	check_ns("0e99999999999", 0);
	check_ns("123456789.12345678901234567890123456789012345678901234567890", 123456789123);
	CHECK(!json_us_to_ns("1e30", 4, &i) && !json_us_to_ns("99999999999999999999", 20, &i));
	CHECK(!json_us_to_ns("1e99999999999", 13, &i));
	CHECK(isnan(json_f64("NaN", 3)) && isnan(json_f64("N/A", 3)) && isnan(json_f64("-nan", 4)));
	CHECK(isinf(json_f64("Infinity", 8)) && json_f64("-Infinity", 9) < 0);
	CHECK(json_f64("-inf", 4) < 0 && json_f64("1e999", 5) > 1e308);
}

/* Exactness against arithmetic on whole numbers, and doubles against the C library. */
void test_json_random_numbers(void)
{
	uint64_t random = 11;
	int n;

	for (n = 0; n < 100000; n++) {
		int64_t ns = (int64_t)(random_u64(&random) >> (1 + random_u64(&random) % 50)), got;
		uint64_t bits = random_u64(&random);
		char text[64];
		double real;
		int len = snprintf(text, sizeof(text), "%lld.%03lld", (long long)(ns / 1000),
				   (long long)(ns % 1000));

		if (!CHECK(json_us_to_ns(text, (size_t)len, &got)) || !CHECK_I64(got, ns))
			return;
		memcpy(&real, &bits, sizeof(real));
		if (!isfinite(real))
			continue;
		len = snprintf(text, sizeof(text), "%.*g", (int)(bits % 18) + 1, real);
		if (!CHECK(json_f64(text, (size_t)len) == strtod(text, NULL)))
			return;
		len = snprintf(text, sizeof(text), "%.*f", (int)(bits % 6), (double)ns / 4096);
		if (!CHECK(json_f64(text, (size_t)len) == strtod(text, NULL)))
			return;
	}
}

/* Against cJSON */

/* The text that cJSON made of the same string. */
static bool same_text(const struct json *token, const char *want, struct buf *scratch)
{
	buf_clear(scratch);
	json_decode(token->text, token->len, scratch);
	return strcmp(buf_text(scratch), want) == 0;
}

static bool same_tree(struct json_scan *s, const cJSON *want, struct buf *scratch);

static bool same_children(struct json_scan *s, const cJSON *want, struct buf *scratch)
{
	bool object = cJSON_IsObject(want);
	const cJSON *child;
	struct json token;

	cJSON_ArrayForEach(child, want)
	{
		if (object && (json_next(s, &token, NULL) != ST_OK || token.type != JSON_KEY ||
			       !same_text(&token, child->string, scratch)))
			return false;
		if (!same_tree(s, child, scratch))
			return false;
	}
	return json_next(s, &token, NULL) == ST_OK &&
	       token.type == (object ? JSON_OBJECT_END : JSON_ARRAY_END);
}

static bool same_tree(struct json_scan *s, const cJSON *want, struct buf *scratch)
{
	struct json token;

	if (json_next(s, &token, NULL) != ST_OK)
		return false;
	switch (token.type) {
	case JSON_OBJECT:
		return cJSON_IsObject(want) && same_children(s, want, scratch);
	case JSON_ARRAY:
		return cJSON_IsArray(want) && same_children(s, want, scratch);
	case JSON_STRING:
		return cJSON_IsString(want) && same_text(&token, want->valuestring, scratch);
	case JSON_NUMBER:
		return cJSON_IsNumber(want) && json_f64(token.text, token.len) == want->valuedouble;
	case JSON_TRUE:
		return cJSON_IsTrue(want);
	case JSON_FALSE:
		return cJSON_IsFalse(want);
	case JSON_NULL:
		return cJSON_IsNull(want);
	default:
		return false;
	}
}

static bool same_as_cjson(struct json_scan *s, const char *text, size_t len)
{
	cJSON *tree = cJSON_ParseWithLength(text, len);
	struct json token;
	struct buf scratch;
	bool same;

	buf_init(&scratch, 64 << 20);
	same = CHECK(tree != NULL) && same_tree(s, tree, &scratch) &&
	       json_next(s, &token, NULL) == ST_OK && token.type == JSON_END;
	buf_release(&scratch);
	cJSON_Delete(tree);
	return same;
}

static void put_random_text(struct buf *out, uint64_t *random)
{
	static const char *const parts[] = {
		"a",
		"kernel<float>",
		" ",
		"\\n",
		"\\\"",
		"\\\\",
		"\\u00e9",
		"\xc3\xa9",
		"\\ud83d\\ude00",
		"\xf0\x9f\x98\x80",
		"a text longer than two vectors of bytes",
		"/",
		"\\/",
		"{",
		"}",
		"[",
		",",
		":",
	};
	uint64_t n = random_u64(random) % 6;

	buf_put_byte(out, '"');
	while (n--)
		buf_put_text(out, parts[random_u64(random) % (sizeof(parts) / sizeof(parts[0]))]);
	buf_put_byte(out, '"');
}

static void put_blank(struct buf *out, uint64_t *random)
{
	static const char blanks[] = " \n\r\t                                ";
	uint64_t bits = random_u64(random);

	if (bits & 3)
		return;
	buf_put(out, blanks, bits / 4 % (sizeof(blanks) - 1));
}

static void put_random_value(struct buf *out, uint64_t *random, unsigned depth)
{
	static const char *const words[] = { "true", "false", "null", "0", "-1", "1e5", "-2.50" };
	uint64_t bits = random_u64(random), n = bits >> 8 & 7, what = bits & 7;
	bool object = what == 0;

	put_blank(out, random);
	if (what <= 1 && depth < 12) {
		buf_put_byte(out, object ? '{' : '[');
		for (uint64_t i = 0; i < n; i++) {
			put_blank(out, random);
			if (object) {
				put_random_text(out, random);
				put_blank(out, random);
				buf_put_byte(out, ':');
			}
			put_random_value(out, random, depth + 1);
			if (i + 1 < n)
				buf_put_byte(out, ',');
		}
		put_blank(out, random);
		buf_put_byte(out, object ? '}' : ']');
	} else if (what <= 3) {
		put_random_text(out, random);
	} else if (what == 4) {
		buf_put_text(out, words[n % 7]);
	} else {
		buf_putf(out, "%.*g", (int)(bits >> 16 & 15) + 1,
			 (double)(int64_t)random_u64(random) /
				 (double)(1 << (bits >> 20 & 31) / 2));
	}
	put_blank(out, random);
}

void test_json_random_documents(void)
{
	uint64_t random = 5;
	struct json_scan s;
	struct buf text;
	int n;

	buf_init(&text, 16 << 20);
	for (n = 0; n < 3000; n++) {
		buf_clear(&text);
		buf_put_byte(&text, '[');
		for (int i = 0; i < 20; i++) {
			put_random_value(&text, &random, 0);
			buf_put_text(&text, i < 19 ? "," : "]");
		}
		json_open_text(&s, buf_text(&text), text.len);
		if (!CHECK(same_as_cjson(&s, buf_text(&text), text.len)))
			break;
	}
	buf_release(&text);
}

/* Through an input, so that tokens stand across the edges of its windows. */
void test_json_windows(void)
{
	static const size_t longs[] = { 100, 70000, 262144, 600000, 3000000 };
	struct error err = { 0 };
	struct folder scratch;
	uint64_t random = 9;
	struct json_scan s;
	struct input *in;
	struct buf text;
	size_t i;

	buf_init(&text, 64 << 20);
	buf_put_byte(&text, '[');
	for (i = 0; i < sizeof(longs) / sizeof(longs[0]); i++) {
		for (int n = 0; n < 2000; n++) {
			put_random_value(&text, &random, 3);
			buf_put_byte(&text, ',');
		}
		buf_put_byte(&text, '"');
		buf_fill(&text, 'x', longs[i]);
		buf_put_text(&text, "\",");
	}
	buf_put_text(&text, "12345]");
	folder_make(&scratch);
	folder_write(&scratch, "a.json", text.data, text.len);
	if (CHECK_OK(input_open(&in, scratch.path, NULL, &err), &err)) {
		json_open(&s, in);
		CHECK(same_as_cjson(&s, buf_text(&text), text.len));
		CHECK_U64(json_at(&s), text.len);
		input_close(in);
	}
	folder_remove(&scratch);
	buf_release(&text);
}

/* Values under a hold stay in one piece, however long they are. */
void test_json_holds(void)
{
	struct json_scan s;
	struct json first, token;
	struct error err = { 0 };
	struct folder scratch;
	struct input *in;
	struct buf text;
	size_t i, len, rounds = 0;

	buf_init(&text, 64 << 20);
	buf_put_byte(&text, '[');
	for (i = 0; i < 40; i++) {
		buf_put_text(&text, "{\"first\":\"#");
		buf_put_u64_text(&text, i);
		buf_put_text(&text, "\",\"last\":[\"");
		buf_fill(&text, 'y', i * 9001);
		buf_put_text(&text, i < 39 ? "\"]}," : "\"]}]");
	}
	folder_make(&scratch);
	folder_write(&scratch, "a.json", text.data, text.len);
	if (!CHECK_OK(input_open(&in, scratch.path, NULL, &err), &err))
		return;
	json_open(&s, in);
	CHECK_OK(json_next(&s, &token, &err), &err);
	for (i = 0; i < 40; i++) {
		char want[24];

		do {
			rounds++;
			json_hold(&s);
			CHECK_OK(json_next(&s, &token, &err), &err);
			CHECK_OK(json_next(&s, &token, &err), &err);
			CHECK_OK(json_next(&s, &first, &err), &err);
			CHECK_OK(json_next(&s, &token, &err), &err);
			CHECK_OK(json_next(&s, &token, &err), &err);
			CHECK_OK(json_raw(&s, &token, &err), &err);
		} while (json_again(&s));
		len = (size_t)snprintf(want, sizeof(want), "#%zu", i);
		CHECK(first.len == len && memcmp(first.text, want, len) == 0);
		CHECK_U64(token.len, i * 9001 + 4);
		CHECK(token.text[0] == '[' && token.text[token.len - 1] == ']');
		CHECK_OK(json_next(&s, &token, &err), &err);
		CHECK_U64(token.type, JSON_OBJECT_END);
	}
	CHECK(rounds > 40); /* some were read twice */
	CHECK_OK(json_next(&s, &token, &err), &err);
	CHECK_U64(token.type, JSON_ARRAY_END);
	input_close(in);
	folder_remove(&scratch);
	buf_release(&text);
}

void test_json_too_long(void)
{
	struct json_scan s;
	struct json token;
	struct error err = { 0 };
	struct folder scratch;
	struct input *in;
	struct buf text;

	buf_init(&text, 64 << 20);
	buf_put_text(&text, "[1,\"");
	buf_fill(&text, 'z', INPUT_PEEK_MAX);
	buf_put_text(&text, "\"]");
	folder_make(&scratch);
	folder_gzip(&scratch, "a.json.gz", text.data, text.len, 0);
	if (CHECK_OK(input_open(&in, scratch.path, NULL, &err), &err)) {
		json_open(&s, in);
		CHECK_OK(json_next(&s, &token, &err), &err);
		CHECK_OK(json_next(&s, &token, &err), &err);
		CHECK_U64(json_next(&s, &token, &err), ST_CEILING);
		CHECK_STR(err.text, "one value is longer than 16 MiB");
		CHECK_U64(err.at, 2);
		input_close(in);
	}
	folder_remove(&scratch);
	buf_release(&text);
}

static bool read_whole(const char *path, struct buf *out)
{
	struct error err = { 0 };
	const uint8_t *bytes;
	struct input *in;
	size_t len = 1;

	buf_clear(out);
	if (!CHECK_OK(input_open(&in, path, NULL, &err), &err))
		return false;
	while (input_peek(in, 1, &bytes, &len, &err) == ST_OK && len) {
		buf_put(out, bytes, len);
		input_skip(in, len);
	}
	input_close(in);
	return CHECK_OK(err.status, &err);
}

struct real_files {
	struct buf text; /* of one */
	int scanned;
};

static void scan_file(const char *path, void *arg)
{
	struct real_files *r = arg;
	struct error err = { 0 };
	struct json_scan s;
	struct input *in;

	if (!read_whole(path, &r->text) || r->text.len > LARGE_FILE ||
	    !CHECK_OK(input_open(&in, path, NULL, &err), &err))
		return;
	json_open(&s, in);
	CHECK(same_as_cjson(&s, buf_text(&r->text), r->text.len));
	input_close(in);
	r->scanned++;
}

void test_json_real_files(void)
{
	struct real_files r = { .scanned = 0 };

	buf_init(&r.text, (size_t)1 << 30);
	if (unit_kineto_traces(scan_file, &r))
		CHECK(r.scanned >= 15);
	buf_release(&r.text);
}
