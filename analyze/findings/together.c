/* SPDX-License-Identifier: Apache-2.0 */
/* What findings save by the replay, each alone and the first of them together. */
#include "analyze/findings/internal.h"
#include "analyze/findings/rule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		all[i].percent = (unsigned)(100 * fmin(all[i].saving_ns / found_of(f, &all[i]), 1));
	}
	return ST_OK;
}

#define TOGETHER_COLUMNS(X)                                                                        \
	X(TOGETHER_OF, "of", NULL, TEXT, KEY, "the run")                                           \
	X(TOGETHER_PLACES, "places", NULL, TEXT, MAX, "of these findings: 1, 2 and 4")             \
	X(TOGETHER_EDITS, "edits", NULL, TEXT, MAX, "as in --what-if")                             \
	X(TOGETHER_BASELINE, "baseline_step_ns", NULL, U64, MAX,                                   \
	  "the median step that is replayed")                                                      \
	X(TOGETHER_STEP, "step_ns", NULL, U64, MAX, "the median step with all of these edits")     \
	X(TOGETHER_NEXT, "next", NULL, TEXT, MAX,                                                  \
	  "the family that would save most then; null: none saves 1 %")
TABLE(together, TOGETHER_COLUMNS, .nest = NEST_OBJECT, .null_texts = "next", .is_finished = true);
enum { TOGETHER_MOST = 3 };

/* Of the sets of edits, each with `before` in front, the one with the shortest step; `count`: none
 * is known.  *step_ns: its step. */
static enum status best_of(const struct facts *f, const char *before, const char *const *edits,
			   size_t count, size_t *best, double *step_ns, struct error *err)
{
	char(*sets)[EDITS_TEXT] = calloc(count + 1, sizeof(*sets));
	const char *asked[FOUND_MAX] = { NULL };
	enum status status = sets ? ST_OK : fail_memory(err);
	size_t sets_count = 0;

	for (size_t i = 0; status == ST_OK && i < count; i++) {
		int len = snprintf(sets[i], EDITS_TEXT, "%s%s%s", before, *before ? "," : "",
				   edits[i]);

		if (!*edits[i] || len >= EDITS_TEXT)
			*sets[i] = '\0';
		else
			asked[sets_count++] = sets[i];
	}
	if (status == ST_OK)
		status = replayed_ask(f->replayed, asked, sets_count, err);
	*best = count;
	for (size_t i = 0; status == ST_OK && i < count; i++) {
		struct replay_answer a = replayed_answer(f->replayed, sets[i]);

		if (!*sets[i] || !a.is_known || (*best < count && a.step_ns >= *step_ns))
			continue;
		*best = i;
		*step_ns = a.step_ns;
	}
	free(sets);
	return status;
}

/* The first, and then twice that which saves most beside those before it. */
enum status together_put(const struct facts *f, const struct found *all, size_t count,
			 struct error *err)
{
	struct table *t = tables_find(f->tables, "together");
	double baseline = replayed_baseline(f->replayed), step_ns = baseline, next_ns = 0;
	bool is_chosen[FOUND_MAX] = { false };
	const char *edits[FOUND_MAX];
	char sum[EDITS_TEXT] = "", places[96] = "";
	size_t best, chosen, len = 0;
	enum family next;
	union value key = { .text = "run" }, *row;

	for (chosen = 0; chosen < TOGETHER_MOST; chosen++) {
		for (size_t i = 0; i < count; i++)
			edits[i] = all[i].is_replayed && !is_chosen[i] &&
						   (chosen || !i || !all[0].is_replayed)
					   ? all[i].edits
					   : "";
		TRY(best_of(f, sum, edits, count, &best, &next_ns, err));
		if (best == count || step_ns - next_ns < SHARE_LEAST * baseline)
			break;
		is_chosen[best] = true;
		len = strlen(sum); /* best_of() has seen that it fits */
		if (len)
			sum[len++] = ',';
		memcpy(sum + len, all[best].edits, strlen(all[best].edits) + 1);
		step_ns = next_ns;
	}
	if (chosen < 2)
		return ST_OK;
	size_t numbers[TOGETHER_MOST] = { 0 };
	for (size_t i = 0, k = 0; i < count; i++)
		if (is_chosen[i])
			numbers[k++] = i + 1;
	if (chosen == TOGETHER_MOST)
		snprintf(places, sizeof(places), "%zu, %zu and %zu", numbers[0], numbers[1],
			 numbers[2]);
	else
		snprintf(places, sizeof(places), "%zu and %zu", numbers[0], numbers[1]);
	TRY(savings_next(f, sum, &next, &next_ns, err));
	TRY(table_row(t, &key, &row, err));
	row[TOGETHER_PLACES].text = table_text(t, places, err);
	row[TOGETHER_EDITS].text = table_text(t, sum, err);
	row[TOGETHER_BASELINE].u64 = (uint64_t)llround(baseline);
	row[TOGETHER_STEP].u64 = (uint64_t)llround(step_ns);
	row[TOGETHER_NEXT].text = next ? table_text(t, family_word(next), err) : NULL;
	return row[TOGETHER_PLACES].text && row[TOGETHER_EDITS].text ? ST_OK : ST_CEILING;
}

enum status what_if_next(const struct facts *f, struct error *err)
{
	struct table *t = tables_find(f->tables, "what_if");
	enum family next;
	union value *row;
	double ns;

	for (size_t i = 0; t && (row = table_at(t, i)); i++) {
		TRY(savings_next(f, row[0].text, &next, &ns, err));
		if (!next)
			continue;
		row[table_column(t, "next")].text = table_text(t, family_word(next), err);
		row[table_column(t, "next_saves_ns")].u64 = (uint64_t)llround(ns);
	}
	return ST_OK;
}
