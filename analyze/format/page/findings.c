/* SPDX-License-Identifier: Apache-2.0 */
/* The section FIX FIRST: findings by their savings; and the report `findings` in full. */
#include "analyze/format/page/internal.h"

#include <ctype.h>
#include <math.h>

enum { RULE_AT = 14, BRIEF_AT = 31, EDITS_BESIDE = 35 /* bytes of a rule and its edits */ };

/* Returns the text of a saving: "0" for a replay that saves nothing, not the dash for unknown
 * values. */
static const char *show_saving(struct blocks *b, double ns, const struct time_unit *unit)
{
	return ns > 0 ? show_time(b, ns, unit) : "0";
}

/* Returns the unit of all savings on a page: that of the step or window of which they are shares,
 * as in the sentence above them. */
static struct time_unit saving_unit(const struct view *v)
{
	double whole_ns = 0;

	for (size_t i = 0; i < v->count; i++) {
		double share = view_cell(v, i, "share_of_step").f64;

		if (share > 0)
			whole_ns = fmax(whole_ns,
					view_number(v, i, "saving_ns_per_step") / share * 100);
	}
	return time_unit_of(whole_ns, 1);
}

static size_t count_replayed(const struct view *v)
{
	size_t count = 0;

	for (size_t i = 0; i < v->count; i++)
		count += view_cell(v, i, "is_replayed").u64 == 1;
	return count;
}

/* Returns the sign before a saving. Without a replay only the time that the finding is about is
 * known. */
static const char *sign_of(const struct view *v, size_t row)
{
	return view_cell(v, row, "is_replayed").u64 == 1 ? "\xe2\x88\x92" : "of";
}

static const char *note_text(const struct page *p, const struct view *v,
			     const struct time_unit *unit, struct blocks *b)
{
	const char *per = p->has_steps ? " per step" : "";

	if (!count_replayed(v))
		return blocks_text(b, "%s%s that each is about; what changes save is not known",
				   unit->name, per);
	return blocks_text(b, "%s%s saved by each line alone (replay)%s", unit->name, per,
			   count_replayed(v) < v->count ? "; of: time it is about" : "");
}

/* Returns "222.4 → 128.7 ms, 1.73 x with 1, 2 and 4; then compute". */
static const char *together_text(const struct page *p, const struct time_unit *unit,
				 struct blocks *b)
{
	struct view v = page_view(p, "together");
	char next[32] = "";

	if (!v.count)
		return NULL;
	double before = view_number(&v, 0, "baseline_step_ns");
	double after = view_number(&v, 0, "step_ns");
	for (size_t i = 0; view_text(&v, 0, "next")[i] && i + 1 < sizeof(next); i++)
		next[i] = (char)tolower((unsigned char)view_text(&v, 0, "next")[i]);
	return blocks_text(b, "%s \xe2\x86\x92 %s %s%s, %.2f x with %s%s%s",
			   show_time(b, before, unit), show_time(b, after, unit), unit->name,
			   p->steps > 1 ? " (median step)" : "", after > 0 ? before / after : 0,
			   view_text(&v, 0, "places"),
			   !next[0]                     ? ""
			   : strcmp(next, "unbalanced") ? "; then bound by "
							: "; then the ranks are ",
			   next);
}

/* Returns a note if the first finding is not the one that saves most, otherwise NULL. */
static const char *order_text(const struct view *v)
{
	if (v->count < 2 ||
	    view_number(v, 0, "saving_ns_per_step") >= view_number(v, 1, "saving_ns_per_step"))
		return NULL;
	return count_replayed(v)
		       ? "Line 1 is what the verdict names; the others are ordered by what they "
			 "save. A replay may save more than the time seen, which the verdict does "
			 "not count."
		       : "Line 1 is what the verdict names; the others are ordered by their time.";
}

static void build_md(const struct page *p, const struct view *v, struct blocks *b)
{
	const struct time_unit ms = { 1e6, 1, "ms" };
	const struct block_column columns[] = {
		{ .title = blocks_text(b, "saving, ms per %s", step_word(p)) },
		{ .title = "seen, ms" },
		{ .title = "rule", .is_left = true },
		{ .title = "evidence", .is_left = true },
		{ .title = "where", .is_left = true },
		{ .title = "change", .is_left = true },
	};

	add_section(b, "Fix first", NULL);
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < v->count; i++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		bool is_replayed = view_cell(v, i, "is_replayed").u64 == 1;

		add_cell(r, is_replayed
				    ? show_saving(b, view_number(v, i, "saving_ns_per_step"), &ms)
				    : NULL);
		add_time(b, r, view_number(v, i, "most_ns_per_step"), &ms);
		add_cell(r, view_cell(v, i, "rule").text);
		add_cell(r, view_cell(v, i, "evidence").text);
		add_cell(r, view_text(v, i, "where"));
		add_cell(r, view_cell(v, i, "advice").text);
	}
	add_sentence(b, ROLE_NOTE, 0,
		     "Each saving is that of a replay of this change alone; what is not replayed "
		     "saves some of the time seen, or more. Savings do not add up.");
	if (together_text(p, &ms, b))
		add_sentencef(b, ROLE_NOTE, 0, "Together: %s.", together_text(p, &ms, b));
	if (order_text(v))
		add_sentence(b, ROLE_NOTE, 0, order_text(v));
}

void build_fixes(const struct page *p, struct blocks *b)
{
	struct view v = page_view(p, "findings");
	size_t shown = is_text(p) ? 5 : 8;
	struct fix *rows = blocks_take(b, shown, sizeof(*rows));
	struct block_words *w;

	if (!v.count || !rows)
		return;
	if (p->medium == MEDIUM_MD) {
		build_md(p, &v, b);
		return;
	}
	shown = v.count < shown ? v.count : shown;
	struct time_unit unit = saving_unit(&v);
	add_section(b, "Fix first",
		    is_text(p) ? note_text(p, &v, &unit, b)
		    : !count_replayed(&v)
			    ? blocks_text(b,
					  "Time %s that each finding is about; what changes save "
					  "is not known.",
					  p->has_steps ? "per step" : "in the window")
			    : blocks_text(b,
					  "Saved per %s by each change alone (replay); of: the "
					  "time that a finding is about, where no replay tells "
					  "what it saves. Savings overlap: do not add them.",
					  step_word(p)));
	struct block *list = add_block(b, BLOCK_FINDINGS);
	list->findings.rows = rows;
	list->findings.count = shown;
	list->findings.brief_at = BRIEF_AT;
	list->findings.together = together_text(p, &unit, b);
	for (size_t i = 0; i < shown; i++) {
		double saving_ns = view_number(&v, i, "saving_ns_per_step");

		rows[i] = (struct fix){
			.rule = view_cell(&v, i, "rule").text,
			.brief = view_cell(&v, i, "brief").text,
			.evidence = view_cell(&v, i, "evidence").text,
			.advice = view_cell(&v, i, "advice").text,
			.where = view_text(&v, i, "where")[0] ? view_text(&v, i, "where") : NULL,
			.share = view_cell(&v, i, "share_of_step").f64,
			.sign = sign_of(&v, i),
		};
		if (saving_ns > 0 || view_cell(&v, i, "is_replayed").u64 == 1)
			rows[i].saving = show_saving(b, saving_ns, &unit);
		rows[i].figure = blocks_text(b, "%s %s %s", rows[i].sign,
					     rows[i].saving ? rows[i].saving : "", unit.name);
		rows[i].of = rows[i].share > 0 ? blocks_text(b, "%s %% of %s",
							     show_number(b, rows[i].share, 1),
							     p->has_steps ? "a step" : "the window")
					       : "alone: the step waits for something else";
		/* texts about rules begin after the longest shown name */
		unsigned end = RULE_AT + (unsigned)strlen(rows[i].rule) + 2;
		if (end > list->findings.brief_at)
			list->findings.brief_at = end;
	}
	if (order_text(&v))
		add_sentence(b, ROLE_NOTE, is_text(p) ? RULE_AT : 0, order_text(&v));
	if (v.count > shown) {
		w = add_words(b, ROLE_NOTE, 0);
		add_spanf(b, w, TOKEN_DIM, "%zu more: ", v.count - shown);
		add_span(b, w, TOKEN_CODE, "--report findings");
	}
}

/* Builds the report `findings` in a terminal, with the evidence and all advice of each. */
void build_findings(const struct page *p, struct blocks *b)
{
	static const struct block_column columns[] = {
		{ .at = 0 }, { .at = 4 }, { .end = 11 }, { .at = RULE_AT }
	};
	struct view v = page_view(p, "findings");
	struct block *head = add_section(b, "Findings", NULL);

	head->section.note_at = RULE_AT;
	if (!v.count) {
		head->section.note = "none of 0.5 % of a step or more";
		head->section.token = TOKEN_TEXT;
		return;
	}
	if (order_text(&v))
		add_sentence(b, ROLE_NOTE, RULE_AT, order_text(&v));
	struct time_unit unit = saving_unit(&v);
	head->section.note = note_text(p, &v, &unit, b);
	for (size_t i = 0; i < v.count; i++) {
		double saving_ns = view_number(&v, i, "saving_ns_per_step");
		struct block_table *t = ADD_TABLE(b, columns);
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		struct block_cell *rule;
		struct block_words *w;

		b->last->has_gap = true;
		t->has_no_titles = true;
		add_cellf(b, r, "%zu", i + 1);
		bool is_replayed = view_cell(&v, i, "is_replayed").u64 == 1;
		bool has_saving = saving_ns > 0 || is_replayed;
		const char *share =
			saving_ns > 0 ? show_number(b, view_cell(&v, i, "share_of_step").f64, 1)
				      : "0";
		add_cell(r, has_saving ? sign_of(&v, i) : NULL)->token = TOKEN_BOLD;
		add_cell(r, has_saving ? show_saving(b, saving_ns, &unit) : NULL)->token =
			TOKEN_BOLD;
		rule = add_cell(r, view_cell(&v, i, "rule").text);
		rule->token = TOKEN_BOLD;
		const char *edits = is_replayed ? view_text(&v, i, "edits") : "";
		/* The edits are beside the rule if both fit into the line. */
		bool is_long = strlen(rule->text) + strlen(edits) > EDITS_BESIDE;
		if (is_replayed)
			rule->more = blocks_text(
				b, ", %s %% of a step; time seen %s %s%s%s", share,
				show_time(b, view_number(&v, i, "most_ns_per_step"), &unit),
				unit.name, is_long ? "" : "; --what-if ", is_long ? "" : edits);
		else if (saving_ns > 0)
			rule->more = blocks_text(b, ", %s %% of %s", share,
						 p->has_steps ? "a step" : "the window");
		add_sentence(b, ROLE_TEXT, RULE_AT, view_cell(&v, i, "evidence").text);
		const char *where = view_text(&v, i, "where");
		if (where[0]) {
			w = add_labelled(b, RULE_AT + 7, RULE_AT, TOKEN_DIM, "where");
			add_span(b, w, TOKEN_TEXT, where);
		}
		w = add_labelled(b, RULE_AT + (where[0] ? 7 : 5), RULE_AT, TOKEN_DIM, "try");
		add_span(b, w, TOKEN_TEXT, view_cell(&v, i, "advice").text);
		if (is_replayed && is_long)
			add_sentencef(b, ROLE_TEXT, RULE_AT, "--what-if %s", edits);
	}
}
