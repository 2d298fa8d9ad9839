/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/nvtx/payload.h"

#include "collector/probe/nvtx/names.h"
#include "collector/arena/texts.h"
#include "schemas/base/buf.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	ENTRIES_OF_ONE = 128, /* most entries of a schema; further ones are ignored */
	LENGTH_MAX = 1 << 16, /* longest array or text */
	ALIGN_MAX = 64,
	TEXT_CAP = 4096,     /* most bytes of a payload that is a text */
	POINTED_MAX = 512,   /* most bytes of a text at a pointer */
	VISITS = 512,        /* limits the search for texts, as schemas may contain themselves */
	SCHEMAS_OF_ONE = 64, /* most schemas of one payload */
	PAGE = 4096,
};

static const struct nvtx_schema_entry *entries_of(const struct nvtx_schema_row *s)
{
	return &nvtx_schemas()->entries[s->first];
}

static const struct nvtx_schema_row *find_schema(uint32_t domain, uint64_t id)
{
	const struct nvtx_schemas *t = nvtx_schemas();
	const struct nvtx_schema_row *rows = t->rows;
	uint32_t count = atomic_load_explicit(&t->count, memory_order_acquire);

	if (id >= NVTX_SCHEMA_DYNAMIC)
		return id - NVTX_SCHEMA_DYNAMIC < count ? &rows[id - NVTX_SCHEMA_DYNAMIC] : NULL;
	for (uint32_t i = count; i > 0; i--)
		if (rows[i - 1].id == id && rows[i - 1].domain == domain)
			return &rows[i - 1];
	return NULL;
}

/* Returns a type; *schema is NULL for types of NVTX and for unknown ones. */
static struct nvtx_type find_type(uint32_t domain, uint64_t type,
				  const struct nvtx_schema_row **schema)
{
	*schema = type < NVTX_TYPE_END ? NULL : find_schema(domain, type);
	return *schema ? (*schema)->type : nvtx_type_find(type);
}

/* ---- registration ---- */

static uint32_t at_most(uint64_t value, uint32_t most)
{
	return value < most ? (uint32_t)value : most;
}

/*
 * Changes an entry that holds an address to a form that readers can decode: a text that is copied
 * with the payload, a number, or nothing if the bytes are elsewhere.
 */
static void resolve_address(uint32_t domain, struct nvtx_schema_entry *e)
{
	const struct nvtx_schema_row *schema;
	struct nvtx_type type = find_type(domain, e->type, &schema);
	bool points = e->flags & NVTX_ENTRY_POINTER;
	unsigned array = e->flags & NVTX_ENTRY_ARRAY;

	if (type.form == NVTX_FORM_TEXT && type.size == 1 && (points || (!array && !e->length))) {
		e->type = NVTX_TYPE_NVTX_REGISTERED_STRING_HANDLE;
		e->flags = NVTX_ENTRY_POINTER | (e->flags & NVTX_ENTRY_MESSAGE);
	} else if (points) {
		e->type = NVTX_TYPE_ADDRESS;
		e->flags = 0;
	} else if (e->flags & (NVTX_ENTRY_FROM_BASE | NVTX_ENTRY_FROM_HERE) ||
		   array == NVTX_ENTRY_ARRAY_ELSEWHERE) {
		e->type = 0;
	}
}

/* Finds the offset of each entry by the rules of C, and the size and alignment of the struct. */
static void lay_out(struct nvtx_schema_row *s, struct nvtx_schema_entry *e, uint32_t pack)
{
	const struct nvtx_schema_row *nested;
	uint32_t end = 0, size = s->type.size;

	s->type.align = 1;
	for (uint32_t i = 0; i < s->count; i++, e++) {
		bool is_offset = e->flags & (NVTX_ENTRY_FROM_BASE | NVTX_ENTRY_FROM_HERE);
		bool is_single = !(e->flags & NVTX_ENTRY_ARRAY);

		resolve_address(s->domain, e);
		struct nvtx_type type =
			find_type(s->domain, is_offset ? NVTX_TYPE_ADDRESS : e->type, &nested);
		bool is_fixed = (e->flags & NVTX_ENTRY_ARRAY) == NVTX_ENTRY_ARRAY_FIXED;
		uint32_t align = type.align ? type.align : 1;

		if (pack && pack < align)
			align = pack;
		if (i && !e->offset)
			e->offset = (end + align - 1) / align * align;
		end = e->offset + type.size;
		if (!is_offset && (is_fixed || (is_single && type.form == NVTX_FORM_TEXT)))
			end = e->offset + type.size * (uint32_t)e->length;
		if (align > s->type.align)
			s->type.align = (uint16_t)align;
	}
	if (!size)
		size = (end + s->type.align - 1) / s->type.align * s->type.align;
	s->type.size = s->type.form == NVTX_FORM_DYNAMIC ? 0 : (uint16_t)at_most(size, UINT16_MAX);
}

/* Needs the lock.  Returns the id of an equal schema, because each copy of a library registers its
 * schemas, or adds a row. */
static uint64_t add_schema(struct nvtx_schema_row *s, const struct nvtx_schema_entry *e)
{
	struct nvtx_schemas *t = nvtx_schemas_own();
	uint32_t count = atomic_load_explicit(&t->count, memory_order_relaxed);

	for (uint32_t i = count; i > 0; i--) {
		const struct nvtx_schema_row *old = &t->rows[i - 1];

		if (old->domain != s->domain ||
		    (s->id ? old->id != s->id : old->id < NVTX_SCHEMA_DYNAMIC))
			continue;
		if (!memcmp(&old->type, &s->type, sizeof(s->type)) && old->count == s->count &&
		    !memcmp(entries_of(old), e, s->count * sizeof(*e)))
			return old->id;
		if (s->id)
			break;
	}
	if (count == NVTX_SCHEMAS || t->entry_count + s->count > NVTX_ENTRIES) {
		nvtx_lose(1);
		return 0;
	}
	if (!s->id)
		s->id = NVTX_SCHEMA_DYNAMIC + count;
	s->first = t->entry_count;
	memcpy(&t->entries[s->first], e, s->count * sizeof(*e));
	t->entry_count += s->count;
	t->rows[count] = *s;
	atomic_store_explicit(&t->count, count + 1, memory_order_release);
	return s->id;
}

static uint64_t put_schema(struct nvtx_schema_row *s, const struct nvtx_schema_entry *e,
			   bool has_id, uint64_t id)
{
	if (has_id && id >= NVTX_SCHEMA_STATIC && id < NVTX_SCHEMA_DYNAMIC)
		s->id = id;
	if (!nvtx_names_lock()) {
		nvtx_lose(1);
		return 0;
	}
	id = add_schema(s, e);
	nvtx_names_unlock();
	return id;
}

uint64_t nvtx_schema_put(uint32_t domain, const struct nvtx_schema *s)
{
	const uint64_t needs = NVTX_SCHEMA_ENTRIES | NVTX_SCHEMA_COUNT;
	struct nvtx_schema_entry own[ENTRIES_OF_ONE] = { { 0 } };
	struct nvtx_schema_row row = { .domain = domain };

	if (!s || (s->mask & needs) != needs || !s->entries)
		return 0;
	uint64_t type = s->mask & NVTX_SCHEMA_TYPE ? s->type : NVTX_SCHEMA_IS_STATIC;
	row.type.form = type == NVTX_SCHEMA_IS_STATIC    ? NVTX_FORM_STATIC
			: type == NVTX_SCHEMA_IS_DYNAMIC ? NVTX_FORM_DYNAMIC
							 : NVTX_FORM_NONE;
	if (s->mask & NVTX_SCHEMA_SIZE && s->size < UINT16_MAX)
		row.type.size = (uint16_t)s->size;
	row.count = at_most(s->entry_count, ENTRIES_OF_ONE);
	for (size_t i = 0; i < row.count; i++)
		own[i] = (struct nvtx_schema_entry){
			.type = s->entries[i].type,
			.length = at_most(s->entries[i].detail, LENGTH_MAX),
			.flags = (uint32_t)s->entries[i].flags,
			.name = name_find(s->entries[i].name),
			.offset = at_most(s->entries[i].offset, LENGTH_MAX)
		};
	lay_out(&row, own,
		s->mask & NVTX_SCHEMA_ALIGN && s->align <= ALIGN_MAX ? (uint32_t)s->align : 0);
	return put_schema(&row, own, s->mask & NVTX_SCHEMA_ID, s->id);
}

uint64_t nvtx_enum_put(uint32_t domain, const struct nvtx_enum *e)
{
	const uint64_t needs = NVTX_ENUM_ENTRIES | NVTX_ENUM_COUNT;
	struct nvtx_schema_entry own[ENTRIES_OF_ONE] = { { 0 } };
	struct nvtx_schema_row row = { .domain = domain,
				       .type = { NVTX_FORM_ENUM, sizeof(int), 0 } };

	if (!e || (e->mask & needs) != needs || !e->words)
		return 0;
	if (e->mask & NVTX_ENUM_SIZE && e->size && e->size <= 8 && !(e->size & (e->size - 1)))
		row.type.size = (uint16_t)e->size;
	row.type.align = row.type.size;
	row.count = at_most(e->word_count, ENTRIES_OF_ONE);
	for (size_t i = 0; i < row.count; i++)
		own[i] = (struct nvtx_schema_entry){ .type = e->words[i].value,
						     .flags = e->words[i].is_flag != 0,
						     .name = name_find(e->words[i].name) };
	return put_schema(&row, own, e->mask & NVTX_ENUM_ID, e->id);
}

/* ---- payloads, on the program's thread ---- */

/* Copies the text at an address of this process and returns its length without the NUL, or 0 if the
 * address is not mapped. */
static size_t read_text(char *out, size_t cap, uint64_t address)
{
	size_t first = PAGE - address % PAGE;
	struct iovec to = { out, cap }, from[2];

	if (!address)
		return 0;
	if (first > cap)
		first = cap;
	/* Two parts, so that the first one is read even if the next page is not mapped. */
	from[0] = (struct iovec){ (void *)(uintptr_t)address, first };
	from[1] = (struct iovec){ (void *)(uintptr_t)(address + first), cap - first };
	ssize_t n = process_vm_readv(getpid(), &to, 1, from, 2, 0);
	return n > 0 ? strnlen(out, (size_t)n) : 0;
}

struct copying {
	struct nvtx_draft *draft;
	const uint8_t *bytes;
	size_t size;
	unsigned visits; /* number of entries that may still be visited */
};

/* Appends the text that the word at `offset` refers to. */
static void copy_text(struct copying *c, size_t offset, bool is_pointer)
{
	char read[POINTED_MAX];
	const char *text = read;
	size_t len;

	if (offset + sizeof(uint64_t) > c->size)
		return;
	uint64_t word = get_u64(c->bytes + offset);
	if (is_pointer)
		len = read_text(read, sizeof(read), word);
	else
		text = name_text((uint32_t)word, &len);
	uint8_t *to = nvtx_draft_extra(c->draft, 4 + len);
	if (!to)
		return;
	put_u16(to, (uint16_t)offset);
	put_u16(to + 2, (uint16_t)len);
	memcpy(to + 4, text, len);
}

static void copy_texts(struct copying *c, const struct nvtx_schema_row *s, size_t at)
{
	for (const struct nvtx_schema_entry *e = entries_of(s), *end = e + s->count; e < end; e++) {
		const struct nvtx_schema_row *nested;
		struct nvtx_type type = find_type(s->domain, e->type, &nested);
		bool is_array = (e->flags & NVTX_ENTRY_ARRAY) == NVTX_ENTRY_ARRAY_FIXED;

		for (size_t i = 0; i < (is_array ? e->length : 1) && c->visits; i++) {
			size_t offset = at + e->offset + i * type.size;

			c->visits--;
			if (type.form == NVTX_FORM_REFERENCE)
				copy_text(c, offset, e->flags & NVTX_ENTRY_POINTER);
			else if (type.form == NVTX_FORM_STATIC)
				copy_texts(c, nested, offset);
		}
	}
}

void nvtx_payload_copy(struct nvtx_draft *d, uint32_t domain, const struct nvtx_data *data)
{
	struct copying c = { d, data->bytes, data->size, VISITS };
	const struct nvtx_schema_row *schema;
	struct nvtx_type type = find_type(domain, data->schema, &schema);

	if (!data->bytes || data->schema == NVTX_SCHEMA_REFERENCED)
		return;
	if (c.size == SIZE_MAX)
		c.size = type.form == NVTX_FORM_TEXT && type.size == 1
				 ? strnlen(data->bytes, TEXT_CAP)
				 : type.size;
	if (!c.size)
		return;
	uint8_t *to = nvtx_draft_add_payload(d, data->schema, c.size);
	if (!to)
		return;
	memcpy(to, data->bytes, c.size);
	if (type.form == NVTX_FORM_STATIC)
		copy_texts(&c, schema, 0);
	else if (type.form == NVTX_FORM_REFERENCE)
		copy_text(&c, 0, false);
}

/* ---- schemas, on the writer thread ---- */

void nvtx_schema_write(struct buf *out, uint32_t domain, uint64_t id)
{
	uint64_t ids[SCHEMAS_OF_ONE] = { id };
	size_t count = id >= NVTX_TYPE_END, len;
	struct buf row;

	buf_init(&row, out->ceiling);
	for (size_t i = 0; i < count; i++) {
		const struct nvtx_schema_row *s = find_schema(domain, ids[i]);

		if (!s)
			continue;
		buf_clear(&row);
		buf_put_varint(&row, ids[i]);
		buf_put_byte(&row, s->type.form);
		buf_put_u16(&row, s->type.size);
		buf_put_u16(&row, s->type.align);
		for (const struct nvtx_schema_entry *e = entries_of(s), *end = e + s->count;
		     e < end; e++) {
			const char *name = name_text(e->name, &len);

			buf_put_varint(&row, e->type);
			buf_put_varint(&row, e->flags);
			buf_put_varint(&row, e->length);
			buf_put_varint(&row, e->offset);
			buf_put_varint(&row, len);
			buf_put(&row, name, len);
			size_t at = 0;
			while (at < count && ids[at] != e->type)
				at++;
			if (s->type.form != NVTX_FORM_ENUM && e->type >= NVTX_TYPE_END &&
			    at == count && count < SCHEMAS_OF_ONE)
				ids[count++] = e->type;
		}
		if (buf_status(&row, NULL) == ST_OK &&
		    out->ceiling - out->len > row.len + VARINT_MAX) {
			buf_put_varint(out, row.len);
			buf_put(out, row.data, row.len);
		} else {
			nvtx_lose(1);
		}
	}
	buf_release(&row);
}
