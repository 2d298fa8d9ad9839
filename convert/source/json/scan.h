/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - reads JSON token by token, from memory or from an input of any length, without a tree.
 *
 * Texts of tokens are slices of the input, as they stand there: borrowed until the next call, or
 * while a hold lasts.  A hold keeps what follows contiguous in memory:
 *
 *	do {
 *		json_hold(s);         at the beginning, and again after json_again()
 *		... json_next() ...   keeping slices
 *	} while (json_again(s));      true: the bytes have moved, all slices are void, read again
 *
 * The scanner is as strict as Python's json with strict=False, which other tools use for these
 * files: raw control characters in strings are valid, and NaN, Infinity and N/A without quotes are
 * values.  So are the pointers (0x7f00, (nil)) and names of types that NCCL's profiler writes
 * without quotes; they become texts.  Invalid UTF-8 and lone surrogates become U+FFFD when a text
 * is decoded.  Errors have the offset.
 */
#pragma once

#include "schemas/base/buf.h"

#include <stdbool.h>

struct input;

enum json_type {
	JSON_END, /* of the whole text */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
	JSON_KEY, /* the colon is passed too */
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
	JSON_ODD, /* NaN, Infinity, -Infinity, N/A: no JSON, but written and read all the same */
};

struct json {
	enum json_type type;
	bool special;     /* a string that json_decode() would change, or may have to */
	const char *text; /* without the quotes; of brackets and JSON_END: empty */
	size_t len;
};

enum { JSON_DEPTH_MAX = 512 };

struct json_scan {
	struct input *in; /* NULL: all is in memory */
	const uint8_t *base, *at, *end;
	uint64_t base_at;                      /* place of `base` in the input */
	uint64_t nesting[JSON_DEPTH_MAX / 64]; /* bit set: an object */
	unsigned depth, hold_depth;
	uint8_t state, hold_state, wanted;
	bool last, moved; /* nothing follows `end`; bytes under the hold were moved */
	const uint8_t *hold;
};

/* The input is borrowed, and read from where it stands. */
void json_open(struct json_scan *s, struct input *in);
void json_open_text(struct json_scan *s, const char *text, size_t len);
uint64_t json_at(const struct json_scan *s);   /* offset of what comes next */
bool json_is_first(const struct json_scan *s); /* after an opening bracket */

enum status json_next(struct json_scan *s, struct json *out, struct error *err);
/* The rest of the array or object whose beginning `first` was just given; nothing for others. */
enum status json_skip(struct json_scan *s, const struct json *first, struct error *err);
/*
 * The whole value that begins with `first`, under a hold: its text is what stands between and
 * with the brackets; for other values `first` as it is.
 */
enum status json_raw(struct json_scan *s, struct json *first, struct error *err);

/* A hold spans at most INPUT_PEEK_MAX bytes (input.h): ST_CEILING beyond. */
void json_hold(struct json_scan *s);
/* Ends the hold.  True: slices are void, the scanner stands where the hold began; false: they are
 * good until the next call. */
bool json_again(struct json_scan *s);
/* Ends it where the scanner stands. */
void json_release(struct json_scan *s);

/* The text of a string token, escapes resolved.  Returns how often U+FFFD stands for damage. */
size_t json_decode(const char *text, size_t len, struct buf *out);
/* A raw value without needless blanks, made valid where it is only tolerated. */
size_t json_minify(const char *text, size_t len, struct buf *out);

/* Of a number token; false: not a whole number, or too large. */
bool json_u64(const char *text, size_t len, uint64_t *v);
bool json_i64(const char *text, size_t len, int64_t *v);
/* Correctly rounded; of a JSON_ODD too (N/A is NaN). */
double json_f64(const char *text, size_t len);
/* Microseconds as whole nanoseconds, exact to the third decimal, half up beyond it. */
bool json_us_to_ns(const char *text, size_t len, int64_t *ns);
