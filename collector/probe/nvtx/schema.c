/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/schema.h"

#include "collector/session/texts.h"
#include "collector/probe/nvtx/names.h"

#include <stdatomic.h>

enum {
	SCHEMAS = 1024,
	ENTRIES = 8192,
	WORDS = 8192,
	ENTRIES_OF_ONE = 128, /* further entries are ignored */
	LENGTH_MAX = 1 << 16, /* of an array or a text */
	ALIGN_MAX = 64,
};

static struct nvtx_schema_row schemas[SCHEMAS];
static struct nvtx_entry_row entries[ENTRIES];
static struct nvtx_word_row words[WORDS];
static _Atomic uint32_t schema_count;
static uint32_t entry_count, word_count; /* under the lock of nvtx/names.h */
static _Atomic uint64_t lost;

static const struct {
	uint8_t form, size, align;
} types[NVTX_TYPE_END] = {
#define X(name, number, form, type) [number] = { NVTX_FORM_##form, sizeof(type), _Alignof(type) },
	NVTX_TYPE_LIST(X)
#undef X
};

uint64_t nvtx_payload_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}

void nvtx_payload_lose(void)
{
	atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
}

/* ---- look up ---- */

const struct nvtx_schema_row *nvtx_schema_find(uint32_t domain, uint64_t id)
{
	uint32_t count = atomic_load_explicit(&schema_count, memory_order_acquire), i;

	if (id >= NVTX_SCHEMA_DYNAMIC)
		return id - NVTX_SCHEMA_DYNAMIC < count ? &schemas[id - NVTX_SCHEMA_DYNAMIC] : NULL;
	for (i = count; i > 0; i--)
		if (schemas[i - 1].id == id && schemas[i - 1].domain == domain)
			return &schemas[i - 1];
	return NULL;
}

const struct nvtx_entry_row *nvtx_schema_entries(const struct nvtx_schema_row *row)
{
	return &entries[row->first];
}

const struct nvtx_word_row *nvtx_schema_words(const struct nvtx_schema_row *row)
{
	return &words[row->first];
}

uint32_t nvtx_schema_name(uint32_t domain, uint64_t schema)
{
	const struct nvtx_schema_row *row = nvtx_schema_find(domain, schema);

	return row ? row->name : 0;
}

struct nvtx_unit nvtx_unit_find(uint32_t domain, uint64_t type)
{
	if (type < NVTX_TYPE_END)
		return (struct nvtx_unit){ .form = types[type].form,
					   .size = types[type].size,
					   .is_char = type == NVTX_TYPE_CHAR,
					   .align = types[type].align };
	const struct nvtx_schema_row *row = nvtx_schema_find(domain, type);
	if (!row)
		return (struct nvtx_unit){ .form = NVTX_FORM_NONE };
	return (struct nvtx_unit){
		.form = row->form, .size = row->size, .align = row->align, .row = row
	};
}

bool nvtx_entry_points(const struct nvtx_entry_row *e, const struct nvtx_unit *unit)
{
	if (unit->form != NVTX_FORM_TEXT || unit->size != 1)
		return false;
	return e->flags & NVTX_ENTRY_POINTER ||
	       (!(e->flags & NVTX_ENTRY_ARRAY) && !e->array_length);
}

/* ---- schemas ---- */

static uint32_t align_up(uint32_t at, uint32_t align)
{
	return align > 1 ? (at + align - 1) / align * align : at;
}

/* Bytes of an entry in a static schema. */
static uint32_t entry_size(const struct nvtx_entry_row *e, const struct nvtx_unit *unit)
{
	if (e->flags & (NVTX_ENTRY_POINTER | NVTX_ENTRY_FROM_BASE | NVTX_ENTRY_FROM_HERE) ||
	    nvtx_entry_points(e, unit))
		return sizeof(void *);
	if ((e->flags & NVTX_ENTRY_ARRAY) == NVTX_ENTRY_ARRAY_FIXED ||
	    (unit->form == NVTX_FORM_TEXT && !(e->flags & NVTX_ENTRY_ARRAY)))
		return unit->size * (uint32_t)e->array_length;
	return unit->size;
}

/* Finds the offset of each entry by the rules of C, and the size and alignment of the struct. */
static void lay_out(struct nvtx_schema_row *row, struct nvtx_entry_row *e, uint32_t pack)
{
	uint32_t end = 0;

	row->align = 1;
	for (uint32_t i = 0; i < row->count; i++, e++) {
		struct nvtx_unit unit = nvtx_unit_find(row->domain, e->type);
		row->points |= nvtx_entry_points(e, &unit);
		uint32_t align = e->flags & NVTX_ENTRY_POINTER || nvtx_entry_points(e, &unit)
					 ? sizeof(void *)
					 : unit.align;
		if (pack && pack < align)
			align = pack;
		if (i && !e->offset)
			e->offset = align_up(end, align);
		end = e->offset + entry_size(e, &unit);
		if (align > row->align)
			row->align = (uint16_t)align;
	}
	if (!row->size)
		row->size = align_up(end, row->align);
}

static bool same_entries(const struct nvtx_schema_row *row, const struct nvtx_entry_row *e)
{
	const struct nvtx_entry_row *there = nvtx_schema_entries(row);

	for (uint32_t i = 0; i < row->count; i++)
		if (there[i].type != e[i].type || there[i].array_length != e[i].array_length ||
		    there[i].flags != e[i].flags || there[i].name != e[i].name ||
		    there[i].offset != e[i].offset)
			return false;
	return true;
}

static bool is_same(const struct nvtx_schema_row *there, const struct nvtx_schema_row *row,
		    const struct nvtx_entry_row *e)
{
	return there->domain == row->domain && there->form == row->form &&
	       there->name == row->name && there->count == row->count && there->size == row->size &&
	       there->is_dynamic == row->is_dynamic && same_entries(there, e);
}

/* One and the same schema is registered by each copy of a library. */
static const struct nvtx_schema_row *find_same(const struct nvtx_schema_row *row,
					       const struct nvtx_entry_row *e)
{
	if (row->id) { /* of several with one id the last one counts */
		const struct nvtx_schema_row *there = nvtx_schema_find(row->domain, row->id);
		return there && is_same(there, row, e) ? there : NULL;
	}
	for (uint32_t i = schema_count; i > 0; i--)
		if (schemas[i - 1].id >= NVTX_SCHEMA_DYNAMIC && is_same(&schemas[i - 1], row, e))
			return &schemas[i - 1];
	return NULL;
}

/* Under the lock.  A row without an id gets the next one. */
static uint64_t add_row(struct nvtx_schema_row *row)
{
	uint32_t count = atomic_load_explicit(&schema_count, memory_order_relaxed);

	if (!row->id)
		row->id = NVTX_SCHEMA_DYNAMIC + count;
	schemas[count] = *row;
	atomic_store_explicit(&schema_count, count + 1, memory_order_release);
	return row->id;
}

static uint64_t add_schema(struct nvtx_schema_row *row, const struct nvtx_entry_row *e)
{
	const struct nvtx_schema_row *there = find_same(row, e);

	if (there)
		return there->id;
	if (schema_count == SCHEMAS || entry_count + row->count > ENTRIES) {
		nvtx_payload_lose();
		return 0;
	}
	row->first = entry_count;
	for (uint32_t i = 0; i < row->count; i++)
		entries[entry_count + i] = e[i];
	entry_count += row->count;
	return add_row(row);
}

uint64_t nvtx_schema_put(uint32_t domain, const struct nvtx_schema *s)
{
	struct nvtx_entry_row rows[ENTRIES_OF_ONE] = { { 0 } };
	struct nvtx_schema_row row = { .domain = domain, .form = NVTX_FORM_SCHEMA };
	const uint64_t needs = NVTX_SCHEMA_ENTRIES | NVTX_SCHEMA_COUNT;
	uint64_t type = NVTX_SCHEMA_IS_STATIC;
	size_t pack = 0;

	if (!s || (s->mask & needs) != needs || !s->entries)
		return 0;
	if (s->mask & NVTX_SCHEMA_TYPE)
		type = s->type;
	if (s->mask & NVTX_SCHEMA_ALIGN && s->align <= ALIGN_MAX)
		pack = s->align;
	if (s->mask & NVTX_SCHEMA_SIZE && s->size < UINT16_MAX)
		row.size = (uint32_t)s->size;
	if (s->mask & NVTX_SCHEMA_ID && s->id >= NVTX_SCHEMA_STATIC && s->id < NVTX_SCHEMA_DYNAMIC)
		row.id = s->id;
	row.name = s->mask & NVTX_SCHEMA_NAME ? name_find(s->name) : 0;
	row.is_dynamic = type == NVTX_SCHEMA_IS_DYNAMIC;
	if (type != NVTX_SCHEMA_IS_STATIC && type != NVTX_SCHEMA_IS_DYNAMIC)
		row.form = NVTX_FORM_NONE;
	row.count = s->entry_count < ENTRIES_OF_ONE ? (uint32_t)s->entry_count : ENTRIES_OF_ONE;
	for (size_t i = 0; i < row.count; i++) {
		const struct nvtx_entry *from = &s->entries[i];
		struct nvtx_entry_row *to = &rows[i];
		to->type = from->type;
		to->flags = (uint32_t)from->flags;
		to->array_length = from->detail < LENGTH_MAX ? from->detail : LENGTH_MAX;
		to->name = name_find(from->name);
		to->offset = from->offset < LENGTH_MAX ? (uint32_t)from->offset : LENGTH_MAX;
	}
	lay_out(&row, rows, (uint32_t)pack);
	if (row.is_dynamic)
		row.size = 0;
	nvtx_names_lock();
	uint64_t id = add_schema(&row, rows);
	nvtx_names_unlock();
	return id;
}

/* ---- enums ---- */

static bool same_words(const struct nvtx_schema_row *there, const struct nvtx_schema_row *row,
		       const struct nvtx_word_row *w)
{
	const struct nvtx_word_row *have = nvtx_schema_words(there);

	if (there->form != NVTX_FORM_ENUM || there->count != row->count || there->size != row->size)
		return false;
	for (uint32_t i = 0; i < row->count; i++)
		if (have[i].value != w[i].value || have[i].name != w[i].name ||
		    have[i].is_flag != w[i].is_flag)
			return false;
	return true;
}

static uint64_t add_enum(struct nvtx_schema_row *row, const struct nvtx_word_row *w)
{
	const struct nvtx_schema_row *there;

	there = row->id ? nvtx_schema_find(row->domain, row->id) : NULL;
	if (there && same_words(there, row, w))
		return row->id;
	if (schema_count == SCHEMAS || word_count + row->count > WORDS) {
		nvtx_payload_lose();
		return 0;
	}
	row->first = word_count;
	for (uint32_t i = 0; i < row->count; i++)
		words[word_count + i] = w[i];
	word_count += row->count;
	return add_row(row);
}

uint64_t nvtx_enum_put(uint32_t domain, const struct nvtx_enum *e)
{
	struct nvtx_word_row rows[ENTRIES_OF_ONE];
	struct nvtx_schema_row row = { .domain = domain,
				       .form = NVTX_FORM_ENUM,
				       .size = sizeof(int),
				       .align = _Alignof(int) };
	const uint64_t needs = NVTX_ENUM_ENTRIES | NVTX_ENUM_COUNT;

	if (!e || (e->mask & needs) != needs || !e->words)
		return 0;
	if (e->mask & NVTX_ENUM_SIZE && e->size && e->size <= 8 && !(e->size & (e->size - 1)))
		row.size = row.align = (uint16_t)e->size;
	if (e->mask & NVTX_ENUM_ID && e->id >= NVTX_SCHEMA_STATIC && e->id < NVTX_SCHEMA_DYNAMIC)
		row.id = e->id;
	row.name = e->mask & NVTX_ENUM_NAME ? name_find(e->name) : 0;
	row.count = e->word_count < ENTRIES_OF_ONE ? (uint32_t)e->word_count : ENTRIES_OF_ONE;
	for (size_t i = 0; i < row.count; i++)
		rows[i] = (struct nvtx_word_row){ .value = e->words[i].value,
						  .name = name_find(e->words[i].name),
						  .is_flag = e->words[i].is_flag != 0 };
	nvtx_names_lock();
	uint64_t id = add_enum(&row, rows);
	nvtx_names_unlock();
	return id;
}
