/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/text/line.h"

#include "schemas/base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <wchar.h>

#define LINE_WIDE  UINT32_MAX
#define GLYPH_FULL 0x2588u /* followed by seven smaller eighths: 0x2589 .. 0x258f */

static const struct tint {
	const char *basic, *dark, *light; /* SGR; 24 bit for dark and light backgrounds */
} tints[TOKEN_COUNT] = {
	[TOKEN_TEXT] = { NULL, NULL, NULL },
	[TOKEN_BOLD] = { "1", "1;38;2;231;234;238", "1;38;2;26;29;33" },
	[TOKEN_DIM] = { "2", "38;2;154;165;177", "38;2;89;99;110" },
	[TOKEN_CODE] = { NULL, NULL, NULL },
	[TOKEN_WARN] = { "1;91", "1;38;2;255;138;122", "1;38;2;179;38;30" },
	[TOKEN_COMPUTE] = { NULL, "38;2;180;194;210", "38;2;70;80;94" },
	[TOKEN_COMM] = { "33", "38;2;238;138;46", "38;2;217;114;0" },
	[TOKEN_DATA] = { "35", "38;2;217;91;188", "38;2;178;72;158" },
	[TOKEN_IDLE] = { "2", "38;2;98;109;121", "38;2;142;152;163" },
	[TOKEN_UNSEEN] = { "91", "38;2;255;138;122", "38;2;179;38;30" },
	[TOKEN_FORWARD] = { "96", "38;2;152;207;255", "38;2;61;147;222" },
	[TOKEN_BACKWARD] = { "34", "38;2;72;149;250", "38;2;11;63;148" },
	[TOKEN_OPTIMIZER] = { "32", "38;2;90;197;152", "38;2;52;121;84" },
	[TOKEN_ASIDE] = { "93", "38;2;231;224;146", "38;2;87;74;22" },
	[TOKEN_OTHER] = { "90", "38;2;116;123;130", "38;2;138;144;150" },
};

void text_init(struct text *t, const struct format_request *how, struct buf *out)
{
	*t = (struct text){ .out = out,
			    .colour = how->colour,
			    .is_utf8 = how->is_utf8,
			    .width = how->width < LINE_MOST ? how->width : LINE_MOST };
}

/* Puts a character or its replacement. In a full line only the fact is kept that there is more. */
static unsigned put(struct text *t, unsigned column, enum token token, uint32_t c)
{
	unsigned columns = utf8_columns(c);

	if (utf8_is_control(c) || c == UTF8_DAMAGED ||
	    (t->is_utf8 && c >= 0x80 && wcwidth((wchar_t)c) < 1))
		c = '?';
	for (const char *plain = plain_glyph(c); c >= 0x80 && !t->is_utf8; plain++) {
		if (!*plain)
			return column;
		column = put(t, column, token, (uint32_t)*plain);
	}
	for (unsigned i = 0; i < columns && column + i <= LINE_MOST; i++)
		t->cells[column + i] = (struct line_cell){ i ? LINE_WIDE : c, (uint8_t)token };
	return column + columns;
}

unsigned text_at(struct text *t, unsigned column, enum token token, const char *words)
{
	while (*words)
		column = put(t, column, token, utf8_next(&words));
	return column;
}

/* Copies one word, including the blanks before it. */
static size_t word_take(const char *words, char out[256])
{
	size_t len = strspn(words, " ");

	len += strcspn(words + len, " ");
	if (len > 255)
		len = 255;
	memcpy(out, words, len);
	out[len] = '\0';
	return len;
}

/* Returns the end of the part of a text that fits in so many columns. */
static const char *head_of(const char *words, unsigned columns)
{
	for (const char *next = words; *words; words = next) {
		unsigned width = utf8_columns(utf8_next(&next));

		if (width > columns)
			break;
		columns -= width;
	}
	return words;
}

/* Like head_of(), but cuts after a sign if there is one: at the end of a part of a path or name
 * rather than at underscores within a name, unless half of the line would stay empty. */
static const char *part_of(const char *word, unsigned columns)
{
	static const char *const signs[] = { "./,=:#-", "_" };
	const char *end = head_of(word, columns);

	for (size_t i = 0; *end && i < sizeof(signs) / sizeof(*signs); i++) {
		const char *least = i ? word + 1 : word + (end - word) / 2, *sign = end;

		while (sign >= least && (!strchr(signs[i], sign[-1]) || strchr(signs[i], *sign)))
			sign--;
		if (sign >= least)
			return sign;
	}
	return end;
}

unsigned text_wrap(struct text *t, unsigned column, unsigned left, enum token token,
		   const char *words, unsigned after)
{
	char word[256];

	while (*words) {
		const char *at = word;

		words += word_take(words, word);
		unsigned width = text_width(word) + (*words ? 0 : after);
		if (column + width > t->width && (column > left || left + width > t->width)) {
			text_end(t);
			at += strspn(word, " ");
			width -= (unsigned)(at - word);
			column = left + width <= t->width ? left
				 : width < t->width       ? t->width - width
							  : 0;
		}
		while (column < t->width && column + text_width(at) > t->width) {
			const char *end = part_of(at, t->width - column);

			if (end == at)
				break; /* not even one character fits */
			while (at < end)
				column = put(t, column, token, utf8_next(&at));
			text_end(t);
			column = 0;
		}
		column = text_at(t, column, token, at);
	}
	return column;
}

unsigned text_clip(struct text *t, unsigned column, unsigned width, enum token token,
		   const char *words)
{
	bool fits = text_width(words) <= width;
	unsigned end = column + width;
	char word[256];

	while (*words) {
		words += word_take(words, word);
		if (!fits && column + text_width(word) + 2 > end)
			return width < 2 ? column : text_at(t, column, token, " \xe2\x80\xa6");
		column = text_at(t, column, token, word);
	}
	return column;
}

void text_right(struct text *t, unsigned end, enum token token, const char *words)
{
	unsigned width = text_width(words);

	text_at(t, width < end ? end - width : 0, token, words);
}

/* Returns the end of a text that fits in `width` columns. */
static const char *tail_of(const char *words, unsigned width)
{
	for (unsigned whole = text_width(words); *words && whole > width;)
		whole -= utf8_columns(utf8_next(&words));
	return words;
}

static unsigned head_width(unsigned width)
{
	return (width - 1) * 3 / 5;
}

void text_cut(char out[TEXT_CUT], const char *words, unsigned width, const char *seen)
{
	unsigned whole = text_width(words), head;

	if (whole <= width && whole <= LINE_MOST) {
		snprintf(out, TEXT_CUT, "%s", words);
		return;
	}
	width = width < 1 ? 1 : width > LINE_MOST ? LINE_MOST : width;
	const char *middle = head_of(words, head_width(width));
	head = whole - text_width(middle);
	const char *tail = tail_of(words, width - 1 - head);
	if (seen && seen >= middle && seen < tail && head + 2 < width)
		snprintf(out, TEXT_CUT, "%.*s\xe2\x80\xa6%.*s\xe2\x80\xa6", (int)(middle - words),
			 words, (int)(head_of(seen, width - head - 2) - seen), seen);
	else
		snprintf(out, TEXT_CUT, "%.*s\xe2\x80\xa6%s", (int)(middle - words), words, tail);
}

unsigned text_shorten(struct text *t, unsigned column, unsigned width, enum token token,
		      const char *words)
{
	char cut[TEXT_CUT];

	text_cut(cut, words, width, NULL);
	return text_at(t, column, token, cut);
}

const char *text_tail(const char *words, unsigned width)
{
	return width < 2 ? "" : tail_of(words, width - 1 - head_width(width));
}

size_t text_alike(const char *a, const char *b, unsigned width)
{
	unsigned head = width < 2 ? 0 : head_width(width), whole;
	size_t same = 0;

	while (a[same] && a[same] == b[same])
		same++;
	if (width < 2 || same + 1 < head || (!a[same] && !b[same]))
		return 0;
	/* go to the begin of the character */
	while (same && ((unsigned char)a[same] & 0xc0) == 0x80)
		same--;
	whole = text_width(a);
	if (whole <= width || text_width(b) <= width || whole - text_width(a + same) + 1 < head)
		return 0;
	return strcmp(text_tail(a, width), text_tail(b, width)) ? 0 : same;
}

unsigned text_fill(struct text *t, unsigned column, unsigned count, enum token token, uint32_t c)
{
	while (count--)
		column = put(t, column, token, c);
	return column;
}

void text_bar(struct text *t, unsigned column, enum token token, double cells)
{
	unsigned eighths = (unsigned)lround(cells * 8);

	if (!(cells > 0))
		return;
	if (!t->is_utf8) {
		text_fill(t, column, cells < 1 ? 1 : (unsigned)lround(cells), token, '#');
		return;
	}
	if (!eighths)
		eighths = 1;
	column = text_fill(t, column, eighths / 8, token, GLYPH_FULL);
	if (eighths % 8)
		text_fill(t, column, 1, token, GLYPH_FULL + 8 - eighths % 8);
}

static const char *tint_of(const struct text *t, unsigned token)
{
	const struct tint *tint = &tints[token == TOKEN_LEAD ? TOKEN_IDLE : token];

	if (t->colour == COLOUR_NONE)
		return NULL;
	if (t->colour == COLOUR_16)
		return tint->basic;
	return t->colour == COLOUR_DARK ? tint->dark : tint->light;
}

void text_end(struct text *t)
{
	const char *now = NULL, *want;
	unsigned i, end = LINE_MOST + 1;
	char bytes[4];

	while (end && (!t->cells[end - 1].c || t->cells[end - 1].c == ' '))
		end--;
	if (end > t->width) { /* mark that the line was cut */
		end = t->width;
		for (i = end; i && t->cells[i - 1].c == LINE_WIDE; i--)
			t->cells[i - 1].c = 0;
		if (i)
			put(t, i - 1, t->cells[i - 1].token, 0x2026);
	}
	while (end && (!t->cells[end - 1].c || t->cells[end - 1].c == ' '))
		end--;
	for (i = 0; i < end; i++) {
		const struct line_cell *cell = &t->cells[i];

		if (cell->c == LINE_WIDE)
			continue;
		want = cell->c && cell->c != ' ' ? tint_of(t, cell->token) : now;
		if (want != now) {
			buf_put_text(t->out, "\033[0m");
			if (want)
				buf_putf(t->out, "\033[%sm", want);
			now = want;
		}
		buf_put(t->out, bytes, utf8_put(bytes, cell->c ? cell->c : ' '));
	}
	if (now)
		buf_put_text(t->out, "\033[0m");
	buf_put_byte(t->out, '\n');
	memset(t->cells, 0, sizeof(t->cells));
}
