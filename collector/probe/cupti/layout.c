/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/layout.h"

#include "collector/arena/arena.h"

enum { LAYOUTS = 192, FAMILIES = 32 };

static const uint8_t type_bytes[] = {
	[FIELD_U8] = 1,  [FIELD_U16] = 2, [FIELD_U32] = 4, [FIELD_U64] = 8,  [FIELD_I32] = 4,
	[FIELD_I64] = 8, [FIELD_F64] = 8, [FIELD_STR] = 8, [FIELD_JSON] = 8,
};

static struct cupti_layout *layouts; /* LAYOUTS of them; NULL: no memory */
static size_t layout_count;
static struct cupti_family families[FAMILIES];
static size_t family_count;
const struct cupti_family *cupti_families[CUPTI_KINDS][2];

/* ---- fields ---- */

static bool is_there(const struct field *f, uint16_t size, uint32_t api_version)
{
	return f->from_cupti && f->offset + type_bytes[f->type] <= size &&
	       (!f->since || api_version >= f->since);
}

struct cupti_number cupti_number_of(const struct field *f)
{
	struct cupti_number n = number_at(f->offset, type_bytes[f->type],
					  f->type == FIELD_I32 || f->type == FIELD_I64);

	n.is_time = f->unit == UNIT_NS;
	return n;
}

static void look_at(struct cupti_layout *p, const struct field *f)
{
	uint8_t bytes[LAYOUT_WORDS * 8] = { 0 };
	size_t end = (size_t)f->offset + type_bytes[f->type], i;
	uint64_t word;

	if (end > sizeof(bytes))
		return;
	memset(bytes + f->offset, 0xff, type_bytes[f->type]);
	for (i = f->offset / 8u; i <= (end - 1) / 8; i++) {
		memcpy(&word, bytes + 8 * i, sizeof(word));
		p->mask[i] |= word;
	}
	if ((end + 15) / 16 * 2 > p->words)
		p->words = (uint16_t)((end + 15) / 16 * 2);
}

static bool is_named(const struct field *f, const char *name)
{
	return strcmp(f->name, name) == 0;
}

/* A pid is ignored, because all records are of this process, which a table of the log has. */
static void add_track(struct cupti_layout *p, const struct field *f)
{
	if (is_named(f, "pid") && p->record->cupti != CUPTI_OVERHEAD)
		return;
	if (is_named(f, "device") || is_named(f, "pid")) /* an overhead record has either of them */
		p->device = cupti_number_of(f);
	else if (is_named(f, "context"))
		p->context = cupti_number_of(f);
	else if (is_named(f, "stream"))
		p->stream = cupti_number_of(f);
	else
		p->thread = cupti_number_of(f);
	look_at(p, f);
}

static void add_event_arg(struct cupti_layout *p, const struct field *f)
{
	if (p->arg_count == LAYOUT_ARGS)
		return;
	p->arg_fields[p->arg_count] = f;
	p->args[p->arg_count++] = f->from_cupti ? cupti_number_of(f) : (struct cupti_number){ 0 };
}

static void add_const(struct cupti_layout *p, const struct field *f)
{
	if (p->const_count == LAYOUT_CONSTS)
		return;
	p->const_fields[p->const_count++] = f;
	look_at(p, f);
}

static bool is_needed(const struct field *f, unsigned variant)
{
	if (is_named(f, "completed"))
		return variant & LAYOUT_COMPLETED;
	if (is_named(f, "queued") || is_named(f, "submitted"))
		return variant & LAYOUT_LATENCY;
	return true;
}

/* Returns whether a field gets a column in wide layouts.  Flags, enums and short fields, which a
 * kernel is compiled with, stay in the descriptor. */
static bool may_vary(const struct field *f)
{
	return type_bytes[f->type] >= 4 && f->type != FIELD_STR && f->unit != UNIT_ENUM &&
	       f->unit != UNIT_FLAG;
}

static void add_field(struct cupti_layout *p, const struct field *f, unsigned variant)
{
	switch (f->place) {
	case PLACE_BEGIN:
		p->begin = cupti_number_of(f);
		break;
	case PLACE_END:
		p->end = cupti_number_of(f);
		break;
	case PLACE_CORRELATION:
		p->correlation = cupti_number_of(f);
		break;
	case PLACE_VALUE:
		p->value = cupti_number_of(f);
		break;
	case PLACE_NAME:
		p->name_at = f->offset;
		look_at(p, f);
		break;
	case PLACE_SUBKIND:
		p->kind = cupti_number_of(f);
		look_at(p, f);
		break;
	case PLACE_TRACK:
		add_track(p, f);
		break;
	case PLACE_ARG:
		if (is_needed(f, variant))
			add_event_arg(p, f);
		else if (!is_named(f, "completed"))
			look_at(p, f); /* the descriptor says that it is 0 */
		break;
	default:
		if ((variant & LAYOUT_NODE && is_named(f, "graph_node")) ||
		    (variant & LAYOUT_WIDE && may_vary(f)))
			add_event_arg(p, f);
		else
			add_const(p, f);
		break;
	}
}

/* ---- layouts ---- */

static const struct cupti_layout *make_layout(const struct record *r, unsigned variant,
					      uint16_t size, const struct cupti_lib *lib,
					      uint32_t kinds_mask)
{
	const struct field *external = record_field(r, "external_id", 11);

	if (!layouts || layout_count == LAYOUTS)
		return NULL;
	struct cupti_layout *p = &layouts[layout_count];
	*p = (struct cupti_layout){ .record = r,
				    .index = (uint16_t)layout_count++,
				    .wanted = kinds_mask >> r->kind & 1,
				    .is_node = variant & LAYOUT_NODE };
	for (size_t i = 0; i < r->field_count; i++)
		if (is_there(&r->fields[i], size, lib->api_version))
			add_field(p, &r->fields[i], variant);
	if (r->kind == KIND_API) {
		p->flags = EVENT_RESULT;
		p->subkind = strcmp(r->word, "driver") == 0 ? API_DRIVER : API_RUNTIME;
	}
	if (variant & LAYOUT_EXTERNAL && external)
		add_event_arg(p, external);
	return p;
}

static uint16_t place_of(const struct record *r, const char *name, uint16_t size)
{
	const struct field *f = record_field(r, name, strlen(name));

	return f && f->from_cupti && f->offset + type_bytes[f->type] <= size ? f->offset : 0;
}

static void find_texts(struct cupti_family *family, const struct record *r, uint16_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < r->field_count && count < LAYOUT_TEXTS; i++) {
		const struct field *f = &r->fields[i];

		if (f->type == FIELD_STR && f->from_cupti && f->offset + 8u <= size)
			family->texts[count++] = f->offset;
	}
}

static void family_make(const struct record *r, const struct cupti_lib *lib, uint32_t kinds_mask)
{
	struct cupti_family *f = &families[family_count];
	const struct cupti_family **place = cupti_families[r->cupti];
	uint16_t size = lib->sizes[r->cupti];

	/* Records need a time, except CUDA events, which had none before 12.8. */
	if (family_count == FAMILIES || !size ||
	    (!is_there(&r->fields[0], size, lib->api_version) && r->cupti != CUPTI_CUDA_EVENT))
		return;
	*f = (struct cupti_family){ .size = size };
	f->completed_at = place_of(r, "completed", size);
	f->end_at = place_of(r, "end", size);
	f->node_at = place_of(r, "graph_node", size);
	f->queued_at = place_of(r, "queued", size);
	f->submitted_at = place_of(r, "submitted", size);
	f->correlation_at = place_of(r, "correlation", size);
	find_texts(f, r, size);
	f->variants =
		(uint8_t)((f->completed_at ? LAYOUT_COMPLETED : 0) |
			  (f->node_at ? LAYOUT_NODE : 0) | (f->queued_at ? LAYOUT_LATENCY : 0) |
			  (r->kind == KIND_API ? LAYOUT_EXTERNAL : 0) |
			  (f->node_at ? LAYOUT_WIDE : 0)); /* elsewhere cbids are names */
	f->is_plain = !(f->variants & ~(LAYOUT_EXTERNAL | LAYOUT_WIDE));
	for (unsigned variant = 0; variant < LAYOUT_VARIANTS; variant++) {
		unsigned same = variant & f->variants;

		f->layouts[variant] = same < variant
					      ? f->layouts[same]
					      : make_layout(r, variant, size, lib, kinds_mask);
		if (!f->layouts[variant])
			return;
	}
	if (place[0] && r->cupti == CUPTI_MEMORY2)
		place[1] = f;
	else
		place[0] = f;
	family_count++;
}

void cupti_layouts_open(const struct cupti_lib *lib, uint32_t kinds_mask)
{
	static void *_Atomic memory;
	size_t count;
	const struct record *r = records(&count);

	layouts = arena_once(&memory, LAYOUTS * sizeof(*layouts));
	layout_count = family_count = 0;
	memset(cupti_families, 0, sizeof(cupti_families));
	for (size_t i = 0; i < count; i++)
		if (r[i].cupti && r[i].cupti < CUPTI_KINDS)
			family_make(&r[i], lib, kinds_mask);
	/* Another tool may enable this kind, which serialises kernels and has the same record. */
	cupti_families[CUPTI_KERNEL_SERIAL][0] = cupti_families[CUPTI_KERNEL][0];
}

const uint16_t *cupti_family_texts(uint32_t number)
{
	static const uint16_t none[LAYOUT_TEXTS];

	const struct cupti_family *f = number < CUPTI_KINDS ? cupti_families[number][0] : NULL;

	return f ? f->texts : none;
}
