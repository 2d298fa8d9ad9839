/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/log/internal.h"

#include "schemas/base/buf.h"
#include "schemas/base/utf8.h"
#include "schemas/model/args.h"
#include "schemas/model/nvtx.h"
#include "schemas/model/records.h"

#include <stdio.h>

enum {
	KEY_MAX = 256, /* such as "outer.inner[3]" */
	CONSTS_MAX = 48,
	NESTED_MAX = 6,
	SPREAD_MAX = 16,   /* most elements of an array that become fields */
	FIELDS_MAX = 1024, /* most fields per event, because schemas can nest in a cycle */
	SCHEMAS_MAX = 64,
	NUMBERS_MAX = 64, /* entries whose value can be an array length */
	RAW_MAX = 64,     /* most bytes shown of a value without a schema */
	TEXT_CAP = 4096,
};

struct decoder {
	struct trace *trace;
	struct event *event;
	const char *domain; /* NVTX domain; "" is the default one */
	struct attr consts[CONSTS_MAX], args[LOG_PAYLOAD_ARGS];
	uint64_t *values;
	unsigned const_count, arg_count;
	struct bytes schemas; /* all schemas that the event needs */
	const uint8_t *payload;
	struct bytes extra; /* texts to which the payload refers */
	char key[KEY_MAX];
	size_t key_len;
	unsigned depth, budget; /* `budget`: fields that may still be decoded */
	bool is_message;
	uint64_t lost;
	struct buf text;
};

/* ---- fields to arguments --------------------------------------------------------------- */

/* Our keys for fields in schemas of NCCL, XLA and collector/probe/nccl. */
static const struct key_row {
	const char *domain, *theirs, *key;
} key_rows[] = {
	{ "NCCL", "NCCL communicator ID", "comms_id" },
	{ "NCCL", "Parent NCCL communicator ID", "parent_comms_id" },
	{ "NCCL", "Message size [bytes]", "bytes" },
	{ "NCCL", "Bytes", "bytes" },
	{ "NCCL", "Reduction operation", "reduction" },
	{ "NCCL", "Root", "root" },
	{ "NCCL", "Peer rank", "peer" },
	{ "NCCL", "No. of ranks", "group_size" },
	{ "NCCL", "Rank", "group_rank" },
	{ "NCCL", "CUDA device", "cuda_device" },
	{ "NCCL profiler", "communicator", "comms_id" },
	{ "NCCL profiler", "sequence", "collective_seq" },
	{ "NCCL profiler", "function", "collective" },
	{ "NCCL profiler", "bytes", "bytes" },
	{ "NCCL profiler", "element type", "element_type" },
	{ "NCCL profiler", "ranks", "group_size" },
	{ "NCCL profiler", "rank", "group_rank" },
	{ "NCCL profiler", "from", "src_rank" },
	{ "NCCL profiler", "to", "dst_rank" },
	{ "TSL", "Name", "hlo_module" }, /* in the schema XlaModule */
	{ "TSL", "Unique ID", "program_id" },
	{ "TSL", "Common source locations", "source_locations" },
};

static void put_attr(struct decoder *d, const struct attr *a, bool is_arg)
{
	if (is_arg && d->arg_count < LOG_PAYLOAD_ARGS) {
		d->values[d->arg_count] = a->bits;
		d->args[d->arg_count++] = (struct attr){ .key = a->key, .type = a->type };
	} else if (!is_arg && d->const_count < CONSTS_MAX) {
		d->consts[d->const_count++] = *a;
	} else {
		d->lost++;
	}
}

static bool has_key(const struct decoder *d, uint32_t key)
{
	bool has = false;

	for (unsigned i = 0; i < d->const_count; i++)
		has |= d->consts[i].key == key;
	for (unsigned i = 0; i < d->arg_count; i++)
		has |= d->args[i].key == key;
	return has;
}

/* Returns our key for a field of NCCL or XLA, or NULL if the field keeps its name. */
static const char *registered_key(const struct decoder *d)
{
	const char *name = trace_text(d->trace, d->event->name, &(size_t){ 0 }), *key = NULL;

	for (size_t i = 0; i < sizeof(key_rows) / sizeof(key_rows[0]); i++)
		if (!strcmp(key_rows[i].domain, d->domain) && !strcmp(key_rows[i].theirs, d->key))
			key = key_rows[i].key;
	if (key && !strcmp(key, "peer")) /* destination of a send, origin of a receive */
		key = !strcmp(name, "ncclSend")   ? "dst_rank"
		      : !strcmp(name, "ncclRecv") ? "src_rank"
						  : key;
	return key;
}

/* Adds the field d->key as an attribute.  `is_arg`: a number that may differ in each event. */
static void put_field(struct decoder *d, uint8_t type, uint64_t bits, bool is_arg)
{
	const char *renamed = registered_key(d);
	bool is_xla = !strcmp(d->domain, "TSL"), is_rank;
	struct attr a = { .type = type, .bits = bits };
	char key[KEY_MAX + 32];

	/* A key of the program must not collide with a field or member of ours. */
	bool clashes = d->key[0] == '.' || kind_field(d->event->kind, d->key, d->key_len);
	int len = renamed ? snprintf(key, sizeof(key), "%s", renamed)
			  : snprintf(key, sizeof(key), "%s%.*s", clashes ? "payload." : "",
				     KEY_MAX - 16, d->key_len ? d->key : "payload");
	is_rank = !strcmp(key, "dst_rank") || !strcmp(key, "src_rank");
	if (is_rank)
		a.type = ATTR_I64;
	else if (renamed && type == ATTR_I64 && (int64_t)bits >= 0)
		a.type = ATTR_U64;
	if (is_arg)
		is_arg = renamed ? !strcmp(renamed, "bytes") || !strcmp(renamed, "collective_seq")
				 : !is_xla;
	for (int n = 2; n <= 10; n++) {
		a.key = trace_name(d->trace, key, strlen(key), NULL);
		if (a.key && !has_key(d, a.key)) {
			put_attr(d, &a, is_arg);
			return;
		}
		if (is_xla) /* XLA repeats each field */
			return;
		snprintf(key + len, sizeof(key) - (size_t)len, "_%d", n);
	}
	d->lost++;
}

static void put_text(struct decoder *d, uint8_t type, const void *text, size_t len)
{
	uint32_t name = trace_name(d->trace, text, len, NULL);

	trace_text(d->trace, d->event->name, &len);
	if (d->is_message && !len && type == ATTR_TEXT)
		d->event->name = name;
	else
		put_field(d, type, name, false);
}

/* ---- values ---------------------------------------------------------------------------- */

struct schema {
	struct nvtx_type type;
	struct bytes entries; /* entries of a schema or enum */
};
struct entry { /* in an enum, `type` is the value, `flags` whether it is a flag */
	uint64_t type, flags, length, offset, name_len;
	const char *name;
};

static struct schema find_schema(const struct decoder *d, uint64_t type)
{
	struct schema s = { nvtx_type_find(type), { 0 } };
	struct bytes in = d->schemas, row;

	for (unsigned i = 0; type >= NVTX_TYPE_END && bytes_left(&in) && i < SCHEMAS_MAX; i++) {
		row = take_part(&in, take_varint(&in));
		if (take_varint(&row) != type)
			continue;
		s.type.form = take_u8(&row);
		s.type.size = take_u16(&row);
		s.type.align = take_u16(&row);
		s.entries = row;
		if (s.type.form < NVTX_FORM_ENUM || s.type.form > NVTX_FORM_DYNAMIC ||
		    (s.type.form == NVTX_FORM_ENUM && !s.type.size))
			s.type.form = NVTX_FORM_NONE;
		break;
	}
	return s;
}

static struct entry take_entry(struct bytes *in)
{
	struct entry e = { take_varint(in), 0, 0, 0, 0, NULL };

	e.flags = take_varint(in);
	e.length = take_varint(in);
	e.offset = take_varint(in);
	e.name_len = take_varint(in);
	e.name = take_text(in, e.name_len);
	return e;
}

static uint64_t word_at(const uint8_t *p, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size < 8 ? size : 8);
	return v;
}

/* Converts IEEE half precision, whose five-bit exponent has another bias. */
static float half_float(uint32_t half)
{
	bool is_finite = (half & 0x7c00) != 0x7c00;
	uint32_t bits = (half & 0x8000) << 16 | (half & 0x7fff) << 13;
	float f;

	bits |= is_finite ? 0 : 0x7f800000;
	memcpy(&f, &bits, sizeof(f));
	return is_finite ? f * 0x1p112f : f;
}

/* Returns the bits of a number as an attribute stores them, and sets *attr to its type. */
static uint64_t number_at(const struct nvtx_type *type, const uint8_t *p, uint8_t *attr)
{
	uint64_t word = word_at(p, type->size);
	uint32_t low = (uint32_t)word << (type->form == NVTX_FORM_BFLOAT ? 16 : 0);
	unsigned shift = type->size < 8 ? 64 - 8 * type->size : 0;
	long double longest;
	double f64;
	float f32;

	*attr = type->form == NVTX_FORM_SIGNED     ? ATTR_I64
		: type->form == NVTX_FORM_UNSIGNED ? ATTR_U64
						   : ATTR_F64;
	if (type->form == NVTX_FORM_SIGNED)
		return (uint64_t)((int64_t)(word << shift) >> shift);
	if (type->form == NVTX_FORM_UNSIGNED || type->size == 8)
		return word;
	memcpy(&f32, &low, sizeof(f32));
	f64 = type->size == 2 && type->form == NVTX_FORM_FLOAT ? half_float(low) : f32;
	if (type->size == sizeof(longest)) {
		memcpy(&longest, p, sizeof(longest));
		f64 = (double)longest;
	}
	memcpy(&word, &f64, sizeof(word));
	return word;
}

/* Adds characters up to the first zero as UTF-8 text. */
static void put_letters(struct decoder *d, const uint8_t *p, size_t count, size_t size)
{
	char text[TEXT_CAP];
	size_t len = 0;
	uint32_t c, low;

	for (size_t i = 0; i < count && len + 4 <= sizeof(text); i++) {
		c = (uint32_t)word_at(p + i * size, size);
		low = size == 2 && i + 1 < count ? get_u16(p + 2 * i + 2) : 0;
		if (!c)
			break;
		if ((c & 0xfc00) == 0xd800 && (low & 0xfc00) == 0xdc00) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
			i++;
		}
		if (size == 1)
			text[len++] = (char)c;
		else
			len += utf8_put(text + len, c);
	}
	put_text(d, ATTR_TEXT, text, len);
}

static void put_raw(struct decoder *d, const uint8_t *p, size_t size)
{
	buf_clear(&d->text);
	for (size_t i = 0; i < size && i < RAW_MAX; i++)
		buf_putf(&d->text, "%02x", p[i]);
	buf_put_text(&d->text, size > RAW_MAX ? "..." : "");
	put_text(d, ATTR_TEXT, buf_text(&d->text), d->text.len);
}

/* Adds the text to which the field at `p` refers; the recorder copied it into d->extra. */
static void put_reference(struct decoder *d, const uint8_t *p)
{
	struct bytes in = d->extra;
	size_t offset, len;
	const char *text;

	do {
		offset = take_u16(&in);
		len = take_u16(&in);
		text = take_text(&in, len);
	} while (text && offset != (size_t)(p - d->payload));
	if (text)
		put_text(d, ATTR_TEXT, text, len);
}

/* Adds numbers as one JSON text. */
static void put_list(struct decoder *d, const struct nvtx_type *type, const uint8_t *p,
		     size_t count)
{
	struct buf *out = &d->text;
	uint8_t attr;
	size_t i;

	buf_clear(out);
	for (i = 0; i < count && out->len < TEXT_CAP; i++, p += type->size) {
		buf_put_byte(out, i ? ',' : '[');
		uint64_t bits = number_at(type, p, &attr);
		json_put_value(out, d->trace, attr, bits);
	}
	d->lost += i < count;
	buf_put_text(out, i ? "]" : "[]");
	put_text(d, ATTR_JSON, buf_text(out), out->len);
}

static size_t put_schema(struct decoder *d, const struct schema *s, const uint8_t *p, size_t size);

/* Adds the value at p[0..size), which is at least as large as its type. */
static void put_value(struct decoder *d, const struct schema *s, const uint8_t *p, size_t size)
{
	uint8_t attr;

	switch (s->type.form) {
	case NVTX_FORM_NONE:
		put_raw(d, p, s->type.size ? s->type.size : size);
		break;
	case NVTX_FORM_LETTER:
		put_letters(d, p, 1, s->type.size);
		break;
	case NVTX_FORM_REFERENCE:
		put_reference(d, p);
		break;
	case NVTX_FORM_ENUM:;
		/* The text is "Sum", "READ|WRITE", or the number if no entry matches. */
		uint64_t value = word_at(p, s->type.size);
		unsigned unused = s->type.size < 8 ? 64 - 8 * s->type.size : 0;
		uint64_t left = value;

		buf_clear(&d->text);
		for (struct bytes in = s->entries; bytes_left(&in);) {
			struct entry word = take_entry(&in);
			bool is_same = !word.flags && !((word.type ^ value) << unused);

			if (in.is_truncated || (!is_same && (!word.flags || !word.type ||
							     (left & word.type) != word.type)))
				continue;
			if (is_same)
				buf_clear(&d->text);
			else if (d->text.len)
				buf_put_byte(&d->text, '|');
			buf_put(&d->text, word.name, word.name_len);
			if (is_same)
				break;
			left &= ~word.type;
		}
		if (d->text.len)
			put_text(d, ATTR_TEXT, buf_text(&d->text), d->text.len);
		else
			put_field(d, ATTR_U64, value, false);
		break;
	case NVTX_FORM_STATIC:
	case NVTX_FORM_DYNAMIC:
		put_schema(d, s, p, size);
		break;
	default: {
		uint64_t bits = number_at(&s->type, p, &attr);
		put_field(d, attr, bits, true);
	}
	}
}

/* ---- schemas --------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void add_key(struct decoder *d, const char *format,
							  ...)
{
	va_list args;

	va_start(args, format);
	d->key_len += (size_t)vsnprintf(d->key + d->key_len, KEY_MAX - d->key_len, format, args);
	va_end(args);
	if (d->key_len >= KEY_MAX)
		d->key_len = KEY_MAX - 1;
}

static void set_key_len(struct decoder *d, size_t len)
{
	d->key_len = len;
	d->key[len] = '\0';
}

/*
 * Decodes entry `index` of a schema at p[0..size), and returns its size in bytes.  `numbers` are
 * the values of the previous entries, which may be lengths of arrays.
 */
static size_t put_entry(struct decoder *d, const struct entry *e, size_t index, uint64_t *numbers,
			const uint8_t *p, size_t size)
{
	struct schema s = find_schema(d, e->type);
	uint64_t array = e->flags & NVTX_ENTRY_ARRAY, count = e->length;
	size_t step = s.type.size, most = step ? size / step : 0, end = 0, key_len = d->key_len, i;
	bool is_array = array || s.type.form == NVTX_FORM_TEXT;
	bool is_number = s.type.form <= NVTX_FORM_BFLOAT && s.type.form != NVTX_FORM_NONE;

	if (s.type.form == NVTX_FORM_DYNAMIC)
		return put_schema(d, &s, p, size);
	if (array == NVTX_ENTRY_ARRAY_COUNTED)
		count = e->length < NUMBERS_MAX ? numbers[e->length] : 0;
	if (array == NVTX_ENTRY_ARRAY_ZERO) {
		for (count = 0; count < most && word_at(p + count * step, step);)
			count++;
		end = count < most;
	}
	if (!is_array)
		count = 1;
	if (!step || (!is_array && !most))
		return 0;
	count = count < most ? count : most;
	if (!is_array && index < NUMBERS_MAX && s.type.form <= NVTX_FORM_UNSIGNED)
		numbers[index] = word_at(p, step);
	if (is_array && (s.type.form == NVTX_FORM_TEXT || s.type.form == NVTX_FORM_LETTER ||
			 e->type == NVTX_TYPE_CHAR)) {
		put_letters(d, p, count, step);
	} else if (is_array && is_number &&
		   (array != NVTX_ENTRY_ARRAY_FIXED || count > SPREAD_MAX)) {
		put_list(d, &s.type, p, count);
	} else {
		for (i = 0; i < count && i < SPREAD_MAX && d->budget; i++) {
			d->budget -= i > 0;
			if (is_array)
				add_key(d, "[%zu]", i);
			put_value(d, &s, p + i * step, is_array ? step : size);
			set_key_len(d, key_len);
		}
		d->lost += i < count;
	}
	return (count + end) * step;
}

/* Decodes a value with a schema, and returns its size in bytes. */
static size_t put_schema(struct decoder *d, const struct schema *s, const uint8_t *p, size_t size)
{
	uint64_t numbers[NUMBERS_MAX] = { 0 }, align;
	struct bytes in = s->entries;
	size_t key_len = d->key_len, at = 0;

	if (d->depth == NESTED_MAX)
		return size;
	if (s->type.size && s->type.size < size)
		size = s->type.size;
	d->depth++;
	for (size_t i = 0; bytes_left(&in) && d->budget; i++) {
		struct entry e = take_entry(&in);

		d->budget--;
		align = find_schema(d, e.type).type.align;
		if (s->type.form == NVTX_FORM_STATIC)
			at = e.offset;
		else if (align > 1)
			at = (at + align - 1) / align * align;
		if (at > size || in.is_truncated)
			break;
		add_key(d, "%s%.*s", key_len && e.name_len ? "." : "", (int)e.name_len, e.name);
		d->is_message = e.flags & NVTX_ENTRY_MESSAGE;
		at += put_entry(d, &e, i, numbers, p + at, size - at);
		set_key_len(d, key_len);
	}
	d->is_message = false;
	d->depth--;
	return at;
}

/* ---- events ---------------------------------------------------------------------------- */

/* Keeps the other arguments of the event, and collects the bytes of its payloads. */
static void gather(struct decoder *d, const struct arg_schema *schema, uint32_t key,
		   struct buf *bytes)
{
	uint32_t schemas_key = trace_find_name(d->trace, NVTX_SCHEMAS_KEY, 8);
	uint32_t domain_key = trace_find_name(d->trace, "domain", 6);

	for (uint32_t i = 0; i < schema->arg_count; i++) {
		struct attr a = schema->args[i];

		a.bits = d->values[i];
		if (a.key == key)
			buf_put_u64(bytes, a.bits);
		else
			put_attr(d, &a, true);
	}
	for (uint32_t i = 0; i < schema->const_count; i++) {
		const struct attr *a = &schema->consts[i];
		const char *text = NULL;
		size_t len;

		if (a->type == ATTR_TEXT)
			text = trace_text(d->trace, (uint32_t)a->bits, &len);
		if (text && a->key == key)
			buf_put(bytes, text, len);
		else if (text && a->key == schemas_key)
			d->schemas = bytes_init(text, len);
		else
			put_attr(d, a, false);
		if (text && a->key == domain_key)
			d->domain = text;
	}
}

uint64_t log_payload_decode(struct trace *trace, struct event *e, uint64_t *args)
{
	const struct arg_schema *schema = trace_get_schema(trace, e->schema);
	struct decoder d = {
		.trace = trace, .event = e, .domain = "", .values = args, .budget = FIELDS_MAX
	};
	uint32_t key = trace_find_name(trace, NVTX_PAYLOAD_KEY, 8);
	struct nvtx_payload_header header;
	struct buf bytes;
	struct schema s;

	if (!key || !schema->arg_count || schema->args[schema->arg_count - 1].key != key)
		return 0;
	buf_init(&d.text, 16 * TEXT_CAP);
	buf_init(&bytes, 16 * TEXT_CAP);
	gather(&d, schema, key, &bytes);
	for (struct bytes in = bytes_init(bytes.data, bytes.len);
	     bytes_left(&in) > sizeof(header);) {
		memcpy(&header, take_bytes(&in, sizeof(header)), sizeof(header));
		d.payload = take_bytes(&in, header.size);
		d.extra = take_part(&in, header.extra);
		if (!header.size || in.is_truncated)
			break;
		s = find_schema(&d, header.schema);
		if (s.type.form == NVTX_FORM_TEXT || s.type.form == NVTX_FORM_LETTER)
			put_letters(&d, d.payload, header.size / s.type.size, s.type.size);
		else if (s.type.size <= header.size || s.type.form == NVTX_FORM_STATIC)
			put_value(&d, &s, d.payload, header.size);
		else
			put_raw(&d, d.payload, header.size);
	}
	buf_release(&bytes);
	buf_release(&d.text);

	struct arg_schema own = { d.consts, d.args, d.const_count, d.arg_count };
	struct event_desc desc = { e->track, e->name, 0, e->kind, e->subkind };
	desc.schema = d.const_count + d.arg_count ? trace_schema(trace, &own, NULL) : 0;
	trace_desc(trace, &desc, NULL);
	e->schema = desc.schema;
	e->args = desc.schema && d.arg_count ? args : NULL;
	return d.lost;
}

enum status log_payload_scan(const struct log_index *index, bool *has_any, struct error *err)
{
	uint64_t args[LOG_LAYOUT_ARG], lost = 0;
	enum status st = ST_OK;
	struct log_cursor *c;
	struct event e;

	*has_any = trace_find_name(index->trace, NVTX_PAYLOAD_KEY, 8);
	if (!*has_any)
		return ST_OK;
	TRY(log_cursor_new(&c, err));
	for (size_t i = 0; i < index->count && st != ST_MEMORY; i++) {
		const struct log_block *block = &index->blocks[i];
		const struct log_layout *layout = log_layout(index->tables, block->layout);

		if (!layout || !layout->arg_count || layout->arg_count > LOG_LAYOUT_ARG ||
		    (layout->kind != KIND_RANGE && layout->kind != KIND_MARK))
			continue;
		st = log_cursor_open(c, index->in, block, i, index->tables, LOG_KEEP_CHUNK, err);
		if (st != ST_OK)
			continue; /* reading the block later reports the error */
		for (struct log_cursor_head *h = log_cursor_head(c); log_cursor_has(c); h->at++) {
			log_rows_event(h->rows, log_cursor_row(h, h->at), &e, args);
			lost += log_payload_decode(index->trace, &e, args);
		}
	}
	trace_lose(index->trace, 0, LOSS_CEILING, lost);
	log_cursor_free(c);
	return st == ST_MEMORY ? st : ST_OK;
}
