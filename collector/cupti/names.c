/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti/names.h"

#include "collector/cupti/plan.h"
#include "collector/names.h"
#include "schemas/hash.h"

#include <stdlib.h>
#include <string.h>

enum {
	KNOWN_BITS = 9,
	KNOWN = 1 << KNOWN_BITS,
	KNOWN_MOST = KNOWN / 4 * 3,
	AHEAD = 4096, /* bytes that are asked for before they are needed */
};
/* Within one completion a pointer is always the same text: what was found stays good until then. */
struct known {
	struct {
		const char *text;
		uint32_t name;
	} rows[KNOWN];
	unsigned count;
};

static uint32_t kind_of(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind;
}

static __attribute__((noinline)) uint32_t name_add(struct known *known, unsigned at,
						   const char *text)
{
	uint32_t name = name_find(text);

	if (known->count == KNOWN_MOST)
		return name;
	known->rows[at].text = text;
	known->rows[at].name = name;
	known->count++;
	return name;
}

static inline uint64_t name_of(struct known *known, const char *text)
{
	unsigned at = (unsigned)((uintptr_t)text * HASH_A >> (64 - KNOWN_BITS));

	if (!text)
		return 0;
	while (known->rows[at].text != text) {
		if (!known->rows[at].text)
			return name_add(known, at, text);
		at = (at + 1) % KNOWN;
	}
	return known->rows[at].name;
}

static unsigned mark_of(uint32_t kind)
{
	switch (kind) {
	case CUPTI_DEVICE:
	case CUPTI_CONTEXT:
	case CUPTI_STREAM:
		return MARK_TABLES;
	case CUPTI_EXTERNAL_CORRELATION:
		return MARK_EXTERNAL;
	case CUPTI_CUDA_EVENT:
		return MARK_EVENTS;
	default:
		return 0;
	}
}

static inline void keep_texts(struct known *known, const uint16_t *texts, uint8_t *record)
{
	unsigned i;

	for (i = 0; i < PLAN_TEXTS && texts[i]; i++) {
		uint64_t word = plan_word(record, texts[i]);

		__builtin_prefetch(record + texts[i] + AHEAD);
		word = name_of(known, (const char *)(uintptr_t)word);
		memcpy(record + texts[i], &word, sizeof(word));
	}
}

unsigned cupti_names_keep(const struct cupti_lib *lib, uint8_t *bytes, size_t valid,
			  uint64_t *records)
{
	uint8_t *record = NULL, *expected = bytes;
	const uint16_t *texts = NULL;
	uint32_t kind = UINT32_MAX;
	unsigned marks = 0;
	bool even = true;
	struct known known;
	size_t size = 0;

	memset(&known, 0, sizeof(known));
	for (*records = 0; lib->next_record(bytes, valid, &record) == CUPTI_OK; ++*records) {
		__builtin_prefetch(record + AHEAD);
		if (!texts || kind != kind_of(record)) {
			kind = kind_of(record);
			marks |= mark_of(kind);
			texts = cupti_family_texts(kind);
			size = kind < CUPTI_KINDS ? lib->sizes[kind] : 0;
		}
		even = even && record == expected && size;
		expected = record + size;
		keep_texts(&known, texts, record);
	}
	return even && expected == bytes + valid ? marks | MARK_EVEN : marks;
}

void cupti_names_free(const struct cupti_lib *lib, uint32_t kind, uint8_t *record)
{
	static const struct {
		uint32_t kind, at; /* CUpti_ActivityDevice*.name, CUpti_ActivityOverhead3.overheadData */
	} theirs[] = { { CUPTI_DEVICE, 136 }, { CUPTI_OVERHEAD, 48 } };
	static const uint64_t none;
	uint64_t word;
	size_t i;

	for (i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		if (theirs[i].kind != kind || theirs[i].at + sizeof(word) > lib->sizes[kind])
			continue;
		word = plan_word(record, theirs[i].at);
		free((void *)(uintptr_t)word);
		memcpy(record + theirs[i].at, &none, sizeof(none));
	}
}

uint64_t cupti_names_drop(const struct cupti_lib *lib, uint8_t *bytes, size_t valid)
{
	uint8_t *record = NULL;
	uint64_t count = 0;

	while (lib->next_record(bytes, valid, &record) == CUPTI_OK) {
		count += !(mark_of(kind_of(record)) & (MARK_TABLES | MARK_EXTERNAL));
		cupti_names_free(lib, kind_of(record), record);
	}
	return count;
}
