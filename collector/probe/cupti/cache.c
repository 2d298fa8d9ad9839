/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/probe/cupti/cache.h"

#include "collector/probe/cupti/desc.h"
#include "collector/store/writer.h"
#include "schemas/base/hash.h"

#include <stdlib.h>

struct cupti_cache cupti_cache;
static const struct cupti_layout no_layout;

static size_t slot_of(const struct cupti_layout *p, const uint8_t *record)
{
	uint64_t hash = p->index;

	for (unsigned i = 0; i < p->words; i += 2)
		hash = hash_fold(hash ^ (read_word(record, 8 * i) & p->mask[i]) ^ HASH_A,
				 (read_word(record, 8 * i + 8) & p->mask[i + 1]) ^ HASH_B);
	return hash % CACHE_SLOTS;
}

void cupti_cache_clear(void)
{
	cupti_cache.count = 0;
	cupti_cache.generation++;
	memset(cupti_cache.slots, 0, sizeof(cupti_cache.slots));
}

bool cupti_cache_ready(struct writer *w)
{
	if (!writer_ready(w))
		return false;
	if (!cupti_cache.rows) {
		cupti_cache.rows = calloc(CACHE_MAX + 1, sizeof(*cupti_cache.rows));
		if (!cupti_cache.rows)
			return false;
		cupti_cache.rows[NO_ROW].p = &no_layout;
	}
	if (writer_log_changed(w, &cupti_cache.log))
		cupti_cache_clear();
	return true;
}

static uint32_t add_row(struct writer *w, const struct cupti_layout *p, const uint8_t *record,
			size_t slot)
{
	uint32_t track = 0, desc;

	if (!p->wanted)
		desc = DESC_UNWANTED;
	else if (cupti_desc_is_noise(p, record))
		desc = DESC_NOISE;
	else
		desc = cupti_desc_make(w, p, record, &track);
	if (!desc) /* a ceiling: not kept, so that it is tried again */
		return NO_ROW;
	if (cupti_cache.count == CACHE_MAX) {
		cupti_cache_clear();
		slot = slot_of(p, record);
	}
	struct cache_row *row = &cupti_cache.rows[++cupti_cache.count];

	row->desc = desc;
	row->track = track;
	row->p = p;
	for (unsigned i = 0; i < p->words; i++)
		row->words[i] = read_word(record, 8 * i) & p->mask[i];
	cupti_cache.slots[slot] = cupti_cache.count;
	cupti_cache.counts.made++;
	return cupti_cache.count;
}

uint32_t cupti_cache_find(struct writer *w, const struct cupti_layout *p, const uint8_t *record)
{
	size_t slot = slot_of(p, record);

	for (; cupti_cache.slots[slot]; slot = (slot + 1) % CACHE_SLOTS)
		if (row_matches(&cupti_cache.rows[cupti_cache.slots[slot]], p, record)) {
			cupti_cache.counts.searched++;
			return cupti_cache.slots[slot];
		}
	return add_row(w, p, record, slot);
}
