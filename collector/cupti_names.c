/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti_names.h"

#include "collector/cupti_plan.h"
#include "collector/names.h"

#include <stdlib.h>
#include <string.h>

/* Within one completion a pointer is always the same text: what was found stays good until then. */
enum { KNOWN = 256 };
struct known {
	const char *text;
	uint32_t name;
};

static uint32_t kind_of(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind;
}

static uint64_t name_of(struct known *known, const char *text)
{
	struct known *k = &known[((uintptr_t)text >> 3 ^ (uintptr_t)text >> 11) % KNOWN];

	if (!text)
		return 0;
	if (k->text != text) {
		k->text = text;
		k->name = name_find(text);
	}
	return k->name;
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

unsigned cupti_names_keep(const struct cupti_lib *lib, uint8_t *bytes, size_t valid,
			  uint64_t *records)
{
	struct known known[KNOWN];
	uint8_t *record = NULL;
	unsigned marks = 0, i;

	memset(known, 0, sizeof(known));
	for (*records = 0; lib->next_record(bytes, valid, &record) == CUPTI_OK; ++*records) {
		uint32_t kind = kind_of(record);
		const uint16_t *texts = cupti_family_texts(kind);

		marks |= mark_of(kind);
		for (i = 0; i < PLAN_TEXTS && texts[i]; i++) {
			uint64_t word = plan_word(record, texts[i]);

			word = name_of(known, (const char *)(uintptr_t)word);
			memcpy(record + texts[i], &word, sizeof(word));
		}
	}
	return marks;
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
