/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/payload.h"

#include "collector/session/texts.h"
#include "collector/probe/nvtx/schema.h"
#include "collector/probe/nvtx/text.h"
#include "schemas/base/buf.h"
#include "schemas/base/json_text.h"
#include "schemas/model/trace.h"
#include "schemas/base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	KEY_MAX = 256, /* "outer.inner[3]" */
	NESTED_MAX = 6,
	SPREAD_MAX = 16, /* elements of an array that become fields */
	FIELDS_MAX = 512,
	NUMBERS_MAX = 64, /* entries whose number can be a length */
	RAW_MAX = 64,     /* bytes without a schema */
	TEXT_CAP = 4096,
	PAGE = 4096,
};

/* ---- on the program's thread ---- */

/* The text at an address of this process, without its NUL; 0 bytes when nothing is there. */
static size_t read_text(uint8_t *out, size_t cap, uint64_t address)
{
	size_t first = PAGE - address % PAGE;
	struct iovec to = { out, cap }, from[2];

	if (!address)
		return 0;
	if (first > cap)
		first = cap;
	/* page by page: what comes before a missing one is read */
	from[0] = (struct iovec){ (void *)(uintptr_t)address, first };
	from[1] = (struct iovec){ (void *)(uintptr_t)(address + first), cap - first };
	ssize_t n = process_vm_readv(getpid(), &to, 1, from, 2, 0);
	return n > 0 ? strnlen((const char *)out, (size_t)n) : 0;
}

/* Appends for each entry that points at a text: its length in two bytes, and the text. */
static void copy_texts(struct nvtx_draft *d, const struct nvtx_schema_row *row,
		       const uint8_t *bytes, size_t size)
{
	const struct nvtx_entry_row *e = nvtx_schema_entries(row);
	uint8_t text[512];

	for (uint32_t i = 0; i < row->count; i++, e++) {
		struct nvtx_unit unit = nvtx_unit_find(row->domain, e->type);

		if (!nvtx_entry_points(e, &unit))
			continue;
		size_t len = 0;
		if (e->offset + sizeof(uint64_t) <= size)
			len = read_text(text, sizeof(text), get_u64(bytes + e->offset));
		uint8_t *to = nvtx_draft_extra(d, 2 + len);
		if (!to)
			return;
		put_u16(to, (uint16_t)len);
		memcpy(to + 2, text, len);
	}
}

static size_t find_size(const struct nvtx_data *data, const struct nvtx_schema_row *row,
			const struct nvtx_unit *unit)
{
	if (data->size != SIZE_MAX)
		return data->size;
	if (unit->form == NVTX_FORM_TEXT && unit->size == 1)
		return strnlen(data->bytes, TEXT_CAP);
	return row ? row->size : unit->size;
}

void nvtx_payload_copy(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data,
		       bool at_end)
{
	const struct nvtx_schema_row *row = nvtx_schema_find(domain, data->schema);
	struct nvtx_unit unit = nvtx_unit_find(domain, data->schema);

	if (!data->bytes || data->schema == NVTX_SCHEMA_REFERENCED)
		return;
	size_t size = find_size(data, row, &unit);
	if (!size)
		return;
	uint8_t *to = nvtx_draft_add_payload(d, data->schema, size, at_end);
	if (!to) {
		nvtx_payload_lose();
		return;
	}
	memcpy(to, data->bytes, size);
	if (row && row->points && !row->is_dynamic)
		copy_texts(d, row, data->bytes, size);
}

/* ---- on the writer thread ---- */

struct telling {
	uint32_t domain;
	nvtx_tell put;
	void *arg;
	struct bytes extra;
	char key[KEY_MAX];
	size_t key_len;
	unsigned depth;
	unsigned budget; /* fields that may still come: schemas can be nested in a ring */
	bool is_message;
};

static void tell_field(struct telling *t, struct nvtx_field f)
{
	if (!t->budget)
		return;
	t->budget--;
	f.key = t->key;
	f.key_len = t->key_len;
	f.is_message = t->is_message && f.type == ATTR_TEXT;
	t->put(&f, t->arg);
}

static void set_number_attribute(struct telling *t, uint8_t type, uint64_t bits)
{
	tell_field(t, (struct nvtx_field){ .type = type, .is_arg = true, .bits = bits });
}

static void tell_double(struct telling *t, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	set_number_attribute(t, ATTR_F64, bits);
}

static void tell_text(struct telling *t, const char *text, size_t len)
{
	tell_field(t, (struct nvtx_field){ .type = ATTR_TEXT, .text = text, .len = len });
}

static uint64_t unsigned_at(const uint8_t *p, unsigned size)
{
	uint64_t v = 0;

	memcpy(&v, p, size < 8 ? size : 8);
	return v;
}

static int64_t signed_at(const uint8_t *p, unsigned size)
{
	unsigned shift = size < 8 ? 64 - 8 * size : 0;

	return (int64_t)(unsigned_at(p, size) << shift) >> shift;
}

static double float_at(const uint8_t *p, const struct nvtx_unit *unit)
{
	uint32_t upper = (uint32_t)get_u16(p) << 16;
	long double longest;
	float f;

	if (unit->form == NVTX_FORM_BFLOAT) {
		memcpy(&f, &upper, sizeof(f));
		return f;
	}
	if (unit->size == 2) {
		/* IEEE's half: 5 bits of exponent, 10 of fraction. */
		uint16_t v = get_u16(p);
		int exponent = v >> 10 & 31;
		double fraction = v & 1023, r;

		if (exponent == 31)
			r = fraction > 0 ? NAN : INFINITY;
		else
			r = ldexp(exponent ? fraction + 1024 : fraction,
				  (exponent ? exponent : 1) - 25);
		return v & 0x8000 ? -r : r;
	}
	if (unit->size == 8)
		return get_f64(p);
	if (unit->size == sizeof(longest)) {
		memcpy(&longest, p, sizeof(longest));
		return (double)longest;
	}
	memcpy(&f, p, sizeof(f));
	return f;
}

/* Up to the first zero. */
static void tell_letters(struct telling *t, const uint8_t *p, size_t count, unsigned size)
{
	char text[TEXT_CAP];
	size_t len = 0;

	for (size_t i = 0; i < count && len + 4 <= sizeof(text); i++) {
		uint32_t c = (uint32_t)unsigned_at(p + i * size, size);
		if (!c)
			break;
		if (size == 1) {
			text[len++] = (char)c;
			continue;
		}
		uint32_t low = size == 2 && i + 1 < count ? get_u16(p + 2 * i + 2) : 0;
		if ((c & 0xfc00) == 0xd800 && (low & 0xfc00) == 0xdc00) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
			i++;
		}
		len += utf8_put(text + len, c);
	}
	tell_text(t, text, len);
}

static void tell_raw(struct telling *t, const uint8_t *p, size_t size)
{
	char text[2 * RAW_MAX + 4];
	size_t len = 0;

	for (size_t i = 0; i < size && i < RAW_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%02x", p[i]);
	if (size > RAW_MAX)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "...");
	tell_text(t, text, len);
}

static void put_word(struct buf *out, uint32_t name)
{
	size_t len;
	const char *word = name_text(name, &len);

	if (out->len)
		buf_put_byte(out, '|');
	buf_put(out, word, len);
}

/* "Sum", "READ|WRITE", or the number. */
static void tell_enum(struct telling *t, const struct nvtx_schema_row *row, uint64_t value)
{
	const struct nvtx_word_row *w = nvtx_schema_words(row);
	uint64_t mask = row->size < 8 ? (UINT64_C(1) << 8 * row->size) - 1 : UINT64_MAX;
	uint64_t left = value;
	struct buf out;

	buf_init(&out, TEXT_CAP);
	for (uint32_t i = 0; i < row->count && !out.len; i++)
		if ((w[i].value & mask) == value && !w[i].is_flag)
			put_word(&out, w[i].name);
	for (uint32_t i = 0; i < row->count && left; i++) {
		if (!w[i].is_flag || !w[i].value || (value & w[i].value) != w[i].value)
			continue;
		put_word(&out, w[i].name);
		left &= ~w[i].value;
	}
	if (out.len)
		tell_text(t, buf_text(&out), out.len);
	else
		tell_field(t, (struct nvtx_field){ .type = ATTR_U64, .bits = value });
	buf_release(&out);
}

static size_t tell_schema(struct telling *t, const struct nvtx_schema_row *row, const uint8_t *p,
			  size_t size);

static void tell_one(struct telling *t, const struct nvtx_unit *unit, const uint8_t *p, size_t size)
{
	const char *text;
	size_t len;

	switch (unit->form) {
	case NVTX_FORM_SIGNED:
		set_number_attribute(t, ATTR_I64, (uint64_t)signed_at(p, unit->size));
		break;
	case NVTX_FORM_UNSIGNED:
		set_number_attribute(t, ATTR_U64, unsigned_at(p, unit->size));
		break;
	case NVTX_FORM_FLOAT:
	case NVTX_FORM_BFLOAT:
		tell_double(t, float_at(p, unit));
		break;
	case NVTX_FORM_LETTER:
		tell_letters(t, p, 1, unit->size);
		break;
	case NVTX_FORM_REGISTERED:
		text = name_text((uint32_t)unsigned_at(p, unit->size), &len);
		tell_text(t, text, len);
		break;
	case NVTX_FORM_ENUM:
		tell_enum(t, unit->row, unsigned_at(p, unit->size));
		break;
	case NVTX_FORM_SCHEMA:
		tell_schema(t, unit->row, p, size);
		break;
	default:
		tell_raw(t, p, unit->size && unit->size < size ? unit->size : size);
	}
}

/* ---- arrays ---- */

/* Numbers in one text of JSON. */
static void tell_list(struct telling *t, const struct nvtx_unit *unit, const uint8_t *p,
		      uint64_t count)
{
	struct buf out;
	uint64_t i;

	if (unit->form < NVTX_FORM_SIGNED || unit->form > NVTX_FORM_BFLOAT) {
		tell_raw(t, p, unit->size * count);
		return;
	}
	buf_init(&out, 16 * TEXT_CAP);
	buf_put_byte(&out, '[');
	for (i = 0; i < count && out.len < TEXT_CAP; i++, p += unit->size) {
		if (i)
			buf_put_byte(&out, ',');
		if (unit->form == NVTX_FORM_SIGNED)
			buf_put_i64_text(&out, signed_at(p, unit->size));
		else if (unit->form == NVTX_FORM_UNSIGNED)
			buf_put_u64_text(&out, unsigned_at(p, unit->size));
		else
			json_put_f64(&out, float_at(p, unit));
	}
	if (i < count)
		nvtx_payload_lose();
	buf_put_byte(&out, ']');
	tell_field(t, (struct nvtx_field){
			      .type = ATTR_JSON, .text = buf_text(&out), .len = out.len });
	buf_release(&out);
}

/* Its own field for each element. */
static void tell_elements(struct telling *t, const struct nvtx_unit *unit, const uint8_t *p,
			  uint64_t count)
{
	size_t key_len = t->key_len;
	uint64_t i;

	for (i = 0; i < count && i < SPREAD_MAX; i++) {
		t->key_len = key_len + (size_t)snprintf(t->key + key_len, KEY_MAX - key_len, "[%u]",
							(unsigned)i);
		if (t->key_len >= KEY_MAX)
			break;
		tell_one(t, unit, p + i * unit->size, unit->size);
	}
	if (i < count)
		nvtx_payload_lose();
	t->key_len = key_len;
}

/* ---- schemas ---- */

struct place {
	const uint8_t *bytes;
	size_t size, at;
	uint64_t numbers[NUMBERS_MAX]; /* of the entries so far */
};

static uint64_t count_to_zero(const struct place *b, const struct nvtx_unit *unit)
{
	uint64_t n = 0;

	while (b->at + (n + 1) * unit->size <= b->size &&
	       unsigned_at(b->bytes + b->at + n * unit->size, unit->size))
		n++;
	return n;
}

/* Elements of the entry at b->at; `*taken`: with a zero at its end. */
static uint64_t find_count(const struct place *b, const struct nvtx_entry_row *e,
			   const struct nvtx_unit *unit, uint64_t *taken)
{
	uint64_t most = (b->size - b->at) / unit->size, count = e->array_length;

	switch (e->flags & NVTX_ENTRY_ARRAY) {
	case NVTX_ENTRY_ARRAY_ZERO:
		count = count_to_zero(b, unit);
		*taken = count < most ? count + 1 : count;
		return count;
	case NVTX_ENTRY_ARRAY_COUNTED:
		count = e->array_length < NUMBERS_MAX ? b->numbers[e->array_length] : 0;
		break;
	}
	*taken = count < most ? count : most;
	return *taken;
}

static bool is_list(const struct nvtx_entry_row *e, const struct nvtx_unit *unit)
{
	return e->flags & NVTX_ENTRY_ARRAY || unit->form == NVTX_FORM_TEXT;
}

/* Decodes the entry at b->at, and moves b->at to its end. */
static void tell_entry(struct telling *t, const struct nvtx_entry_row *e, struct place *b,
		       uint32_t number)
{
	struct nvtx_unit unit = nvtx_unit_find(t->domain, e->type);
	const uint8_t *p = b->bytes + b->at;
	uint64_t taken;

	if (nvtx_entry_points(e, &unit)) {
		b->at += sizeof(void *);
		if (t->depth == 1) {
			uint16_t len = take_u16(&t->extra);
			const char *text = take_text(&t->extra, len);

			if (text)
				tell_text(t, text, len);
		}
		return;
	}
	if (e->flags & NVTX_ENTRY_POINTER)
		unit = nvtx_unit_find(0, NVTX_TYPE_ADDRESS);
	else if (e->flags & (NVTX_ENTRY_FROM_BASE | NVTX_ENTRY_FROM_HERE) ||
		 (e->flags & NVTX_ENTRY_ARRAY) == NVTX_ENTRY_ARRAY_ELSEWHERE)
		return; /* the bytes that it points at were not copied */
	if (!unit.size && unit.form != NVTX_FORM_SCHEMA)
		return;
	if (!(e->flags & NVTX_ENTRY_POINTER) && is_list(e, &unit) && unit.size) {
		uint64_t count = find_count(b, e, &unit, &taken);
		bool is_const = (e->flags & NVTX_ENTRY_ARRAY) == NVTX_ENTRY_ARRAY_FIXED;
		if (unit.form == NVTX_FORM_TEXT || unit.form == NVTX_FORM_LETTER || unit.is_char)
			tell_letters(t, p, count, unit.size);
		else if (unit.form == NVTX_FORM_SCHEMA || unit.form == NVTX_FORM_ENUM ||
			 unit.form == NVTX_FORM_REGISTERED || (is_const && count <= SPREAD_MAX))
			tell_elements(t, &unit, p, count);
		else
			tell_list(t, &unit, p, count);
		b->at += taken * unit.size;
		return;
	}
	if (unit.size > b->size - b->at)
		return;
	if (number < NUMBERS_MAX && unit.form <= NVTX_FORM_UNSIGNED)
		b->numbers[number] = unsigned_at(p, unit.size);
	if (unit.form == NVTX_FORM_SCHEMA && unit.row->is_dynamic) {
		b->at += tell_schema(t, unit.row, p, b->size - b->at);
		return;
	}
	tell_one(t, &unit, p, b->size - b->at);
	b->at += unit.size;
}

/* Returns the bytes that it took. */
static size_t tell_schema(struct telling *t, const struct nvtx_schema_row *row, const uint8_t *p,
			  size_t size)
{
	struct place b = { .bytes = p, .size = row->size && row->size < size ? row->size : size };
	const struct nvtx_entry_row *e = nvtx_schema_entries(row);
	size_t key_len = t->key_len, len;

	if (t->depth == NESTED_MAX)
		return size;
	t->depth++;
	for (uint32_t i = 0; i < row->count && t->budget; i++) {
		struct nvtx_unit unit = nvtx_unit_find(t->domain, e[i].type);
		if (!row->is_dynamic)
			b.at = e[i].offset;
		else if (unit.align > 1)
			b.at = (b.at + unit.align - 1) / unit.align * unit.align;
		if (b.at > b.size)
			break;
		const char *name = name_text(e[i].name, &len);
		t->key_len = key_len;
		if (key_len && len && key_len < KEY_MAX - 1)
			t->key[t->key_len++] = '.';
		len = nvtx_text_fit(name, len, KEY_MAX - t->key_len);
		memcpy(t->key + t->key_len, name, len);
		t->key_len += len;
		t->is_message = e[i].flags & NVTX_ENTRY_MESSAGE;
		tell_entry(t, &e[i], &b, i);
	}
	t->is_message = false;
	t->key_len = key_len;
	t->depth--;
	return b.at;
}

void nvtx_payload_decode(uint32_t domain, const struct nvtx_payload_header *p, const uint8_t *bytes,
			 nvtx_tell put, void *arg)
{
	struct telling t = { .domain = domain,
			     .put = put,
			     .arg = arg,
			     .budget = FIELDS_MAX,
			     .extra = bytes_init(bytes + p->size, p->extra) };
	struct nvtx_unit unit = nvtx_unit_find(domain, p->schema);

	if (unit.form == NVTX_FORM_TEXT || unit.form == NVTX_FORM_LETTER)
		tell_letters(&t, bytes, p->size / unit.size, unit.size);
	else if (unit.form == NVTX_FORM_SCHEMA || unit.size <= p->size)
		tell_one(&t, &unit, bytes, p->size);
	else
		tell_raw(&t, bytes, p->size);
}
