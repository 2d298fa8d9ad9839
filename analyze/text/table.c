/* SPDX-License-Identifier: Apache-2.0 */
/* Any table, one line a row: texts to the left, figures to the right, one unit a column. */
#include "analyze/text/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 24, NAME_WIDTH = 48, NAME_LEAST = 24, GAP = 2 };

struct shown {
	const struct column *column;
	size_t place;
	struct time_unit unit; /* of times */
	bool is_time, is_left;
	unsigned width;
};

static bool ends_in_ns(const char *name)
{
	size_t len = strlen(name);

	return len > 3 && !strcmp(name + len - 3, "_ns");
}

/* The rank is a column only where there are several. */
static bool is_wanted(const struct page *p, const struct column *c)
{
	if (!c->title || c->cell == CELL_HIST)
		return false;
	return strcmp(c->name, "rank") != 0 || p->ranks.count > 1;
}

static char *cell_text(const struct shown *s, union value v, char *out, size_t cap)
{
	char number[NUMBER_TEXT];

	out[0] = '\0';
	if (column_is_text(s->column))
		snprintf(out, cap, "%s", v.text ? v.text : "");
	else if (s->column->cell == CELL_F64 && isfinite(v.f64))
		snprintf(out, cap, "%s", number_text(number, v.f64, 1));
	else if (s->column->cell == CELL_F64 || v.u64 == NO_U64)
		out[0] = '\0';
	else if (s->column->cell == CELL_BOOL)
		snprintf(out, cap, "%s", v.u64 ? "yes" : "no");
	else if (s->is_time)
		snprintf(out, cap, "%s", time_text(number, (double)v.u64, &s->unit));
	else
		snprintf(out, cap, "%s", count_text(number, v.u64));
	return out;
}

static void title_of(const struct shown *s, char *out, size_t cap)
{
	if (s->is_time)
		snprintf(out, cap, "%s %s", s->column->title, s->unit.name);
	else if (s->column->of && !strcmp(s->column->title, "%"))
		snprintf(out, cap, "%% of %s", s->column->of);
	else
		snprintf(out, cap, "%s", s->column->title);
}

static void measure(struct shown *s, const struct view *v)
{
	char text[1024];
	double most = 0;
	unsigned width;
	size_t i;

	for (i = 0; s->is_time && i < v->count; i++)
		if (v->rows[i][s->place].u64 != NO_U64 &&
		    (double)v->rows[i][s->place].u64 > most)
			most = (double)v->rows[i][s->place].u64;
	s->unit = time_unit_of(most, 2);
	title_of(s, text, sizeof(text));
	s->width = text_width(text);
	for (i = 0; i < v->count; i++) {
		width = text_width(cell_text(s, v->rows[i][s->place], text, sizeof(text)));
		if (width > s->width)
			s->width = width;
	}
	if (s->is_left && s->width > NAME_WIDTH)
		s->width = NAME_WIDTH;
}

static unsigned width_of(const struct shown *shown, size_t count)
{
	unsigned width = count ? GAP * ((unsigned)count - 1) : 0;
	size_t i;

	for (i = 0; i < count; i++)
		width += shown[i].width;
	return width;
}

/* A page does not wrap: names give way first, then the last columns; csv and json have all. */
static size_t fit(struct shown *shown, size_t count, unsigned width)
{
	unsigned over;
	size_t i;

	for (i = 0; i < count; i++) {
		over = width_of(shown, count) > width ? width_of(shown, count) - width : 0;
		if (!shown[i].is_left || shown[i].width <= NAME_LEAST)
			continue;
		shown[i].width -= over < shown[i].width - NAME_LEAST ? over
								     : shown[i].width - NAME_LEAST;
	}
	while (count > 1 && width_of(shown, count) > width)
		count--;
	return count;
}

static size_t columns_choose(const struct page *p, const struct view *v,
			     struct shown shown[COLUMNS_MAX])
{
	size_t i, count = 0;

	for (i = 0; v->type->columns[i].name && count < COLUMNS_MAX; i++) {
		const struct column *c = &v->type->columns[i];
		struct shown s = { .column = c, .place = i, .is_time = ends_in_ns(c->name),
				   .is_left = column_is_text(c) };

		if (!is_wanted(p, c))
			continue;
		measure(&s, v);
		shown[count++] = s;
	}
	return fit(shown, count, p->text.width);
}

static void put_line(struct page *p, const struct shown *shown, size_t count,
		     const union value *row)
{
	char text[1024];
	unsigned column = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (row)
			cell_text(&shown[i], row[shown[i].place], text, sizeof(text));
		else
			title_of(&shown[i], text, sizeof(text));
		if (shown[i].is_left)
			text_cut(&p->text, column, shown[i].width, row ? TOKEN_TEXT : TOKEN_DIM,
				 text);
		else
			text_right(&p->text, column + shown[i].width,
				   row ? TOKEN_TEXT : TOKEN_DIM, text);
		column += shown[i].width + GAP;
	}
	text_end(&p->text);
}

void page_table(struct page *p, const struct view *v)
{
	struct shown shown[COLUMNS_MAX];
	size_t count = columns_choose(p, v, shown), i;
	char title[64];

	for (i = 0; v->type->name[i] && i + 1 < sizeof(title); i++)
		title[i] = v->type->name[i] == '_' ? ' ' :
			   (char)(v->type->name[i] >= 'a' && v->type->name[i] <= 'z'
					  ? v->type->name[i] - 'a' + 'A' : v->type->name[i]);
	title[i] = '\0';
	text_at(&p->text, 0, TOKEN_BOLD, title);
	if (!view_is_shown(v))
		text_atf(&p->text, (unsigned)strlen(title) + 2, TOKEN_DIM, "%zu rows: --format json",
			 v->count);
	text_end(&p->text);
	if (!view_is_shown(v))
		return;
	put_line(p, shown, count, NULL);
	for (i = 0; i < v->count; i++)
		put_line(p, shown, count, v->rows[i]);
}
