/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/internal.h"

#include "collector/arena/texts.h"
#include "schemas/base/hash.h"
#include "schemas/base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
	CACHE_BITS = 9,
	AHEAD = 4096, /* distance of the prefetch in bytes */
};
/* A cache of names by pointer.  During one completion a pointer always refers to the same text. */
struct cached_text {
	const char *text;
	uint32_t name;
};

/* Finds the id of a name.  Long names are shortened with a hash, because mangled names of two
 * kernels may differ only after NAMES_TEXT_MAX bytes. */
static uint32_t find_name(const char *text)
{
	size_t len = strnlen(text, NAMES_TEXT_MAX + 1);
	char shorter[NAMES_TEXT_MAX + 1];

	if (len <= NAMES_TEXT_MAX)
		return name_find_text(text, len);
	len = utf8_shorten(text, strlen(text), shorter, sizeof(shorter));
	return name_find_text(shorter, len);
}

static inline uint64_t name_of(struct cached_text *cache, const char *text)
{
	struct cached_text *c = &cache[(uintptr_t)text * HASH_A >> (64 - CACHE_BITS)];

	if (!text)
		return 0;
	if (c->text != text)
		*c = (struct cached_text){ text, find_name(text) };
	return c->name;
}

static inline void keep_texts(struct cached_text *cache, const uint16_t *texts, uint8_t *record)
{
	for (unsigned i = 0; i < LAYOUT_TEXTS && texts[i]; i++) {
		uint64_t word = read_word(record, texts[i]);

		__builtin_prefetch(record + texts[i] + AHEAD);
		word = name_of(cache, (const char *)(uintptr_t)word);
		memcpy(record + texts[i], &word, sizeof(word));
	}
}

unsigned cupti_names_keep(const struct cupti_lib *lib, uint8_t *bytes, size_t valid)
{
	uint8_t *record = NULL, *expected = bytes;
	const uint16_t *texts = NULL;
	uint32_t kind = UINT32_MAX;
	unsigned marks = 0;
	bool even = true;
	struct cached_text cache[1 << CACHE_BITS];
	size_t size = 0;

	memset(cache, 0, sizeof(cache));
	while (lib->next_record(bytes, valid, &record) == CUPTI_OK) {
		__builtin_prefetch(record + AHEAD);
		if (!texts || kind != get_u32(record)) {
			kind = get_u32(record);
			marks |= cupti_is_table(kind) ? MARK_TABLES : 0;
			texts = cupti_family_texts(kind);
			size = kind < CUPTI_KINDS ? lib->sizes[kind] : 0;
		}
		even = even && record == expected && size;
		expected = record + size;
		keep_texts(cache, texts, record);
	}
	return even && expected == bytes + valid ? marks | MARK_EVEN : marks;
}

/* Returns the offset of a pointer to memory that the client has to free, or 0:
 * CUpti_ActivityDevice*.name, CUpti_ActivityOverhead3.overheadData. */
static uint32_t owned_at(const struct cupti_lib *lib, uint32_t kind)
{
	uint32_t at = kind == CUPTI_DEVICE ? 136 : kind == CUPTI_OVERHEAD ? 48 : 0;

	return at && at + sizeof(uint64_t) <= lib->sizes[kind] ? at : 0;
}

void cupti_names_free(const struct cupti_lib *lib, uint32_t kind, uint8_t *record)
{
	uint32_t at = owned_at(lib, kind);

	if (!at)
		return;
	free((void *)(uintptr_t)read_word(record, at));
	memset(record + at, 0, sizeof(uint64_t));
}

void cupti_names_leave(const struct cupti_lib *lib, uint8_t *bytes, size_t valid)
{
	uint8_t *record = NULL;

	while (lib->next_record(bytes, valid, &record) == CUPTI_OK) {
		uint32_t at = owned_at(lib, get_u32(record));

		if (at)
			memset(record + at, 0, sizeof(uint64_t));
	}
}

uint64_t cupti_names_drop(const struct cupti_lib *lib, uint8_t *bytes, size_t valid)
{
	uint8_t *record = NULL;
	uint64_t count = 0;

	while (lib->next_record(bytes, valid, &record) == CUPTI_OK) {
		uint32_t kind = get_u32(record);

		count += !cupti_is_table(kind) && kind != CUPTI_EXTERNAL_CORRELATION;
		cupti_names_free(lib, kind, record);
	}
	return count;
}
