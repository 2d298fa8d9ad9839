/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/page/block.h"

#include "analyze/engine/report.h" /* for name_short() too */

#include <stdarg.h>
#include <stdio.h>

#define BLOCKS_BYTES ((size_t)4 << 30) /* only the tables limit a page's size */

void blocks_init(struct blocks *b)
{
	*b = (struct blocks){ .first = NULL };
	arena_init(&b->memory, BLOCKS_BYTES);
}

void blocks_release(struct blocks *b)
{
	arena_release(&b->memory);
}

enum status blocks_status(const struct blocks *b, struct error *err)
{
	return b->is_full ? fail_memory(err) : ST_OK;
}

void *blocks_take(struct blocks *b, size_t count, size_t size)
{
	void *items = arena_take(&b->memory, (count ? count : 1) * size, 0);

	b->is_full |= !items;
	return items;
}

const char *blocks_text(struct blocks *b, const char *fmt, ...)
{
	va_list args, again;

	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	char *text = arena_take(&b->memory, (size_t)len + 1, 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	b->is_full |= !text;
	return text ? text : "";
}

const char *show_time(struct blocks *b, double ns, const struct time_unit *unit)
{
	return blocks_text(b, "%s", time_text((char[NUMBER_TEXT]){ 0 }, ns, unit));
}

const char *show_signed(struct blocks *b, double ns, const struct time_unit *unit)
{
	return blocks_text(b, "%s%s",
			   ns > 0   ? "+"
			   : ns < 0 ? "\xe2\x88\x92"
				    : "",
			   show_time(b, ns < 0 ? -ns : ns, unit));
}

const char *show_number(struct blocks *b, double value, unsigned decimals)
{
	return blocks_text(b, "%s", number_text((char[NUMBER_TEXT]){ 0 }, value, decimals));
}

const char *show_count(struct blocks *b, uint64_t value)
{
	return blocks_text(b, "%s", count_text((char[NUMBER_TEXT]){ 0 }, value));
}

const char *show_bytes(struct blocks *b, double bytes)
{
	return blocks_text(b, "%s", bytes_text((char[NUMBER_TEXT]){ 0 }, bytes));
}

const char *show_percent(struct blocks *b, int tenths)
{
	return blocks_text(b, "%s", percent_text((char[NUMBER_TEXT]){ 0 }, tenths));
}

const char *show_name(struct blocks *b, const char *name, unsigned width)
{
	char text[512];

	name_short(name, width, text, sizeof(text));
	return blocks_text(b, "%s", text);
}

struct stack *new_stack(struct blocks *b, size_t count, double whole_ns)
{
	struct stack *s = blocks_take(b, 1, sizeof(*s));

	if (s)
		*s = (struct stack){ blocks_take(b, count, sizeof(*s->parts)), count, whole_ns };
	return s && s->parts ? s : NULL;
}

struct block *add_block(struct blocks *b, enum block_kind kind)
{
	struct block *new = blocks_take(b, 1, sizeof(*new));

	if (!new) {
		b->spare_block = (struct block){ .kind = kind };
		return &b->spare_block;
	}
	new->kind = kind;
	new->has_gap = kind <= BLOCK_SECTION;
	*(b->last ? &b->last->next : &b->first) = new;
	b->last = new;
	return new;
}

struct block *add_section(struct blocks *b, const char *title, const char *note)
{
	struct block *new = add_block(b, BLOCK_SECTION);

	new->section.title = title;
	new->section.note = note;
	new->section.note_at = 14;
	new->section.token = TOKEN_DIM;
	return new;
}

struct block_words *add_words(struct blocks *b, enum role role, unsigned left)
{
	struct block_words *w = &add_block(b, BLOCK_WORDS)->words;

	w->role = role;
	w->left = left;
	return w;
}

void add_span(struct blocks *b, struct block_words *w, enum token token, const char *text)
{
	struct span *new = blocks_take(b, 1, sizeof(*new));

	if (!new)
		return;
	*new = (struct span){ .text = text ? text : "", .token = token };
	*(w->last ? &w->last->next : &w->spans) = new;
	w->last = new;
}

void add_sentence(struct blocks *b, enum role role, unsigned left, const char *text)
{
	add_span(b, add_words(b, role, left),
		 role == ROLE_STRONG ? TOKEN_BOLD
		 : role == ROLE_NOTE ? TOKEN_DIM
				     : TOKEN_TEXT,
		 text);
}

struct block_words *add_labelled(struct blocks *b, unsigned left, unsigned label_at,
				 enum token token, const char *label)
{
	struct block_words *w = add_words(b, ROLE_TEXT, left);

	w->label = label;
	w->label_at = label_at;
	w->label_token = token;
	return w;
}

struct block_table *add_table(struct blocks *b, const struct block_column *columns, size_t count)
{
	struct block_table *t = &add_block(b, BLOCK_TABLE)->table;

	t->columns = blocks_take(b, count, sizeof(*columns));
	if (t->columns)
		memcpy(t->columns, columns, count * sizeof(*columns));
	t->count = t->columns ? count : 0;
	for (size_t i = 0; i < t->count; i++)
		t->columns[i].wish = columns[i].end;
	return t;
}

struct block_row *add_row(struct blocks *b, struct block_table *t, enum token token,
			  const char *class)
{
	struct block_row *r = blocks_take(b, 1, sizeof(*r));
	struct block_cell *cells = blocks_take(b, t->count, sizeof(*cells));

	if (b->is_full) {
		b->spare_row = (struct block_row){ .cells = b->spare_cells };
		return &b->spare_row;
	}
	*r = (struct block_row){ .cells = cells, .token = token, .class = class };
	*(t->last ? &t->last->next : &t->rows) = r;
	t->last = r;
	return r;
}

struct block_cell *add_cell(struct block_row *r, const char *text)
{
	struct block_cell *c = &r->cells[r->used++];

	c->text = text;
	return c;
}

void add_time(struct blocks *b, struct block_row *r, double ns, const struct time_unit *unit)
{
	add_cell(r, show_time(b, ns, unit));
}

void add_number(struct blocks *b, struct block_row *r, double value, unsigned decimals)
{
	add_cell(r, show_number(b, value, decimals));
}

void add_count(struct blocks *b, struct block_row *r, uint64_t value)
{
	add_cell(r, show_count(b, value));
}

void add_percent(struct blocks *b, struct block_row *r, int tenths)
{
	add_cell(r, show_percent(b, tenths));
}

void add_bar(struct block_row *r, enum token token, double share)
{
	struct block_cell *c = add_cell(r, NULL);

	c->token = token;
	c->share = share;
}

enum token token_of_phase(const char *name)
{
	static const struct {
		const char *name;
		enum token token;
	} rows[] = {
		{ "data", TOKEN_DATA },          { "forward", TOKEN_FORWARD },
		{ "backward", TOKEN_BACKWARD },  { "optimizer", TOKEN_OPTIMIZER },
		{ "communication", TOKEN_COMM }, { "checkpoint", TOKEN_ASIDE },
		{ "validation", TOKEN_ASIDE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name))
			return rows[i].token;
	return TOKEN_OTHER;
}

enum token token_of_kind(const char *kind)
{
	if (!strncmp(kind, "host:", 5))
		return token_of_phase(kind + 5);
	return !strcmp(kind, "compute")                                 ? TOKEN_COMPUTE
	       : !strcmp(kind, "exposed_comm")                          ? TOKEN_COMM
	       : !strcmp(kind, "exposed_copy") || !strcmp(kind, "data") ? TOKEN_DATA
									: TOKEN_OTHER;
}

const struct phase_letter phase_letters[] = {
	{ 'd', "data" },          { 'f', "forward" },
	{ 'b', "backward" },      { 'o', "optimizer" },
	{ 'c', "communication" }, { 'k', "checkpoint" },
	{ 'v', "validation" },    { 0, NULL },
};

enum token token_of_letter(char letter)
{
	const struct phase_letter *p = phase_letters;

	while (p->name && p->letter != letter)
		p++;
	return p->name ? token_of_phase(p->name) : TOKEN_OTHER;
}
