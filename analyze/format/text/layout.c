/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/text/layout.h"

#include "analyze/format/text/line.h"

enum { NAME_WIDTH = 48 /* most of a name in a table that lays itself out */ };
enum { ROWS_NEAR = 256 /* names of so many following rows are compared with it */ };

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

/* What the cells of a column need, and its title unless that stands over several. */
static unsigned column_need(const struct block_table *table, size_t i)
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
		if (c->width && !c->end && width > c->width)
			width = c->width;
		width += (cell->more ? text_width(cell->more) : 0) + (cell->mark ? 2 : 0);
		need = width > need ? width : need;
	}
	return need;
}

/* Columns of a table and of the one beside it, from the left. */
struct layout {
	struct place {
		struct block_column *column;
		unsigned at, wish, width,
			least; /* wish: where the page would have it end or begin */
		bool is_right;
	} places[2 * COLUMNS_MAX];
	size_t count;
};

static void take_columns(struct layout *l, const struct block_table *table,
			 const struct block *others)
{
	for (size_t i = 0; i < table->count; i++) {
		struct block_column *c = &table->columns[i];
		struct place new = { .column = c, .wish = c->end ? c->end : c->at };
		size_t k = l->count;

		if (!column_title(c, MEDIUM_TEXT) || k == 2 * COLUMNS_MAX)
			continue;
		new.width = column_need(table, i);
		for (const struct block *b = others; b; b = b->next)
			if (b->kind == BLOCK_TABLE && b->table.like == table) {
				unsigned need = column_need(&b->table, i);

				new.width = need > new.width ? need : new.width;
			}
		new.is_right = !c->is_bar && (c->end || (table->is_fitted && !c->is_left));
		new.least = new.width;
		if (table->is_fitted && c->is_left && new.width > NAME_WIDTH)
			new.width = NAME_WIDTH;
		if (c->is_bar)
			new.least = 0;
		else if (!new.is_right && (c->width || table->is_fitted))
			new.least = NAME_LEAST;
		for (; k && l->places[k - 1].wish > new.wish; k--)
			l->places[k] = l->places[k - 1];
		l->places[k] = new;
		l->count++;
	}
}

static unsigned layout_width(const struct layout *l)
{
	unsigned width = 0;

	for (size_t i = 0; i < l->count; i++)
		width += l->places[i].width ? l->places[i].width + (width ? GAP : 0) : 0;
	return width;
}

/* Bars shrink before names, and both before the last column is left out: csv and json have it. */
static void shrink_columns(struct layout *l, unsigned width)
{
	for (int names = 0; names < 2; names++)
		for (size_t i = l->count; i--;) {
			struct place *p = &l->places[names ? l->count - 1 - i : i];
			unsigned all = layout_width(l), over = all > width ? all - width : 0;

			if (p->column->is_bar != !names || p->width <= p->least)
				continue;
			p->width -= over < p->width - p->least ? over : p->width - p->least;
		}
	while (l->count > 1 && layout_width(l) > width)
		l->places[--l->count].column->hidden |= IN(MEDIUM_TEXT);
	if (l->count && layout_width(l) > width)
		l->places[0].width = width;
}

/*
 * Columns stand where the page would have them as far as their cells leave GAP blanks between two;
 * else they move, first to the right and then back from the edge of the terminal.
 */
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

/* Names of a column that would read alike are to show where they differ. */
static void tell_apart(struct block_table *table, size_t i)
{
	unsigned width = table->columns[i].width;

	for (struct block_row *r = table->rows; r; r = r->next) {
		struct block_cell *a = &r->cells[i];
		struct block_row *other = r->next;

		if (!a->text || text_width(a->text) <= width)
			continue;
		for (size_t k = 0; k < ROWS_NEAR && other; k++, other = other->next) {
			struct block_cell *b = &other->cells[i];
			size_t seen = b->text ? text_alike(a->text, b->text, width) : 0;

			a->seen = seen > a->seen ? seen : a->seen;
			b->seen = seen > b->seen ? seen : b->seen;
		}
	}
}

void columns_place(struct block_table *table, struct block_table *beside,
		   const struct block *others, unsigned width)
{
	struct layout layout = { .count = 0 };

	take_columns(&layout, table, others);
	if (beside)
		take_columns(&layout, beside, NULL);
	place_columns(&layout, width);
	for (size_t i = 0; i < table->count; i++)
		if (!table->columns[i].end && !table->columns[i].is_bar)
			tell_apart(table, i);
}
