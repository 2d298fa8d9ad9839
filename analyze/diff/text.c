/* SPDX-License-Identifier: Apache-2.0 */
/* The page of --diff: the verdict, the steps, where the time went, whose it is. */
#include "analyze/diff.h"

#include "analyze/page/work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PART_LINES = 14, OWNER_LINES = 10, END_A = 52, END_B = 63, END_DIFFERENCE = 75, BAR_AT = 78,
	BAR_HALF = 10, NAME_WIDTH = 40 };

struct diff_page {
	struct text text;
	const struct diff *d;
	struct time_unit unit;
	double most_ns; /* the greatest difference: half a bar */
};

char *diff_signed_text(char out[NUMBER_TEXT], int64_t ns, const struct time_unit *unit)
{
	char plain[NUMBER_TEXT];
	double shown = (double)(ns < 0 ? -ns : ns) / unit->ns;

	snprintf(out, NUMBER_TEXT, "%s%.40s", ns < 0 ? "\xe2\x88\x92" : ns ? "+" : "",
		 number_text(plain, shown, unit->decimals));
	return out;
}

char *diff_amount_text(char out[NUMBER_TEXT], int64_t ns, const struct time_unit *unit)
{
	return ns < 0 ? diff_signed_text(out, ns, unit) : time_text(out, (double)ns, unit);
}

static void put_bar(struct diff_page *p, int64_t ns)
{
	double cells = p->most_ns > 0 ? fabs((double)ns) / p->most_ns * BAR_HALF : 0;
	unsigned count = (unsigned)lround(cells);

	if (p->text.width < BAR_AT + 2 * BAR_HALF || !ns)
		return;
	count = count ? count : 1;
	text_fill(&p->text, ns < 0 ? BAR_AT + BAR_HALF - count : BAR_AT + BAR_HALF, count,
		  ns < 0 ? TOKEN_DIM : TOKEN_WARN, 0x2588);
}

static void put_amounts(struct diff_page *p, const struct diff_amount *ns, enum token token)
{
	char text[NUMBER_TEXT];

	text_right(&p->text, END_A, token, diff_amount_text(text, ns->a_ns, &p->unit));
	text_right(&p->text, END_B, token, diff_amount_text(text, ns->b_ns, &p->unit));
	text_right(&p->text, END_DIFFERENCE, token,
		   diff_signed_text(text, ns->difference_ns, &p->unit));
}

static void put_title(struct diff_page *p, const char *title, const char *about)
{
	text_end(&p->text);
	text_at(&p->text, text_at(&p->text, 0, TOKEN_BOLD, title) + 2, TOKEN_DIM, about);
	text_right(&p->text, END_A, TOKEN_DIM, "A");
	text_right(&p->text, END_B, TOKEN_DIM, "B");
	text_right(&p->text, END_DIFFERENCE, TOKEN_DIM, "B \xe2\x88\x92 A");
	text_end(&p->text);
}

static void put_side(struct diff_page *p, const char *letter, const struct diff_side *s)
{
	char steps[NUMBER_TEXT], words[160], more[32] = "";
	unsigned column, room = p->text.width > 42 ? p->text.width - 42 : 10;

	if (s->inputs > 1)
		snprintf(more, sizeof(more), " and %llu more", (unsigned long long)s->inputs - 1);
	snprintf(words, sizeof(words), "%s step%s \xc2\xb7 %llu rank%s \xc2\xb7 %llu GPU%s",
		 count_text(steps, s->series.count), s->series.count == 1 ? "" : "s",
		 (unsigned long long)s->ranks, s->ranks == 1 ? "" : "s",
		 (unsigned long long)s->gpus, s->gpus == 1 ? "" : "s");
	text_at(&p->text, 0, TOKEN_BOLD, letter);
	column = text_cut(&p->text, 3, room - text_width(more), TOKEN_TEXT, s->path);
	text_at(&p->text, column, TOKEN_DIM, more);
	text_right(&p->text, p->text.width, TOKEN_DIM, words);
	text_end(&p->text);
}

static void put_distrust(struct diff_page *p)
{
	const struct diff *d = p->d;

	if (d->a.sampled || d->b.sampled)
		text_wrap(&p->text, 0, 2, TOKEN_WARN,
			  "! a sample: steps can be compared, but not where their time went");
	else if (d->a.damaged || d->b.damaged)
		text_wrap(&p->text, 0, 2, TOKEN_WARN,
			  "! damaged: what is missing may be the difference");
	else
		return;
	text_end(&p->text);
}

static void put_verdict(struct diff_page *p)
{
	const struct diff *d = p->d;
	bool bad = d->estimate.verdict == DIFF_SLOWER;
	char sentence[DIFF_SENTENCE], words[96];

	diff_sentence(d, sentence);
	text_end(&p->text);
	text_wrap(&p->text, 0, 0, bad ? TOKEN_WARN : TOKEN_BOLD, sentence);
	text_end(&p->text);
	snprintf(words, sizeof(words), "--fail-over %.3g %%, interval of 95 %%; steps that "
		 "resemble their neighbours count for less:", 100 * d->fail_over);
	text_wrap(&p->text, 0, 0, TOKEN_DIM, words);
	snprintf(words, sizeof(words), " A %.0f of %zu, B %.0f of %zu.", d->a.effective_steps,
		 d->a.series.count, d->b.effective_steps, d->b.series.count);
	text_end(&p->text);
	text_wrap(&p->text, 0, 0, TOKEN_DIM, words + 1);
	text_end(&p->text);
}

static void put_name(struct diff_page *p, const struct diff_part *part)
{
	unsigned column;

	if (!strcmp(part->class, "outside_steps")) {
		text_at(&p->text, 0, TOKEN_DIM, "outside of the steps counted");
		return;
	}
	column = text_at(&p->text, 0, TOKEN_TEXT, part->class);
	column = column < 14 ? 14 : column + 1;
	text_cut(&p->text, column, NAME_WIDTH - column, TOKEN_DIM,
		 part->phase ? part->phase : part->cause);
}

static void put_parts(struct diff_page *p)
{
	const struct diff *d = p->d;
	size_t last = d->part_count - 1, shown = last <= PART_LINES ? last : PART_LINES, i;
	struct diff_amount rest = { 0, 0, 0 }, all = { 0, 0, 0 };
	char words[48];

	put_title(p, "WHERE IT WENT", "per step and GPU");
	for (i = 0; i < d->part_count; i++) {
		const struct diff_amount *ns = &d->parts[i].ns;

		diff_amount_add(&all, ns);
		if (i >= shown && i < last) {
			diff_amount_add(&rest, ns);
			continue;
		}
		if (i == last && shown < last) {
			snprintf(words, sizeof(words), "%zu more", last - shown);
			text_at(&p->text, 0, TOKEN_DIM, words);
			put_amounts(p, &rest, TOKEN_DIM);
			text_end(&p->text);
		}
		put_name(p, &d->parts[i]);
		put_amounts(p, ns, i == last ? TOKEN_DIM : TOKEN_TEXT);
		put_bar(p, ns->difference_ns);
		text_end(&p->text);
	}
	text_at(&p->text, 0, TOKEN_BOLD, "mean step");
	put_amounts(p, &all, TOKEN_BOLD);
	text_end(&p->text);
}

static void put_owners(struct diff_page *p)
{
	const struct diff *d = p->d;
	char name[4 * 64], words[96];
	size_t i;

	if (!d->owner_count || !d->owners[0].ns.difference_ns)
		return;
	put_title(p, "KERNELS AND COPIES", "time owned");
	for (i = 0; i < d->owner_count && i < OWNER_LINES; i++) {
		const struct diff_owner *o = &d->owners[i];

		if (!o->ns.difference_ns)
			break;
		name_short(o->name, NAME_WIDTH, name, sizeof(name));
		text_cut(&p->text, 0, NAME_WIDTH, TOKEN_TEXT, name);
		put_amounts(p, &o->ns, TOKEN_TEXT);
		snprintf(words, sizeof(words), "%.40s", o->phase);
		if (p->text.width > BAR_AT)
			text_cut(&p->text, BAR_AT, p->text.width - BAR_AT, TOKEN_DIM, words);
		text_end(&p->text);
	}
	if (i < d->owner_count) {
		snprintf(words, sizeof(words), "%zu more", d->owner_count - i);
		text_at(&p->text, 0, TOKEN_DIM, words);
		text_end(&p->text);
	}
}

static double most_of(const struct diff *d, bool differences)
{
	double most = 0, one;
	size_t i;

	for (i = 0; i < d->part_count; i++) {
		const struct diff_amount *ns = &d->parts[i].ns;

		one = fabs((double)(differences ? ns->difference_ns : ns->a_ns));
		most = one > most ? one : most;
		one = differences ? 0 : fabs((double)ns->b_ns);
		most = one > most ? one : most;
	}
	return most;
}

enum status diff_put_text(const struct diff *d, const struct format_request *how, struct buf *out,
			  struct error *err)
{
	struct diff_page p = { .d = d, .most_ns = most_of(d, true) };

	text_init(&p.text, how, out);
	p.unit = time_unit_of(most_of(d, false), 3);
	put_side(&p, "A", &d->a);
	put_side(&p, "B", &d->b);
	put_distrust(&p);
	put_verdict(&p);
	put_parts(&p);
	put_owners(&p);
	text_end(&p.text);
	text_wrap(&p.text, 0, 0, TOKEN_DIM,
		  "All rows of WHERE IT WENT make the mean step, exactly.");
	text_atf(&p.text, 56, TOKEN_DIM, "Times in %s.", p.unit.name);
	text_end(&p.text);
	return buf_status(out, err);
}
