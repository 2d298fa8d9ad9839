/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/perfetto/event_fast.h"

#include "schemas/base/json_text.h"

#include <math.h>

/* Field numbers of DebugAnnotation. */
enum {
	KEY_IID = 1,
	BOOL = 2,
	UINT = 3,
	INT = 4,
	DOUBLE = 5,
	TEXT = 6,
	POINTER = 7,
	JSON = 9,
	KEY = 10,
	ENTRIES = 11,
	ITEMS = 12,
	TEXT_IID = 17,
};
enum { DEPTH_MOST = 32 };

void pftrace_args_begin(struct pftrace_reader *r)
{
	buf_clear(&r->element.args);
	buf_clear(&r->values);
	r->own = (struct pftrace_own){ 0 };
}

void pftrace_arg(struct pftrace_reader *r, struct json key, struct json value)
{
	struct kineto_member m = { key, value };

	buf_put(&r->element.args, &m, sizeof(m));
}

void pftrace_arg_made(struct pftrace_reader *r, struct json key, enum json_type type, size_t at)
{
	/* The buffer may still move, so `text` is an offset until pftrace_args_end(). */
	pftrace_arg(r, key,
		    (struct json){ .type = type,
				   .text = (const char *)(uintptr_t)at,
				   .len = r->values.len - at });
}

static struct json key_of(const struct pftrace_reader *r, const struct pftrace_sequence *q,
			  struct bytes annotation)
{
	struct json key = { .type = JSON_END };
	struct pb_field f;

	while (key.type == JSON_END && pb_next_padded(&annotation, &f)) {
		if (f.number == KEY_IID && f.wire == PB_VARINT)
			key = pftrace_named(r, pftrace_name(q, PFTRACE_KEY, f.u64));
		else if (f.number == KEY && f.wire == PB_BYTES)
			key = pftrace_json(f.bytes);
	}
	return key;
}

static struct json put_value(struct pftrace_reader *r, const struct pftrace_sequence *q,
			     struct bytes annotation, unsigned depth);

/* Appends dictionary entries or array items as JSON. */
static void put_nested(struct pftrace_reader *r, const struct pftrace_sequence *q,
		       struct bytes annotation, uint32_t field, unsigned depth)
{
	struct buf *b = &r->values;
	struct pb_field f;
	bool any = false;

	buf_put_byte(b, field == ENTRIES ? '{' : '[');
	while (pb_next_padded(&annotation, &f)) {
		struct json key, value;

		if (f.number != field || f.wire != PB_BYTES)
			continue;
		if (any)
			buf_put_byte(b, ',');
		any = true;
		if (field == ENTRIES) {
			key = key_of(r, q, f.bytes);
			json_put_text(b, key.len ? key.text : "", key.len);
			buf_put_byte(b, ':');
		}
		value = depth ? put_value(r, q, f.bytes, depth - 1)
			      : (struct json){ .type = JSON_NULL };
		if (value.type == JSON_STRING)
			json_put_text(b, value.text, value.len);
		else if (value.type == JSON_TRUE || value.type == JSON_FALSE)
			buf_put_text(b, value.type == JSON_TRUE ? "true" : "false");
		else if (value.type != JSON_NUMBER && value.type != JSON_ARRAY &&
			 value.type != JSON_OBJECT)
			buf_put_text(b, "null");
	}
	buf_put_byte(b, field == ENTRIES ? '}' : ']');
}

/* Returns the value: a text, a word, or a number, array or object that was appended to r->values.
 * Returns JSON_END if it has no known type. */
static struct json put_value(struct pftrace_reader *r, const struct pftrace_sequence *q,
			     struct bytes annotation, unsigned depth)
{
	struct pb_field f, v = { 0 };
	double f64;

	for (struct bytes b = annotation; pb_next_padded(&b, &f);)
		if (f.number != KEY && f.number != KEY_IID &&
		    (f.wire == PB_BYTES) ==
			    (f.number == TEXT || (f.number >= 8 && f.number != TEXT_IID)))
			v = f;
	switch (v.number) {
	case BOOL:
		return v.u64 ? (struct json){ .type = JSON_TRUE, .text = "true", .len = 4 }
			     : (struct json){ .type = JSON_FALSE, .text = "false", .len = 5 };
	case UINT:
	case POINTER:
		buf_put_u64_text(&r->values, v.u64);
		return (struct json){ .type = JSON_NUMBER };
	case INT:
		buf_put_i64_text(&r->values, (int64_t)v.u64);
		return (struct json){ .type = JSON_NUMBER };
	case DOUBLE:
		memcpy(&f64, &v.u64, sizeof(f64));
		if (!isfinite(f64)) {
			const char *word = isnan(f64) ? "NaN" : f64 > 0 ? "Infinity" : "-Infinity";

			return (struct json){ .type = JSON_ODD, .text = word, .len = strlen(word) };
		}
		json_put_f64(&r->values, f64);
		return (struct json){ .type = JSON_NUMBER };
	case JSON:
		if (bytes_left(&v.bytes) && (*v.bytes.at == '{' || *v.bytes.at == '[') &&
		    json_is_value((const char *)v.bytes.at, bytes_left(&v.bytes))) {
			buf_put(&r->values, v.bytes.at, bytes_left(&v.bytes));
			return (struct json){ .type = *v.bytes.at == '{' ? JSON_OBJECT
									 : JSON_ARRAY };
		}
		return pftrace_json(v.bytes);
	case TEXT:
		return pftrace_json(v.bytes);
	case TEXT_IID:
		return pftrace_named(r, pftrace_name(q, PFTRACE_TEXT, v.u64));
	case ENTRIES:
	case ITEMS:
		put_nested(r, q, annotation, v.number, depth);
		return (struct json){ .type = v.number == ENTRIES ? JSON_OBJECT : JSON_ARRAY };
	}
	return (struct json){ .type = JSON_END };
}

static bool key_is(const struct json *key, const char *word)
{
	return key->len == strlen(word) && !memcmp(key->text, word, key->len);
}

#define K(kind) (1u << KIND_##kind)

/* Reads an annotation that Tacho adds to an event or writes under a key of its own.  Returns false
 * if it is none of these. */
static bool take_own(struct pftrace_reader *r, unsigned kind, const struct json *key,
		     struct bytes annotation, uint8_t *use)
{
	static const uint8_t uses[] = { PFTRACE_UNUSED, PFTRACE_NUMBER, PFTRACE_BYTES,
					PFTRACE_RESULT, PFTRACE_ODD,    KINETO_KEPT };
	static const struct {
		unsigned kinds;
		const char *key;
		enum { NOTHING, NUMBER, BYTES, RESULT, THREAD, FLAG } is;
		uint8_t flag;
	} rows[] = {
		{ K(MEMCPY) | K(MEMSET), "GB/s", NOTHING, 0 },
		{ K(RANGE) | K(API), "step", NOTHING, 0 },
		{ ~0u, PATH_KEY, NOTHING, 0 }, /* it is derived again */
		{ K(STEP), "step", NUMBER, 0 },
		{ K(MARK), "id", NUMBER, 0 },
		{ K(JIT) | K(OVERHEAD), "correlation", NUMBER, 0 },
		{ K(ALLOC) | K(FREE), "address", NUMBER, 0 },
		{ K(ALLOC) | K(FREE), "bytes", BYTES, 0 },
		{ K(ALLOC) | K(FREE), "thread", THREAD, 0 },
		{ K(API), "result", RESULT, 0 },
		{ ~0u, "began earlier", FLAG, EVENT_BEGAN_EARLIER },
		{ ~0u, "never ended", FLAG, EVENT_NEVER_ENDED },
	};
	struct pb_field f;
	uint64_t bits = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!(rows[i].kinds >> kind & 1) || !key_is(key, rows[i].key))
			continue;
		while (pb_next_padded(&annotation, &f))
			if (f.number == UINT || f.number == INT || f.number == POINTER)
				bits = f.u64;
		if (rows[i].is == NUMBER || rows[i].is == RESULT)
			r->own.number = bits;
		else if (rows[i].is == BYTES)
			r->own.bytes = bits;
		else if (rows[i].is == THREAD)
			r->own.thread = bits;
		r->own.has_number |= rows[i].is == NUMBER;
		r->own.has_result |= rows[i].is == RESULT;
		r->own.has_bytes |= rows[i].is == BYTES;
		r->own.flags |= rows[i].flag;
		*use = uses[rows[i].is];
		return true;
	}
	return false;
}

uint8_t pftrace_arg_annotation(struct pftrace_reader *r, struct pftrace_sequence *q, unsigned kind,
			       struct bytes annotation)
{
	size_t at = r->values.len, place = r->element.args.len / sizeof(struct kineto_member);
	uint8_t use = place < KINETO_USES ? (uint8_t)(PFTRACE_MEMBER + place) : PFTRACE_ODD;
	struct json key = key_of(r, q, annotation), value;

	if (r->is_own && key_is(&key, "stream")) { /* -1 is written as an unsigned 64-bit number */
		struct pb_field f;

		while (pb_next_padded(&annotation, &f))
			if (f.number == UINT) {
				buf_put_i64_text(&r->values, (int64_t)f.u64);
				pftrace_arg_made(r, key, JSON_NUMBER, at);
			}
		return use;
	}
	if (!key.len)
		return PFTRACE_ODD;
	if (r->is_own && take_own(r, kind, &key, annotation, &use))
		return use;
	value = put_value(r, q, annotation, DEPTH_MOST);
	if (value.type == JSON_END) {
		r->unread[0]++;
		return PFTRACE_ODD;
	}
	if (value.type == JSON_NUMBER || value.type == JSON_ARRAY || value.type == JSON_OBJECT)
		pftrace_arg_made(r, key, value.type, at);
	else
		pftrace_arg(r, key, value);
	return use;
}

enum status pftrace_args_end(struct pftrace_reader *r, struct event *e, struct kineto_place *place,
			     struct error *err)
{
	struct kineto_member *m = (struct kineto_member *)(void *)r->element.args.data;
	size_t count = r->element.args.len / sizeof(*m);
	const char *made = buf_text(&r->values);

	if (r->values.status != ST_OK || r->element.args.status != ST_OK) {
		pftrace_lose(r, LOSS_CEILING); /* keep the event without its arguments */
		count = r->element.args.len = 0;
		r->uses[0] = PFTRACE_ODD;
	}
	for (size_t i = 0; i < count; i++)
		if (m[i].value.type == JSON_NUMBER || m[i].value.type == JSON_ARRAY ||
		    m[i].value.type == JSON_OBJECT)
			m[i].value.text = made + (uintptr_t)m[i].value.text;
	if (count) {
		TRY(kineto_args_take(&r->args, &r->element, e, place, err));
		r->uses[0] = r->args.repeated ? PFTRACE_ODD : r->uses[0];
	} else {
		import_begin(&r->to);
		*place = (struct kineto_place){ .device = NO_ID, .context = NO_ID };
	}
	e->flags |= r->own.flags;
	if (r->own.thread) {
		place->stream = (int64_t)r->own.thread;
		place->has_stream = true;
	}
	if (r->own.has_number)
		e->number = r->own.number;
	if (r->own.has_bytes)
		e->bytes = r->own.bytes;
	if (r->own.has_result) {
		e->result = (int64_t)r->own.number;
		e->flags |= EVENT_RESULT;
	}
	return ST_OK;
}
