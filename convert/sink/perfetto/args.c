/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/perfetto/internal.h"

#include "convert/sink/sink.h"
#include "schemas/model/records.h"

enum { VALUE_MOST = 11 };

/* Fields of DebugAnnotation. */
enum {
	ARG_FIELD = 4, /* field of TrackEvent */
	ARG_KEY = 1,
	ARG_UINT = 3,
	ARG_INT = 4,
	ARG_DOUBLE = 5,
	ARG_POINTER = 7,
	ARG_ARRAY = 12,
	ARG_TEXT = 17,
};

#define K(kind)   (1u << KIND_##kind)
#define GPU_KINDS (K(KERNEL) | K(MEMCPY) | K(MEMSET) | K(GRAPH))
#define ANY_KIND  0xffffffffu

/* Arguments made from members of the event and its track. */
static const struct member {
	unsigned kinds;
	uint8_t source, field;
	bool is_lean, is_rare;
	const char *key;
} members[] = {
	{ K(MEMCPY) | K(MEMSET), ARG_BYTES, ARG_UINT, true, false, "bytes" },
	{ K(MEMCPY) | K(MEMSET), ARG_BANDWIDTH, ARG_DOUBLE, true, false, "GB/s" },
	{ K(API), ARG_RESULT, ARG_INT, true, true, "result" },
	{ ANY_KIND, ARG_BEGAN_EARLIER, ARG_UINT, true, true, "began earlier" },
	{ ANY_KIND, ARG_NEVER_ENDED, ARG_UINT, true, true, "never ended" },
	{ K(ALLOC) | K(FREE), ARG_BYTES, ARG_UINT, true, false, "bytes" },
	{ K(ALLOC) | K(FREE), ARG_ADDRESS, ARG_POINTER, true, false, "address" },
	{ K(ALLOC) | K(FREE), ARG_ALLOCATOR_TYPE, ARG_UINT, false, false, "Device Type" },
	{ K(ALLOC) | K(FREE), ARG_ALLOCATOR_THREAD, ARG_UINT, false, false, "thread" },
	{ GPU_KINDS | K(SYNC) | K(API) | K(JIT) | K(OVERHEAD), ARG_CORRELATION, ARG_UINT, false,
	  false, "correlation" },
	{ K(RANGE), ARG_CORRELATION, ARG_UINT, false, false, "Sequence number" },
	{ K(STEP), ARG_CORRELATION, ARG_UINT, false, false, "step" },
	{ K(MARK), ARG_CORRELATION, ARG_UINT, false, false, "id" },
	{ K(RANGE) | K(API), ARG_STEP, ARG_UINT, false, false, "step" },
	{ GPU_KINDS | K(SYNC), ARG_DEVICE, ARG_UINT, false, false, "device" },
	{ GPU_KINDS | K(SYNC), ARG_CONTEXT, ARG_UINT, false, false, "context" },
	{ GPU_KINDS | K(SYNC), ARG_STREAM, ARG_UINT, false, false, "stream" },
};
enum { MEMBER_COUNT = sizeof(members) / sizeof(*members) };

/* ---- making a template ---- */

static uint8_t field_of(uint8_t type)
{
	static const uint8_t fields[] = { [ATTR_U64] = ARG_UINT,
					  [ATTR_I64] = ARG_INT,
					  [ATTR_F64] = ARG_DOUBLE,
					  [ATTR_TEXT] = ARG_TEXT,
					  [ATTR_JSON] = ARG_TEXT };

	return type < sizeof(fields) ? fields[type] : ARG_UINT;
}

static void put_value(struct buf *b, uint8_t type, uint64_t bits)
{
	uint8_t field = field_of(type);
	double f64;

	memcpy(&f64, &bits, sizeof(f64));
	if (field == ARG_DOUBLE)
		pb_put_f64(b, field, f64);
	else
		pb_put_u64(b, field, field == ARG_TEXT ? (uint32_t)bits : bits);
}

/* Finds the key of an argument: Kineto's word for the field if it has one, otherwise the name. */
static enum status find_key(struct perfetto_args *a, const struct arg *arg, uint64_t *key,
			    struct error *err)
{
	if (arg->is_field && arg->word && arg->word[0] != '+')
		return perfetto_word(a->file, SPACE_KEY, arg->word, key, err);
	*key = arg->name_id;
	return perfetto_need_name(a->file, SPACE_KEY, arg->name_id, err);
}

static void add_part(struct perfetto_args *a, struct perfetto_template *t, uint64_t key,
		     struct placeholder at, bool is_rare)
{
	uint32_t most;

	pb_put_u64(&a->templates.text, ARG_KEY, key);
	most = 2 + (uint32_t)a->templates.text.len + VALUE_MOST;
	t->rare_most += most;
	t->most += is_rare ? 0 : most;
	t->common_count += !is_rare;
	template_add(&a->templates, &t->base, at);
}

static enum status add_members(struct perfetto_args *a, unsigned kind, bool is_rare,
			       struct perfetto_template *t, struct error *err)
{
	uint64_t key;

	for (const struct member *m = members; m < members + MEMBER_COUNT; m++) {
		if (!(m->kinds >> kind & 1) || (!m->is_lean && !a->all) || m->is_rare != is_rare)
			continue;
		TRY(perfetto_word(a->file, SPACE_KEY, m->key, &key, err));
		add_part(a, t, key, (struct placeholder){ m->source, m->field, 0 }, is_rare);
	}
	return ST_OK;
}

/* Appends an array such as `grid`, made from its three fields; args[first] may be any of them. */
static enum status put_array(struct perfetto_args *a, size_t first, struct error *err)
{
	static const char *const words[] = { "grid", "block" };
	const struct arg *items[ARG_PLACES], *arg = &a->templates.list.args[first];
	size_t count = arg_array(&a->templates.list, first, items), begin, value;
	struct buf *b = &a->templates.text;
	uint64_t key = 0;

	for (size_t i = 0; count && i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == arg->word_len - 3 &&
		    memcmp(words[i], arg->word, arg->word_len - 3) == 0)
			TRY(perfetto_word(a->file, SPACE_KEY, words[i], &key, err));
	if (!key)
		return ST_OK;
	begin = pb_begin(b, ARG_FIELD);
	pb_put_u64(b, ARG_KEY, key);
	for (size_t i = 0; i < count; i++) {
		if (items[i]->at.type > ATTR_F64)
			continue;
		value = pb_begin(b, ARG_ARRAY);
		put_value(b, items[i]->at.type, items[i]->bits);
		pb_end(b, value);
	}
	pb_end(b, begin);
	return ST_OK;
}

/* Appends all arguments that are the same for each event of the schema. */
static enum status put_consts(struct perfetto_args *a, struct error *err)
{
	const struct arg_list *list = &a->templates.list;
	struct buf *b = &a->templates.text;

	for (size_t i = 0; i < list->count; i++) {
		const struct arg *arg = &list->args[i];
		uint64_t key;
		size_t begin;

		if (arg->at.source != ARG_CONST || arg->name[0] == '.')
			continue;
		if (arg->is_field && arg->place >= 0) {
			TRY(put_array(a, i, err));
			continue;
		}
		TRY(find_key(a, arg, &key, err));
		if (arg->at.type == ATTR_TEXT || arg->at.type == ATTR_JSON) {
			if (!arg->bits || arg->bits > a->file->names)
				continue; /* an empty text */
			TRY(perfetto_need_name(a->file, SPACE_TEXT, (uint32_t)arg->bits, err));
		}
		begin = pb_begin(b, ARG_FIELD);
		pb_put_u64(b, ARG_KEY, key);
		put_value(b, arg->at.type, arg->bits);
		pb_end(b, begin);
	}
	return buf_status(b, err);
}

/* Returns a name for an event that was recorded without one; NULL: it is made from the event's
 * number. */
static const char *made_name(const struct event *e)
{
	switch (e->kind) {
	case KIND_MEMCPY:
		return copy_kind_name(e->subkind);
	case KIND_SYNC:
		return sync_kind_word(e->subkind)[0] ? sync_kind_word(e->subkind) : "Wait";
	case KIND_MEMSET:
		return "Memset";
	case KIND_GRAPH:
		return "CUDA graph";
	case KIND_STEP:
		return NULL;
	default:
		return kind_word(e->kind)[0] ? kind_word(e->kind) : "unknown";
	}
}

/* Finds the category: that of an imported event if it differs from ours, otherwise ours. */
static enum status find_category(struct perfetto_args *a, const struct event *e, uint64_t *out,
				 struct error *err)
{
	const struct attr *own = trace_find_attr(a->file->trace, e->schema, ".cat");
	const char *word = sink_kind_word(e);

	if (own && own->type == ATTR_TEXT && own->bits && own->bits <= a->file->names) {
		*out = own->bits;
		return perfetto_need_name(a->file, SPACE_CATEGORY, (uint32_t)own->bits, err);
	}
	return perfetto_word(a->file, SPACE_CATEGORY, word[0] ? word : "unknown", out, err);
}

static enum status make(void *self, const struct event *e, struct template *p, struct error *err)
{
	struct perfetto_args *a = self;
	const struct arg_list *list = &a->templates.list;
	unsigned kind = e->kind < KIND_END ? e->kind : KIND_UNKNOWN;
	const char *made = made_name(e);
	struct perfetto_template *t = (struct perfetto_template *)p;
	uint64_t key;

	TRY(find_category(a, e, &key, err));
	t->category_len = (uint8_t)(wire_put_category(t->category, key) - t->category);
	if (made)
		TRY(perfetto_word(a->file, SPACE_NAME, made, &t->name, err));
	TRY(add_members(a, kind, false, t, err));
	for (size_t i = 0; i < list->count; i++) {
		struct placeholder at = list->args[i].at;

		if (at.source != ARG_EVENT || list->args[i].name[0] == '.')
			continue;
		at.type = field_of(at.type);
		TRY(find_key(a, &list->args[i], &key, err));
		add_part(a, t, key, at, false);
		t->has_text |= at.type == ARG_TEXT;
	}
	TRY(add_members(a, kind, true, t, err));
	if (a->all)
		TRY(put_consts(a, err));
	t->most += (uint32_t)a->templates.text.len;
	t->rare_most += (uint32_t)a->templates.text.len;
	template_add(&a->templates, p, (struct placeholder){ .source = ARG_CONST });
	return ST_OK;
}

enum status perfetto_args_init(struct perfetto_args *a, struct perfetto_file *file, bool all,
			       struct error *err)
{
	static const struct template_type type = { .size = sizeof(struct perfetto_template),
						   .ceiling = 4 << 20,
						   .more_parts = MEMBER_COUNT + 1,
						   .make = make };

	*a = (struct perfetto_args){ .file = file, .all = all };
	TRY(templates_init(&a->templates, &type, a, file->trace, err));
	a->templates.is_lean = !all; /* merged events have arguments even then */
	return ST_OK;
}

enum status perfetto_args_make(struct perfetto_args *a, const struct event *e,
			       const struct perfetto_template **out, struct error *err)
{
	struct template *p = NULL;

	if (!*out) {
		TRY(template_make(&a->templates, e, &p, err));
		*out = (struct perfetto_template *)p;
	}
	for (uint32_t i = 0; (*out)->has_text && e->args && i < (*out)->common_count; i++) {
		struct placeholder at = (*out)->base.parts[i].at;
		uint64_t name = at.source == ARG_EVENT ? e->args[at.index] : 0;

		if (at.type == ARG_TEXT && name && name <= a->file->names)
			TRY(perfetto_need_name(a->file, SPACE_TEXT, (uint32_t)name, err));
	}
	return ST_OK;
}

/* ---- writing ---- */

/* Appends the value of an argument that is a text in the file. */
static uint8_t *put_text(uint8_t *p, uint64_t text)
{
	*p++ = (ARG_TEXT << 3 & 0x7f) | 0x80;
	*p++ = ARG_TEXT >> 4;
	return p + put_varint(p, text);
}

uint8_t *perfetto_put_text_arg(uint8_t *p, uint64_t key, uint64_t text)
{
	uint8_t *at = p + 2;

	*at++ = ARG_KEY << 3;
	at = put_text(at + put_varint(at, key), text);
	p[0] = WIRE_ARG;
	p[1] = (uint8_t)(at - p - 2);
	return at;
}

uint8_t *perfetto_put_args(uint8_t *p, const struct perfetto_template *t, const struct event *e,
			   const struct track *k)
{
	uint32_t last = t->base.part_count - 1,
		 count = perfetto_is_rare(e) ? last : t->common_count;
	const struct template_part *consts = &t->base.parts[last];

	for (uint32_t i = 0; i < count; i++) {
		const struct template_part *part = &t->base.parts[i];
		uint8_t *end = p + 2 + part->len;
		uint64_t bits;

		if (!arg_bits(part->at, e, k, &bits))
			continue;
		memcpy(p + 2, part->bytes, TEMPLATE_SLACK); /* a key is shorter */
		switch (part->at.type) {
		case ARG_DOUBLE:
			if (part->at.source == ARG_BANDWIDTH && !e->bytes)
				continue;
			*end++ = ARG_DOUBLE << 3 | PB_FIXED64;
			put_u64(end, bits);
			end += 8;
			break;
		case ARG_TEXT:
			if (!bits)
				continue;
			end = put_text(end, (uint32_t)bits);
			break;
		default:
			*end++ = (uint8_t)(part->at.type << 3);
			end += put_varint(end, bits);
		}
		p[0] = WIRE_ARG;
		p[1] = (uint8_t)(end - p - 2);
		p = end;
	}
	memcpy(p, consts->bytes, consts->len);
	return p + consts->len;
}
