/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/tables.h"

#include "collector/probe/cupti/layout.h"
#include "collector/arena/texts.h"
#include "collector/probe/nvtx/names.h"
#include "collector/store/writer.h"

#include <stdio.h>

enum { DEVICES = 32, CONTEXTS = 256, DEVICE_BYTES = 192, DEVICE_NAME = 128, ATTRS = 32 };

struct device_row {
	uint32_t id;
	uint16_t size;
	uint8_t record[DEVICE_BYTES];
	char name[DEVICE_NAME];
};
struct context_row {
	uint32_t id, device;
};
static struct {
	struct device_row devices[DEVICES];
	struct context_row contexts[CONTEXTS];
	unsigned device_count, context_count;
	uint64_t log; /* log that has the tables if `put` is set */
	bool put;
} tables;

/* ---- reading records ---- */

static void take_device(const uint8_t *record, uint16_t size)
{
	uint32_t id = get_u32(record + 112);
	const char *name = (const char *)(uintptr_t)read_word(record, 136);
	struct device_row *d = NULL;

	for (unsigned i = 0; i < tables.device_count && !d; i++)
		if (tables.devices[i].id == id)
			d = &tables.devices[i];
	if (!d && tables.device_count == DEVICES)
		return;
	if (!d)
		d = &tables.devices[tables.device_count++];
	d->id = id;
	d->size = size < DEVICE_BYTES ? size : DEVICE_BYTES;
	memcpy(d->record, record, d->size);
	if (name) /* otherwise the name belonged to another client */
		snprintf(d->name, sizeof(d->name), "%s", name);
	tables.put = false;
}

static struct context_row *find_context(uint32_t id)
{
	for (unsigned i = 0; i < tables.context_count; i++)
		if (tables.contexts[i].id == id)
			return &tables.contexts[i];
	if (tables.context_count == CONTEXTS)
		return NULL;
	tables.contexts[tables.context_count] = (struct context_row){ .id = id, .device = NO_ID };
	return &tables.contexts[tables.context_count++];
}

void cupti_tables_take(const struct cupti_lib *lib, uint32_t kind, const uint8_t *record)
{
	uint16_t size = lib->sizes[kind];

	if (kind == CUPTI_DEVICE && size >= 144) {
		take_device(record, size);
	} else if (kind == CUPTI_CONTEXT && size >= 16) {
		struct context_row *c = find_context(get_u32(record + 4));

		if (c)
			c->device = get_u32(record + 8);
	}
}

void cupti_tables_note(uint32_t device, uint32_t context)
{
	struct context_row *c = find_context(context);

	if (c && c->device == NO_ID)
		c->device = device;
}

uint32_t cupti_tables_device(uint32_t context)
{
	uint32_t only = NO_ID;

	for (unsigned i = 0; i < tables.context_count; i++) {
		const struct context_row *c = &tables.contexts[i];

		if (c->id == context && c->device != NO_ID)
			return c->device;
		if (c->device != NO_ID && only != NO_ID && c->device != only)
			return NO_ID;
		if (c->device != NO_ID)
			only = c->device;
	}
	return only;
}

void cupti_tables_forget(void)
{
	memset(&tables, 0, sizeof(tables));
}

/* ---- writing rows ---- */

static const struct {
	const char *key;
	uint16_t at;
	uint8_t bytes, unit;
} numbers[] = {
#define X(key, member, at, bytes, unit) { key, at, bytes, UNIT_##unit },
	CUPTI_DEVICE_NUMBERS(X)
#undef X
};

static void uuid_text(const uint8_t *b, const char *stem, char out[48])
{
	snprintf(out, 48, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 stem, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
		 b[12], b[13], b[14], b[15]);
}

bool cupti_tables_uuid(unsigned n, uint32_t *id, char uuid[48])
{
	for (unsigned i = 0; i < tables.device_count; i++) {
		bool is_used = false;

		for (unsigned k = 0; k < tables.context_count; k++)
			is_used |= tables.contexts[k].device == tables.devices[i].id;
		if (!is_used || n-- > 0)
			continue;
		*id = tables.devices[i].id;
		uuid_text(tables.devices[i].record + 120, "GPU", uuid);
		return true;
	}
	return false;
}

static struct attr text_attr(struct writer *w, const char *key, const char *text)
{
	return (struct attr){ .key = writer_name(w, key, strlen(key)),
			      .type = ATTR_TEXT,
			      .bits = writer_name(w, text, strlen(text)) };
}

static void put_device(struct writer *w, const struct device_row *d)
{
	struct attr attrs[ATTRS];
	struct arg_schema schema = { .consts = attrs };
	struct device row = { .id = d->id };
	bool is_mig = d->size > 145 && d->record[145] == 1;
	char text[48];
	size_t len;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t word = 0;

		if (numbers[i].at + numbers[i].bytes > d->size)
			continue;
		memcpy(&word, d->record + numbers[i].at, numbers[i].bytes);
		if (numbers[i].unit == UNIT_ID && word == NO_ID)
			continue;
		attrs[schema.const_count++] = (struct attr){
			.key = writer_name(w, numbers[i].key, strlen(numbers[i].key)),
			.type = ATTR_U64,
			.unit = numbers[i].unit,
			.bits = word,
		};
	}
	uuid_text(d->record + 120, "GPU", text);
	attrs[schema.const_count++] = text_attr(w, "uuid", text);
	if (is_mig && d->size >= 176) {
		uuid_text(d->record + 160, "MIG", text);
		attrs[schema.const_count++] = text_attr(w, "migUuid", text);
	}
	const char *given = name_text(nvtx_object_name(NVTX_DEVICE, d->id), &len);
	if (len)
		attrs[schema.const_count++] = text_attr(w, "given_name", given);
	row.name = writer_name(w, d->name, strlen(d->name));
	row.schema = writer_schema(w, &schema);
	writer_device(w, &row);
}

void cupti_tables_put(struct writer *w)
{
	if (tables.put && tables.log == writer_log(w))
		return;
	if (!tables.device_count || !writer_ready(w))
		return;
	tables.put = true;
	tables.log = writer_log(w);
	for (unsigned i = 0; i < tables.device_count; i++)
		put_device(w, &tables.devices[i]);
}
