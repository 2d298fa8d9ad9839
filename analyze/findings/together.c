/* SPDX-License-Identifier: Apache-2.0 */
/* What each finding saves alone, by replay, and what the first ones save together. */
#include "analyze/findings/internal.h"

#include <math.h>
#include <stdio.h>

double found_of(const struct facts *f, const struct found *one)
{
	return one->is_replayed ? replayed_baseline(f->replayed) : f->step_ns;
}

enum status found_replay(const struct facts *f, struct found *all, size_t count, struct error *err)
{
	const char *edits[FOUND_MAX] = { NULL };
	size_t asked = 0;

	for (size_t i = 0; i < count; i++) {
		finding_edits(f, all[i].rule->name, all[i].finding.saving_ns, all[i].edits);
		if (*all[i].edits)
			edits[asked++] = all[i].edits;
	}
	TRY(replayed_ask(f->replayed, edits, asked, err));
	for (size_t i = 0; i < count; i++) {
		struct replay_answer a = replayed_answer(f->replayed, all[i].edits);

		all[i].is_replayed = *all[i].edits && a.is_known;
		all[i].saving_ns = all[i].is_replayed ? a.saves_ns : all[i].finding.saving_ns;
	}
	return ST_OK;
}

#define TOGETHER_COLUMNS(X)                                                                        \
	X(TOGETHER_OF, "of", NULL, TEXT, KEY, "always the word run")                               \
	X(TOGETHER_PLACES, "places", NULL, TEXT, MAX, "positions of the findings: 1, 2 and 3")     \
	X(TOGETHER_EDITS, "edits", NULL, TEXT, MAX, "edits of the findings, as in --what-if")      \
	X(TOGETHER_BASELINE, "baseline_step_ns", NULL, U64, MAX, "median replayed step, unedited") \
	X(TOGETHER_STEP, "step_ns", NULL, U64, MAX, "median replayed step with all these edits")   \
	X(TOGETHER_NEXT, "next", NULL, TEXT, MAX,                                                  \
	  "family that would save most after these edits; null: none saves 1 %")
TABLE(together, TOGETHER_COLUMNS, .nest = NEST_OBJECT, .null_texts = "next", .is_finished = true);
enum { TOGETHER_MOST = 3, TOGETHER_AMONG = 5 /* every page shows this many */ };

/* Replays the first findings with edits together, and stores the resulting step and what bounds it.
 * A single finding already has that in its own row. */
enum status together_put(const struct facts *f, const struct found *all, size_t count,
			 struct error *err)
{
	struct table *t = tables_find(f->tables, "together");
	char edits[EDITS_TEXT] = "", places[96] = "";
	const char *asked = edits;
	size_t numbers[TOGETHER_MOST], chosen = 0, len = 0;
	enum family next;
	double next_ns;
	union value key = { .text = "run" }, *row;

	for (size_t i = 0; i < count && i < TOGETHER_AMONG && chosen < TOGETHER_MOST; i++) {
		size_t more = strlen(all[i].edits);

		if (!all[i].is_replayed || len + more + 2 > sizeof(edits))
			continue;
		len += (size_t)sprintf(edits + len, "%s%s", len ? "," : "", all[i].edits);
		numbers[chosen++] = i + 1;
	}
	if (chosen < 2)
		return ST_OK;
	TRY(replayed_ask(f->replayed, &asked, 1, err));
	struct replay_answer answer = replayed_answer(f->replayed, edits);
	if (!answer.is_known)
		return ST_OK;
	snprintf(places, sizeof(places), chosen == 2 ? "%zu and %zu" : "%zu, %zu and %zu",
		 numbers[0], numbers[1], numbers[chosen - 1]);
	TRY(savings_next(f, edits, &next, &next_ns, err));
	TRY(table_row(t, &key, &row, err));
	row[TOGETHER_PLACES].text = table_text(t, places, err);
	row[TOGETHER_EDITS].text = table_text(t, edits, err);
	row[TOGETHER_BASELINE].u64 = (uint64_t)llround(replayed_baseline(f->replayed));
	row[TOGETHER_STEP].u64 = (uint64_t)llround(answer.step_ns);
	row[TOGETHER_NEXT].text = next ? table_text(t, family_words[next], err) : NULL;
	return row[TOGETHER_PLACES].text && row[TOGETHER_EDITS].text ? ST_OK : ST_CEILING;
}

enum status what_if_next(const struct facts *f, struct error *err)
{
	struct table *t = tables_find(f->tables, "what_if");
	enum family next;
	union value *row;
	double ns;

	for (size_t i = 0; t && (row = table_at(t, i)); i++) {
		if (!strncmp(row[0].text, "rank:", 5))
			continue; /* concerns all ranks and cannot be combined with other edits */
		TRY(savings_next(f, row[0].text, &next, &ns, err));
		if (!next)
			continue;
		row[table_column(t, "next")].text = table_text(t, family_words[next], err);
		row[table_column(t, "next_saves_ns")].u64 = (uint64_t)llround(ns);
	}
	return ST_OK;
}
