/* SPDX-License-Identifier: Apache-2.0 */
/* Draws blocks as Markdown, for reviews and bug reports. */
#include "analyze/format/md/md.h"

#include "analyze/format/page/page.h"
#include "schemas/base/utf8.h"

/* Writes a text as one line, and escapes what Markdown or a browser would interpret. */
static void put_text(struct buf *out, const char *text)
{
	/* Some renderers do not accept a backslash before these. */
	static const char *const entities[128] = {
		['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['~'] = "&#126;"
	};
	char bytes[4];

	while (text && *text) {
		uint32_t c = utf8_next(&text);

		if (c < 0x80 && entities[c]) {
			buf_put_text(out, entities[c]);
			continue;
		}
		if (c < 0x80 && strchr("\\`*_{}[]#|", (int)c))
			buf_put_byte(out, '\\');
		if (utf8_is_control(c))
			c = UTF8_DAMAGED;
		buf_put(out, bytes, utf8_put(bytes, c));
	}
}

static void put_cell(struct buf *out, const char *text)
{
	buf_put_text(out, " ");
	put_text(out, text);
	buf_put_text(out, " |");
}

static void put_spans(struct buf *out, const struct span *s, const char *end)
{
	for (; s; s = s->next)
		put_text(out, s->text);
	buf_put_text(out, end);
}

static void put_table(struct buf *out, const struct block_table *t)
{
	buf_put_text(out, "|");
	for (size_t i = 0; i < t->count; i++) {
		const char *title = column_title(&t->columns[i], MEDIUM_MD);

		if (title && !title[0])
			buf_put_text(out, " |");
		else if (title)
			put_cell(out, title);
	}
	buf_put_text(out, "\n|");
	for (size_t i = 0; i < t->count; i++)
		if (column_title(&t->columns[i], MEDIUM_MD))
			buf_put_text(out, t->columns[i].is_left ? "---|" : "---:|");
	for (const struct block_row *r = t->rows; r; r = r->next) {
		buf_put_text(out, "\n|");
		for (size_t i = 0; i < t->count; i++)
			if (column_title(&t->columns[i], MEDIUM_MD))
				put_cell(out, r->cells[i].text);
	}
	buf_put_text(out, "\n\n");
}

void md_draw(struct buf *out, const struct blocks *blocks)
{
	for (const struct block *b = blocks->first; b; b = b->next) {
		switch (b->kind) {
		case BLOCK_INPUT:
			buf_put_text(out, "# ");
			put_text(out, b->input.path);
			buf_putf(out, "%s\n\n", b->input.more);
			put_spans(out, b->input.words.spans, "\n\n");
			break;
		case BLOCK_WARNING:
		case BLOCK_VERDICT:
			buf_putf(out, b->kind == BLOCK_WARNING ? "> **! %s** " : "**%s** ",
				 b->callout.label);
			put_text(out, b->callout.first);
			buf_put_text(out, b->callout.second ? " " : "");
			put_text(out, b->callout.second);
			buf_put_text(out, "\n\n");
			break;
		case BLOCK_SECTION:
			buf_putf(out, "## %s\n\n", b->section.title);
			break;
		case BLOCK_WORDS:
			buf_put_text(out, b->words.role == ROLE_STRONG ? "**" : "");
			put_spans(out, b->words.spans,
				  b->words.role == ROLE_STRONG ? "**\n\n"
				  : b->words.role == ROLE_LINE ? "  \n"
							       : "\n\n");
			break;
		case BLOCK_TABLE:
			put_table(out, &b->table);
			break;
		case BLOCK_STACK:
		case BLOCK_FINDINGS:
		case BLOCK_SPARK:
		case BLOCK_TIMELINES:
		case BLOCK_CURVE:
		case BLOCK_FLAME:
		case BLOCK_HEAT:
		case BLOCK_ROOFLINE:
			break; /* pictures, whose figures are also in tables */
		}
	}
}

static void draw_page(const struct page *p, const struct blocks *b, struct buf *out)
{
	md_draw(out, b);
}

static enum status md_write(const struct format_request *how, struct buf *out, struct error *err)
{
	return page_write(how, MEDIUM_MD, draw_page, out, err);
}

const struct format_type format_md = {
	.name = "md",
	.help = "Markdown tables, for a review",
	.write = md_write,
};
