/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/seen.h - records that were seen before, by what repeats of them.
 *
 *	record --mask--> the one that followed the last time?  --no--> by hash  --no--> a new site
 *
 * A training loop says the same things in the same order: what comes next is guessed from what came
 * last, and compared word by word.  State is static; the writer's thread only.
 */
#ifndef COLLECTOR_CUPTI_SEEN_H
#define COLLECTOR_CUPTI_SEEN_H

#include "collector/cupti/plan.h"
#include "collector/cupti/rows.h"
#include "schemas/hash.h"

enum {
	SEEN_ROWS = 8192,
	SEEN_SLOTS = 4 * SEEN_ROWS,
	SEEN_GUESS_BITS = 16,
	SEEN_GUESSES = 1 << SEEN_GUESS_BITS,
	SEEN_STEPS = 1 << 15,
	SEEN_CALL_BITS = 12,
	NO_ROW = 0, /* rows are numbered from 1; row 0 is like no record */
};

/* Left out on purpose; sites of the log are small numbers from 1. */
#define SITE_UNWANTED UINT32_MAX
#define SITE_NOISE (UINT32_MAX - 1)

struct seen_row {
	const struct cupti_plan *p; /* row 0: of no family */
	uint32_t site, track;
	_Alignas(16) uint64_t words[PLAN_WORDS]; /* of the record, masked */
};
/* Work that came after other work: what followed it the last time is the next of a loop. */
struct seen_step {
	uint16_t before, row, next;
};
/* A call by its function and thread, which are all that repeats of it. */
struct seen_call {
	uint64_t what; /* seen_call_what() */
	uint32_t site;
	uint16_t plan, row;
	uint8_t slot; /* log_slot() of its track */
};
struct cupti_seen {
	struct seen_row *rows;
	uint32_t count;
	uint32_t slots[SEEN_SLOTS];
	uint64_t log; /* that the sites are of */
	struct seen_step steps[SEEN_STEPS]; /* step 0 is none */
	uint32_t step_count, step;          /* step: of the last work */
	uint16_t step_slots[SEEN_GUESSES];  /* by both rows of a step */
	struct seen_call calls[1 << SEEN_CALL_BITS]; /* by hash; site 0: none */
	uint16_t guesses[SEEN_GUESSES];     /* rows of all else, by what they were after */
	uint32_t last;                      /* row that was none of a call */
	struct cupti_row_counts counts;
};
extern struct cupti_seen cupti_seen __attribute__((visibility("hidden")));

/* False: no log, or no memory.  Rows of another log are forgotten. */
bool cupti_seen_ready(struct writer *w);
void cupti_seen_clear(void);
/* The row of a record, made if it is new: one without a site at a ceiling. */
const struct seen_row *cupti_seen_find(struct writer *w, const struct cupti_plan *p,
				       const uint8_t *record);

/* Four words at a time; a record lies where it likes. */
typedef uint64_t four_words __attribute__((vector_size(32), aligned(8), may_alias));

static inline __attribute__((always_inline)) bool seen_is(const struct seen_row *row,
							  const struct cupti_plan *p,
							  const uint8_t *record)
{
	const four_words *r = (const four_words *)(const void *)record;
	const four_words *mask = (const four_words *)(const void *)p->mask;
	const four_words *words = (const four_words *)(const void *)row->words;
	four_words differs = { 0 };
	unsigned i, fours = p->words / 4u;

	if (row->p != p)
		return false;
#pragma GCC unroll 4
	for (i = 0; i < fours; i++)
		differs |= (r[i] & mask[i]) ^ words[i];
	return (differs[0] | differs[1] | differs[2] | differs[3]) == 0;
}

/* Calls follow each other in any order, but there are few of them. */
static inline uint64_t seen_call_what(const uint8_t *record)
{
	return (plan_word(record, CALL_WHO) & CALL_MASK) | plan_word(record, CALL_THREAD) >> 32;
}

static inline struct seen_call *seen_call_at(uint16_t plan, uint64_t what)
{
	return &cupti_seen.calls[(what ^ plan) * HASH_A >> (64 - SEEN_CALL_BITS)];
}

/* Work follows work, whatever calls stand between. */
static inline uint32_t seen_next_step(uint32_t step)
{
	return cupti_seen.steps[step].next;
}

static inline bool seen_is_work(const struct cupti_plan *p)
{
	return p->record->kind <= KIND_GRAPH;
}

#endif
