/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/html/put.h"

#include "schemas/utf8.h"

#include <stdarg.h>
#include <string.h>

void html_raw(struct html *h, const char *markup)
{
	buf_put_text(h->out, markup);
}

void html_rawf(struct html *h, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buf_vputf(h->out, fmt, args);
	va_end(args);
}

/* Controls have no place in a page; U+FFFD stands for them as for what is no UTF-8. */
static void put_character(struct html *h, uint32_t c)
{
	char bytes[4];

	switch (c) {
	case '<':
		html_raw(h, "&lt;");
		return;
	case '>':
		html_raw(h, "&gt;");
		return;
	case '&':
		html_raw(h, "&amp;");
		return;
	case '"':
		html_raw(h, "&quot;");
		return;
	}
	if (c < ' ' || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
	    (c >= 0x2066 && c <= 0x2069))
		c = 0xFFFD; /* and what turns the direction of the text around it */
	buf_put(h->out, bytes, utf8_put(bytes, c));
}

void html_text(struct html *h, const char *text)
{
	while (text && *text)
		put_character(h, utf8_next(&text));
}

void html_section(struct html *h, const char *title)
{
	html_rawf(h, "<section><header><h2>%s</h2><p>", title);
}

void html_section_note(struct html *h, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buf_vputf(h->out, fmt, args);
	va_end(args);
}

void html_section_body(struct html *h)
{
	html_raw(h, "</p></header><div>\n");
}

void html_section_end(struct html *h)
{
	html_raw(h, "</div></section>\n");
}

void html_cell(struct html *h, const char *class, const char *text)
{
	html_rawf(h, "<td class=\"%s\">", class);
	html_text(h, text);
	html_raw(h, "</td>");
}

void html_head_cell(struct html *h, const char *class, const char *title)
{
	html_rawf(h, "<th class=\"%s\">%s</th>", class, title);
}

const char *html_token(enum token token)
{
	static const char *const names[TOKEN_COUNT] = {
		[TOKEN_COMPUTE] = "compute", [TOKEN_COMM] = "comm", [TOKEN_DATA] = "data",
		[TOKEN_IDLE] = "idle", [TOKEN_UNSEEN] = "unseen", [TOKEN_FORWARD] = "forward",
		[TOKEN_BACKWARD] = "backward", [TOKEN_OPTIMIZER] = "optimizer",
		[TOKEN_ASIDE] = "aside",
	};

	return names[token] ? names[token] : "other";
}

const char *html_class_name(char letter)
{
	return letter == 'l' ? "lead" : html_token(token_of(letter));
}

void html_bar(struct html *h, const char *class, enum token token, double share)
{
	html_rawf(h, "<td class=\"bar %s\">", class);
	if (share > 0)
		html_rawf(h, "<i class=\"%s\" style=\"width:%.2f%%\"></i>", html_token(token),
			  100 * (share < 1 ? share : 1));
	html_raw(h, "</td>");
}

void html_mark(struct html *h, const char *name)
{
	html_rawf(h, "<i class=\"mark %s\"></i>", name);
}
