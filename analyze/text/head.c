/* SPDX-License-Identifier: Apache-2.0 */
/* The lines above the first block, and the last block: what was read, and can it be trusted. */
#include "analyze/page/talk.h"

#include <stdio.h>

struct text_talk {
	struct talk talk;
	struct page *page;
	unsigned column, left;
};

static void put_words(struct talk *talk, enum token token, const char *words)
{
	struct text_talk *t = (struct text_talk *)talk;

	t->column = text_wrap(&t->page->text, t->column, t->left, token, words);
}

static void end_line(struct talk *talk)
{
	struct text_talk *t = (struct text_talk *)talk;

	text_end(&t->page->text);
	t->column = t->left;
}

static void put_distrust(struct talk *talk, const char *word, const char *first,
			 const char *second)
{
	struct text_talk *t = (struct text_talk *)talk;
	struct text *text = &t->page->text;

	text_end(text);
	text_atf(text, 0, TOKEN_WARN, "! %s", word);
	t->column = t->left;
	put_words(talk, TOKEN_WARN, first);
	end_line(talk);
	if (!second)
		return;
	put_words(talk, TOKEN_WARN, second);
	end_line(talk);
}

static struct text_talk talk_at(struct page *p, unsigned left)
{
	return (struct text_talk){
		.talk = { .words = put_words, .end = end_line, .distrust = put_distrust },
		.page = p, .column = left, .left = left,
	};
}

void page_head(struct page *p, const char *report)
{
	struct view inputs = page_view(p, "inputs");
	struct text_talk t = talk_at(p, 0);
	const char *path = inputs.count ? view_cell(&inputs, 0, "path").text : NULL;
	char more[64] = "";
	unsigned column, room = p->text.width > 20 ? p->text.width - 10 : 10;

	if (inputs.count > 1)
		snprintf(more, sizeof(more), " and %zu more", inputs.count - 1);
	room -= text_width(more) < room ? text_width(more) : 0;
	column = text_cut(&p->text, 0, room, TOKEN_BOLD, path ? path : "?");
	text_at(&p->text, column, TOKEN_DIM, more);
	text_right(&p->text, p->text.width, TOKEN_DIM, report);
	text_end(&p->text);
	talk_head(p, &t.talk);
	end_line(&t.talk);
}

void page_distrust(struct page *p)
{
	struct text_talk t = talk_at(p, 14);

	talk_distrust(p, &t.talk);
}

void page_trust(struct page *p)
{
	struct text_talk t = talk_at(p, 14);

	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_BOLD, "TRUST");
	talk_trust(p, &t.talk);
}
