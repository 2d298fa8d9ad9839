/* SPDX-License-Identifier: Apache-2.0 */
/* The page of --diff: the verdict, where the time went, and the kernels and copies that own it. */
#include "analyze/format/diff/diff.h"

#include "analyze/format/html/html.h"
#include "analyze/format/md/md.h"
#include "analyze/format/text/line.h"

#include <stdlib.h>

enum { NAME_WIDTH = 40, HTML_NAME_WIDTH = 60, OWNER_AT = 78, BAR_WIDTH = 20 };

struct diff_page {
	const struct diff *d;
	enum medium medium;
	unsigned width; /* columns of a terminal */
	struct time_unit unit;
	int64_t most_ns; /* the greatest difference, for a whole bar */
};

/* Adds both times and the difference. Only the closing part has signed times; a difference always
 * has a sign. */
static void add_three(const struct diff_page *p, struct block_row *r, const struct diff_times *ns,
		      struct blocks *b)
{
	const int64_t both[] = { ns->a_ns, ns->b_ns };

	if (p->medium == MEDIUM_MD) {
		add_cellf(b, r, "%.3f", (double)ns->a_ns / 1e6);
		add_cellf(b, r, "%.3f", (double)ns->b_ns / 1e6);
		add_cellf(b, r, "%+.3f", (double)ns->difference_ns / 1e6);
		return;
	}
	for (size_t i = 0; i < 2; i++)
		add_cell(r, both[i] < 0 ? show_signed(b, (double)both[i], &p->unit)
					: show_time(b, (double)both[i], &p->unit));
	add_cell(r, show_signed(b, (double)ns->difference_ns, &p->unit));
}

static enum token token_of(const struct diff_page *p, const char *class, const char *of,
			   int64_t difference_ns)
{
	enum token token = token_of_kind(class);

	if (p->medium == MEDIUM_TEXT)
		return difference_ns < 0 ? TOKEN_DIM : TOKEN_WARN;
	return token == TOKEN_OTHER && of ? token_of_kind(of) : token;
}

/* Columns for both times and the difference. */
#define TIME_COLUMNS(p, b)                                                                         \
	{ .title = "A", .html = blocks_text(b, "A %s", (p)->unit.name), .end = 52 },               \
		{ .title = "B",                                                                    \
		  .html = blocks_text(b, "B %s", (p)->unit.name),                                  \
		  .end = 63,                                                                       \
		  .class = "median" },                                                             \
	{                                                                                          \
		.title = "B \xe2\x88\x92 A", .md = "B - A", .end = 75                              \
	}

static double share_of(const struct diff_page *p, int64_t difference_ns)
{
	return p->most_ns ? (double)difference_ns / (double)p->most_ns : 0;
}

/* Adds a row that sums up others: the rest, the time outside of steps, or the mean step. */
static void add_sum(const struct diff_page *p, struct block_table *t, const char *class,
		    const char *label, const struct diff_times *ns, struct blocks *b)
{
	bool is_mean = !strcmp(class, "sum");
	struct block_row *r = add_row(b, t, is_mean ? TOKEN_BOLD : TOKEN_DIM, class);

	add_cell(r, label)->has_class = true;
	add_cell(r, NULL)->has_class = true;
	add_three(p, r, ns, b);
	if (p->medium == MEDIUM_TEXT)
		return;
	struct block_cell *bar = add_cell(r, "");
	bar->has_class = true;
	bar->class = ns->difference_ns < 0 ? "bar one less" : "bar one";
}

/* Returns the label for the parts that are not shown, by whether they changed. */
static const char *rest_text(const struct diff_page *p, size_t from, size_t end, struct blocks *b)
{
	bool has_changed = !diff_is_unchanged(p->d, &p->d->parts[from].ns);

	return blocks_text(b, has_changed ? "%zu more" : "%zu unchanged", end - from);
}

static void add_parts(const struct diff_page *p, struct blocks *b)
{
	static const size_t lines[] = {
		[MEDIUM_TEXT] = 14, [MEDIUM_HTML] = 60, [MEDIUM_MD] = SIZE_MAX
	};
	const struct diff *d = p->d;
	size_t last = d->part_count - 1;
	size_t shown = last < lines[p->medium] ? last : lines[p->medium];
	bool is_text = p->medium == MEDIUM_TEXT;
	struct diff_times rest = { .a_ns = 0 }, all = { .a_ns = 0 };

	while (shown && diff_is_unchanged(d, &d->parts[shown - 1].ns))
		shown--; /* sorted by descending difference */
	const struct block_column columns[] = {
		{ .title = "class", .text = "", .class = "label", .is_left = true },
		{ .title = "phase or cause",
		  .text = "",
		  .at = 14,
		  .width = NAME_WIDTH - 14,
		  .class = "left",
		  .is_left = true },
		TIME_COLUMNS(p, b),
		{ .hidden = IN(MEDIUM_MD),
		  .at = OWNER_AT,
		  .width = BAR_WIDTH,
		  .class = "one",
		  .is_bar = true,
		  .is_signed = true },
	};
	struct block_table *t = ADD_TABLE(b, columns);

	t->class = "";
	for (size_t i = 0; i < d->part_count; i++) {
		const struct diff_part *part = &d->parts[i];
		const char *of = part->phase ? part->phase : part->cause;
		struct block_row *r;

		diff_times_add(&all, &part->ns);
		if (i >= shown && i < last) {
			diff_times_add(&rest, &part->ns);
			continue;
		}
		if (i == last && shown < last)
			add_sum(p, t, "rest", rest_text(p, shown, last, b), &rest, b);
		if (i == last && p->medium != MEDIUM_MD) {
			add_sum(p, t, "rest", "outside of the steps counted", &part->ns, b);
			if (!is_text)
				continue;
			r = t->last;
		} else {
			r = add_row(b, t, TOKEN_TEXT, NULL);
			add_cell(r, part->class);
			add_cell(r, of)->token = TOKEN_DIM;
			add_three(p, r, &part->ns, b);
		}
		add_bar(r, token_of(p, part->class, of, part->ns.difference_ns),
			share_of(p, part->ns.difference_ns));
	}
	if (p->medium != MEDIUM_MD)
		add_sum(p, t, "sum", "mean step", &all, b);
}

static void add_owners(const struct diff_page *p, struct blocks *b)
{
	static const size_t lines[] = { [MEDIUM_TEXT] = 10, [MEDIUM_HTML] = 40, [MEDIUM_MD] = 30 };
	const struct diff *d = p->d;
	bool is_text = p->medium == MEDIUM_TEXT;
	unsigned more = p->width > LINE_WIDTH ? p->width - LINE_WIDTH : 0;
	unsigned width = is_text ? NAME_WIDTH + more : HTML_NAME_WIDTH;
	const unsigned not_text = IN(MEDIUM_HTML) | IN(MEDIUM_MD);
	const struct block_column columns[] = {
		{ .md = "name", .width = NAME_WIDTH, .class = "name", .is_left = true },
		{ .title = "phase", .hidden = IN(MEDIUM_TEXT), .class = "left", .is_left = true },
		TIME_COLUMNS(p, b),
		{ .hidden = IN(MEDIUM_TEXT) | IN(MEDIUM_MD),
		  .class = "one",
		  .is_bar = true,
		  .is_signed = true },
		{ .hidden = not_text, .at = OWNER_AT, .width = LINE_WIDTH - OWNER_AT },
	};
	struct block_table *t = ADD_TABLE(b, columns);
	size_t i;

	t->class = "kernels";
	for (i = 0; i < d->owner_count && i < lines[p->medium]; i++) {
		const struct diff_row *o = &d->owners[i];

		if (diff_is_unchanged(d, &o->ns))
			break;
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		add_cell(r, p->medium == MEDIUM_MD ? o->name : show_name(b, o->name, width))
			->whole = o->name;
		add_cell(r, o->phase);
		add_three(p, r, &o->ns, b);
		add_bar(r, token_of(p, o->class, NULL, o->ns.difference_ns),
			share_of(p, o->ns.difference_ns));
		add_cellf(b, r, "%s", o->phase)->token = TOKEN_DIM;
	}
	if (is_text && i < d->owner_count)
		add_sentencef(b, ROLE_NOTE, 0, "%zu %s", d->owner_count - i,
			      diff_is_unchanged(d, &d->owners[i].ns) ? "unchanged" : "more");
}

/* Adds a table of names and times, for places where GPUs wait and for steps that changed alone. */
static struct block_table *add_named(const struct diff_page *p, const char *md, struct blocks *b)
{
	const struct block_column columns[] = {
		{ .md = md, .width = NAME_WIDTH, .class = "name", .is_left = true },
		TIME_COLUMNS(p, b),
		{ .html = "cause",
		  .md = "cause",
		  .at = OWNER_AT,
		  .width = LINE_WIDTH - OWNER_AT,
		  .is_left = true },
	};
	struct block_table *t = ADD_TABLE(b, columns);

	t->class = "kernels";
	return t;
}

enum { PLACES_SHOWN = 8, STEPS_SHOWN = 5 };

static void add_pairs(const struct diff_page *p, const struct diff_row *all, size_t count,
		      const char *title, const char *nowhere, struct blocks *b)
{
	const struct diff *d = p->d;
	struct block_table *t = NULL;

	for (size_t i = 0; i < count && i < PLACES_SHOWN; i++) {
		const struct diff_row *one = &all[i];
		char place[DIFF_PLACE];

		if (diff_is_unchanged(d, &one->ns))
			break;
		if (!t) {
			struct block *head = add_section(b, title, NULL);

			head->section.note_at = 17;
			t = add_named(p, "where", b);
		}
		diff_place_text(one, place);
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		add_cellf(b, r, "%s", place[0] ? place : nowhere);
		add_three(p, r, &one->ns, b);
		add_cellf(b, r, "%s", one->cause)->token = TOKEN_DIM;
	}
}

static void add_places(const struct diff_page *p, struct blocks *b)
{
	const struct diff *d = p->d;

	add_pairs(p, d->places, d->place_count, "Where GPUs wait", "the step thread", b);
	add_pairs(p, d->model, d->model_count, "Where in the model", "outside of any range", b);
}

static void add_steps(const struct diff_page *p, struct blocks *b)
{
	const struct diff *d = p->d;
	struct block_table *t = NULL;
	size_t shown = 0;

	for (size_t i = 0; i < d->step_count && shown < STEPS_SHOWN; i++) {
		if (!d->steps[i].is_apart)
			continue;
		if (!shown++) {
			add_section(b, "Steps that changed alone", NULL);
			t = add_named(p, "step", b);
		}
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
		add_cellf(b, r, "step %llu", (unsigned long long)d->steps[i].number);
		add_three(p, r, &d->steps[i].ns, b);
		add_cell(r, NULL);
	}
}

static void add_reason(const struct diff *d, enum role role, struct blocks *b)
{
	char reason[DIFF_SENTENCE];

	diff_reason(d, reason);
	if (reason[0])
		add_sentencef(b, role, 0, "%s", reason);
	diff_edits_text(d, reason);
	if (reason[0])
		add_sentencef(b, role, 0, "%s", reason);
}

/* Adds settings that differ, above the times. */
static void add_unlikes(const struct diff *d, struct blocks *b)
{
	for (size_t i = 0; i < d->unlike_count; i++) {
		const struct diff_unlike *one = &d->unlikes[i];
		struct block_words *w = add_words(b, ROLE_TEXT, 2);

		w->label = "!";
		w->label_token = TOKEN_WARN;
		add_spanf(b, w, TOKEN_WARN, "not the same %s: %s in A, %s in B", one->what,
			  one->a[0] ? one->a : "none", one->b[0] ? one->b : "none");
	}
}

/* ---- the top ---------------------------------------------------------------------------- */

/* Returns "6 steps, 2 ranks, 2 GPUs". */
static const char *size_text(const struct diff_side *s, const char *steps, struct blocks *b)
{
	return blocks_text(b, "%s step%s \xc2\xb7 %llu rank%s \xc2\xb7 %llu GPU%s", steps,
			   plural(s->series.count), (unsigned long long)s->ranks, plural(s->ranks),
			   (unsigned long long)s->gpus, plural(s->gpus));
}

static void add_text_side(const struct diff_page *p, const char *letter, const struct diff_side *s,
			  struct blocks *b)
{
	const char *more =
		s->inputs > 1 ? blocks_text(b, " and %llu more", (unsigned long long)s->inputs - 1)
			      : "";
	const char *size = size_text(s, show_count(b, s->series.count), b);
	unsigned taken = 3 + text_width(more) + 2 + text_width(size);
	const struct block_column columns[] = {
		{ .at = 0 },
		{ .at = 3, .width = p->width > taken + 10 ? p->width - taken : 10 },
		{ .end = p->width },
	};
	struct block_table *t = ADD_TABLE(b, columns);
	struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

	t->has_no_titles = true;
	add_cell(r, letter)->token = TOKEN_BOLD;
	add_cell(r, s->path)->more = more;
	add_cell(r, size)->token = TOKEN_DIM;
}

static void add_html_side(const char *letter, const struct diff_side *s, struct blocks *b)
{
	struct block *new = add_block(b, BLOCK_INPUT);
	struct block_words *w = &new->input.words;

	new->input.path = letter;
	new->input.more = blocks_text(b, " %s", s->path);
	add_span(b, w, TOKEN_TEXT, size_text(s, blocks_text(b, "%zu", s->series.count), b));
	if (!s->sampled && !s->damaged)
		return;
	add_span(b, w, TOKEN_TEXT, " \xc2\xb7 ");
	add_span(b, w, TOKEN_WARN, s->sampled ? "! a sample" : "! damaged");
}

static void add_md_sides(const struct diff *d, struct blocks *b)
{
	static const struct block_column columns[] = {
		{ .is_left = true },  { .title = "input", .is_left = true },
		{ .title = "ranks" }, { .title = "GPUs" },
		{ .title = "steps" }, { .title = "mean step ms" },
	};
	const struct diff_side *const sides[] = { &d->a, &d->b };
	struct block_table *t = ADD_TABLE(b, columns);

	for (size_t i = 0; i < 2; i++) {
		struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

		add_cell(r, i ? "B" : "A");
		add_cell(r, sides[i]->path);
		add_cellf(b, r, "%llu", (unsigned long long)sides[i]->ranks);
		add_cellf(b, r, "%llu", (unsigned long long)sides[i]->gpus);
		add_cellf(b, r, "%zu", sides[i]->series.count);
		add_cellf(b, r, "%.3f", (double)sides[i]->mean_ns / 1e6);
	}
}

static const char *limits_text(const struct diff *d, struct blocks *b)
{
	return blocks_text(
		b,
		"\xc2\xb1: interval of %s. From %.3g %% on B counts as slower (--fail-over). Steps "
		"that resemble their neighbours count for less: A %.0f of %zu, B %.0f of %zu.",
		d->estimate.is_paired ? "99 % over pairs of steps" : "95 %", 100 * d->fail_over,
		d->a.effective_steps, d->a.series.count, d->b.effective_steps, d->b.series.count);
}

static void build_text(struct diff_page *p, struct blocks *b)
{
	const struct diff *d = p->d;
	bool is_sampled = d->a.sampled || d->b.sampled;
	char sentence[DIFF_SENTENCE];
	struct block_words *w;

	add_text_side(p, "A", &d->a, b);
	add_text_side(p, "B", &d->b, b);
	if (is_sampled || d->a.damaged || d->b.damaged) {
		w = add_labelled(b, 2, 0, TOKEN_WARN, "!");
		add_span(b, w, TOKEN_WARN,
			 is_sampled
				 ? "a sample: steps can be compared, but not where their time went"
				 : "damaged: what is missing may be the difference");
	}
	add_unlikes(d, b);
	diff_sentence(d, sentence);
	w = add_words(b, ROLE_TEXT, 0);
	b->last->has_gap = true;
	add_spanf(b, w, d->estimate.verdict == DIFF_SLOWER ? TOKEN_WARN : TOKEN_BOLD, "%s",
		  sentence);
	add_reason(d, ROLE_TEXT, b);
	add_sentence(b, ROLE_NOTE, 0, limits_text(d, b));
	struct block *head = add_section(b, "Where it went", "per step and GPU");
	head->section.note_at = 15;
	add_parts(p, b);
	if (d->owner_count && !diff_is_unchanged(d, &d->owners[0].ns)) {
		head = add_section(b, "Kernels and copies", "time owned");
		head->section.note_at = 20;
		add_owners(p, b);
	}
	add_places(p, b);
	add_steps(p, b);
	w = add_words(b, ROLE_NOTE, 0);
	b->last->has_gap = true;
	add_spanf(b, w, TOKEN_DIM,
		  "All rows of WHERE IT WENT make the mean step, exactly. Times in %s.",
		  p->unit.name);
}

static void build_html(struct diff_page *p, struct blocks *b)
{
	const struct diff *d = p->d;
	char sentence[DIFF_SENTENCE];

	diff_sentence(d, sentence);
	add_html_side("A", &d->a, b);
	add_html_side("B", &d->b, b);
	add_unlikes(d, b);
	struct block *verdict = add_block(b, BLOCK_VERDICT);
	verdict->callout.label = "Diff";
	verdict->callout.first = blocks_text(b, "%s", sentence);
	verdict->callout.second = limits_text(d, b);
	add_reason(d, ROLE_TEXT, b);
	add_section(b, "Where it went",
		    "Per step and GPU. All rows make the mean step, exactly. A thin bar: B takes "
		    "less.");
	add_parts(p, b);
	add_section(b, "Kernels and copies",
		    blocks_text(b, "Time that they own, of %zu.", d->owner_count));
	add_owners(p, b);
	add_places(p, b);
	add_steps(p, b);
}

enum status diff_put_page(const struct diff *d, enum medium medium,
			  const struct format_request *how, struct buf *out, struct error *err)
{
	struct diff_page p = { .d = d,
			       .medium = medium,
			       .width = how->width < LINE_MOST ? how->width : LINE_MOST };
	int64_t longest_ns = d->a.mean_ns > d->b.mean_ns ? d->a.mean_ns : d->b.mean_ns;
	struct blocks b;

	for (size_t i = 0; i < d->part_count; i++) {
		const struct diff_times *ns = &d->parts[i].ns;
		int64_t longer_ns =
			llabs(ns->a_ns) > llabs(ns->b_ns) ? llabs(ns->a_ns) : llabs(ns->b_ns);

		if (llabs(ns->difference_ns) > p.most_ns)
			p.most_ns = llabs(ns->difference_ns);
		if (medium == MEDIUM_TEXT && (!i || longer_ns > longest_ns))
			longest_ns = longer_ns; /* of a part, not of a step */
	}
	p.unit = time_unit_of((double)longest_ns, 3);
	blocks_init(&b);
	if (medium == MEDIUM_TEXT) {
		struct text text;

		build_text(&p, &b);
		text_init(&text, how, out);
		text_draw(&text, &b);
	} else if (medium == MEDIUM_HTML) {
		build_html(&p, &b);
		html_draw(out, "Diff", &b, NULL);
	} else {
		char sentence[DIFF_SENTENCE];

		add_unlikes(p.d, &b);
		diff_sentence(p.d, sentence);
		add_sentencef(&b, ROLE_STRONG, 0, "%s", sentence);
		add_reason(p.d, ROLE_TEXT, &b);
		add_md_sides(p.d, &b);
		add_section(&b, "Where it went, ms per step and GPU", NULL);
		add_parts(&p, &b);
		add_section(&b, "Kernels and copies, ms per step and GPU", NULL);
		add_owners(&p, &b);
		add_places(&p, &b);
		add_steps(&p, &b);
		buf_put_text(out, "# Diff\n\n");
		md_draw(out, &b);
		if (out->len && buf_status(out, NULL) == ST_OK)
			out->len--; /* no empty line at the end */
	}
	enum status status = blocks_status(&b, err);
	blocks_release(&b);
	return status == ST_OK ? buf_status(out, err) : status;
}
