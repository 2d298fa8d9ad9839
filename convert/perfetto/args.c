/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/perfetto/args.h"

#include "convert/perfetto/wire.h"
#include "schemas/pb.h"
#include "schemas/records.h"

#include <stdlib.h>

enum { PLANS_CEILING = 4 << 20, TEXT_CEILING = 64 << 20, VALUE_MOST = 11 };

/* Fields of DebugAnnotation. */
enum {
	ARG_FIELD = 4, /* of TrackEvent */
	ARG_KEY = 1,
	ARG_UINT = 3,
	ARG_INT = 4,
	ARG_DOUBLE = 5,
	ARG_POINTER = 7,
	ARG_ARRAY = 12,
	ARG_TEXT = 17,
};

enum slot {
	SLOT_VARY,
	SLOT_CORRELATION,
	SLOT_NUMBER,
	SLOT_BYTES,
	SLOT_BANDWIDTH,
	SLOT_ADDRESS,
	SLOT_STEP,
	SLOT_DEVICE,
	SLOT_CONTEXT,
	SLOT_STREAM,
	SLOT_RARE, /* the first of those that few events have */
	SLOT_RESULT = SLOT_RARE,
	SLOT_BEGAN_EARLIER,
	SLOT_NEVER_ENDED,
};

#define K(kind) (1u << KIND_##kind)
#define GPU_KINDS (K(KERNEL) | K(MEMCPY) | K(MEMSET) | K(GRAPH))
#define ANY_KIND 0xffffffffu

/* Members of the event and of its track. */
static const struct member {
	unsigned kinds;
	uint8_t slot;
	bool is_lean;
	const char *key;
} members[] = {
	{K(MEMCPY) | K(MEMSET), SLOT_BYTES, true, "bytes"},
	{K(MEMCPY) | K(MEMSET), SLOT_BANDWIDTH, true, "GB/s"},
	{K(API), SLOT_RESULT, true, "result"},
	{ANY_KIND, SLOT_BEGAN_EARLIER, true, "began earlier"},
	{ANY_KIND, SLOT_NEVER_ENDED, true, "never ended"},
	{K(ALLOC) | K(FREE), SLOT_BYTES, true, "bytes"},
	{K(ALLOC) | K(FREE), SLOT_ADDRESS, true, "address"},
	{GPU_KINDS | K(SYNC) | K(API) | K(JIT) | K(OVERHEAD), SLOT_CORRELATION, false, "correlation"},
	{K(RANGE), SLOT_NUMBER, false, "Sequence number"},
	{K(STEP), SLOT_NUMBER, false, "step"},
	{K(MARK), SLOT_NUMBER, false, "id"},
	{K(RANGE) | K(API), SLOT_STEP, false, "step"},
	{GPU_KINDS | K(SYNC), SLOT_DEVICE, false, "device"},
	{GPU_KINDS | K(SYNC), SLOT_CONTEXT, false, "context"},
	{GPU_KINDS | K(SYNC), SLOT_STREAM, false, "stream"},
};
enum { MEMBER_COUNT = sizeof(members) / sizeof(*members) };

enum status perfetto_args_init(struct perfetto_args *a, struct perfetto_file *file, bool all,
			       struct error *err)
{
	*a = (struct perfetto_args){.file = file, .all = all};
	a->shapes = trace_count(file->trace, TRACE_SHAPES) + 1;
	a->by_shape = calloc(a->shapes, sizeof(*a->by_shape));
	arena_init(&a->arena, PLANS_CEILING);
	buf_init(&a->text, TEXT_CEILING);
	return a->by_shape ? ST_OK : fail(err, ST_MEMORY, NOWHERE, "no memory for arguments");
}

void perfetto_args_release(struct perfetto_args *a)
{
	arena_release(&a->arena);
	buf_release(&a->text);
	free(a->by_shape);
	*a = (struct perfetto_args){0};
}

/* ---- values ---- */

static void put_number(struct buf *b, uint8_t type, uint64_t bits)
{
	double f64;

	switch (type) {
	case ATTR_I64:
		pb_put_u64(b, ARG_INT, bits);
		break;
	case ATTR_F64:
		memcpy(&f64, &bits, sizeof(f64));
		pb_put_f64(b, ARG_DOUBLE, f64);
		break;
	case ATTR_TEXT:
	case ATTR_JSON:
		pb_put_u64(b, ARG_TEXT, (uint32_t)bits);
		break;
	default:
		pb_put_u64(b, ARG_UINT, bits);
	}
}

static enum status put_fixed(struct perfetto_args *a, uint64_t key, const struct attr *attr,
			     struct error *err)
{
	size_t begin;

	if (attr->type == ATTR_TEXT || attr->type == ATTR_JSON) {
		if (!attr->bits || attr->bits > a->file->names)
			return ST_OK; /* an empty text */
		TRY(perfetto_need_name(a->file, SPACE_TEXT, (uint32_t)attr->bits, err));
	}
	begin = pb_begin(&a->text, ARG_FIELD);
	pb_put_u64(&a->text, ARG_KEY, key);
	put_number(&a->text, attr->type, attr->bits);
	pb_end(&a->text, begin);
	return ST_OK;
}

/* ---- keys ---- */

/* Kineto's word for a field of ours, else as it is: a word of ours or a name of the trace. */
static const char *spelling(const struct perfetto_args *a, unsigned kind, uint32_t key)
{
	size_t len;
	const char *text = trace_text(a->file->trace, key, &len);
	const struct field *f = kind_field(kind, text, len);

	return f && f->arg && f->arg[0] != '+' ? f->arg : NULL;
}

static enum status find_key(struct perfetto_args *a, unsigned kind, uint32_t key, uint64_t *out,
			    struct error *err)
{
	const char *word = spelling(a, kind, key);

	if (word)
		return perfetto_word(a->file, SPACE_KEY, word, out, err);
	*out = key;
	return perfetto_need_name(a->file, SPACE_KEY, key, err);
}

/* "grid[0]" and its like: the place in the brackets; -1: no array. */
static int array_place(const char *word)
{
	size_t len = word ? strlen(word) : 0;

	return len > 3 && word[len - 1] == ']' && word[len - 3] == '[' ? word[len - 2] - '0' : -1;
}

/* ---- plans ---- */

/* `grid` from its three fields, when `first` is the one of place 0. */
static enum status put_array(struct perfetto_args *a, const struct event *e, const char *first,
			     struct error *err)
{
	static const char *const words[] = {"grid", "block"};
	const struct shape *s = trace_get_shape(a->file->trace, e->shape);
	size_t begin, stem = strlen(first) - 3;
	uint64_t key = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == stem && memcmp(words[i], first, stem) == 0)
			TRY(perfetto_word(a->file, SPACE_KEY, words[i], &key, err));
	if (!key)
		return ST_OK;
	begin = pb_begin(&a->text, ARG_FIELD);
	pb_put_u64(&a->text, ARG_KEY, key);
	for (int place = 0; place < 3; place++) {
		for (uint32_t i = 0; i < s->fixed_count; i++) {
			const char *word = spelling(a, e->kind, s->fixed[i].key);
			size_t value;

			if (array_place(word) != place || strncmp(word, first, stem + 1) != 0 ||
			    s->fixed[i].type > ATTR_F64)
				continue;
			value = pb_begin(&a->text, ARG_ARRAY);
			put_number(&a->text, s->fixed[i].type, s->fixed[i].bits);
			pb_end(&a->text, value);
		}
	}
	pb_end(&a->text, begin);
	return ST_OK;
}

/* All that is the same for each event of the shape. */
static enum status put_shape(struct perfetto_args *a, const struct event *e, struct error *err)
{
	const struct shape *s = trace_get_shape(a->file->trace, e->shape);

	for (uint32_t i = 0; i < s->fixed_count; i++) {
		const char *text = trace_text(a->file->trace, s->fixed[i].key, NULL);
		const char *word = spelling(a, e->kind, s->fixed[i].key);
		uint64_t key;

		if (text[0] == '.')
			continue;
		if (array_place(word) >= 0) {
			if (array_place(word) == 0)
				TRY(put_array(a, e, word, err));
			continue;
		}
		TRY(find_key(a, e->kind, s->fixed[i].key, &key, err));
		TRY(put_fixed(a, key, &s->fixed[i], err));
	}
	return ST_OK;
}

static void add_hole(struct perfetto_plan *p, enum slot slot, uint64_t key)
{
	struct perfetto_hole *h = &p->holes[p->hole_count + p->rare_count];
	uint32_t most;

	h->slot = (uint8_t)slot;
	h->head[0] = ARG_KEY << 3;
	h->len = (uint8_t)(1 + put_varint(h->head + 1, key));
	most = 2u + h->len + VALUE_MOST;
	p->rare_most += most;
	if (slot >= SLOT_RARE) {
		p->rare_count++;
		return;
	}
	p->hole_count++;
	p->most += most;
}

static enum status add_members(struct perfetto_args *a, unsigned kind, bool rare,
			       struct perfetto_plan *p, struct error *err)
{
	uint64_t key;

	for (size_t i = 0; i < MEMBER_COUNT; i++) {
		const struct member *m = &members[i];

		if (!(m->kinds >> kind & 1) || (!m->is_lean && !a->all) ||
		    (m->slot >= SLOT_RARE) != rare)
			continue;
		TRY(perfetto_word(a->file, SPACE_KEY, m->key, &key, err));
		add_hole(p, m->slot, key);
	}
	return ST_OK;
}

static enum status add_holes(struct perfetto_args *a, const struct event *e,
			     struct perfetto_plan *p, struct error *err)
{
	const struct shape *s = trace_get_shape(a->file->trace, e->shape);
	unsigned kind = e->kind < KIND_END ? e->kind : KIND_UNKNOWN;
	uint64_t key;

	TRY(add_members(a, kind, false, p, err));
	bool all = a->all || (e->flags & EVENT_STANDS_FOR); /* what it says, it says there */

	for (uint32_t i = 0; all && i < s->vary_count; i++) {
		TRY(find_key(a, kind, s->vary[i].key, &key, err));
		add_hole(p, SLOT_VARY, key);
		p->holes[p->hole_count - 1].type = s->vary[i].type;
		p->holes[p->hole_count - 1].vary = (uint16_t)i;
		p->has_text |= s->vary[i].type == ATTR_TEXT || s->vary[i].type == ATTR_JSON;
	}
	return add_members(a, kind, true, p, err);
}

/* What an event is called that was recorded without a name; NULL: by its number. */
static const char *made_name(const struct event *e)
{
	static const char *const syncs[] = {"Wait", "Event Sync", "Stream Wait Event",
					    "Stream Sync", "Context Sync"};
	static const char *const copies[] = {"Memcpy", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
					     "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD",
					     "Memcpy DtoA", "Memcpy DtoD", "Memcpy HtoH",
					     "Memcpy PtoP"};

	switch (e->kind) {
	case KIND_MEMCPY:
		return copies[e->subkind < sizeof(copies) / sizeof(*copies) ? e->subkind : 0];
	case KIND_SYNC:
		return syncs[e->subkind < sizeof(syncs) / sizeof(*syncs) ? e->subkind : 0];
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

static const char *category_word(const struct event *e)
{
	if (e->kind == KIND_RANGE)
		return range_class_word(e->subkind);
	if (e->kind == KIND_API && e->subkind == API_DRIVER)
		return "driver";
	return kind_word(e->kind)[0] ? kind_word(e->kind) : "unknown";
}

/* The category of an import, where it was another than ours, else our own. */
static enum status find_category(struct perfetto_args *a, const struct event *e, uint64_t *out,
				 struct error *err)
{
	const struct attr *own = trace_find_attr(a->file->trace, e->shape, ".cat");

	if (!own || own->type != ATTR_TEXT || !own->bits || own->bits > a->file->names)
		return perfetto_word(a->file, SPACE_CATEGORY, category_word(e), out, err);
	*out = own->bits;
	return perfetto_need_name(a->file, SPACE_CATEGORY, (uint32_t)own->bits, err);
}

static enum status fill_plan(struct perfetto_args *a, const struct event *e,
			     struct perfetto_plan *p, struct error *err)
{
	const char *made = made_name(e);

	TRY(find_category(a, e, &p->category, err));
	if (made)
		TRY(perfetto_word(a->file, SPACE_NAME, made, &p->name, err));
	TRY(add_holes(a, e, p, err));
	buf_clear(&a->text);
	if (a->all)
		TRY(put_shape(a, e, err));
	TRY(buf_status(&a->text, err));
	p->fixed_len = (uint32_t)a->text.len;
	p->most += p->fixed_len;
	p->rare_most += p->fixed_len;
	return ST_OK;
}

/* From the arena; NULL: it is full. */
static struct perfetto_plan *take_plan(struct perfetto_args *a, const struct event *e)
{
	const struct shape *s = trace_get_shape(a->file->trace, e->shape);
	struct perfetto_plan *p = arena_take(&a->arena, sizeof(*p), 0);
	size_t holes = MEMBER_COUNT + s->vary_count;

	if (!p)
		return NULL;
	p->kind = e->kind;
	p->subkind = e->subkind;
	p->holes = arena_take(&a->arena, holes * sizeof(*p->holes), 0);
	return p->holes ? p : NULL;
}

static enum status make(struct perfetto_args *a, const struct event *e,
			struct perfetto_plan **out, struct error *err)
{
	struct perfetto_plan *p = take_plan(a, e);

	*out = NULL;
	if (!p)
		return ST_OK;
	TRY(fill_plan(a, e, p, err));
	p->fixed = (const uint8_t *)arena_text(&a->arena, buf_text(&a->text), p->fixed_len);
	if (p->fixed)
		*out = p;
	return ST_OK;
}

static void forget_plans(struct perfetto_args *a, size_t ceiling)
{
	arena_release(&a->arena);
	arena_init(&a->arena, ceiling);
	memset(a->by_shape, 0, a->shapes * sizeof(*a->by_shape));
	a->forgotten++;
}

static enum status need_texts(struct perfetto_args *a, const struct event *e,
			      const struct perfetto_plan *p, struct error *err)
{
	for (uint32_t i = 0; e->vary && i < p->hole_count; i++) {
		const struct perfetto_hole *h = &p->holes[i];
		uint64_t name = h->slot == SLOT_VARY ? e->vary[h->vary] : 0;

		if (name && name <= a->file->names && (h->type == ATTR_TEXT || h->type == ATTR_JSON))
			TRY(perfetto_need_name(a->file, SPACE_TEXT, (uint32_t)name, err));
	}
	return ST_OK;
}

enum status perfetto_plan_make(struct perfetto_args *a, const struct event *e,
			       const struct perfetto_plan **out, struct error *err)
{
	size_t at = e->shape < a->shapes ? e->shape : 0;
	struct perfetto_plan *p;

	if (*out) /* found, with texts that vary */
		return need_texts(a, e, *out, err);
	TRY(make(a, e, &p, err));
	if (!p) {
		forget_plans(a, TEXT_CEILING); /* one that is too large for the usual room */
		TRY(make(a, e, &p, err));
		a->arena.ceiling = PLANS_CEILING > a->arena.used ? PLANS_CEILING : a->arena.used;
	}
	if (!p)
		return fail(err, ST_CEILING, NOWHERE,
			    "one event's arguments need more memory than allowed");
	p->next = a->by_shape[at];
	a->by_shape[at] = p;
	*out = p;
	return p->has_text ? need_texts(a, e, p, err) : ST_OK;
}

/* ---- events ---- */

static uint8_t *put_u64_field(uint8_t *p, unsigned field, uint64_t v)
{
	*p++ = (uint8_t)(field << 3);
	return p + put_varint(p, v);
}

static uint8_t *put_double(uint8_t *p, double v)
{
	*p++ = ARG_DOUBLE << 3 | PB_FIXED64;
	put_f64(p, v);
	return p + 8;
}

static uint8_t *put_vary(uint8_t *p, uint8_t type, uint64_t bits)
{
	switch (type) {
	case ATTR_I64:
		return put_u64_field(p, ARG_INT, bits);
	case ATTR_F64:
		return put_double(p, get_f64((const uint8_t *)&bits));
	case ATTR_TEXT:
	case ATTR_JSON:
		*p++ = (ARG_TEXT << 3 & 0x7f) | 0x80;
		*p++ = ARG_TEXT >> 4;
		return p + put_varint(p, (uint32_t)bits);
	default:
		return put_u64_field(p, ARG_UINT, bits);
	}
}

/* What was not there is not written; the end of the value else. */
static uint8_t *put_slot(uint8_t *p, const struct perfetto_hole *h, const struct event *e,
			 const struct track *k)
{
	uint64_t v = 0;
	bool is_there = true;

	switch (h->slot) {
	case SLOT_VARY:
		if (!e->vary || (h->type >= ATTR_TEXT && !e->vary[h->vary]))
			return NULL;
		return put_vary(p, h->type, e->vary[h->vary]);
	case SLOT_BANDWIDTH:
		if (e->end_ns == e->begin_ns || !e->bytes)
			return NULL;
		return put_double(p, (double)e->bytes / (double)(e->end_ns - e->begin_ns));
	case SLOT_ADDRESS:
		return put_u64_field(p, ARG_POINTER, e->address);
	case SLOT_RESULT:
		if (!(e->flags & EVENT_RESULT) || !e->result)
			return NULL;
		return put_u64_field(p, ARG_INT, (uint64_t)e->result);
	case SLOT_CORRELATION:
	case SLOT_NUMBER:
		v = e->correlation;
		is_there = v || e->kind == KIND_STEP;
		break;
	case SLOT_BYTES:
		v = e->bytes;
		break;
	case SLOT_STEP:
		v = e->step - 1;
		is_there = e->step && !(e->step & STEP_GAP);
		break;
	case SLOT_DEVICE:
		v = k->device;
		is_there = v != NO_ID;
		break;
	case SLOT_CONTEXT:
		v = k->context;
		is_there = v != NO_ID;
		break;
	case SLOT_STREAM:
		v = k->id;
		is_there = k->home == HOME_STREAM;
		break;
	case SLOT_BEGAN_EARLIER:
		v = 1;
		is_there = e->flags & EVENT_BEGAN_EARLIER;
		break;
	case SLOT_NEVER_ENDED:
		v = 1;
		is_there = e->flags & EVENT_NEVER_ENDED;
		break;
	}
	return is_there ? put_u64_field(p, ARG_UINT, v) : NULL;
}

uint8_t *perfetto_put_args(uint8_t *p, const struct perfetto_plan *plan, const struct event *e,
			   const struct track *k)
{
	uint32_t count = plan->hole_count + (perfetto_is_rare(e) ? plan->rare_count : 0);

	for (uint32_t i = 0; i < count; i++) {
		const struct perfetto_hole *h = &plan->holes[i];
		uint8_t *end;

		memcpy(p + 2, h->head, sizeof(h->head));
		end = put_slot(p + 2 + h->len, h, e, k);
		if (!end)
			continue;
		p[0] = WIRE_ARG;
		p[1] = (uint8_t)(end - p - 2);
		p = end;
	}
	memcpy(p, plan->fixed, plan->fixed_len);
	return p + plan->fixed_len;
}
