/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/records.h"

#include <string.h>

/* All fields of all records in one row; a record knows where its own begin. */
static const struct field all_fields[] = {
#define F(record, field, type, unit, place, offset, member, since, arg)                            \
	{ #field, FIELD_##type, UNIT_##unit, PLACE_##place, true, offset, since, arg },
#define N(record, field, type, unit, place, arg)                                                   \
	{ #field, FIELD_##type, UNIT_##unit, PLACE_##place, false, 0, 0, arg },
#include "schemas/records.def"
};

/* One char per field, so that sizes are counts; two fields of one name do not compile. */
struct size_of_none {
	char head;
#define R(record, number, kind, cupti, word, help)                                                 \
	}; struct size_of_##record { char head;
#define F(record, field, type, unit, place, offset, member, since, arg) char of_##field;
#define N(record, field, type, unit, place, arg) char of_##field;
#include "schemas/records.def"
};
#define FIELDS_OF(record) (sizeof(struct size_of_##record) - 1)

/* Where each record's fields begin: the sum of those before. */
enum {
	FIRST_OF_ALL = 0,
#define R(record, number, kind, cupti, word, help)                                                 \
	AT_##record, BEFORE_##record = AT_##record - 1,
#define F(record, field, type, unit, place, offset, member, since, arg) AT_##record##_##field,
#define N(record, field, type, unit, place, arg) AT_##record##_##field,
#include "schemas/records.def"
};

static const struct record all_records[] = {
#define R(record, number, kind, cupti, word, help)                                                 \
	{ number, KIND_##kind, cupti, word, help, all_fields + AT_##record - 1, FIELDS_OF(record) },
#include "schemas/records.def"
};
enum { RECORDS = sizeof(all_records) / sizeof(all_records[0]) };

const struct record *records(size_t *count)
{
	*count = RECORDS;
	return all_records;
}

const struct record *record_of_kind(unsigned kind)
{
	size_t i;

	for (i = 0; i < RECORDS; i++)
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
	size_t i;

	for (i = 0; i < r->field_count; i++)
		if (text_is(r->fields[i].name, name, len))
			return &r->fields[i];
	return NULL;
}

const struct field *record_arg(const struct record *r, const char *arg, size_t len)
{
	const char *own;
	size_t i;

	for (i = 0; i < r->field_count; i++) {
		own = r->fields[i].arg;
		if (own && text_is(own[0] == '+' ? own + 1 : own, arg, len))
			return &r->fields[i];
	}
	return NULL;
}

typedef const struct field *(*field_finder)(const struct record *r, const char *text, size_t len);

static const struct field *kind_find(unsigned kind, field_finder find, const char *text, size_t len)
{
	const struct field *found = NULL;
	size_t i;

	for (i = 0; i < RECORDS && !found; i++)
		if (all_records[i].kind == kind)
			found = find(&all_records[i], text, len);
	return found;
}

const struct field *kind_field(unsigned kind, const char *name, size_t len)
{
	return kind_find(kind, record_field, name, len);
}

const struct field *kind_arg(unsigned kind, const char *arg, size_t len)
{
	return kind_find(kind, record_arg, arg, len);
}

const char *unit_name(unsigned unit)
{
	static const char *const names[UNIT_END] = {
		[UNIT_NONE] = "",
		[UNIT_NS] = "ns",
		[UNIT_BYTES] = "bytes",
		[UNIT_COUNT] = "count",
		[UNIT_ID] = "id",
		[UNIT_ENUM] = "enum",
		[UNIT_FLAG] = "flag",
		[UNIT_PERCENT] = "%",
		[UNIT_WATT] = "W",
		[UNIT_CELSIUS] = "C",
		[UNIT_MHZ] = "MHz",
	};

	return unit < UNIT_END ? names[unit] : "";
}

static const char *const kind_words[KIND_END] = {
	[KIND_UNKNOWN] = "",
#define X(name, number, word, home, help) [number] = word,
	KIND_LIST(X)
#undef X
};

const char *kind_word(unsigned kind)
{
	return kind < KIND_END ? kind_words[kind] : "";
}

unsigned kind_of_word(const char *word, size_t len)
{
	unsigned kind;

	for (kind = 1; kind < KIND_END; kind++)
		if (text_is(kind_words[kind], word, len))
			return kind;
	return KIND_UNKNOWN;
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

/* CUpti_ActivityMemcpyKind */
static const char *const copy_words[] = {
	"", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
};
enum { COPY_WORDS = sizeof(copy_words) / sizeof(copy_words[0]) };

const char *copy_kind_word(unsigned copy_kind)
{
	return copy_kind < COPY_WORDS ? copy_words[copy_kind] : "";
}

unsigned copy_kind_of_word(const char *word, size_t len)
{
	unsigned i;

	for (i = 1; i < COPY_WORDS; i++)
		if (text_is(copy_words[i], word, len))
			return i;
	return 0;
}
