/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/json/scan.h"

#include "convert/input/input.h"

#include <ctype.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum state {
	WANT_VALUE,
	WANT_VALUE_OR_END, /* after [ */
	WANT_KEY,
	WANT_KEY_OR_END, /* after { */
	WANT_COMMA_OR_END,
	WANT_NOTHING, /* the only value is complete */
	WANT_COLON,   /* this and the next one are used only in messages */
	WANT_DIGITS,
};

enum { REFILL_BYTES = 64 * 1024 };

/* Result of parsing a token from the bytes in memory. */
enum look { LOOK_DONE, LOOK_SHORT, LOOK_BAD };

void json_open(struct json_scan *s, struct input *in)
{
	*s = (struct json_scan){ .in = in, .base = (const uint8_t *)"" };
	s->at = s->end = s->base;
	s->base_at = input_at(in);
}

void json_open_text(struct json_scan *s, const char *text, size_t len)
{
	*s = (struct json_scan){ .base = len ? (const uint8_t *)text : (const uint8_t *)"" };
	s->at = s->base;
	s->end = s->base + len;
	s->last = true;
}

uint64_t json_at(const struct json_scan *s)
{
	return s->base_at + (uint64_t)(s->at - s->base);
}

bool json_is_first(const struct json_scan *s)
{
	return s->state == WANT_VALUE_OR_END || s->state == WANT_KEY_OR_END;
}

void json_hold(struct json_scan *s)
{
	s->hold = s->at;
	s->hold_state = s->state;
	s->hold_depth = s->depth;
	s->moved = false;
}

bool json_again(struct json_scan *s)
{
	bool moved = s->moved;

	if (moved) {
		s->at = s->hold;
		s->state = s->hold_state;
		s->depth = s->hold_depth;
	}
	json_release(s);
	return moved;
}

void json_release(struct json_scan *s)
{
	s->hold = NULL;
	s->moved = false;
}

/* Usually there is no blank, or one after a comma or colon. */
static inline const uint8_t *skip_blanks(const uint8_t *p, const uint8_t *end)
{
	if (p<end && * p> ' ')
		return p;
	if (end - p > 1 && p[0] == ' ' && p[1] > ' ')
		return p + 1;
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

/* Returns the next quote or backslash, or `end`; *high becomes nonzero if bytes >= 0x80 precede it.
 * */
static const uint8_t *find_quote(const uint8_t *p, const uint8_t *end, unsigned *high)
{
#ifdef __SSE2__
	while (end - p >= 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)p);
		__m128i stop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
					    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
		unsigned at = (unsigned)_mm_movemask_epi8(stop);
		unsigned top = (unsigned)_mm_movemask_epi8(v);

		if (at) {
			*high |= top & ((at & -at) - 1);
			return p + __builtin_ctz(at);
		}
		*high |= top;
		p += 16;
	}
#endif
	for (; p < end && *p != '"' && *p != '\\'; p++)
		*high |= *p & 0x80;
	return p;
}

/* `p` is after the opening quote; *after is set to the end of the closing one. */
static enum look look_string(const uint8_t *p, const uint8_t *end, struct json *out,
			     const uint8_t **after)
{
	const uint8_t *begin = p;
	unsigned special = 0;

	for (;;) {
		p = find_quote(p, end, &special);
		if (p >= end)
			return LOOK_SHORT;
		if (*p == '"')
			break;
		special = 1;
		p += 2;
		if (p > end)
			return LOOK_SHORT;
	}
	out->text = (const char *)begin;
	out->len = (size_t)(p - begin);
	out->special = special != 0;
	*after = p + 1;
	return LOOK_DONE;
}

/* Skips the digits of a fraction or exponent.  Returns NULL if there is none. */
static const uint8_t *skip_part(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *digits = p;

	while (digits < end && (unsigned)(*digits - '0') < 10)
		digits++;
	return digits == p && p < end ? NULL : digits;
}

/* Accepts a word that NCCL's profiler writes without quotes, a pointer or the name of a type, as a
 * string. */
static enum look look_bare(const uint8_t *p, const uint8_t *end, struct json *out,
			   const uint8_t **after)
{
	out->type = JSON_STRING;
	out->text = (const char *)p;
	while (p < end && isalnum(*p))
		p++;
	out->len = (size_t)((const char *)p - out->text);
	*after = p;
	return p == end ? LOOK_SHORT : LOOK_DONE;
}

static enum look look_number(const uint8_t *p, const uint8_t *end, struct json *out,
			     const uint8_t **after)
{
	const uint8_t *begin = p;

	if (*p == '0' && end - p > 1 && p[1] == 'x' && (end - p == 2 || isxdigit(p[2])))
		return look_bare(p, end, out, after);
	if (*p == '-')
		p++;
	if (p < end && *p == '0')
		p++;
	else
		p = skip_part(p, end);
	if (p && p < end && *p == '.')
		p = skip_part(p + 1, end);
	if (p && p < end && (*p | 0x20) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = skip_part(p, end);
	}
	if (!p)
		return LOOK_BAD;
	out->type = JSON_NUMBER;
	out->text = (const char *)begin;
	out->len = (size_t)(p - begin);
	*after = p;
	return p == end ? LOOK_SHORT : LOOK_DONE;
}

static enum look look_word(const uint8_t *p, const uint8_t *end, struct json *out,
			   const uint8_t **after)
{
	static const struct {
		const char *word;
		uint8_t len, type;
	} words[] = {
		{ "true", 4, JSON_TRUE },      { "false", 5, JSON_FALSE },
		{ "null", 4, JSON_NULL },      { "NaN", 3, JSON_ODD },
		{ "Infinity", 8, JSON_ODD },   { "-Infinity", 9, JSON_ODD },
		{ "N/A", 3, JSON_ODD },        { "nan", 3, JSON_ODD },
		{ "-nan", 4, JSON_ODD },       { "inf", 3, JSON_ODD },
		{ "-inf", 4, JSON_ODD },       { "(nil)", 5, JSON_STRING },
		{ "Unknown", 7, JSON_STRING }, { "nccl", 4, JSON_STRING },
	};
	size_t i, left = (size_t)(end - p);

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = words[i].len;

		if (memcmp(p, words[i].word, left < len ? left : len) != 0)
			continue;
		if (left < len)
			return LOOK_SHORT;
		if (*p == 'n' && p[1] == 'c')
			return look_bare(p, end, out, after);
		out->type = words[i].type;
		out->text = (const char *)p;
		out->len = len;
		*after = p + len;
		return LOOK_DONE;
	}
	return LOOK_BAD;
}

/* ---- structure --------------------------------------------------------------------------- */

static bool in_object(const struct json_scan *s)
{
	unsigned top = s->depth - 1;

	return s->nesting[top / 64] >> top % 64 & 1;
}

static void value_is_over(struct json_scan *s)
{
	s->state = s->depth ? WANT_COMMA_OR_END : WANT_NOTHING;
}

/* Returns which token is incomplete at the end of the bytes in memory, or NULL if none is. */
static const char *unfinished(const struct json_scan *s)
{
	const uint8_t *p = skip_blanks(s->at, s->end);

	if (p < s->end && *p == ',')
		p = skip_blanks(p + 1, s->end);
	if (p == s->end)
		return NULL;
	return *p == '"' ? "a string" : "a value";
}

/* Parses a key and its colon. */
static enum look look_key(struct json_scan *s, const uint8_t **p, struct json *out)
{
	enum look look;

	if (**p != '"')
		return LOOK_BAD;
	look = look_string(*p + 1, s->end, out, p);
	if (look != LOOK_DONE)
		return look;
	*p = skip_blanks(*p, s->end);
	if (*p == s->end)
		return LOOK_SHORT;
	if (**p != ':') {
		s->wanted = WANT_COLON;
		return LOOK_BAD;
	}
	++*p;
	out->type = JSON_KEY;
	s->state = WANT_VALUE;
	return LOOK_DONE;
}

/* Parses a string, number or word at *p, and moves *p to its end. */
static enum look look_scalar(struct json_scan *s, const uint8_t **p, struct json *out)
{
	const uint8_t *begin = *p;
	enum look look;

	if (*begin == '"') {
		out->type = JSON_STRING;
		look = look_string(begin + 1, s->end, out, p);
	} else if ((unsigned)(*begin - '0') < 10 ||
		   (*begin == '-' && begin + 1 < s->end && (unsigned)(begin[1] - '0') < 10)) {
		look = look_number(begin, s->end, out, p);
		if (look == LOOK_BAD)
			s->wanted = WANT_DIGITS;
		if (look == LOOK_SHORT && s->last && !s->depth && (*p)[-1] >= '0')
			look = LOOK_DONE; /* the number is the whole text */
	} else {
		look = look_word(begin, s->end, out, p);
	}
	if (look == LOOK_DONE)
		value_is_over(s);
	return look;
}

/*
 * Parses the next token, after blanks and a comma, from the bytes in memory.  Changes nothing in
 * `s` unless it returns LOOK_DONE; after LOOK_BAD, *p is the offending byte.
 */
static enum look look_token(struct json_scan *s, const uint8_t **p, struct json *out)
{
	uint8_t state = s->state;

	*p = s->at;
	if (!s->base_at && *p == s->base && s->end - *p >= 3 && memcmp(*p, "\xef\xbb\xbf", 3) == 0)
		*p += 3; /* skip a byte order mark */
	*p = skip_blanks(*p, s->end);
	s->wanted = state;
	if (*p == s->end)
		return LOOK_SHORT;
	if (state == WANT_COMMA_OR_END && **p == ',') {
		*p = skip_blanks(*p + 1, s->end);
		if (*p == s->end)
			return LOOK_SHORT;
		state = in_object(s) ? WANT_KEY : WANT_VALUE;
		s->wanted = state;
	} else if (state == WANT_COMMA_OR_END) {
		if (**p != (in_object(s) ? '}' : ']'))
			return LOOK_BAD;
	}
	switch (state) {
	case WANT_KEY_OR_END:
		if (**p == '}')
			break;
		/* fall through */
	case WANT_KEY:
		return look_key(s, p, out);
	case WANT_VALUE_OR_END:
		if (**p == ']')
			break;
		/* fall through */
	case WANT_VALUE:
		if (**p == '{' || **p == '[') {
			out->type = JSON_OBJECT; /* or an array, which json_next() decides */
			++*p;
			return LOOK_DONE;
		}
		return look_scalar(s, p, out);
	case WANT_NOTHING:
		return LOOK_BAD;
	default:
		break;
	}
	out->type = JSON_OBJECT_END;
	++*p;
	return LOOK_DONE;
}

static enum status next_short(struct json_scan *s, struct json *out, bool *again, struct error *err)
{
	*again = false;
	if (!s->last && s->in) {
		*again = true;
		/* Read more bytes after those from the hold, or from `at`, on; s->last: there are
		 * none. */
		const uint8_t *keep = s->hold ? s->hold : s->at;
		size_t have = (size_t)(s->end - keep), pass = (size_t)(s->at - keep), len;

		if (have >= INPUT_PEEK_MAX)
			return fail(err, ST_CEILING, json_at(s), "one value is longer than %d MiB",
				    INPUT_PEEK_MAX >> 20);
		input_skip(s->in, (size_t)(keep - s->base));
		s->base_at += (uint64_t)(keep - s->base);
		s->base = keep;
		TRY(input_peek(s->in, have + (have > REFILL_BYTES ? have : REFILL_BYTES), &keep,
			       &len, err));
		s->last = len <= have;
		s->moved = s->hold != NULL;
		s->base = keep;
		s->at = keep + pass;
		s->end = keep + len;
		if (s->hold)
			s->hold = keep;
		return ST_OK;
	}
	if (s->state == WANT_NOTHING) {
		const uint8_t *none;
		size_t len;

		out->type = JSON_END;
		if (!s->in)
			return ST_OK;
		/* skip the remaining blanks; peek reports an error of the compression after them */
		input_skip(s->in, (size_t)(s->end - s->base));
		s->base_at += (uint64_t)(s->end - s->base);
		s->base = s->at = s->end;
		return input_peek(s->in, 1, &none, &len, err);
	}
	/* The input ends too early: it is truncated, or its compression is damaged. */
	uint64_t at = s->base_at + (uint64_t)(s->end - s->base);
	bool empty = !s->depth && skip_blanks(s->at, s->end) == s->end;
	const char *what = unfinished(s);
	const uint8_t *none;
	size_t len;

	if (s->in) {
		input_skip(s->in, (size_t)(s->end - s->base));
		TRY(input_peek(s->in, 1, &none, &len, err));
	}
	if (empty)
		return fail(err, ST_FORMAT, at, "the file contains no JSON");
	if (what)
		return fail(err, ST_TRUNCATED, at, "JSON is truncated inside %s", what);
	return fail(err, ST_TRUNCATED, at, "JSON is truncated inside an %s at depth %u",
		    in_object(s) ? "object" : "array", s->depth);
}

enum status json_next(struct json_scan *s, struct json *out, struct error *err)
{
	const uint8_t *p;
	enum look look;
	bool again = true;

	out->special = false;
	while ((look = look_token(s, &p, out)) == LOOK_SHORT) {
		TRY(next_short(s, out, &again, err));
		if (!again) {
			out->len = 0;
			return ST_OK;
		}
	}
	if (look == LOOK_BAD) {
		/* descriptions of what the grammar allows at `p` */
		static const char *const wanted[] = {
			[WANT_VALUE] = "a value",
			[WANT_VALUE_OR_END] = "a value or ]",
			[WANT_KEY] = "a key in quotes",
			[WANT_KEY_OR_END] = "a key in quotes or }",
			[WANT_COMMA_OR_END] = "a comma, ] or }",
			[WANT_NOTHING] = "the end",
			[WANT_COLON] = "a colon",
			[WANT_DIGITS] = "a number with all its digits",
		};
		uint64_t at = s->base_at + (uint64_t)(p - s->base);

		if (*p > ' ' && *p < 0x7f)
			return fail(err, ST_FORMAT, at, "invalid JSON: '%c' instead of %s", *p,
				    wanted[s->wanted]);
		return fail(err, ST_FORMAT, at, "invalid JSON: byte 0x%02x instead of %s", *p,
			    wanted[s->wanted]);
	}
	s->at = p;
	if (out->type >= JSON_KEY)
		return ST_OK;
	out->text = (const char *)p;
	out->len = 0;
	if (out->type == JSON_OBJECT) {
		bool object = p[-1] == '{';
		uint64_t bit = (uint64_t)1 << s->depth % 64;

		if (s->depth == JSON_DEPTH_MAX)
			return fail(err, ST_CEILING, json_at(s),
				    "JSON is nested deeper than %d levels", JSON_DEPTH_MAX);
		if (object)
			s->nesting[s->depth / 64] |= bit;
		else
			s->nesting[s->depth / 64] &= ~bit;
		s->depth++;
		s->state = object ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
		out->type = object ? JSON_OBJECT : JSON_ARRAY;
		return ST_OK;
	}
	out->type = in_object(s) ? JSON_OBJECT_END : JSON_ARRAY_END;
	s->depth--;
	value_is_over(s);
	return ST_OK;
}

enum status json_skip(struct json_scan *s, const struct json *first, struct error *err)
{
	unsigned outside = s->depth - 1;
	struct json token;

	if (first->type != JSON_OBJECT && first->type != JSON_ARRAY)
		return ST_OK;
	while (s->depth > outside)
		TRY(json_next(s, &token, err));
	return ST_OK;
}

enum status json_raw(struct json_scan *s, struct json *first, struct error *err)
{
	size_t begin;

	if (first->type != JSON_OBJECT && first->type != JSON_ARRAY)
		return ST_OK;
	begin = (size_t)(s->at - s->hold) - 1;
	TRY(json_skip(s, first, err));
	first->text = (const char *)s->hold + begin;
	first->len = (size_t)(s->at - s->hold) - begin;
	return ST_OK;
}
