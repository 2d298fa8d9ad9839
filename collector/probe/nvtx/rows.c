/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/rows.h"

#include "collector/arena/texts.h"
#include "collector/probe/nvtx/names.h"
#include "collector/probe/nvtx/payload.h"
#include "collector/probe/nvtx/text.h"
#include "collector/probe/rows.h"
#include "collector/session/clock.h"
#include "collector/store/writer.h"
#include "schemas/base/buf.h"
#include "schemas/base/hash.h"
#include "schemas/model/records.h"

#include <stdio.h>
#include <string.h>

enum {
	TEXT_HASHES = 8192,
	CONSTS_MAX = 32,
	ARGS_MAX = 80,
	INPUTS_MAX = 32,         /* most numbers of input_op_ids */
	SCHEMAS_BYTES = 1 << 18, /* most bytes of the schemas of one event */
};

static struct desc_cache descs;

/* Hashes of texts that occurred once; a text that occurs again gets an id (arena/texts.h). */
static uint64_t text_hashes[TEXT_HASHES];

/* The parts of a row. */
struct sketch {
	struct writer *w;
	uint32_t domain;
	bool is_nccl, is_xla;
	uint8_t kind, subkind;
	const char *text; /* the text, from which parts are removed until the name is left */
	size_t len;
	struct buf name; /* buffer for a name that is composed */
	struct attr consts[CONSTS_MAX], args[ARGS_MAX];
	uint64_t values[ARGS_MAX];
	unsigned const_count, arg_count;
	uint64_t number;
	bool once;   /* the descriptor depends on more than name and word */
	bool is_new; /* the text occurs only in this event */
};

/* ---- attributes ---- */

static void put_attr(struct sketch *s, const struct attr *a, bool is_arg)
{
	if (is_arg && s->arg_count < ARGS_MAX) {
		s->args[s->arg_count] = (struct attr){ .key = a->key, .type = a->type };
		s->values[s->arg_count++] = a->bits;
		s->once = true;
	} else if (!is_arg && s->const_count < CONSTS_MAX) {
		s->consts[s->const_count++] = *a;
	} else {
		nvtx_lose(1);
	}
}

static void put_number(struct sketch *s, const char *key, uint8_t type, uint64_t bits, bool is_arg)
{
	struct attr a = { .key = writer_name(s->w, key, strlen(key)), .type = type, .bits = bits };

	put_attr(s, &a, is_arg);
}

static void put_text(struct sketch *s, const char *key, uint8_t type, const char *text, size_t len)
{
	put_number(s, key, type, writer_name(s->w, text, len), false);
}

static void put_name(struct sketch *s, const char *key, uint32_t name)
{
	put_number(s, key, ATTR_TEXT, probe_name(s->w, name), false);
}

/* ---- PyTorch ---- */

/* Puts pairs (operator, output) as argument values, because they differ in each event. */
static void put_inputs(struct sketch *s, const struct nvtx_torch *t)
{
	const char *p = t->inputs, *end = p + t->inputs_len;
	char key[40];
	uint64_t v;

	for (unsigned i = 0; i < INPUTS_MAX; i++) {
		while (p < end && (*p < '0' || *p > '9'))
			p++;
		if (p == end)
			return;
		for (v = 0; p < end && *p >= '0' && *p <= '9'; p++)
			v = v * 10 + (uint64_t)(*p - '0');
		snprintf(key, sizeof(key), "input_op_ids[%u]", i);
		put_number(s, key, ATTR_U64, v, true);
	}
	nvtx_lose(1);
}

static void take_torch(struct sketch *s)
{
	struct nvtx_torch t;
	struct buf json;

	if (s->domain || !nvtx_text_torch(s->text, s->len, &t))
		return;
	s->once = s->is_new = true;
	if (t.is_operator && s->kind == KIND_RANGE)
		s->subkind = RANGE_OP;
	s->number = t.seq;
	if (t.has_seq && (!t.seq || s->kind != KIND_RANGE))
		put_number(s, "sequence", ATTR_U64, t.seq, false);
	if (t.has_op)
		put_number(s, "record_function_id", ATTR_U64, t.op_id, true);
	if (t.sizes) {
		buf_init(&json, 2 * t.sizes_len + 16);
		nvtx_text_json(&json, t.sizes, t.sizes_len);
		put_text(s, "input_dims", ATTR_JSON, buf_text(&json), json.len);
		buf_release(&json);
	}
	if (t.inputs)
		put_inputs(s, &t);
	s->len = t.name_len;
}

/* ---- XLA ---- */

static const struct nvtx_pair *find_pair(const struct nvtx_xla *x, const char *key)
{
	for (unsigned i = 0; i < x->count; i++)
		if (x->pairs[i].key_len == strlen(key) &&
		    !memcmp(x->pairs[i].key, key, x->pairs[i].key_len))
			return &x->pairs[i];
	return NULL;
}

static bool is_number(const struct nvtx_pair *p, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < p->value_len && p->value[i] >= '0' && p->value[i] <= '9'; i++)
		*v = *v * 10 + (uint64_t)(p->value[i] - '0');
	return i == p->value_len && i > 0 && i < 19;
}

/* Puts a pair of a title.  Keys that look like a member of the event are replaced by HLO's
 * names. */
static void put_pair(struct sketch *s, const struct nvtx_pair *p)
{
	static const struct {
		const char *title, *key;
	} rows[] = { { "name", "op_name" }, { "prefix", "op_name_prefix" } };
	struct attr a = { .key = writer_name(s->w, p->key, p->key_len), .type = ATTR_U64 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strlen(rows[i].title) == p->key_len &&
		    !memcmp(rows[i].title, p->key, p->key_len))
			a.key = writer_name(s->w, rows[i].key, strlen(rows[i].key));
	if (!is_number(p, &a.bits)) {
		a.type = ATTR_TEXT;
		a.bits = writer_name(s->w, p->value, p->value_len);
	}
	put_attr(s, &a, false);
}

static void take_xla(struct sketch *s)
{
	static const char *const best[] = { "hlo_op", "hlo_module", "module", "name" };
	const struct nvtx_pair *p = NULL;
	struct nvtx_xla x;

	if (!s->is_xla || !nvtx_text_xla(s->text, s->len, &x))
		return;
	for (unsigned i = 0; i < x.count; i++)
		put_pair(s, &x.pairs[i]);
	for (unsigned i = 0; i < sizeof(best) / sizeof(best[0]) && !p; i++)
		p = find_pair(&x, best[i]);
	buf_put(&s->name, s->text, x.head_len);
	if (p) {
		buf_put_byte(&s->name, ':');
		buf_put(&s->name, p->value, p->value_len);
	}
	s->text = buf_text(&s->name);
	s->len = s->name.len;
}

/* ---- payloads ---- */

/*
 * Puts the bytes of `count` payloads at `p` as argument values, and the schemas that they need as a
 * const arg.  The rest of large payloads is a const arg, too.
 */
static void put_payloads(struct sketch *s, const uint8_t *p, size_t room, unsigned count)
{
	size_t words = NVTX_PAYLOAD_WORDS_LEAST, size = 0, at;
	struct nvtx_payload_header header;
	struct buf schemas;

	buf_init(&schemas, SCHEMAS_BYTES);
	for (unsigned i = 0; i < count && room - size >= sizeof(header); i++) {
		memcpy(&header, p + size, sizeof(header));
		if (room - size - sizeof(header) < (size_t)header.size + header.extra)
			break;
		size += sizeof(header) + header.size + header.extra;
		nvtx_schema_write(&schemas, s->domain, header.schema);
	}
	if (schemas.len)
		put_text(s, NVTX_SCHEMAS_KEY, ATTR_TEXT, buf_text(&schemas), schemas.len);
	buf_release(&schemas);
	while (words < NVTX_PAYLOAD_WORDS && 8 * words < size)
		words *= 2;
	for (at = 0; at < 8 * words; at += 8) {
		uint64_t word = 0;

		if (at < size)
			memcpy(&word, p + at, size - at < 8 ? size - at : 8);
		put_number(s, NVTX_PAYLOAD_KEY, ATTR_U64, word, true);
	}
	if (at < size)
		put_text(s, NVTX_PAYLOAD_KEY, ATTR_TEXT, (const char *)p + at, size - at);
}

static void take_value(struct sketch *s, const struct nvtx_tail *tail)
{
	double f64;
	int32_t i32;
	float f32;
	uint64_t bits = tail->value;

	switch (tail->value_type) {
	case NVTX_VALUE_U64:
	case NVTX_VALUE_U32:
		put_number(s, "payload", ATTR_U64, bits, true);
		break;
	case NVTX_VALUE_I64:
		put_number(s, "payload", ATTR_I64, bits, true);
		break;
	case NVTX_VALUE_I32:
		memcpy(&i32, &bits, sizeof(i32));
		put_number(s, "payload", ATTR_I64, (uint64_t)(int64_t)i32, true);
		break;
	case NVTX_VALUE_F64:
		put_number(s, "payload", ATTR_F64, bits, true);
		break;
	case NVTX_VALUE_F32:
		memcpy(&f32, &bits, sizeof(f32));
		f64 = f32;
		memcpy(&bits, &f64, sizeof(bits));
		put_number(s, "payload", ATTR_F64, bits, true);
		break;
	}
}

/* ---- a row ---- */

static void take_word(struct sketch *s, uint64_t word)
{
	uint32_t category = (uint32_t)(word >> NVTX_WORD_CATEGORY);
	unsigned color = word >> NVTX_WORD_COLOR & 0xff;
	char text[16];

	if (s->domain)
		put_name(s, "domain", nvtx_domain_name(s->domain));
	if (category) {
		put_number(s, "category", ATTR_U64, category, false);
		uint32_t name = nvtx_object_name(NVTX_CATEGORY, nvtx_category(s->domain, category));

		if (name)
			put_name(s, "category_name", name);
	}
	if (color) {
		snprintf(text, sizeof(text), "#%08x", nvtx_color(color));
		put_text(s, "color", ATTR_TEXT, text, strlen(text));
	}
	if (word >> NVTX_WORD_STARTED & 1)
		put_text(s, "style", ATTR_TEXT, "start_end", 9);
}

/* Gives a text that occurs twice an id, because it will occur more often and callbacks then need
 * not copy it. */
static void remember(const char *text, size_t len)
{
	uint64_t hash = hash_text(text, len);

	if (text_hashes[hash % TEXT_HASHES] == hash && name_count() < NAMES_MAX / 2)
		name_find_text(text, len);
	text_hashes[hash % TEXT_HASHES] = hash;
}

static bool is_domain(uint32_t domain, const char *name)
{
	size_t len;
	const char *text = name_text(nvtx_domain_name(domain), &len);

	return len == strlen(name) && !memcmp(text, name, len);
}

static uint32_t make_desc(struct sketch *s, uint32_t track)
{
	struct arg_schema schema = { s->consts, s->args, s->const_count, s->arg_count };
	struct event_desc desc = { .track = track, .kind = s->kind, .subkind = s->subkind };

	desc.name = writer_name(s->w, s->text, s->len);
	if (s->const_count || s->arg_count) {
		desc.schema = writer_schema(s->w, &schema);
		if (!desc.schema)
			return 0;
	}
	return writer_desc(s->w, &desc);
}

/* Returns the bytes of a record's tail after its struct. */
static size_t room_for_text(const struct ring_record *r)
{
	return r->more ? r->more * RING_PLACE - sizeof(struct nvtx_tail) : 0;
}

static void read_record(struct sketch *s, const struct ring_record *r, const uint8_t *bytes)
{
	struct nvtx_tail tail = { 0 };

	if (r->more)
		memcpy(&tail, bytes, sizeof(tail));
	if (tail.text_len > room_for_text(r)) { /* the ring of a dead process may be damaged */
		tail.text_len = 0;
		tail.payloads = 0;
	}
	s->domain = nvtx_word_domain(r->word);
	s->is_nccl = s->domain && is_domain(s->domain, "NCCL");
	s->is_xla = s->domain && is_domain(s->domain, "TSL");
	s->kind = r->kind;
	s->subkind = r->subkind;
	if (r->name) {
		s->text = name_text(r->name, &s->len);
	} else {
		s->text = (const char *)bytes + sizeof(tail);
		s->len = tail.text_len;
		s->once = true;
	}
	take_word(s, r->word);
	take_torch(s);
	const char *word = s->is_nccl ? nvtx_text_collective(s->text, s->len) : NULL;

	if (word)
		put_text(s, "collective", ATTR_TEXT, word, strlen(word));
	take_xla(s);
	if (!r->name && !s->is_new)
		remember((const char *)bytes + sizeof(tail), tail.text_len);
	if (!r->more)
		return;
	take_value(s, &tail);
	if (tail.payloads)
		put_payloads(s, bytes + sizeof(tail) + tail.text_len,
			     room_for_text(r) - tail.text_len, tail.payloads);
}

static void put_row(struct writer *w, const struct ring_record *r, const struct sketch *s,
		    uint32_t desc)
{
	struct event e = { .begin_ns = tick_to_ns(r->begin),
			   .flags = r->flags & (uint8_t)~RING_NVTX };

	e.end_ns = tick_to_ns(r->end);
	probe_clip(w, &e);
	if (e.end_ns < e.begin_ns)
		e.end_ns = e.begin_ns;
	e.number = s && s->kind == KIND_RANGE ? s->number : 0;
	e.args = s && s->arg_count ? s->values : NULL;
	writer_put(w, &e, desc);
}

void nvtx_rows_put(struct writer *w, uint32_t track, uint32_t tid, const struct ring_record *r,
		   const uint8_t *tail)
{
	struct sketch s = { .w = w };
	uint32_t owner = 0, desc, *found = NULL;

	if (r->more)
		memcpy(&owner, tail + offsetof(struct nvtx_tail, tid), sizeof(owner));
	if (owner && owner != tid)
		track = probe_thread_track(w, owner, NULL);
	if (r->name && !r->more)
		found = desc_cache_find(&descs, w, track, r, r->word);
	if (found && *found) {
		put_row(w, r, NULL, *found);
		return;
	}
	buf_init(&s.name, 64 * 1024);
	read_record(&s, r, tail);
	desc = make_desc(&s, track);
	if (found && !s.once)
		*found = desc;
	put_row(w, r, &s, desc);
	buf_release(&s.name);
}
