/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cupti/seen.h"

#include "collector/cupti/site.h"
#include "collector/writer.h"
#include "schemas/log.h"

#include <stdlib.h>

struct cupti_seen cupti_seen;
static const struct cupti_plan no_plan;

static uint64_t hash_of(const struct cupti_plan *p, const uint8_t *record)
{
	uint64_t hash = p->index;
	unsigned i;

	for (i = 0; i < p->words; i += 2)
		hash = hash_fold(hash ^ (plan_word(record, 8 * i) & p->mask[i]) ^ HASH_A,
				 (plan_word(record, 8 * i + 8) & p->mask[i + 1]) ^ HASH_B);
	return hash;
}

static void steps_clear(void)
{
	cupti_seen.step_count = cupti_seen.step = 0;
	cupti_seen.steps[0] = (struct seen_step){ 0 };
	memset(cupti_seen.step_slots, 0, sizeof(cupti_seen.step_slots));
}

/* That row after the one before it; made if it is new. */
static uint32_t step_find(uint16_t before, uint16_t row)
{
	uint64_t hash = ((uint64_t)before << 16 | row) * HASH_A;
	uint16_t *slot = &cupti_seen.step_slots[hash >> (64 - SEEN_GUESS_BITS)];
	const struct seen_step *s = &cupti_seen.steps[*slot];

	if (!*slot || s->before != before || s->row != row) {
		if (cupti_seen.step_count + 1 == SEEN_STEPS)
			steps_clear();
		*slot = (uint16_t)++cupti_seen.step_count;
		cupti_seen.steps[*slot] = (struct seen_step){ .before = before, .row = row };
	}
	return *slot;
}

/* Another work than the last time. */
static void step_to(uint32_t row)
{
	struct seen_step *s = &cupti_seen.steps[cupti_seen.step];
	uint32_t next = step_find(s->row, (uint16_t)row);

	if (cupti_seen.step) /* still there */
		s->next = (uint16_t)next;
	cupti_seen.step = next;
}

void cupti_seen_clear(void)
{
	cupti_seen.count = 0;
	cupti_seen.last = NO_ROW;
	steps_clear();
	memset(cupti_seen.slots, 0, sizeof(cupti_seen.slots));
	memset(cupti_seen.guesses, 0, sizeof(cupti_seen.guesses));
	memset(cupti_seen.calls, 0, sizeof(cupti_seen.calls));
}

bool cupti_seen_ready(struct writer *w)
{
	if (!writer_ready(w))
		return false;
	if (!cupti_seen.rows) {
		cupti_seen.rows = calloc(SEEN_ROWS + 1, sizeof(*cupti_seen.rows));
		if (!cupti_seen.rows)
			return false;
		cupti_seen.rows[NO_ROW].p = &no_plan;
	}
	if (cupti_seen.log != writer_log(w))
		cupti_seen_clear();
	cupti_seen.log = writer_log(w);
	return true;
}

static uint32_t site_of(struct writer *w, const struct cupti_plan *p, const uint8_t *record,
			uint32_t *track)
{
	if (!p->wanted)
		return SITE_UNWANTED;
	if (cupti_site_is_noise(p, record))
		return SITE_NOISE;
	return cupti_site_make(w, p, record, track);
}

static uint32_t row_add(struct writer *w, const struct cupti_plan *p, const uint8_t *record,
			size_t slot)
{
	uint32_t track = 0, site = site_of(w, p, record, &track);
	struct seen_row *row;
	unsigned i;

	if (!site) /* a ceiling: not kept, so that it is tried again */
		return NO_ROW;
	if (cupti_seen.count == SEEN_ROWS) {
		cupti_seen_clear();
		slot = hash_of(p, record) % SEEN_SLOTS;
	}
	row = &cupti_seen.rows[++cupti_seen.count];
	row->site = site;
	row->track = track;
	row->p = p;
	for (i = 0; i < p->words; i++)
		row->words[i] = plan_word(record, 8 * i) & p->mask[i];
	cupti_seen.slots[slot] = cupti_seen.count;
	cupti_seen.counts.made++;
	return cupti_seen.count;
}

static uint32_t row_search(struct writer *w, const struct cupti_plan *p, const uint8_t *record)
{
	size_t slot = hash_of(p, record) % SEEN_SLOTS;

	for (; cupti_seen.slots[slot]; slot = (slot + 1) % SEEN_SLOTS)
		if (seen_is(&cupti_seen.rows[cupti_seen.slots[slot]], p, record)) {
			cupti_seen.counts.searched++;
			return cupti_seen.slots[slot];
		}
	return row_add(w, p, record, slot);
}

static uint32_t find_call(struct writer *w, const struct cupti_plan *p, const uint8_t *record)
{
	uint64_t what = seen_call_what(record);
	struct seen_call *c = seen_call_at(p->index, what);
	const struct seen_row *row;
	uint32_t found;

	if (c->what == what && c->plan == p->index && c->row) {
		cupti_seen.counts.guessed++;
		return c->row;
	}
	found = row_search(w, p, record);
	row = &cupti_seen.rows[found];
	*c = (struct seen_call){ .what = what, .site = row->site, .plan = p->index,
				 .row = (uint16_t)found, .slot = log_slot(row->track) };
	return found;
}

static uint32_t find_work(struct writer *w, const struct cupti_plan *p, const uint8_t *record)
{
	uint32_t step = seen_next_step(cupti_seen.step), row = cupti_seen.steps[step].row;

	if (seen_is(&cupti_seen.rows[row], p, record)) {
		cupti_seen.counts.guessed++;
		cupti_seen.step = step;
		return row;
	}
	row = row_search(w, p, record);
	step_to(row);
	return row;
}

/* What is neither work nor a call is after what was before it. */
static uint32_t find_other(struct writer *w, const struct cupti_plan *p, const uint8_t *record)
{
	uint64_t before = (uint64_t)cupti_seen.step << 16 | cupti_seen.last;
	uint16_t *guess = &cupti_seen.guesses[before * HASH_A >> (64 - SEEN_GUESS_BITS)];

	if (seen_is(&cupti_seen.rows[*guess], p, record)) {
		cupti_seen.counts.guessed++;
		return *guess;
	}
	*guess = (uint16_t)row_search(w, p, record);
	return *guess;
}

const struct seen_row *cupti_seen_find(struct writer *w, const struct cupti_plan *p,
				       const uint8_t *record)
{
	uint32_t row;

	if (p->is_call)
		return &cupti_seen.rows[find_call(w, p, record)];
	row = seen_is_work(p) ? find_work(w, p, record) : find_other(w, p, record);
	cupti_seen.last = row;
	return &cupti_seen.rows[row];
}
