/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - reads JSON token by token, from memory or from an input of any length, without building
 * a tree.
 *
 * The text of a token is a slice of the input, with its escapes: it is borrowed until the next
 * call, or while a hold lasts.  A hold keeps the bytes after it contiguous in memory:
 *
 *	do {
 *		json_hold(s);         before the first token, also after json_again() returned true
 *		... json_next() ...   the slices may be kept
 *	} while (json_again(s));      true: the bytes have moved, all slices are void, read again
 *
 * The scanner is as strict as Python's json with strict=False, which other tools use for these
 * files: raw control characters in strings are valid, and NaN, Infinity and N/A without quotes are
 * values.  So are the pointers (0x7f00, (nil)) and names of types that NCCL's profiler writes
 * without quotes; they become strings.  Invalid UTF-8 and lone surrogates become U+FFFD when a text
 * is decoded.  Errors contain the offset.
 */
#pragma once

#include "schemas/base/buf.h"

#include <stdbool.h>

struct input;

enum json_type {
	JSON_END, /* end of the whole text */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
	JSON_KEY, /* a key and its colon */
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
	JSON_ODD, /* NaN, Infinity, -Infinity, N/A: not valid JSON, but common */
};

struct json {
	enum json_type type;
	bool special;     /* json_decode() may change this string */
	const char *text; /* without the quotes; empty for brackets and JSON_END */
	size_t len;
};

enum { JSON_DEPTH_MAX = 512 };

struct json_scan {
	struct input *in; /* NULL: the whole text is in memory */
	const uint8_t *base, *at, *end;
	uint64_t base_at;                      /* offset of `base` in the input */
	uint64_t nesting[JSON_DEPTH_MAX / 64]; /* a set bit is an object, else an array */
	unsigned depth, hold_depth;
	uint8_t state, hold_state, wanted;
	bool last, moved; /* no bytes after `end`; bytes moved in a hold */
	const uint8_t *hold;
};

/* Starts at the current offset of `in`, which is borrowed. */
void json_open(struct json_scan *s, struct input *in);
void json_open_text(struct json_scan *s, const char *text, size_t len);
uint64_t json_at(const struct json_scan *s);   /* offset of the next token */
bool json_is_first(const struct json_scan *s); /* right after an opening bracket */

enum status json_next(struct json_scan *s, struct json *out, struct error *err);
/* Skips the rest of the array or object that `first`, the latest token, began; skips nothing
 * otherwise. */
enum status json_skip(struct json_scan *s, const struct json *first, struct error *err);
/*
 * Extends `first` under a hold to the whole value that begins with it: its text becomes everything
 * from the opening to the closing bracket.  Does not change other values.
 */
enum status json_raw(struct json_scan *s, struct json *first, struct error *err);

/* Begins a hold, which spans at most INPUT_PEEK_MAX bytes (input.h); beyond that, json_next()
 * returns ST_CEILING. */
void json_hold(struct json_scan *s);
/* Ends the hold.  Returns true if all slices are void; the scanner is then back where the hold
 * began.  Returns false if they are valid until the next call. */
bool json_again(struct json_scan *s);
/* Ends the hold at the scanner's current position. */
void json_release(struct json_scan *s);

/* Appends the text of a string token to `out`, with escapes resolved.  Returns how many parts were
 * invalid and became U+FFFD. */
size_t json_decode(const char *text, size_t len, struct buf *out);
/* Appends a raw value without insignificant blanks, and as valid JSON if it was only tolerated.
 * Returns the same number as json_decode(). */
size_t json_minify(const char *text, size_t len, struct buf *out);

/* Parse a number token; return false if it is not a whole number or out of range. */
bool json_u64(const char *text, size_t len, uint64_t *v);
bool json_i64(const char *text, size_t len, int64_t *v);
/* Returns the correctly rounded value of a number token or a JSON_ODD (N/A is NaN). */
double json_f64(const char *text, size_t len);
/* Converts microseconds to whole nanoseconds: exact up to three decimals, rounded half away from
 * zero beyond. */
bool json_us_to_ns(const char *text, size_t len, int64_t *ns);
