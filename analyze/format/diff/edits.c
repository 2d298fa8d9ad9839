/* SPDX-License-Identifier: Apache-2.0 */
/* Expresses the difference between A and B as edits (DEFINITIONS.md 8). What one side has less of
 * is removed from the replay of the other, one edit after the other, and the value of each is the
 * resulting change of the step. Only shrinking is replayed, because work that does not exist cannot
 * be extended. */
#include "analyze/format/diff/diff.h"

#include "analyze/findings/rule.h"
#include "schemas/base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { KINDS_MOST = REPLAYED_SETS - 1, KIND_TEXT = 48, CHAIN_MOST = DIFF_EDITS / 2 };

struct scaled { /* time that an edit scales */
	char edit[KIND_TEXT];
	uint64_t number;
	double ns[2];   /* per step, in A and in B */
	double less_ns; /* how much less the other side has */
};
struct kinds {
	struct scaled all[KINDS_MOST];
	size_t count;
};

static void kind_add(struct kinds *k, const char *word, const char *name)
{
	size_t i = 0;
	char edit[KIND_TEXT];
	int len = snprintf(edit, sizeof(edit), "%s%s", word, name);

	/* names of the user's phases may contain special characters */
	if (len >= KIND_TEXT - 4 || strpbrk(name, ",;=*?[\\"))
		return;
	while (i < k->count && strcmp(k->all[i].edit, edit) != 0)
		i++;
	if (i < k->count || i == KINDS_MOST)
		return;
	k->all[i] = (struct scaled){ .number = i };
	memcpy(k->all[i].edit, edit, sizeof(edit));
	k->count++;
}

static void kinds_take(struct kinds *k, struct tables *a, struct tables *b)
{
	static const char *const words[] = { "data",          "comm",
					     "copy",          "cause:sync",
					     "cause:gc",      "cause:blocking_copy",
					     "cause:compile", "cause:allocator" };
	struct tables *const sides[] = { a, b };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		kind_add(k, words[i], "");
	for (unsigned i = 0; i < WORK_COUNT; i++)
		if (i != WORK_COMM)
			kind_add(k, "work:", work_words[i]);
	for (size_t side = 0; side < 2; side++) {
		struct table *t = tables_find(sides[side], "phases");

		for (size_t i = 0; t && i < table_count(t); i++) {
			const char *phase = table_at(t, i)[RANK_KEYS].text;

			if (strcmp(phase, "data") != 0)
				kind_add(k, "host:", phase);
		}
	}
}

/* Computes how much of each kind the steps of a side have. */
static enum status amounts_take(struct replayed *r, struct kinds *k, size_t side, struct error *err)
{
	char sets[KINDS_MOST][KIND_TEXT];
	const char *asked[KINDS_MOST];

	for (size_t i = 0; i < k->count; i++) {
		snprintf(sets[i], KIND_TEXT, "%.*s=0", KIND_TEXT - 4, k->all[i].edit);
		asked[i] = sets[i];
	}
	TRY(replayed_ask(r, asked, k->count, err));
	for (size_t i = 0; i < k->count; i++)
		k->all[i].ns[side] = replayed_answer(r, sets[i]).changed_ns;
	return ST_OK;
}

static const struct sort_key by_less[] = { DOWN(struct scaled, less_ns),
					   UP(struct scaled, number),
					   { .type = SORT_NONE } };

/* Removes from a side what the other has less of, the largest first. */
static enum status chain_replay(struct diff *d, struct replayed *r, struct kinds *k, size_t side,
				struct error *err)
{
	char sets[CHAIN_MOST][EDITS_TEXT];
	const char *asked[CHAIN_MOST];
	size_t count = 0, len = 0;

	for (size_t i = 0; i < k->count; i++) {
		struct scaled *one = &k->all[i];

		one->less_ns = one->ns[side] - one->ns[!side];
		/* calls that both sides have can wait on both */
		if (!strncmp(one->edit, "cause:", 6) && one->ns[!side] > 0)
			one->less_ns = 0;
	}
	sort_rows(k->all, k->count, sizeof(*k->all), by_less);
	while (count < CHAIN_MOST && count < k->count &&
	       k->all[count].less_ns > DIFF_UNCHANGED * (double)d->a.mean_ns) {
		const struct scaled *one = &k->all[count];

		if (count)
			memcpy(sets[count], sets[count - 1], len);
		len += (size_t)snprintf(sets[count] + len, EDITS_TEXT - len, "%s%s=%.4f",
					count ? "," : "", one->edit,
					one->ns[!side] / one->ns[side]);
		if (len >= EDITS_TEXT)
			break;
		asked[count] = sets[count];
		count++;
	}
	TRY(replayed_ask(r, asked, count, err));
	double before_ns = replayed_baseline(r);
	for (size_t i = 0; i < count; i++) {
		double ns = replayed_answer(r, sets[i]).step_ns;
		struct diff_edit *one = &d->edits[d->edit_count++];

		snprintf(one->text, sizeof(one->text), "%s=%.4f", k->all[i].edit,
			 k->all[i].ns[!side] / k->all[i].ns[side]);
		one->of = side ? "B" : "A";
		one->ns.difference_ns = llround(side ? before_ns - ns : ns - before_ns);
		one->ns.size_ns = llabs(one->ns.difference_ns);
		before_ns = ns;
	}
	return ST_OK;
}

/* Returns the place in the model with at least half of the change of such work or waiting; NULL:
 * none. */
static const char *place_of(const struct diff *d, const struct diff_edit *e)
{
	const char *colon = strchr(e->text, ':'), *word = e->text;
	int64_t sum_ns = 0, most_ns = 0;
	const char *place = NULL;

	if (colon && *word != 'h') /* host:forward is the name of a cause */
		word = colon + 1;
	size_t len = strcspn(word, "=");
	for (size_t i = 0; i < d->model_count; i++) {
		const struct diff_row *p = &d->model[i];

		if (strlen(p->cause) != len || strncmp(p->cause, word, len) != 0)
			continue;
		sum_ns += p->ns.difference_ns;
		if ((p->ns.difference_ns > 0) != (e->ns.difference_ns > 0) ||
		    p->ns.size_ns <= most_ns)
			continue;
		most_ns = p->ns.size_ns;
		place = p->range;
	}
	return place && place[0] && 2 * most_ns >= llabs(sum_ns) ? place : NULL;
}

enum status diff_edits_take(struct diff *d, struct tables *a, struct tables *b, struct error *err)
{
	struct tables *const sides[] = { a, b };
	struct replayed *r[2] = { NULL, NULL };
	struct kinds kinds = { .count = 0 };
	enum status status = ST_OK;
	bool is_known = true;

	d->replayed_ns = d->unexplained_ns = NAN;
	kinds_take(&kinds, a, b);
	for (size_t i = 0; i < 2 && status == ST_OK; i++) {
		status = replayed_open(&r[i], sides[i], err);
		if (status == ST_OK)
			status = amounts_take(r[i], &kinds, i, err);
		is_known &= status == ST_OK && replayed_baseline(r[i]) > 0;
	}
	if (is_known)
		d->replayed_ns = replayed_baseline(r[1]) - replayed_baseline(r[0]);
	for (size_t i = 0; i < 2 && status == ST_OK && is_known; i++)
		status = chain_replay(d, r[i], &kinds, i, err);
	replayed_close(r[0]);
	replayed_close(r[1]);
	if (status != ST_OK || !is_known)
		return status;
	SORT_BY(d->edits, d->edit_count, DOWN(struct diff_edit, ns.size_ns));
	d->unexplained_ns = d->replayed_ns;
	for (size_t i = 0; i < d->edit_count; i++) {
		d->edits[i].edit = d->edits[i].text;
		d->edits[i].place = place_of(d, &d->edits[i]);
		d->unexplained_ns -= (double)d->edits[i].ns.difference_ns;
	}
	return ST_OK;
}

void diff_edits_text(const struct diff *d, char out[DIFF_SENTENCE])
{
	enum { SHOWN = 3 };
	size_t len, i;
	int64_t rest_ns = 0;

	out[0] = '\0';
	if (!isfinite(d->unexplained_ns) || !d->edit_count)
		return;
	len = (size_t)snprintf(out, DIFF_SENTENCE,
			       "By replay of the median step, %+.3f ms: ", d->replayed_ns / 1e6);
	for (i = 0; i < d->edit_count && i < SHOWN; i++) {
		const struct diff_edit *e = &d->edits[i];
		bool is_work = !strncmp(e->edit, "work:", 5);
		const char *word = is_work || !strncmp(e->edit, "cause:", 6)
					   ? strchr(e->edit, ':') + 1
					   : e->edit;
		char place[CUT_TEXT];

		len += (size_t)snprintf(out + len, DIFF_SENTENCE - len, "%s%.*s%s%s%s %+.3f ms",
					i ? ", " : "", (int)strcspn(word, "="), word,
					is_work ? " kernels" : "", e->place ? " in " : "",
					e->place ? cut_text(place, e->place, 24) : "",
					(double)e->ns.difference_ns / 1e6);
	}
	for (size_t k = i; k < d->edit_count; k++)
		rest_ns += d->edits[k].ns.difference_ns;
	if (i < d->edit_count)
		len += (size_t)snprintf(out + len, DIFF_SENTENCE - len, ", %zu more %+.3f ms",
					d->edit_count - i, (double)rest_ns / 1e6);
	snprintf(out + len, DIFF_SENTENCE - len, ", unexplained %+.3f ms.",
		 d->unexplained_ns / 1e6);
}
