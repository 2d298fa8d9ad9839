/* SPDX-License-Identifier: Apache-2.0 */
/* Why GPUs do nothing: the causes beside GPU TIME, and the pages of `idle` and `launches`. */
#include "analyze/text/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END_MS = 72, END_PERCENT = 79, BAR_AT = 81, OWNER_LINES = 20 };

static enum token token_of_cause(const char *cause)
{
	if (!strcmp(cause, "data"))
		return TOKEN_DATA;
	return strncmp(cause, "host:", 5) ? TOKEN_OTHER : token_of_phase(cause + 5);
}

/* ---- beside GPU TIME -------------------------------------------------------------------- */

static struct cause_line line_of(const char *name, double ns)
{
	struct cause_line l = { .token = token_of_cause(name), .ns = ns };

	if (strlen(name) < sizeof(l.name))
		snprintf(l.name, sizeof(l.name), "%s", name);
	else
		snprintf(l.name, sizeof(l.name), "%.*s\xe2\x80\xa6", (int)sizeof(l.name) - 5, name);
	return l;
}

/* The largest by name; the rest in one line, but never a single one. */
static void lines_take(const struct view *v, size_t most, struct cause_lines *out)
{
	size_t named = v->count <= most ? v->count : most - 1, i;
	char words[NUMBER_TEXT];
	double rest = 0;

	for (i = 0; i < v->count; i++) {
		double ns = (double)view_cell(v, i, "ns").u64;

		if (i < named)
			out->lines[i] = line_of(view_cell(v, i, "cause").text, ns);
		else
			rest += ns;
	}
	out->count = named;
	if (named == v->count)
		return;
	snprintf(words, sizeof(words), "%zu more", v->count - named);
	out->lines[out->count++] = line_of(words, rest);
}

static void lines_percent(struct cause_lines *out, double window_ns, int whole_tenths)
{
	double parts[CAUSE_LINES];
	int tenths[CAUSE_LINES], sum = 0;
	size_t i;

	for (i = 0; i < out->count; i++)
		parts[i] = out->lines[i].ns;
	percents(parts, out->count, window_ns, CAUSE_LINES, tenths);
	for (i = 0; i < out->count; i++) {
		out->lines[i].tenths = tenths[i];
		sum += tenths[i] > 0 && i + 1 < out->count ? tenths[i] : 0;
	}
	/* the last one closes, unless it is something that this would make nothing */
	if (whole_tenths - sum > 0)
		out->lines[out->count - 1].tenths = whole_tenths - sum;
}

enum status page_causes(const struct page *p, size_t most, double window_ns, int whole_tenths,
			struct cause_lines *out, struct error *err)
{
	struct view v = page_view(p, "idle_causes");

	*out = (struct cause_lines){ .count = 0 };
	if (p->is_sampled)
		out->instead = "not in a sample";
	else if (p->trust.count && !view_cell(&p->trust, 0, "with_launch").u64)
		out->instead = "need launches; this file has none";
	if (out->instead || !v.count || most < 2)
		return ST_OK;
	lines_take(&v, most < CAUSE_LINES ? most : CAUSE_LINES, out);
	lines_percent(out, window_ns, whole_tenths);
	return ST_OK;
}

void page_cause(struct page *p, const struct cause_lines *causes, size_t line,
		const struct time_unit *unit)
{
	const struct cause_line *l = &causes->lines[line < CAUSE_LINES ? line : 0];
	double most = 0;
	char text[NUMBER_TEXT];
	size_t i;

	if (line == CAUSE_LINES && (causes->count || causes->instead)) {
		text_at(&p->text, CAUSES_AT, TOKEN_DIM, "not busy, by cause");
		if (causes->instead)
			text_at(&p->text, CAUSES_AT + 20, TOKEN_DIM, causes->instead);
		if (!causes->count)
			return;
		text_right(&p->text, END_MS, TOKEN_DIM, unit->name);
		text_right(&p->text, END_PERCENT, TOKEN_DIM, "%");
	}
	if (line >= causes->count)
		return;
	for (i = 0; i < causes->count; i++)
		if (causes->lines[i].ns > most)
			most = causes->lines[i].ns;
	text_at(&p->text, CAUSES_AT, TOKEN_TEXT, l->name);
	text_right(&p->text, END_MS, TOKEN_TEXT, time_text(text, l->ns, unit));
	text_right(&p->text, END_PERCENT, TOKEN_TEXT, percent_text(text, l->tenths));
	if (p->text.width > BAR_AT + 8)
		text_bar(&p->text, BAR_AT, l->token, l->ns / most * (p->text.width - BAR_AT));
}

/* ---- the page of `idle` ----------------------------------------------------------------- */

struct owner_line {
	const union value *row;
	uint64_t ns;
};

static int compare_owners(const void *pa, const void *pb)
{
	const struct owner_line *a = pa, *b = pb;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

static const char *text_in(const struct view *v, const union value *row, const char *column)
{
	const char *text = row[table_column(v->table, column)].text;

	return text ? text : "";
}

/* Where: the call in the range, the Python frame, and the thread if there is room for it. */
static void where_text(const struct view *v, const union value *row, unsigned width, char *out,
		       size_t cap)
{
	const char *call = text_in(v, row, "call"), *range = text_in(v, row, "range");
	const char *python = text_in(v, row, "python"), *thread = text_in(v, row, "thread");
	size_t len;

	len = (size_t)snprintf(out, cap, "%s%s%s%s%s", call, call[0] && range[0] ? " in " : "",
			       range, python[0] && (call[0] || range[0]) ? " \xc2\xb7 " : "",
			       python);
	if (len >= cap || text_width(out) + text_width(thread) + 3 > width)
		return;
	snprintf(out + len, cap - len, "%s%s", len && thread[0] ? " \xc2\xb7 " : "", thread);
}

static void put_owner(struct page *p, const struct view *v, const union value *row)
{
	const char *cause = row[table_column(v->table, "cause")].text;
	double ns = (double)row[table_column(v->table, "ns")].u64;
	uint64_t count = row[table_column(v->table, "count")].u64;
	static const struct time_unit ms = { 1e6, 2, "ms" };
	char text[NUMBER_TEXT], where[512];
	/* a damaged partial file may leave it without a number */
	int tenths = (int)(fmin(fmax(row[table_column(v->table, "pct")].f64, 0), 1e6) * 10 + 0.5);
	unsigned room = p->text.width > 49 ? p->text.width - 49 : 0;

	text_cut(&p->text, 0, 22, TOKEN_TEXT, cause);
	text_right(&p->text, 31, TOKEN_BOLD, time_text(text, ns / (double)p->steps, &ms));
	text_right(&p->text, 38, TOKEN_TEXT, percent_text(text, tenths ? tenths : -1));
	text_right(&p->text, 47, TOKEN_TEXT, count_text(text, count));
	where_text(v, row, room, where, sizeof(where));
	text_cut(&p->text, 49, room, TOKEN_DIM, where);
	text_end(&p->text);
}

static void put_idle_title(struct page *p, const struct view *v)
{
	char words[96], text[NUMBER_TEXT];
	static const struct time_unit ms = { 1e6, 1, "ms" };

	text_at(&p->text, 0, TOKEN_BOLD, "IDLE");
	snprintf(words, sizeof(words), "not busy %s ms%s%s",
		 time_text(text, (double)page_sum(v, "ns") / (double)p->steps, &ms),
		 p->steps > 1 ? " per step" : "", p->ranks.count > 1 ? ", all ranks" : "");
	text_at(&p->text, 14, TOKEN_TEXT, words);
	if (p->is_sampled)
		text_at(&p->text, 50, TOKEN_WARN, "! a sample: not to be trusted");
	text_end(&p->text);
	text_at(&p->text, 0, TOKEN_DIM, "cause");
	text_right(&p->text, 31, TOKEN_DIM, p->steps > 1 ? "ms/step" : "ms");
	text_right(&p->text, 38, TOKEN_DIM, "%");
	text_right(&p->text, 47, TOKEN_DIM, "times");
	text_at(&p->text, 49, TOKEN_DIM, "call in range \xc2\xb7 Python frame \xc2\xb7 thread");
	text_end(&p->text);
}

enum status page_idle(struct page *p, struct error *err)
{
	struct view v = page_view(p, "idle");
	struct owner_line *all = calloc(v.count + 1, sizeof(*all));
	char words[64];
	size_t i;

	if (!all)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to print a report");
	for (i = 0; i < v.count; i++)
		all[i] = (struct owner_line){ v.rows[i], view_cell(&v, i, "ns").u64 };
	qsort(all, v.count, sizeof(*all), compare_owners);
	put_idle_title(p, &v);
	for (i = 0; i < v.count && i < OWNER_LINES; i++)
		put_owner(p, &v, all[i].row);
	if (v.count > OWNER_LINES) {
		snprintf(words, sizeof(words), "%zu more", v.count - OWNER_LINES);
		text_at(&p->text, 0, TOKEN_DIM, words);
		text_end(&p->text);
	}
	free(all);
	return ST_OK;
}

/* ---- the page of `launches` ------------------------------------------------------------- */

enum status page_launches(struct page *p, struct error *err)
{
	struct view queues = page_view(p, "launch_queues"), calls = page_view(p, "launches");

	page_table(p, &queues);
	text_end(&p->text);
	page_table(p, &calls);
	return ST_OK;
}
