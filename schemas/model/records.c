/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/model/records.h"

#include <string.h>

/* The fields of all records in one array; each record points to its first one. */
static const struct field all_fields[] = {
#define F(record, field, type, unit, place, offset, member, since, arg)                            \
	{ #field, FIELD_##type, UNIT_##unit, PLACE_##place, true, offset, since, arg },
#define N(record, field, type, unit, place, arg)                                                   \
	{ #field, FIELD_##type, UNIT_##unit, PLACE_##place, false, 0, 0, arg },
#include "schemas/model/records.def"
};

/* Structs with one char for each field, so that their sizes are counts of fields; two fields of one
 * name do not compile. */
struct size_of_none {
	char head;
#define R(record, number, kind, cupti, word, help)                                                 \
	}                                                                                          \
	;                                                                                          \
	struct size_of_##record {                                                                  \
		char head;
#define F(record, field, type, unit, place, offset, member, since, arg) char of_##field;
#define N(record, field, type, unit, place, arg)                        char of_##field;
#include "schemas/model/records.def"
};
#define FIELDS_OF(record) (sizeof(struct size_of_##record) - 1)

/* One plus the index of each record's first field in all_fields. */
enum {
	FIRST_OF_ALL = 0,
#define R(record, number, kind, cupti, word, help)                      AT_##record, BEFORE_##record = AT_##record - 1,
#define F(record, field, type, unit, place, offset, member, since, arg) AT_##record##_##field,
#define N(record, field, type, unit, place, arg)                        AT_##record##_##field,
#include "schemas/model/records.def"
};

static const struct record all_records[] = {
#define R(record, number, kind, cupti, word, help)                                                 \
	{ number, KIND_##kind, cupti, word, help, all_fields + AT_##record - 1, FIELDS_OF(record) },
#include "schemas/model/records.def"
};
enum { RECORDS = sizeof(all_records) / sizeof(all_records[0]) };

const struct record *records(size_t *count)
{
	*count = RECORDS;
	return all_records;
}

const struct record *record_of_kind(unsigned kind)
{
	for (size_t i = 0; i < RECORDS; i++)
		if (all_records[i].kind == kind)
			return &all_records[i];
	return NULL;
}

static bool text_is(const char *text, const char *wanted, size_t len)
{
	return strlen(text) == len && memcmp(text, wanted, len) == 0;
}

const struct field *record_field(const struct record *r, const char *name, size_t len)
{
	for (size_t i = 0; i < r->field_count; i++)
		if (text_is(r->fields[i].name, name, len))
			return &r->fields[i];
	return NULL;
}

const struct field *record_arg(const struct record *r, const char *arg, size_t len)
{
	const char *own;

	for (size_t i = 0; i < r->field_count; i++) {
		own = r->fields[i].arg;
		if (own && text_is(own[0] == '+' ? own + 1 : own, arg, len))
			return &r->fields[i];
	}
	return NULL;
}

const struct field *kind_field(unsigned kind, const char *name, size_t len)
{
	const struct field *found = NULL;

	for (size_t i = 0; i < RECORDS && !found; i++)
		if (all_records[i].kind == kind)
			found = record_field(&all_records[i], name, len);
	return found;
}

const char *unit_name(unsigned unit)
{
	static const char *const names[UNIT_END] = {
		[UNIT_NONE] = "",       [UNIT_NS] = "ns",     [UNIT_BYTES] = "bytes",
		[UNIT_COUNT] = "count", [UNIT_ID] = "id",     [UNIT_ENUM] = "enum",
		[UNIT_FLAG] = "flag",   [UNIT_PERCENT] = "%", [UNIT_WATT] = "W",
		[UNIT_CELSIUS] = "C",   [UNIT_MHZ] = "MHz",
	};

	return unit < UNIT_END ? names[unit] : "";
}

static const char *const kind_words[KIND_END] = { [KIND_UNKNOWN] = "",
#define X(name, number, word, type, help) [number] = word,
						  KIND_LIST(X)
#undef X
};

const char *kind_word(unsigned kind)
{
	return kind < KIND_END ? kind_words[kind] : "";
}

/* Returns the index of a word in a list whose first item is no word, or 0 if it is not there. */
static unsigned find_word(const char *const *words, unsigned count, const char *word, size_t len)
{
	for (unsigned i = 1; i < count; i++)
		if (text_is(words[i], word, len))
			return i;
	return 0;
}

unsigned kind_of_word(const char *word, size_t len)
{
	return find_word(kind_words, KIND_END, word, len);
}

const char *range_class_word(unsigned class)
{
	static const char *const words[] = {
#define X(name, number, word, help) [number] = word,
		RANGE_CLASS_LIST(X)
#undef X
	};

	return class < sizeof(words) / sizeof(words[0]) ? words[class] : words[RANGE_OTHER];
}

/* Names by CUPTI's CUpti_ActivityMemcpyKind; the last three, for pages of unified memory, are
 * Nsight Systems' own. */
static const char *const copy_names[] = {
	"Memcpy",
	"Memcpy HtoD",
	"Memcpy DtoH",
	"Memcpy HtoA",
	"Memcpy AtoH",
	"Memcpy AtoA",
	"Memcpy AtoD",
	"Memcpy DtoA",
	"Memcpy DtoD",
	"Memcpy HtoH",
	"Memcpy PtoP",
	"Memcpy UnifiedHtoD",
	"Memcpy UnifiedDtoH",
	"Memcpy UnifiedDtoD",
};
enum { COPY_NAMES = sizeof(copy_names) / sizeof(copy_names[0]) };

const char *copy_kind_name(unsigned copy_kind)
{
	return copy_names[copy_kind < COPY_NAMES ? copy_kind : 0];
}

const char *copy_kind_word(unsigned copy_kind)
{
	return copy_kind && copy_kind < COPY_NAMES ? copy_names[copy_kind] + strlen("Memcpy ") : "";
}

unsigned copy_kind_of_word(const char *word, size_t len)
{
	for (unsigned i = 1; i < COPY_NAMES; i++)
		if (text_is(copy_kind_word(i), word, len))
			return i;
	return 0;
}

static const struct memory_words memory_kinds[] = {
	{ "unknown", "Unknown" },
	{ "pageable", "Pageable" },
	{ "pinned", "Pinned" },
	{ "device", "Device" },
	{ "array", "Array" },
	{ "managed", "Managed" },
	{ "device_static", "Device Static" },
	{ "managed_static", "Managed Static" },
};
enum { MEMORY_KINDS = sizeof(memory_kinds) / sizeof(memory_kinds[0]) };

const struct memory_words *memory_words(uint64_t memory_kind)
{
	return &memory_kinds[memory_kind < MEMORY_KINDS ? memory_kind : 0];
}

unsigned memory_kind_of_xprof(const char *word)
{
	unsigned kind = MEMORY_KINDS - 1;

	while (kind && strcmp(word, memory_kinds[kind].xprof) != 0)
		kind--;
	return kind;
}

static const char *const sync_words[SYNC_KIND_END] = {
	"", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync",
};

const char *sync_kind_word(unsigned sync_kind)
{
	return sync_kind < SYNC_KIND_END ? sync_words[sync_kind] : "";
}

unsigned sync_kind_of_word(const char *word, size_t len)
{
	return find_word(sync_words, SYNC_KIND_END, word, len);
}
