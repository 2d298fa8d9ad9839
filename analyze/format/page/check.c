/* SPDX-License-Identifier: Apache-2.0 */
/* The report `check` in a terminal: one word for the recording, then its checks, worst first. */
#include "analyze/format/page/internal.h"

#include "analyze/report/check/check.h"

enum { NAME_AT = 14, TEXT_AT = 30, ROWS_BAD = 8, ROWS_OTHER = 2, NARROW = 60 };

static const struct verdict_type {
	const char *word, *title;
	enum token title_token, token;
	unsigned rows;              /* limit for one check; further ones are counted */
	const char *name, *meaning; /* used if it is the worst verdict */
} verdicts[] = {
	[VERDICT_BAD] = { "bad", "! BAD", TOKEN_WARN, TOKEN_WARN, ROWS_BAD, "! NO TRUST",
			  "Do not use figures of this recording until you know why: " },
	[VERDICT_DOUBT] = { "doubt", "DOUBT", TOKEN_BOLD, TOKEN_TEXT, ROWS_BAD, "WITH CARE",
			    "Use the figures with these reservations: " },
	[VERDICT_UNKNOWN] = { "unknown", "UNKNOWN", TOKEN_BOLD, TOKEN_TEXT, ROWS_OTHER, "TRUST",
			      "No problem was found in this recording; unknown: " },
	[VERDICT_GOOD] = { "good", "GOOD", TOKEN_BOLD, TOKEN_DIM, ROWS_OTHER, "TRUST",
			   "No problem was found in this recording." },
};

/* Rows of the report by check; the table may be long, so it is read only twice. */
struct checks {
	const struct page *page;
	struct view rows;
	unsigned char *verdicts, *names; /* by row; names: enum check_place */
	size_t counts[VERDICT_GOOD + 1][CHECKS];
};

static void take_checks(struct checks *c, struct blocks *b)
{
	c->verdicts = blocks_take(b, c->rows.count, 1);
	c->names = blocks_take(b, c->rows.count, 1);
	if (b->is_full)
		return;
	for (size_t i = 0; i < c->rows.count; i++) {
		unsigned char name = 0, v = VERDICT_BAD;

		while (name + 1 < CHECKS &&
		       strcmp(check_types[name].name, c->rows.rows[i][CHECK_NAME].text) != 0)
			name++;
		while (v < VERDICT_GOOD &&
		       strcmp(verdicts[v].word, c->rows.rows[i][CHECK_VERDICT].text) != 0)
			v++;
		c->names[i] = name;
		c->verdicts[i] = v;
		c->counts[v][name]++;
	}
}

/* Returns the name of a check as words: "no launch". */
static const char *words_of(size_t check, struct blocks *b)
{
	char *words = blocks_take(b, strlen(check_types[check].name) + 1, 1);

	for (size_t i = 0; words && check_types[check].name[i]; i++)
		words[i] = check_types[check].name[i] == '_' ? ' ' : check_types[check].name[i];
	return words ? words : "";
}

/* Returns the names of the checks with this verdict; "" if there are none. */
static const char *names_text(const struct checks *c, unsigned v, struct blocks *b)
{
	const char *names = "";

	for (size_t i = 0; i < CHECKS; i++)
		if (c->counts[v][i])
			names = blocks_text(b, "%s%s%s", names, *names ? ", " : "", words_of(i, b));
	return names;
}

static struct block_words *add_verdict(struct blocks *b, const char *label, enum token token)
{
	struct block_words *w = add_labelled(b, NAME_AT, 0, token, label);

	b->last->has_gap = true;
	return w;
}

/* Returns whether all ranks have the same sentence. */
static bool is_common(const struct checks *c, unsigned v, size_t check)
{
	const char *text = NULL;

	if (c->page->ranks.count < 2 || c->counts[v][check] != c->page->ranks.count)
		return false;
	for (size_t i = 0; i < c->rows.count; i++) {
		if (c->verdicts[i] != v || c->names[i] != check)
			continue;
		if (text && strcmp(text, c->rows.rows[i][CHECK_TEXT].text) != 0)
			return false;
		text = c->rows.rows[i][CHECK_TEXT].text;
	}
	return true;
}

/* Adds the sentences of one check, with the rank before each if there are several ranks. */
static void add_check(const struct checks *c, unsigned v, size_t check, unsigned left,
		      struct blocks *b)
{
	size_t count = c->counts[v][check], shown = 0;
	bool of_all = is_common(c, v, check), is_alone = c->page->ranks.count < 2;
	size_t most = of_all ? 1 : count > verdicts[v].rows ? verdicts[v].rows - 1 : count;
	const char *colon = strcmp(check_types[check].name, "recorder") ? "" : ":";

	for (size_t i = 0; i < c->rows.count && shown < most; i++) {
		const union value *row = c->rows.rows[i];

		if (c->verdicts[i] != v || c->names[i] != check)
			continue;
		struct block_words *w = add_labelled(
			b, left, left - (TEXT_AT - NAME_AT), TOKEN_DIM,
			shown++ ? NULL : blocks_text(b, "%s%s", words_of(check, b), colon));
		if (of_all)
			add_span(b, w, TOKEN_DIM, "all ranks: ");
		else if (!is_alone && row[0].u64 != NO_U64)
			add_spanf(b, w, TOKEN_DIM, "rank %llu: ", (unsigned long long)row[0].u64);
		else if (!is_alone)
			add_spanf(b, w, TOKEN_DIM, "pid %llu: ", (unsigned long long)row[2].u64);
		add_span(b, w, verdicts[v].token, row[CHECK_TEXT].text);
		if (shown == most && count > most && !of_all)
			w->more = blocks_text(b, DOT "%zu more", count - most);
	}
}

void build_check(const struct page *p, struct blocks *b)
{
	struct checks c = { .page = p, .rows = page_view(p, "checks") };
	bool is_narrow = p->width < NARROW;
	unsigned worst = VERDICT_BAD;
	struct block_words *w;

	take_checks(&c, b);
	if (b->is_full)
		return;
	struct block *new = add_block(b, BLOCK_INPUT);
	uint64_t events = page_sum(&p->ranks, "events");
	const char *format = p->inputs.count ? view_cell(&p->inputs, 0, "format").text : NULL;

	new->input.path = p->inputs.count ? view_cell(&p->inputs, 0, "path").text : "no input";
	new->input.more =
		p->inputs.count > 1 ? blocks_text(b, " and %zu more", p->inputs.count - 1) : "";
	new->input.report = "check";
	add_span(b, &new->input.words, TOKEN_DIM, format ? format : "unknown format");
	add_spanf(b, &new->input.words, TOKEN_DIM, ", %s event%s", show_count(b, events),
		  plural(events));
	if (p->ranks.count > 1)
		add_spanf(b, &new->input.words, TOKEN_DIM, DOT "%s ranks",
			  show_count(b, p->ranks.count));
	if (!c.rows.count) {
		w = add_verdict(b, "! NOTHING", TOKEN_WARN);
		add_span(b, w, TOKEN_WARN, "The selection contains no process: nothing to check.");
		return;
	}
	while (worst < VERDICT_GOOD && !names_text(&c, worst, b)[0])
		worst++;
	const char *names = worst < VERDICT_GOOD ? names_text(&c, worst, b) : "";
	w = add_verdict(b, verdicts[worst].name, verdicts[worst].title_token);
	add_span(b, w, verdicts[worst].title_token, verdicts[worst].meaning);
	add_span(b, w, TOKEN_TEXT, names);
	for (unsigned v = VERDICT_BAD; v <= VERDICT_GOOD; v++) {
		bool is_open = false; /* in a wide terminal the title is before the first name */

		for (size_t i = 0; i < CHECKS; i++) {
			if (!c.counts[v][i])
				continue;
			if (!is_open)
				add_verdict(b, verdicts[v].title, verdicts[v].title_token)
					->is_open = !is_narrow;
			is_open = true;
			add_check(&c, v, i, is_narrow ? TEXT_AT - NAME_AT : TEXT_AT, b);
		}
	}
}
