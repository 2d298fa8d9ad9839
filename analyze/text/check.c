/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `check`: one word for the recording, then its checks, the worst first. */
#include "analyze/report_check.h"
#include "analyze/text/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_AT = 14, TEXT_AT = 30, ROWS_BAD = 8, ROWS_OTHER = 2, NARROW = 60 };

static const char *const check_names[] = {
#define X(name, meaning) #name,
	CHECK_LIST(X)
#undef X
};
enum { CHECKS = sizeof(check_names) / sizeof(check_names[0]) };
static const struct {
	const char *word, *title;
	enum token title_token, token;
	unsigned rows; /* of one check; more are counted */
} blocks[] = {
	[VERDICT_BAD] = { "bad", "! BAD", TOKEN_WARN, TOKEN_WARN, ROWS_BAD },
	[VERDICT_DOUBT] = { "doubt", "DOUBT", TOKEN_BOLD, TOKEN_TEXT, ROWS_BAD },
	[VERDICT_UNKNOWN] = { "unknown", "UNKNOWN", TOKEN_BOLD, TOKEN_TEXT, ROWS_OTHER },
	[VERDICT_GOOD] = { "good", "GOOD", TOKEN_BOLD, TOKEN_DIM, ROWS_OTHER },
};

/* Rows of the report by check, in two passes over a table that may be long. */
struct pick {
	struct page *page;
	struct view rows;
	enum verdict *verdicts;
	unsigned char *checks; /* by row: place in check_names */
	size_t counts[VERDICT_GOOD + 1][CHECKS];
};

static size_t place_of(const char *check)
{
	size_t i = 0;

	while (i + 1 < CHECKS && strcmp(check_names[i], check) != 0)
		i++;
	return i;
}

static enum verdict verdict_of(const char *word)
{
	unsigned v = VERDICT_BAD;

	while (v < VERDICT_GOOD && strcmp(blocks[v].word, word) != 0)
		v++;
	return (enum verdict)v;
}

static enum status pick_make(struct pick *k, struct error *err)
{
	size_t i;

	k->verdicts = calloc(k->rows.count + 1, sizeof(*k->verdicts));
	k->checks = calloc(k->rows.count + 1, 1);
	if (!k->verdicts || !k->checks)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < k->rows.count; i++) {
		k->checks[i] = (unsigned char)place_of(k->rows.rows[i][CHECK_NAME].text);
		k->verdicts[i] = verdict_of(k->rows.rows[i][CHECK_VERDICT].text);
		k->counts[k->verdicts[i]][k->checks[i]]++;
	}
	return ST_OK;
}

static size_t checks_with(const struct pick *k, enum verdict v)
{
	size_t i, count = 0;

	for (i = 0; i < CHECKS; i++)
		count += k->counts[v][i] != 0;
	return count;
}

static void put_input(struct page *p)
{
	struct view inputs = page_view(p, "inputs");
	uint64_t events = page_sum(&p->ranks, "events");
	char line[64] = "", count[NUMBER_TEXT];
	unsigned column, room = p->text.width > 20 ? p->text.width - 8 : 12;
	const char *text;

	if (inputs.count > 1)
		snprintf(line, sizeof(line), " and %zu more", inputs.count - 1);
	room -= text_width(line) < room ? text_width(line) : 0;
	text = inputs.count ? view_cell(&inputs, 0, "path").text : "no input";
	column = text_cut(&p->text, 0, room, TOKEN_BOLD, text);
	text_at(&p->text, column, TOKEN_DIM, line);
	text_right(&p->text, p->text.width, TOKEN_DIM, "check");
	text_end(&p->text);
	text = inputs.count ? view_cell(&inputs, 0, "format").text : NULL;
	column = text_at(&p->text, 0, TOKEN_DIM, text ? text : "unknown format");
	column = text_atf(&p->text, column, TOKEN_DIM, ", %s event%s", count_text(count, events),
			  plural(events));
	if (p->ranks.count > 1)
		text_atf(&p->text, column, TOKEN_DIM, " \xc2\xb7 %zu ranks", p->ranks.count);
	text_end(&p->text);
}

/* The names of the checks with this verdict, as words. */
static void names_of(const struct pick *k, enum verdict v, char *out, size_t cap)
{
	size_t i, len = 0;

	out[0] = '\0';
	for (i = 0; i < CHECKS && len < cap; i++)
		if (k->counts[v][i])
			len += (size_t)snprintf(out + len, cap - len, "%s%s", len ? ", " : "",
						check_names[i]);
	for (; *out; out++)
		if (*out == '_')
			*out = ' ';
}

static void put_verdict(struct pick *k)
{
	static const char *const titles[] = { "! NO TRUST", "WITH CARE", "TRUST", "TRUST" };
	static const char *const means[] = {
		"Do not take figures from this recording before you know why: ",
		"Figures may be read with what stands below in mind: ",
		"Nothing speaks against this recording; not known: ",
		"Nothing speaks against this recording.",
	};
	struct page *p = k->page;
	unsigned v = VERDICT_BAD;
	char names[256];
	unsigned column;

	while (v < VERDICT_GOOD && !checks_with(k, (enum verdict)v))
		v++;
	names[0] = '\0';
	if (v < VERDICT_GOOD)
		names_of(k, (enum verdict)v, names, sizeof(names));
	text_end(&p->text);
	text_at(&p->text, 0, v == VERDICT_BAD ? TOKEN_WARN : TOKEN_BOLD, titles[v]);
	column = text_wrap(&p->text, NAME_AT, NAME_AT,
			   v == VERDICT_BAD ? TOKEN_WARN : TOKEN_BOLD, means[v]);
	text_wrap(&p->text, column, NAME_AT, TOKEN_TEXT, names);
	text_end(&p->text);
}

/* Whether all ranks say the same words. */
static bool is_common(const struct pick *k, enum verdict v, size_t check)
{
	const char *text = NULL;
	size_t i;

	if (k->page->ranks.count < 2 || k->counts[v][check] != k->page->ranks.count)
		return false;
	for (i = 0; i < k->rows.count; i++) {
		if (k->verdicts[i] != v || k->checks[i] != check)
			continue;
		if (text && strcmp(text, k->rows.rows[i][CHECK_TEXT].text) != 0)
			return false;
		text = k->rows.rows[i][CHECK_TEXT].text;
	}
	return true;
}

/* A sentence; of several ranks with the rank before it.  Returns the column after it. */
static unsigned put_sentence(struct page *p, const union value *row, unsigned left,
			     enum token token, bool is_of_all)
{
	char whose[NUMBER_TEXT] = "";
	unsigned column = left;

	if (is_of_all)
		snprintf(whose, sizeof(whose), "all ranks: ");
	else if (p->ranks.count > 1 && row[0].u64 != NO_U64)
		snprintf(whose, sizeof(whose), "rank %llu: ", (unsigned long long)row[0].u64);
	else if (p->ranks.count > 1)
		snprintf(whose, sizeof(whose), "pid %llu: ", (unsigned long long)row[2].u64);
	if (whose[0])
		column = text_at(&p->text, column, TOKEN_DIM, whose);
	return text_wrap(&p->text, column, left, token, row[CHECK_TEXT].text);
}

static void put_check(struct pick *k, enum verdict v, size_t check, unsigned left)
{
	size_t count = k->counts[v][check], shown = 0, i;
	bool of_all = is_common(k, v, check);
	size_t most = of_all ? 1 : count > blocks[v].rows ? blocks[v].rows - 1 : count;
	struct page *p = k->page;
	char name[32];
	unsigned column;

	snprintf(name, sizeof(name), "%s%s", check_names[check],
		 strcmp(check_names[check], "recorder") ? "" : ":");
	for (i = 0; name[i]; i++)
		if (name[i] == '_')
			name[i] = ' ';
	for (i = 0; i < k->rows.count && shown < most; i++) {
		if (k->verdicts[i] != v || k->checks[i] != check)
			continue;
		text_at(&p->text, left - (TEXT_AT - NAME_AT), TOKEN_DIM, shown ? "" : name);
		column = put_sentence(p, k->rows.rows[i], left, blocks[v].token, of_all);
		shown++;
		if (shown == most && count > most && !of_all)
			text_atf(&p->text, column, TOKEN_DIM, " \xc2\xb7 %zu more", count - most);
		text_end(&p->text);
	}
}

static void put_block(struct pick *k, enum verdict v)
{
	struct page *p = k->page;
	bool is_narrow = p->text.width < NARROW;
	size_t i;

	if (!checks_with(k, v))
		return;
	text_end(&p->text);
	text_at(&p->text, 0, blocks[v].title_token, blocks[v].title);
	if (is_narrow)
		text_end(&p->text);
	for (i = 0; i < CHECKS; i++)
		if (k->counts[v][i])
			put_check(k, v, i, is_narrow ? TEXT_AT - NAME_AT : TEXT_AT);
}

enum status page_check(struct page *p, struct error *err)
{
	struct pick k = { .page = p, .rows = page_view(p, "checks") };
	enum status status = pick_make(&k, err);
	unsigned v;

	put_input(p);
	if (status == ST_OK && !k.rows.count) {
		text_end(&p->text);
		text_at(&p->text, 0, TOKEN_WARN, "! NOTHING");
		text_wrap(&p->text, NAME_AT, NAME_AT, TOKEN_WARN,
			  "No process in what was asked for: nothing to check.");
		text_end(&p->text);
	} else if (status == ST_OK) {
		put_verdict(&k);
		for (v = VERDICT_BAD; v <= VERDICT_GOOD; v++)
			put_block(&k, (enum verdict)v);
	}
	free(k.verdicts);
	free(k.checks);
	return status;
}
