/* SPDX-License-Identifier: Apache-2.0 */
/* Draws pages for a terminal: each kind of block as lines of at most LINE_MOST columns. */
#include "analyze/format/text/line.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum { CALLOUT_AT = 14, TIMELINE_AT = 14, SPARK_MAX = 60 };
/* Columns of a finding: the sign of its saving, the end of the saving, the width of a label. */
enum { SIGN_AT = 4, SAVING_END = 11, LABEL_WIDTH = 6 };
enum { READABLE = 40 /* least columns of a sentence; with fewer it begins further left */ };

static void end_open(struct text *t)
{
	if (t->is_open)
		text_end(t);
	t->is_open = false;
}

static uint32_t glyph_of(enum token token)
{
	switch (token) {
	case TOKEN_COMPUTE:
		return 0x2588;
	case TOKEN_COMM:
		return 0x2593;
	case TOKEN_DATA:
		return 0x2592;
	case TOKEN_IDLE:
		return 0x2591;
	case TOKEN_UNSEEN:
		return 0x2571;
	default:
		return 0x00b7;
	}
}

/* ---- words ------------------------------------------------------------------------------ */

/* Returns the width of the first word of a span, which follows the previous span without a
 * blank. */
static unsigned joined_width(const struct span *s)
{
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(s ? s->text : "", " "), s ? s->text : "");
	return text_width(word);
}

/* Puts the words of a paragraph, whose further lines begin at `left`. */
static unsigned put_spans(struct text *t, unsigned column, unsigned left, const struct span *spans)
{
	for (const struct span *s = spans; s; s = s->next)
		column = text_wrap(t, column, left, s->token, s->text,
				   s->next ? joined_width(s->next) : 0);
	return column;
}

static void draw_input(struct text *t, const struct block *b)
{
	const char *path = b->input.path, *more = b->input.more;
	unsigned right = text_width(b->input.report) + 3, width;

	right = right < 10 ? right : 10; /* a longer word may come closer */
	width = t->width > 20 ? t->width - right : 10;
	width -= text_width(more) < width ? text_width(more) : 0;
	text_at(t, text_shorten(t, 0, width, TOKEN_BOLD, path), TOKEN_DIM, more);
	text_right(t, t->width, TOKEN_DIM, b->input.report);
	text_end(t);
	put_spans(t, 0, 0, b->input.words.spans);
	text_end(t);
}

static void draw_callout(struct text *t, const struct block *b)
{
	bool is_warning = b->kind == BLOCK_WARNING;
	enum token token = is_warning ? TOKEN_WARN : TOKEN_BOLD;

	text_at(t, text_at(t, 0, token, is_warning ? "! " : ""), token, b->callout.label);
	unsigned column = text_wrap(t, CALLOUT_AT, CALLOUT_AT, token, b->callout.first, 0);
	if (b->callout.second && is_warning) {
		text_wrap(t, column + 1, CALLOUT_AT, token, b->callout.second, 0);
	} else if (b->callout.second) {
		text_end(t);
		text_wrap(t, CALLOUT_AT, CALLOUT_AT, TOKEN_TEXT, b->callout.second, 0);
	}
	text_end(t);
}

static void draw_section(struct text *t, const struct block *b)
{
	unsigned at = b->section.note_at, column;
	char title[64];
	size_t i;

	for (i = 0; b->section.title[i] && i + 1 < sizeof(title); i++)
		title[i] = (char)toupper((unsigned char)b->section.title[i]);
	title[i] = '\0';
	column = text_at(t, 0, TOKEN_BOLD, title);
	if (b->section.note)
		column = text_wrap(t, column < at ? at : column + 1, at, b->section.token,
				   b->section.note, 0);
	if (b->section.right && column + GAP + text_width(b->section.right) > t->width)
		text_end(t);
	if (b->section.right)
		text_right(t, t->width, TOKEN_DIM, b->section.right);
	t->used = column;
	t->is_open = true;
}

/* Draws step numbers at both ends and between them a cell for each step, or for the longest of
 * several. */
static void draw_spark(struct text *t, unsigned column, const struct block *b)
{
	const double *values = b->spark.values;
	size_t count = b->spark.count;
	unsigned cells = count < SPARK_MAX ? (unsigned)count : SPARK_MAX, width;
	double low = INFINITY, high = 0;
	char first[32], last[32];

	if (!t->is_utf8)
		return;
	for (size_t i = 0; i < count; i++) {
		low = fmin(low, values[i]);
		high = fmax(high, values[i]);
	}
	bool is_flat = high - low < 0.02 * b->spark.median;
	snprintf(first, sizeof(first), "%llu ", (unsigned long long)b->spark.first);
	snprintf(last, sizeof(last), " %llu", (unsigned long long)b->spark.last);
	width = text_width(first) + text_width(last) + (is_flat ? 4 : cells);
	if (column + 2 + width <= t->width) {
		column = t->width - width;
	} else {
		text_end(t);
		column = TIMELINE_AT;
		width -= is_flat ? 4 : cells; /* of the numbers */
		if (!is_flat && column + width + cells > t->width)
			cells = t->width > column + width ? t->width - column - width : 1;
	}
	column = text_at(t, column, TOKEN_DIM, first);
	if (is_flat)
		column = text_at(t, column, TOKEN_TEXT, "flat");
	for (unsigned i = 0; i < cells && !is_flat; i++) {
		double most = 0;

		for (size_t k = i * count / cells; k < (i + 1) * count / cells; k++)
			most = fmax(most, values[k]);
		column = text_fill(t, column, 1, TOKEN_TEXT,
				   0x2581u + (uint32_t)lround((most - low) / (high - low) * 7));
	}
	text_at(t, column, TOKEN_DIM, last);
}

static void draw_words(struct text *t, const struct block *b)
{
	const struct block_words *w = &b->words;
	unsigned column = w->is_hanging ? w->left - 2 : w->left;

	if (!w->left)
		end_open(t);
	if (w->label)
		text_at(t, w->label_at, w->label_token, w->label);
	if (w->flow == FLOW_WRAP)
		column = put_spans(t, column, w->left, w->spans);
	for (const struct span *s = w->flow == FLOW_CLIP ? w->spans : NULL; s; s = s->next)
		column = text_clip(t, column, t->width > column ? t->width - column : 0, s->token,
				   s->text);
	if (w->more)
		column = text_wrap(t, column, w->left, TOKEN_DIM, w->more, 0);
	if (b->next && b->next->kind == BLOCK_SPARK)
		draw_spark(t, column, b->next);
	t->is_open = w->is_open;
	if (!t->is_open)
		text_end(t);
}

/* ---- tables ----------------------------------------------------------------------------- */

static void draw_stack(struct text *t, unsigned column, unsigned width, const struct stack *s)
{
	double parts[16] = { 0 }, sum = 0;
	unsigned columns[16];
	size_t count = s->count < 16 ? s->count : 16;

	for (size_t i = 0; i < count; i++) {
		parts[i] = s->parts[i].ns;
		sum += parts[i];
	}
	if (s->whole_ns > 0)
		width = (unsigned)lround(sum / s->whole_ns * width);
	share_out(parts, count, width, columns);
	for (size_t i = 0; i < count; i++)
		column = text_fill(t, column, columns[i], s->parts[i].token,
				   glyph_of(s->parts[i].token));
}

/* Returns the columns for a text that shares `width` columns with what follows it. */
static unsigned cell_width(unsigned width, unsigned text, unsigned more)
{
	unsigned least = text < NAME_LEAST ? text : NAME_LEAST;

	if (least > width)
		return width;
	return more + least < width ? width - more : least;
}

static unsigned put_name(struct text *t, unsigned column, unsigned width, enum token token,
			 const struct block_cell *cell)
{
	char cut[TEXT_CUT], number[16] = "";
	unsigned end = 0;

	if (cell->number && width > sizeof(number) && text_width(cell->text) > width)
		end = (unsigned)snprintf(number, sizeof(number), " #%zu", cell->number);
	text_cut(cut, cell->text, width - end, cell->seen ? cell->text + cell->seen : NULL);
	return text_at(t, text_at(t, column, token, cut), token, number);
}

static void draw_row(struct text *t, const struct block_table *table, const struct block_row *r)
{
	for (size_t i = 0; i < r->used; i++) {
		const struct block_column *c = &table->columns[i];
		const struct block_cell *cell = &r->cells[i];
		enum token token = cell->token ? cell->token : r->token;
		unsigned at = c->at, more = cell->more ? text_width(cell->more) : 0, width, end;

		if (!column_title(c, MEDIUM_TEXT) || (c->is_bar && !c->width))
			continue;
		if (c->is_bar && !cell->text) {
			unsigned count = (unsigned)lround(fabs(cell->share) * c->width / 2);
			unsigned middle = c->at + c->width / 2;

			if (cell->stack)
				draw_stack(t, c->at, c->width, cell->stack);
			else if (!c->is_signed && c->width)
				text_bar(t, c->at, cell->token, cell->share * c->width);
			else if (c->width && (cell->share < 0 || cell->share > 0)) {
				count = count ? count : 1;
				text_fill(t, cell->share < 0 ? middle - count : middle, count,
					  cell->token, 0x2588);
			}
			continue;
		}
		if (cell->mark) {
			text_fill(t, at, 1, cell->mark, glyph_of(cell->mark));
			at += 2;
		}
		if (!cell->text)
			continue;
		if (c->end)
			text_right(t, c->end, token, cell->text);
		if (c->end)
			continue;
		/* first the following text gives way, while the name is too short to recognize,
		 * then the name */
		width = text_width(cell->text);
		end = cell_is_over_next(table, r, i) ? c[1].at + c[1].width : c->at + c->width;
		if (c->width && at + width + more > end)
			width = cell_width(end - at, width, more);
		at = put_name(t, at, width, token, cell);
		if (cell->more)
			text_clip(t, at, c->width ? end - at : more, TOKEN_DIM, cell->more);
	}
}

static unsigned title_at(const struct block_column *c, const char *title)
{
	if (c->title_at || !c->end)
		return c->title_at ? c->title_at : c->at;
	return c->end - text_width(title);
}

/* Returns the column of the first title that is not empty. */
static unsigned titles_begin(const struct block_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const char *title = column_title(&table->columns[i], MEDIUM_TEXT);

		if (title && *title)
			return title_at(&table->columns[i], title);
	}
	return UINT_MAX;
}

static void draw_titles(struct text *t, const struct block_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct block_column *c = &table->columns[i];
		const char *title = column_title(c, MEDIUM_TEXT);

		if (!title || (c->is_bar && !c->width))
			continue;
		if (c->end || title_is_over_next(table, i))
			text_at(t, title_at(c, title), TOKEN_DIM, title);
		else
			text_shorten(t, c->at, c->width, TOKEN_DIM, title);
	}
}

/* Draws a table, and the one to its right if there is one, line by line. */
static void draw_table(struct text *t, struct block *b)
{
	struct block_table *left = &b->table;
	struct block *next = b->next;
	struct block_table *right =
		next && next->kind == BLOCK_TABLE && next->table.is_beside ? &next->table : NULL;
	const struct block_row *l = left->rows, *r = right ? right->rows : NULL;

	if (left->is_fitted || (left->has_no_titles && !left->is_in_line))
		end_open(t);
	if (left->like) {
		memcpy(left->columns, left->like->columns, left->count * sizeof(*left->columns));
	} else if (!left->is_framed) {
		columns_place(left, right, next, t->width);
	}
	if (t->is_open && titles_begin(left) < t->used + GAP)
		end_open(t);
	if (!left->has_no_titles) {
		draw_titles(t, left);
		if (right)
			draw_titles(t, right);
		text_end(t);
	}
	t->is_open = false;
	for (; l || r; l = l ? l->next : NULL, r = r ? r->next : NULL) {
		if (l)
			draw_row(t, left, l);
		if (r)
			draw_row(t, right, r);
		text_end(t);
	}
	if (left->is_fitted) {
		/* List the columns of a report's table that do not fit into the terminal. */
		static const char says[] = "hidden columns:";
		unsigned column = 0;

		for (size_t i = 0; i < left->count; i++) {
			const struct block_column *c = &left->columns[i];

			if (!(c->hidden & LEFT_OUT))
				continue;
			if (!column)
				column = text_wrap(t, 0, 0, TOKEN_DIM, says, 0);
			else
				column = text_wrap(t, column, 0, TOKEN_DIM, ",", 0);
			column = text_wrap(t, column + 1, 2, TOKEN_DIM, c->title, 1);
		}
		if (column)
			text_end(t);
	}
}

/* ---- pictures and findings -------------------------------------------------------------- */

static void draw_timeline(struct text *t, const struct step_timeline *s, bool is_sampled)
{
	char number[32];
	unsigned column = TIMELINE_AT, end;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)s->step);
	end = text_width(number) > 4 ? text_width(number) : 4;
	text_right(t, end < 6 ? end : 6, TOKEN_TEXT, number);
	text_at(t, 7, TOKEN_TEXT, "host");
	for (const char *at = s->host; *at; at++)
		column = text_fill(t, column, 1, token_of_letter(*at),
				   *at == '.' ? 0xb7u : (uint32_t)(unsigned char)*at);
	text_end(t);
	if (!s->gpu)
		return;
	text_at(t, 7, TOKEN_TEXT, "GPU");
	column = TIMELINE_AT;
	for (const char *at = s->gpu; *at; at++) {
		enum token token = token_of_class(*at);

		if (is_sampled && (*at == 'i' || *at == 'l'))
			token = TOKEN_UNSEEN;
		column = text_fill(t, column, 1, token, glyph_of(token));
	}
	text_end(t);
}

/* Draws a finding: below the rule, labelled lines about it. */
static void draw_finding(struct text *t, const struct block *b, const struct fix *f, unsigned at)
{
	const struct {
		const char *label, *words;
	} lines[] = { { f->rule, f->brief }, { "where", f->where }, { "try", f->advice } };
	bool is_narrow = b->findings.brief_at + READABLE > t->width;
	unsigned left = is_narrow ? at + LABEL_WIDTH : at + b->findings.brief_at - CALLOUT_AT;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (!lines[i].words)
			continue;
		text_at(t, at, i ? TOKEN_DIM : TOKEN_TEXT, lines[i].label);
		if (!i && is_narrow)
			text_end(t);
		text_wrap(t, !i && is_narrow ? at : left, !i && is_narrow ? at : left, TOKEN_TEXT,
			  lines[i].words, 0);
		text_end(t);
	}
}

static void draw_findings(struct text *t, const struct block *b)
{
	unsigned end = SAVING_END;

	end_open(t);
	for (size_t i = 0; i < b->findings.count; i++) {
		const char *saving = b->findings.rows[i].saving;

		unsigned begin = SIGN_AT + 1 + (saving ? text_width(b->findings.rows[i].sign) : 0);
		if (saving && begin + text_width(saving) > end)
			end = begin + text_width(saving);
	}
	for (size_t i = 0; i < b->findings.count; i++) {
		const struct fix *f = &b->findings.rows[i];
		char number[32];

		snprintf(number, sizeof(number), "%zu", i + 1);
		text_at(t, 0, TOKEN_TEXT, number);
		if (f->saving) {
			text_at(t, SIGN_AT, TOKEN_BOLD, f->sign);
			text_right(t, end, TOKEN_BOLD, f->saving);
		}
		draw_finding(t, b, f, end + CALLOUT_AT - SAVING_END);
	}
	if (b->findings.together) {
		text_at(t, 0, TOKEN_BOLD, "together");
		text_wrap(t, end + CALLOUT_AT - SAVING_END, end + CALLOUT_AT - SAVING_END,
			  TOKEN_TEXT, b->findings.together, 0);
		text_end(t);
	}
}

void text_draw(struct text *t, const struct blocks *blocks)
{
	for (struct block *b = blocks->first; b; b = b->next) {
		if (b->has_gap && b != blocks->first) {
			end_open(t);
			text_end(t);
		}
		switch (b->kind) {
		case BLOCK_INPUT:
			draw_input(t, b);
			break;
		case BLOCK_WARNING:
		case BLOCK_VERDICT:
			draw_callout(t, b);
			break;
		case BLOCK_SECTION:
			draw_section(t, b);
			break;
		case BLOCK_WORDS:
			draw_words(t, b);
			break;
		case BLOCK_STACK:
			end_open(t);
			draw_stack(t, 0, t->width, &b->stack);
			text_end(t);
			break;
		case BLOCK_TABLE:
			if (!b->table.is_beside)
				draw_table(t, b);
			break;
		case BLOCK_FINDINGS:
			draw_findings(t, b);
			break;
		case BLOCK_TIMELINES:
			for (size_t i = 0; i < b->timelines.count; i++)
				draw_timeline(t, &b->timelines.rows[i], b->timelines.is_sampled);
			break;
		case BLOCK_SPARK: /* drawn with the words before it */
		case BLOCK_CURVE:
		case BLOCK_FLAME:
		case BLOCK_HEAT:
		case BLOCK_ROOFLINE:
			break;
		}
	}
	end_open(t);
}

static void draw_page(const struct page *p, const struct blocks *b, struct buf *out)
{
	struct text text;

	text_init(&text, p->how, out);
	text_draw(&text, b);
}

static enum status text_write(const struct format_request *how, struct buf *out, struct error *err)
{
	return page_write(how, MEDIUM_TEXT, draw_page, out, err);
}

const struct format_type format_text = {
	.name = "text",
	.help = "for a terminal: tables, bars, colour",
	.pictures = PICTURES_CELLS,
	.write = text_write,
};
