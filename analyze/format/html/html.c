/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/html/html.h"

#include "analyze/format/page/page.h"
#include "schemas/base/utf8.h"

#include <ctype.h>
#include <math.h>

enum { WORD_MAX = 128 };

static const char file_begin[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
	"style-src 'unsafe-inline'\">\n<title>";

/* Hatch patterns for lead and tail time and for time without records, which must not look like a
 * colour. */
static const char patterns[] =
	"<svg aria-hidden=\"true\" width=\"0\" height=\"0\" style=\"position:absolute\"><defs>"
	"<pattern id=\"lead\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"var(--paper)\"/>"
	"<rect width=\"1.4\" height=\"5\" fill=\"var(--lead)\"/></pattern>"
	"<pattern id=\"unseen\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"var(--paper)\"/>"
	"<rect width=\"1.4\" height=\"5\" fill=\"var(--warn)\"/></pattern></defs></svg>\n";

/* ---- markup ----------------------------------------------------------------------------- */

void html_raw(struct buf *out, const char *markup)
{
	buf_put_text(out, markup);
}

void html_rawf(struct buf *out, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buf_vputf(out, fmt, args);
	va_end(args);
}

/* Writes a text up to `end`; NULL: all of it. */
static void put_text(struct buf *out, const char *text, const char *end)
{
	char bytes[4];

	while (text && *text && text != end) {
		uint32_t c = utf8_next(&text);
		const char *entity = c == '<'   ? "&lt;"
				     : c == '>' ? "&gt;"
				     : c == '&' ? "&amp;"
				     : c == '"' ? "&quot;"
						: NULL;

		if (utf8_is_control(c))
			c = UTF8_DAMAGED;
		if (entity)
			html_raw(out, entity);
		else
			buf_put(out, bytes, utf8_put(bytes, c));
	}
}

void html_text(struct buf *out, const char *text)
{
	put_text(out, text, NULL);
}

void html_between(struct buf *out, const char *before, const char *text, const char *after)
{
	html_raw(out, before);
	html_text(out, text);
	html_raw(out, after);
}

/* Returns where the second sentence of a text begins; "" if there is none. */
static const char *second_sentence(const char *text)
{
	for (const char *at = strstr(text, ". "); at; at = strstr(at + 1, ". "))
		if (isupper((unsigned char)at[2]) || at[2] == '-')
			return at + 2;
	return text + strlen(text);
}

const char *html_token(enum token token)
{
	static const char *const names[TOKEN_COUNT] = {
		[TOKEN_COMPUTE] = "compute",     [TOKEN_COMM] = "comm",
		[TOKEN_DATA] = "data",           [TOKEN_IDLE] = "idle",
		[TOKEN_LEAD] = "lead",           [TOKEN_UNSEEN] = "unseen",
		[TOKEN_FORWARD] = "forward",     [TOKEN_BACKWARD] = "backward",
		[TOKEN_OPTIMIZER] = "optimizer", [TOKEN_ASIDE] = "aside",
	};

	return names[token] ? names[token] : "other";
}

/* ---- words ------------------------------------------------------------------------------ */

static void draw_words(struct buf *out, const struct block_words *w)
{
	static const struct {
		const char *begin, *end;
	} markup[] = {
		[ROLE_TEXT] = { "<p>", "</p>\n" },
		[ROLE_STRONG] = { "<p><b>", "</b></p>\n" },
		[ROLE_NOTE] = { "<p class=\"note\">", "</p>\n" },
		[ROLE_LINE] = { "", "<br>\n" },
		[ROLE_ALONE] = { "", "" },
	};

	html_raw(out, markup[w->role].begin);
	for (const struct span *s = w->spans; s; s = s->next) {
		if (w->role == ROLE_LINE)
			html_rawf(out, "<span class=\"%s\">",
				  s->token == TOKEN_DIM    ? "dim"
				  : s->token == TOKEN_WARN ? "distrust"
							   : "");
		html_between(out, s->token == TOKEN_CODE ? "<code>" : "", s->text,
			     s->token == TOKEN_CODE ? "</code>" : "");
		html_raw(out, w->role == ROLE_LINE ? "</span>" : "");
	}
	html_raw(out, markup[w->role].end);
}

static void draw_callout(struct buf *out, const struct block *b)
{
	if (b->kind == BLOCK_WARNING) {
		html_rawf(out, "<p class=\"distrust\"><b>! %s</b>", b->callout.label);
		html_between(out, "", b->callout.first, b->callout.second ? " " : "");
	} else {
		const char *rest = second_sentence(b->callout.first);

		html_rawf(out, "<p class=\"bound\">%s</p>\n<h1>", b->callout.label);
		put_text(out, b->callout.first, *rest ? rest - 1 : rest);
		html_between(out, "</h1>\n<p class=\"more\">", rest,
			     *rest && b->callout.second ? " " : "");
	}
	html_between(out, "", b->callout.second, "</p>\n");
}

static void draw_section(struct buf *out, const struct block *b)
{
	html_rawf(out, "<section><header><h2>%s</h2><p>", b->section.title);
	for (const char *at = b->section.note; at && *at; at++)
		if (*at == '\'')
			html_raw(out, "&#39;");
		else
			buf_put_byte(out, (uint8_t)*at);
	html_raw(out, "</p></header><div>\n");
}

/* ---- tables ----------------------------------------------------------------------------- */

static void draw_bar(struct buf *out, const struct block_column *c, const struct block_cell *cell)
{
	const struct stack *s = cell->stack;
	double share = fabs(cell->share);

	html_rawf(out, "<td aria-hidden=\"true\" class=\"bar %s%s\">", c->class,
		  cell->share < 0 ? " less" : "");
	for (size_t i = 0; s && i < s->count; i++)
		if (s->parts[i].ns > 0)
			html_rawf(out, "<i class=\"%s\" style=\"width:%.2f%%\"></i>",
				  html_token(s->parts[i].token),
				  100 * s->parts[i].ns / s->whole_ns);
	if (!s && share > 0)
		html_rawf(out, "<i class=\"%s\" style=\"width:%.2f%%\"></i>",
			  html_token(cell->token), 100 * (share < 1 ? share : 1));
	html_raw(out, "</td>");
}

/* Draws the parts of a stack in their order, which begins with the lead and ends with the tail. */
static void draw_stack(struct buf *out, const struct stack *s, const char *class)
{
	char text[NUMBER_TEXT];

	html_rawf(out, "<div class=\"stack %s\" role=\"img\" aria-label=\"", class);
	for (size_t i = 0; i < s->count; i++)
		if (s->parts[i].ns > 0)
			html_rawf(out, "%s%s %s %%", i ? ", " : "", s->parts[i].label,
				  percent_text(text, s->parts[i].tenths));
	html_raw(out, "\">");
	for (size_t i = 0; i < s->count; i++)
		if (s->parts[i].ns > 0)
			html_rawf(out, "<i class=\"%s\" style=\"width:%.3f%%\"></i>",
				  html_token(s->parts[i].token),
				  100 * s->parts[i].ns / s->whole_ns);
	html_raw(out, "</div>\n");
}

static void draw_cell(struct buf *out, const struct block_table *t, const struct block_row *r,
		      size_t i)
{
	const struct block_column *c = &t->columns[i];
	const struct block_cell *cell = &r->cells[i];
	const char *class = cell->class || cell->has_class ? cell->class
			    : c->class || c->has_no_class  ? c->class
							   : "";
	bool is_bar = c->is_bar && !cell->text && i < r->used;
	bool has_whole = cell->whole && *cell->whole && class && !strcmp(class, "name") &&
			 strcmp(cell->whole, cell->text) != 0;

	if (is_bar && cell->stack && cell->stack->parts[0].label) {
		html_rawf(out, "<td class=\"%s\" style=\"width:40%%\">", class);
		draw_stack(out, cell->stack, "thin");
		html_raw(out, "</td>");
		return;
	}
	if (is_bar) {
		draw_bar(out, c, cell);
		return;
	}
	html_raw(out, "<td");
	if (class)
		html_rawf(out, " class=\"%s\"", class);
	html_raw(out, ">");
	if (cell->mark)
		html_rawf(out, "<i class=\"mark %s\"></i>", html_token(cell->mark));
	if (has_whole) { /* this element works by mouse, touch and keyboard */
		html_between(out, "<details><summary title=\"", cell->whole, "\">");
	}
	html_text(out, cell->text);
	if (has_whole) {
		html_between(out, "</summary>", cell->whole, "</details>");
	}
	html_raw(out, "</td>");
}

static void draw_table(struct buf *out, const struct block_table *t, const char *caption)
{
	/* `caption` is for screen readers. */
	html_raw(out, "<table");
	if (t->class)
		html_rawf(out, " class=\"%s\"", t->class);
	html_rawf(out, "><caption>%s</caption><thead><tr>", caption);
	for (size_t i = 0; i < t->count; i++) {
		const struct block_column *c = &t->columns[i];
		const char *class = c->class ? c->class : "", *title = column_title(c, MEDIUM_HTML);
		bool is_of_cells = !strcmp(class, "label") || !strcmp(class, "name");

		if (!title)
			continue;
		if (c->has_title_class || (class[0] && !is_of_cells))
			html_rawf(out, "<th scope=\"col\" class=\"%s\">", is_of_cells ? "" : class);
		else
			html_raw(out, "<th scope=\"col\">");
		for (const char *at = title; *at; at++)
			if (*at == '\n')
				html_raw(out, "<br>");
			else
				buf_put_byte(out, (uint8_t)*at);
		html_raw(out, "</th>");
	}
	html_raw(out, "</tr></thead><tbody>\n");
	if (t->empty)
		html_rawf(out, "<tr><td colspan=\"4\">%s</td></tr>", t->empty);
	for (const struct block_row *r = t->rows; r; r = r->next) {
		size_t count = r->is_filled ? t->count : r->used;

		html_raw(out, "<tr");
		if (r->class)
			html_rawf(out, " class=\"%s\"", r->class);
		html_raw(out, ">");
		for (size_t i = 0; i < count; i++)
			if (column_title(&t->columns[i], MEDIUM_HTML))
				draw_cell(out, t, r, i);
		html_raw(out, "</tr>\n");
	}
	html_raw(out, "</tbody></table>\n");
}

/* ---- the labelled bar ------------------------------------------------------------------- */

static void draw_label(struct buf *out, const struct stack_part *p, double at, bool is_end)
{
	char text[NUMBER_TEXT];

	html_rawf(out, "<span class=\"%s\" style=\"left:%.2f%%\"><b>%s</b> %s %%</span>",
		  is_end ? "end" : "", 100 * at, p->label, percent_text(text, p->tenths));
}

/* Writes the labels of wide parts above the bar, and that of the largest other part below it. */
static void draw_labelled(struct buf *out, const struct stack *s)
{
	double at = 0, best_at = 0, best = 0.003;
	const struct stack_part *best_part = NULL;

	html_raw(out, "<div class=\"labels of-stack\" aria-hidden=\"true\">");
	for (size_t i = 0; i < s->count; i++) {
		const struct stack_part *p = &s->parts[i];
		double share = p->ns / s->whole_ns;

		if (share >= 0.05 + 0.009 * (double)strlen(p->label)) {
			draw_label(out, p, at, false);
		} else if (share > best) {
			best = share;
			best_at = at;
			best_part = p;
		}
		at += share;
	}
	html_raw(out, "</div>\n");
	draw_stack(out, s, "");
	html_raw(out, "<div class=\"labels of-stack\" aria-hidden=\"true\">");
	if (best_part)
		draw_label(out, best_part, best_at > 0.6 ? best_at + best : best_at, best_at > 0.6);
	html_raw(out, "</div>\n");
}

/* ---- findings --------------------------------------------------------------------------- */

/* Returns whether a word is set as code: it contains _ ( = or an inner colon. */
static bool is_code(const char *word, size_t len)
{
	for (size_t i = 0; len > 1 && i < len; i++)
		if (strchr("_(=:", word[i]) && (word[i] != ':' || i + 1 < len))
			return true;
	return false;
}

/* Returns the length of a word. Parentheses around it do not belong to it, those of a call do. */
static size_t word_length(const char *text)
{
	size_t len = strcspn(text, " ,;"), open = strcspn(text, "(");

	if (open >= len)
		len = strcspn(text, " ,;)");
	return len && open ? len : 1;
}

static void draw_findings(struct buf *out, const struct block *b)
{
	html_raw(out, "<div class=\"fix\">\n");
	for (size_t i = 0; i < b->findings.count; i++) {
		const struct fix *f = &b->findings.rows[i];

		html_rawf(out, "<div class=\"rank\">%zu</div><div class=\"saving\"><b>", i + 1);
		html_between(out, "", f->saving ? f->figure : "memory", "</b>");
		if (f->saving) {
			html_between(out, "<span>", f->of, "</span>");
		}
		if (f->saving && f->share > 0)
			html_rawf(out, "<div class=\"track\"><i style=\"width:%.1f%%\"></i></div>",
				  f->share);
		html_raw(out, "</div><div class=\"what\">");
		html_text(out, f->evidence);
		if (f->where) {
			html_raw(out, "<br><span class=\"dim\">where</span> ");
			html_text(out, f->where);
		}
		html_raw(out, "<br><span class=\"dim\">try</span> ");
		const char *text = f->advice;
		char word[WORD_MAX];

		for (size_t len; *text; text += len) {
			len = word_length(text);
			len = len < sizeof(word) ? len : sizeof(word) - 1;
			memcpy(word, text, len);
			word[len] = '\0';
			html_between(out, is_code(word, len) ? "<code>" : "", word,
				     is_code(word, len) ? "</code>" : "");
		}
		html_between(out, "</div><code class=\"rule\">", f->rule, "</code>\n");
	}
	if (b->findings.together) {
		html_raw(out,
			 "<div class=\"rank\"></div><div class=\"saving\"><b>together</b></div>"
			 "<div class=\"what\">");
		html_between(out, "", b->findings.together, "</div><code class=\"rule\"></code>\n");
	}
	html_raw(out, "</div>\n");
}

/* ---- the file --------------------------------------------------------------------------- */

/* Draws a block. `section` is the title of its section. */
static void draw_block(struct buf *out, const struct block *b, const char *section)
{
	bool has_pair = b->next && b->next->kind == BLOCK_TABLE && b->next->table.is_beside;

	switch (b->kind) {
	case BLOCK_INPUT:
		html_between(out, "<p class=\"input\"><b>", b->input.path, "</b>");
		html_between(out, "", b->input.more, " \xc2\xb7 ");
		for (const struct span *s = b->input.words.spans; s; s = s->next) {
			bool is_plain = s->token == TOKEN_TEXT;

			html_rawf(out, is_plain ? "" : "<span class=\"%s\">",
				  s->token == TOKEN_DIM ? "dim" : "distrust");
			html_between(out, "", s->text, is_plain ? "" : "</span>");
		}
		html_raw(out, "</p>\n");
		return;
	case BLOCK_WARNING:
	case BLOCK_VERDICT:
		draw_callout(out, b);
		return;
	case BLOCK_SECTION:
		draw_section(out, b);
		return;
	case BLOCK_WORDS:
		draw_words(out, &b->words);
		return;
	case BLOCK_STACK:
		draw_labelled(out, &b->stack);
		return;
	case BLOCK_TABLE:
		html_raw(out, has_pair ? "<div class=\"pair\">" : "");
		draw_table(out, &b->table, section);
		html_raw(out, b->table.is_beside ? "</div>\n" : "");
		return;
	case BLOCK_FINDINGS:
		draw_findings(out, b);
		return;
	case BLOCK_TIMELINES:
		html_timelines(out, b);
		return;
	case BLOCK_CURVE:
		html_curve(out, &b->curve);
		return;
	case BLOCK_FLAME:
		html_flame(out, b);
		return;
	case BLOCK_HEAT:
		html_heat(out, &b->heat);
		return;
	case BLOCK_ROOFLINE:
		html_roofline(out, b);
		return;
	case BLOCK_SPARK:
		return;
	}
}

void html_draw(struct buf *out, const char *title, const struct blocks *blocks, const char *figure)
{
	const char *section = NULL;

	html_between(out, file_begin, title, " \xc2\xb7 Tacho</title>\n<style>");
	html_raw(out, html_style);
	html_raw(out, "</style></head><body>\n");
	html_raw(out, figure ? patterns : "");
	html_raw(out, "<main>\n");
	for (const struct block *b = blocks->first; b; b = b->next) {
		if (section && b->kind == BLOCK_SECTION)
			html_raw(out, "</div></section>\n");
		section = b->kind == BLOCK_SECTION ? b->section.title : section;
		draw_block(out, b, section ? section : title);
	}
	html_raw(out, section ? "</div></section>\n" : "");
	if (figure)
		html_rawf(out,
			  "<p class=\"foot\">How a figure is computed: <code>tacho-analyze "
			  "--explain %s</code>, or any other name on this page.</p>\n",
			  figure);
	html_raw(out, "</main></body></html>\n");
}

static void draw_page(const struct page *p, const struct blocks *b, struct buf *out)
{
	const char *path = p->inputs.count ? view_text(&p->inputs, 0, "path") : "";
	const char *slash = strrchr(path, '/');

	html_draw(out, slash ? slash + 1 : path, b, p->gpus.count ? "exposed_comm" : "wall_ns");
}

static enum status html_write(const struct format_request *how, struct buf *out, struct error *err)
{
	return page_write(how, MEDIUM_HTML, draw_page, out, err);
}

const struct format_type format_html = {
	.name = "html",
	.help = "one file for a browser: charts and tables, light and dark",
	.pictures = PICTURES_FINE,
	.write = html_write,
};
