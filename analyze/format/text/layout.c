/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/text/line.h"

#include "schemas/base/crc32c.h"
#include "schemas/base/sort.h"

#include <stdlib.h>

enum {
	NAME_WIDTH = 48, /* limit of a name in a table with automatic layout */
	WORD_LEAST = 10, /* least width of phases and causes */
	BAR_LEAST = 8,   /* columns; shorter bars are useless */
};

bool cell_is_over_next(const struct block_table *table, const struct block_row *r, size_t i)
{
	const struct block_column *next = &table->columns[i + 1];

	return !table->is_fitted && i + 1 < table->count && !table->columns[i].end && !next->end &&
	       !next->is_bar && (!r->cells[i + 1].text || !*r->cells[i + 1].text) &&
	       column_title(next, MEDIUM_TEXT);
}

bool title_is_over_next(const struct block_table *table, size_t i)
{
	const char *next =
		i + 1 < table->count ? column_title(&table->columns[i + 1], MEDIUM_TEXT) : NULL;

	return !table->is_fitted && !table->columns[i].end && next && !*next;
}

/* Returns the columns that the cells of a column need, and its title unless that extends over the
 * next column. Names count at most `most`. */
static unsigned column_need(const struct block_table *table, size_t i, unsigned most)
{
	const struct block_column *c = &table->columns[i];
	unsigned need = title_is_over_next(table, i) ? 0 : text_width(column_title(c, MEDIUM_TEXT)),
		 width;

	if (c->is_bar)
		return c->width;
	if (c->title_at)
		need = c->end - c->title_at;
	for (const struct block_row *r = table->rows; r; r = r->next) {
		const struct block_cell *cell = &r->cells[i];

		width = cell->text && !cell_is_over_next(table, r, i) ? text_width(cell->text) : 0;
		if (c->width && !c->end && width > most)
			width = most;
		/* a text of the previous column that continues here */
		if (i && r->cells[i - 1].text && cell_is_over_next(table, r, i - 1)) {
			unsigned before = text_width(r->cells[i - 1].text);
			unsigned by = column_need(table, i - 1, most) + GAP;

			by = by < c->at - c[-1].at ? by : c->at - c[-1].at;
			width = before > by ? before - by : 0;
		}
		width += (cell->more ? text_width(cell->more) : 0) + (cell->mark ? 2 : 0);
		need = width > need ? width : need;
	}
	return need;
}

/* Columns of a table and of the one beside it, from left to right. */
struct layout {
	struct place {
		struct block_column *column;
		unsigned at, wish; /* wish: end or begin by the page's design */
		unsigned width, least, need;
		bool is_right;
	} places[2 * COLUMNS_MAX];
	size_t count;
};

/* Returns the column of the table that is aligned with this one of a table above; NULL: none. */
static const struct block_column *column_below(const struct block_table *table,
					       const struct block_column *c)
{
	for (size_t i = 0; i < table->count && c->wish; i++)
		if (table->columns[i].wish == c->wish)
			return &table->columns[i];
	return NULL;
}

/* Returns what a column needs in its table and in later tables that are aligned with it. */
static unsigned need_of(const struct block_table *table, const struct block *others, size_t i,
			unsigned most)
{
	unsigned need = column_need(table, i, most);

	for (const struct block *b = others; b; b = b->next) {
		const struct block_table *t = &b->table;
		const struct block_column *c = NULL;

		if (b->kind == BLOCK_TABLE && t->like == table)
			c = &t->columns[i];
		else if (b->kind == BLOCK_TABLE && t->below == table)
			c = column_below(t, &table->columns[i]);
		unsigned other = c ? column_need(t, (size_t)(c - t->columns), most) : 0;
		need = other > need ? other : need;
	}
	return need;
}

static void take_columns(struct layout *l, const struct block_table *table,
			 const struct block *others)
{
	for (size_t i = 0; i < table->count; i++) {
		struct block_column *c = &table->columns[i];
		struct place new = { .column = c, .wish = c->wish ? c->wish : c->at };
		size_t k = l->count;

		if (!column_title(c, MEDIUM_TEXT) || k == 2 * COLUMNS_MAX)
			continue;
		new.width = need_of(table, others, i, c->width);
		new.is_right = !c->is_bar && (c->end || (table->is_fitted && !c->is_left));
		new.least = new.need = new.width;
		if (table->is_fitted && c->is_left && new.width > NAME_WIDTH)
			new.width = NAME_WIDTH;
		if (c->is_bar)
			new.least = 0;
		else if (!new.is_right && c->width && !table->is_fitted)
			new.need = need_of(table, others, i, LINE_MOST);
		if (!new.is_right && !c->is_bar && (c->width || table->is_fitted))
			new.least = !c->width || c->width > NAME_LEAST ? NAME_LEAST
				    : c->width > WORD_LEAST            ? WORD_LEAST
								       : c->width;
		for (; k && l->places[k - 1].wish > new.wish; k--)
			l->places[k] = l->places[k - 1];
		l->places[k] = new;
		l->count++;
	}
}

/* Gives the columns beyond the design width of pages to names. */
static void grow_names(struct layout *l, unsigned width)
{
	unsigned more = width > LINE_WIDTH ? width - LINE_WIDTH : 0, by;

	for (size_t i = 0; i < l->count && more; i++) {
		struct place *p = &l->places[i];

		if (p->column->is_bar || p->need <= p->width)
			continue;
		by = p->need - p->width < more ? p->need - p->width : more;
		p->width += by;
		more -= by;
		for (size_t k = 0; k < l->count; k++)
			if (l->places[k].wish > p->wish)
				l->places[k].wish += by;
	}
}

static void leave_out(struct block_column *c)
{
	c->hidden |= IN(MEDIUM_TEXT) | LEFT_OUT;
}

/* Aligns columns with those of the table above; a name gets the space that remains. */
static void follow(struct layout *l, const struct block_table *above)
{
	struct place *name = NULL, *figure = NULL;
	int by = 0;

	for (size_t i = 0; i < l->count; i++) {
		struct place *p = &l->places[i];
		const struct block_column *c = column_below(above, p->column);

		if (c && !column_title(c, MEDIUM_TEXT)) {
			leave_out(p->column);
			l->count = i;
			break;
		}
		by = c ? (int)c->end - (int)c->wish : by;
		name = !p->is_right && p->column->width ? p : name;
		figure = p->is_right && !figure ? p : figure;
		if (figure)
			p->wish = (unsigned)((int)p->wish + by);
	}
	if (!name || !figure || figure->wish < name->wish + figure->width + GAP)
		return;
	name->width = figure->wish - figure->width - GAP - name->wish;
	name->width = name->need < name->width ? name->need : name->width;
}

static unsigned layout_width(const struct layout *l)
{
	unsigned width = 0;

	for (size_t i = 0; i < l->count; i++)
		width += l->places[i].width ? l->places[i].width + (width ? GAP : 0) : 0;
	return width;
}

/* Shrinks the bars of a table alike, because they have one scale, and drops them if necessary. */
static void shrink_bars(struct layout *l, unsigned width)
{
	unsigned over = layout_width(l), bars = 0;

	for (size_t i = 0; i < l->count; i++)
		bars += l->places[i].column->is_bar;
	if (over <= width || !bars)
		return;
	over = (over - width + bars - 1) / bars;
	for (size_t i = 0; i < l->count; i++) {
		struct place *p = &l->places[i];

		if (p->column->is_bar)
			p->width = p->width >= over + BAR_LEAST ? p->width - over : 0;
	}
}

/* Shrinks bars, then names, and leaves out the last columns if that is not enough. */
static void shrink_columns(struct layout *l, unsigned width)
{
	shrink_bars(l, width);
	for (size_t i = 0; i < l->count; i++) {
		struct place *p = &l->places[i];
		unsigned all = layout_width(l), over = all > width ? all - width : 0;

		if (p->column->is_bar || p->width <= p->least)
			continue;
		p->width -= over < p->width - p->least ? over : p->width - p->least;
	}
	while (l->count > 1 && layout_width(l) > width)
		leave_out(l->places[--l->count].column);
	if (l->count && layout_width(l) > width)
		l->places[0].width = width;
}

/* Places columns as designed if their cells leave GAP blanks between two. Otherwise they move,
 * first to the right and then back from the edge of the terminal. */
static void place_columns(struct layout *l, unsigned width)
{
	unsigned at = 0, edge = width;

	shrink_columns(l, width);
	for (size_t i = 0; i < l->count; i++) {
		struct place *p = &l->places[i];

		p->at = p->is_right ? (p->wish > p->width ? p->wish - p->width : 0) : p->wish;
		p->at = p->at > at ? p->at : at;
		at = p->width ? p->at + p->width + GAP : at;
	}
	for (size_t i = l->count; i--;) {
		struct place *p = &l->places[i];
		struct block_column *c = p->column;

		if (p->at + p->width > edge)
			p->at = edge > p->width ? edge - p->width : 0;
		if (p->width)
			edge = p->at > GAP ? p->at - GAP : 0;
		if (c->title_at)
			c->title_at = p->at + p->width - (c->end - c->title_at);
		c->at = p->at;
		c->width = p->width;
		c->end = p->is_right ? p->at + p->width : 0;
	}
}

struct cut {           /* a shortened name */
	uint32_t look; /* hash of its tail, then of its shortened form */
	const char *text;
	struct block_cell *cell;
};

static uint32_t look_of(const struct block_cell *cell, unsigned width)
{
	char cut[TEXT_CUT];

	text_cut(cut, cell->text, width, cell->seen ? cell->text + cell->seen : NULL);
	return crc32c(0, cut, strlen(cut));
}

/* Numbers the names that still look alike. */
static void number_alike(struct cut *all, size_t count, unsigned width)
{
	unsigned number = 1;

	for (size_t k = 0; k < count; k++)
		all[k].look = look_of(all[k].cell, width);
	if (count)
		SORT_BY(all, count, UP(struct cut, look), UP(struct cut, text));
	for (size_t k = 1; k < count; k++) {
		if (all[k].look != all[k - 1].look)
			number = 1;
		else if (strcmp(all[k].text, all[k - 1].text) != 0)
			number++;
		all[k].cell->number = number > 1 ? number : 0;
	}
}

/* Marks where names of a column differ if they would look alike when shortened, or numbers them.
 * Without memory it does nothing. */
static void tell_apart(struct block_table *table, size_t i)
{
	unsigned width = table->columns[i].width;
	size_t cap = 0, count = 0;
	struct cut *all;

	for (const struct block_row *r = table->rows; r; r = r->next)
		cap++;
	all = malloc((cap ? cap : 1) * sizeof(*all));
	for (struct block_row *r = all ? table->rows : NULL; r; r = r->next) {
		struct block_cell *c = &r->cells[i];

		if (!c->text || text_width(c->text) <= width)
			continue;
		const char *tail = text_tail(c->text, width);
		all[count++] = (struct cut){ crc32c(0, tail, strlen(tail)), c->text, c };
	}
	if (count)
		SORT_BY(all, count, UP(struct cut, look), UP(struct cut, text));
	for (size_t k = 1, first = 0; k < count; k++) {
		if (all[k].look == all[k - 1].look && !strcmp(all[k].text, all[k - 1].text)) {
			all[k].cell->seen = all[k - 1].cell->seen;
			continue;
		}
		/* in this order neighbours share the longest begin */
		size_t seen = all[k].look == all[k - 1].look
				      ? text_alike(all[k].text, all[k - 1].text, width)
				      : 0;
		for (; first <= k; first++)
			all[first].cell->seen =
				seen > all[first].cell->seen ? seen : all[first].cell->seen;
		first = k;
	}
	number_alike(all, count, width);
	free(all);
}

void columns_place(struct block_table *table, struct block_table *beside,
		   const struct block *others, unsigned width)
{
	struct layout layout = { .count = 0 };

	take_columns(&layout, table, others);
	if (beside)
		take_columns(&layout, beside, NULL);
	if (table->below)
		follow(&layout, table->below);
	else
		grow_names(&layout, width);
	place_columns(&layout, width);
	for (; table; table = beside, beside = NULL)
		for (size_t i = 0; i < table->count; i++)
			if (!table->columns[i].end && !table->columns[i].is_bar)
				tell_apart(table, i);
}
