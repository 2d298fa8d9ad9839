/* SPDX-License-Identifier: Apache-2.0 */
/* A figure in an input: its values, and the events behind it. */
#include "analyze/explain/explain.h"

#include "analyze/engine/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 2, LABEL = 13, ROWS = 10, WORDS = 320 };

/* ---- values ----------------------------------------------------------------------------- */

static bool is_time(const struct column *c)
{
	size_t len = strlen(c->name);

	return !strcmp(c->name, "ns") || strstr(c->name, "_ns_per_step") ||
	       (len > 3 && !strcmp(c->name + len - 3, "_ns"));
}

static void value_text(const struct column *c, union value v, char out[WORDS])
{
	char number[NUMBER_TEXT], exact[NUMBER_TEXT];

	if (c->cell == CELL_TEXT || c->cell == CELL_WORDS)
		snprintf(out, WORDS, "%.300s", v.text ? v.text : "unknown");
	else if (c->cell == CELL_F64)
		snprintf(out, WORDS, isfinite(v.f64) ? "%.4g%s%s" : "unknown", v.f64,
			 c->of ? " % of " : "", c->of ? c->of : "");
	else if (v.u64 == NO_U64)
		snprintf(out, WORDS, "unknown");
	else if (c->cell == CELL_BOOL)
		snprintf(out, WORDS, "%s", v.u64 ? "yes" : "no");
	else if (!v.u64)
		snprintf(out, WORDS, "0");
	else if (is_time(c)) {
		struct time_unit unit = time_unit_of((double)v.u64, 3);
		snprintf(out, WORDS, "%s %s (%s ns)", time_text(number, (double)v.u64, &unit),
			 unit.name, count_text(exact, v.u64));
	} else if (strstr(c->name, "bytes"))
		snprintf(out, WORDS, "%s (%s bytes)", bytes_text(number, (double)v.u64),
			 count_text(exact, v.u64));
	else
		snprintf(out, WORDS, "%s", count_text(number, v.u64));
}

/* "rank 1, GPU 0, forward": the keys of a row, without those that say nothing. */
static void keys_text(const struct table_type *type, const union value *row, bool ranks,
		      char out[WORDS])
{
	size_t keys = table_keys(type), len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < keys && len + 96 < WORDS; i++) {
		const struct column *c = &type->columns[i];
		const char *between = len ? ", " : "";

		if (!strcmp(c->name, "host") || !strcmp(c->name, "pid") ||
		    !strcmp(c->name, "tid") || strstr(c->name, "_ns") ||
		    (!strcmp(c->name, "rank") && !ranks))
			continue;
		if (c->cell == CELL_TEXT && row[i].text && row[i].text[0])
			len += (size_t)snprintf(out + len, 80, "%s%.70s", between, row[i].text);
		else if (c->cell == CELL_U64 && row[i].u64 != NO_U64)
			len += (size_t)snprintf(out + len, 80, "%s%s %llu", between,
						c->title ? c->title : c->name,
						(unsigned long long)row[i].u64);
	}
}

static void put_value(struct text *t, const char *keys, const char *value)
{
	unsigned column = text_cut(t, LEFT, 50, TOKEN_TEXT, keys[0] ? keys : "in this input");

	text_cut(t, column + 2 < 40 ? 40 : column + 2, t->width > 54 ? t->width - 54 : 10,
		 TOKEN_BOLD, value);
	text_end(t);
}

struct sorted {
	const union value *row;
	double by;
};

static int compare_sorted(const void *pa, const void *pb)
{
	const struct sorted *a = pa, *b = pb;

	return (a->by < b->by) - (a->by > b->by);
}

/* Rows of `t` whose text in column `of` begins with `word` (NULL: all), the greatest first. */
static enum status rows_take(struct table *t, size_t by, const char *of, const char *word,
			     struct sorted **out, size_t *count, struct error *err)
{
	enum cell cell = table_type(t)->columns[by].cell;
	size_t at = of ? table_column(t, of) : 0, len = word ? strlen(word) : 0;
	bool is_host = word && (!strcmp(word, "host") || !strcmp(word, "cause:host"));

	*count = 0;
	*out = calloc(table_count(t) + 1, sizeof(**out));
	if (!*out)
		return fail_memory(err);
	for (size_t i = 0; i < table_count(t); i++) {
		const union value *row = table_at(t, i);
		const char *text = of ? row[at].text : NULL;
		bool same = text && word && !strncmp(text, word, len) &&
			    (!text[len] || (is_host && text[len] == ':'));
		double v = cell == CELL_F64 ? row[by].f64 : (double)row[by].u64;

		if (cell == CELL_TEXT || cell == CELL_WORDS ||
		    (cell != CELL_F64 && row[by].u64 == NO_U64))
			v = 0;
		if (!of || same)
			(*out)[(*count)++] = (struct sorted){ row, isfinite(v) ? v : 0 };
	}
	if (*count)
		qsort(*out, *count, sizeof(**out), compare_sorted);
	return ST_OK;
}

static enum status put_rows(struct text *t, struct tables *tables, const char *table,
			    const char *column, const char *of, const char *word, struct error *err)
{
	struct table *from = tables_find(tables, table);
	char keys[WORDS], value[WORDS];
	struct sorted *rows;
	size_t count;

	if (!from)
		return ST_OK;
	size_t by = table_column(from, column);
	TRY(rows_take(from, by, of, word, &rows, &count, err));
	for (size_t i = 0; i < count && i < ROWS; i++) {
		keys_text(table_type(from), rows[i].row,
			  table_count(tables_find(tables, "ranks")) > 1, keys);
		value_text(&table_type(from)->columns[by], rows[i].row[by], value);
		put_value(t, keys, value);
	}
	if (count > ROWS) {
		text_atf(t, LEFT, TOKEN_DIM, "%zu more rows", count - ROWS);
		text_end(t);
	}
	if (!count) {
		text_at(t, LEFT, TOKEN_DIM, "not in this input");
		text_end(t);
	}
	free(rows);
	return ST_OK;
}

static enum status put_finding(struct text *t, const struct figure *f, struct tables *tables)
{
	struct table *from = tables_find(tables, "findings");
	size_t rule = table_column(from, "rule");

	for (size_t i = 0; i < table_count(from); i++) {
		const union value *row = table_at(from, i);
		char value[WORDS];

		if (strcmp(row[rule].text, f->name) != 0)
			continue;
		value_text(&table_type(from)->columns[table_column(from, "saving_ns_per_step")],
			   row[table_column(from, "saving_ns_per_step")], value);
		put_value(t, "saves per step at most", value);
		text_wrap(t, text_at(t, LEFT, TOKEN_DIM, "evidence") + 3, LABEL, TOKEN_TEXT,
			  row[table_column(from, "evidence")].text);
		text_end(t);
		return ST_OK;
	}
	text_at(t, LEFT, TOKEN_DIM, "does not apply to this input");
	text_end(t);
	return ST_OK;
}

enum status explain_values(struct text *t, const struct figure *f, struct tables *tables,
			   struct error *err)
{
	text_end(t);
	switch (f->type) {
	case FIGURE_COLUMN:
		return put_rows(t, tables, f->table->name, f->column->name, NULL, NULL, err);
	case FIGURE_CAUSE:
		return put_rows(t, tables, "idle_causes", "ns", "cause", f->name, err);
	case FIGURE_PHASE:
		return put_rows(t, tables, "phases", "wall_ns", "name", f->name, err);
	case FIGURE_CHECK:
		TRY(put_rows(t, tables, "checks", "verdict", "check", f->name, err));
		return put_rows(t, tables, "checks", "text", "check", f->name, err);
	case FIGURE_RULE:
		return put_finding(t, f, tables);
	case FIGURE_TABLE:
		text_atf(t, LEFT, TOKEN_TEXT, "%zu rows in this input",
			 tables_find(tables, f->table->name)
				 ? table_count(tables_find(tables, f->table->name))
				 : 0);
		text_end(t);
		return ST_OK;
	}
	return ST_OK;
}

/* ---- events ----------------------------------------------------------------------------- */

struct evidence_name {
	const char *name;
	enum evidence selection;
};

static bool of_column(const char *name, enum evidence *out)
{
	static const struct evidence_name rows[] = {
		{ "compute_ns", EVIDENCE_COMPUTE },
		{ "exposed_comm_ns", EVIDENCE_EXPOSED_COMM },
		{ "exposed_copy_ns", EVIDENCE_EXPOSED_COPY },
		{ "overlap_comm_ns", EVIDENCE_OVERLAP_COMM },
		{ "idle_ns", EVIDENCE_IDLE },
		{ "gpu_idle_ns", EVIDENCE_IDLE },
		{ "gpu_idle_during_ns", EVIDENCE_NOT_BUSY },
		{ "lead_ns", EVIDENCE_LEAD },
		{ "tail_ns", EVIDENCE_TAIL },
		{ "not_busy_ns", EVIDENCE_NOT_BUSY },
		{ "after_sync_ns", EVIDENCE_AFTER_SYNC },
		{ "unattributed_ns", EVIDENCE_UNATTRIBUTED },
		{ "busy_ns", EVIDENCE_GPU },
		{ "gpu_busy_ns", EVIDENCE_GPU },
		{ "comm_ns", EVIDENCE_COMM },
		{ "copy_ns", EVIDENCE_COPY },
		{ "kernels", EVIDENCE_KERNEL },
		{ "copies", EVIDENCE_COPY },
		{ "exposed_ns", EVIDENCE_EXPOSED_COPY },
		{ "span_ns", EVIDENCE_GPU },
		{ "complete_wall_ns", EVIDENCE_STEP },
		{ "gpu_events", EVIDENCE_GPU },
		{ "launches", EVIDENCE_LAUNCH },
		{ "comm_count", EVIDENCE_COMM },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name)) {
			*out = rows[i].selection;
			return true;
		}
	return false;
}

static bool of_table(const char *name, enum evidence *out)
{
	static const struct evidence_name rows[] = {
		{ "kernels", EVIDENCE_KERNEL }, { "copies", EVIDENCE_COPY },
		{ "launch", EVIDENCE_LAUNCH },  { "idle", EVIDENCE_NOT_BUSY },
		{ "step", EVIDENCE_STEP },      { "slow", EVIDENCE_STEP },
		{ "phases", EVIDENCE_HOST },    { "ranges", EVIDENCE_HOST },
		{ "comm", EVIDENCE_COMM },      { "coll", EVIDENCE_COMM },
		{ "memory", EVIDENCE_MEMORY },  { "gpus", EVIDENCE_GPU },
		{ "cells", EVIDENCE_GPU },      { "frontier", EVIDENCE_COMM },
		{ "waits", EVIDENCE_COMM },     { "groups", EVIDENCE_COMM },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(rows[i].name, name, strlen(rows[i].name))) {
			*out = rows[i].selection;
			return true;
		}
	return false;
}

/* The first of the figures that a finding rests on. */
static bool of_rule(const struct rule *rule, char selection[FIGURE_NAME])
{
	char first[FIGURE_NAME];
	struct figure f[FIGURES_MAX];

	if (!rule->figures)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(rule->figures, " "), rule->figures);
	return figures_find(first, NULL, f) && f[0].type != FIGURE_RULE &&
	       figure_selection(&f[0], selection);
}

bool figure_selection(const struct figure *f, char selection[FIGURE_NAME])
{
	enum evidence which;

	if (f->type == FIGURE_RULE)
		return of_rule(f->rule, selection);
	if (f->type == FIGURE_CHECK)
		return false;
	if (f->type == FIGURE_CAUSE || f->type == FIGURE_PHASE) {
		snprintf(selection, FIGURE_NAME, "%s:%.80s",
			 f->type == FIGURE_CAUSE ? "cause" : "phase", f->name);
		return true;
	}
	if (!(f->type == FIGURE_COLUMN && of_column(f->column->name, &which)) &&
	    !of_table(f->table->name, &which))
		return false;
	snprintf(selection, FIGURE_NAME, "%s", evidence_word(which));
	return true;
}

/* When the first window of the row's rank began. */
static uint64_t begin_of(struct tables *tables, const union value *row)
{
	struct table *windows = tables_find(tables, "windows");
	size_t at = table_column(windows, "begin_ns");

	for (size_t i = 0; i < table_count(windows); i++) {
		const union value *w = table_at(windows, i);

		if (w[0].u64 == row[0].u64 && w[1].text == row[1].text && w[2].u64 == row[2].u64)
			return w[at].u64;
	}
	return row[EVIDENCE_BEGIN].u64;
}

static const char *text_of(union value v)
{
	return v.text ? v.text : "";
}

static void joined(char out[WORDS], const char *more)
{
	size_t len = strlen(out);

	if (more[0] && len + 8 < WORDS)
		snprintf(out + len, WORDS - len, "%s%s", len ? " \xc2\xb7 " : "", more);
}

static void put_event(struct text *t, struct tables *tables, const union value *row, bool bytes)
{
	uint64_t from_ns = begin_of(tables, row);
	double at_ms = ((double)row[EVIDENCE_BEGIN].u64 - (double)from_ns) / 1e6;
	double us = (double)row[EVIDENCE_SIZE].u64 / 1e3;
	char text[WORDS], step[32] = "", track[WORDS], name[4 * 32];

	snprintf(text, sizeof(text), "%+.3f", at_ms);
	text_right(t, 12, TOKEN_DIM, text);
	if (bytes)
		snprintf(text, sizeof(text), "%.1f", (double)row[EVIDENCE_SIZE].u64 / 1024);
	else
		snprintf(text, sizeof(text), "%.1f", us);
	text_right(t, 24, TOKEN_BOLD, text);
	snprintf(track, sizeof(track), "%.150s", text_of(row[EVIDENCE_TRACK]));
	if (table_count(tables_find(tables, "ranks")) > 1 && row[0].u64 != NO_U64)
		snprintf(track, sizeof(track), "rank %llu %.150s", (unsigned long long)row[0].u64,
			 text_of(row[EVIDENCE_TRACK]));
	text_cut(t, 26, 19, TOKEN_DIM, track);
	text[0] = '\0';
	joined(text, text_of(row[EVIDENCE_CAUSE]));
	name_short(text_of(row[EVIDENCE_NAME]), 28, name, sizeof(name));
	joined(text, name);
	joined(text, text[0] ? "" : text_of(row[EVIDENCE_PHASE]));
	text_cut(t, 47, 28, TOKEN_TEXT, text[0] ? text : "step");
	if (row[EVIDENCE_IN_STEP].u64 != NO_U64)
		snprintf(step, sizeof(step), "step %llu",
			 (unsigned long long)row[EVIDENCE_IN_STEP].u64);
	text[0] = '\0';
	joined(text, step);
	joined(text, text_of(row[EVIDENCE_RANGE]));
	joined(text, text_of(row[EVIDENCE_PYTHON]));
	if (t->width > 77)
		text_cut(t, 77, t->width - 77, TOKEN_DIM, text);
	text_end(t);
}

/* "cause:host" is all of host's. */
static enum status put_events(struct text *t, struct tables *tables, const char *selection,
			      struct error *err)
{
	struct table *evidence = tables_find(tables, "behind");
	bool bytes = !strcmp(selection, evidence_word(EVIDENCE_MEMORY));
	struct sorted *rows;
	size_t count;

	if (!evidence)
		return ST_OK;
	TRY(rows_take(evidence, EVIDENCE_SIZE, "selection", selection, &rows, &count, err));
	if (count) {
		text_end(t);
		text_at(t, LEFT, TOKEN_BOLD, "behind it");
		for (size_t i = 0; i < EVIDENCE_COUNT; i++)
			if (!strcmp(evidence_word((enum evidence)i), selection))
				text_at(t, LABEL, TOKEN_DIM, evidence_meaning((enum evidence)i));
		if (!strncmp(selection, "phase:", 6))
			text_at(t, LABEL, TOKEN_DIM, "stretches of the step thread in it");
		if (!strncmp(selection, "work:", 5))
			text_at(t, LABEL, TOKEN_DIM, "GPU work launched in it");
		text_end(t);
		text_right(t, 12, TOKEN_DIM, "at ms");
		text_right(t, 24, TOKEN_DIM, bytes ? "KiB" : "\xc2\xb5s");
		text_at(t, 26, TOKEN_DIM, "where");
		text_at(t, 47, TOKEN_DIM, "what");
		text_at(t, 77, TOKEN_DIM, "in");
		text_end(t);
	}
	for (size_t i = 0; i < count && i < EVIDENCE_KEPT; i++)
		put_event(t, tables, rows[i].row, bytes);
	free(rows);
	return ST_OK;
}

enum status explain_events(struct text *t, const struct figure *f, struct tables *tables,
			   struct error *err)
{
	char selection[FIGURE_NAME];

	if (!figure_selection(f, selection))
		return ST_OK;
	TRY(put_events(t, tables, selection, err));
	if (f->type != FIGURE_PHASE)
		return ST_OK;
	snprintf(selection, sizeof(selection), "work:%.80s", f->name);
	return put_events(t, tables, selection, err);
}
