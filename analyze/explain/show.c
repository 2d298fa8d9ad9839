/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the values of a figure in an input, and the events that explain it. */
#include "analyze/explain/explain.h"

#include "schemas/base/sort.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 10 /* values that are shown */ };

/* ---- values ----------------------------------------------------------------------------- */

static const char *value_text(struct blocks *b, const struct column *c, union value v)
{
	struct time_unit unit;

	if (column_is_text(c))
		return blocks_text(b, "%.300s", v.text ? v.text : "unknown");
	if (c->cell == CELL_F64 && isfinite(v.f64))
		return blocks_text(b, "%.4g%s%s", v.f64, c->of ? " % of " : "", c->of ? c->of : "");
	if (c->cell == CELL_F64 || v.u64 == NO_U64)
		return "unknown";
	if (c->cell == CELL_BOOL)
		return v.u64 ? "yes" : "no";
	if (v.u64 && column_is_time(c)) {
		unit = time_unit_of((double)v.u64, 3);
		return blocks_text(b, "%s %s (%s ns)", show_time(b, (double)v.u64, &unit),
				   unit.name, show_count(b, v.u64));
	}
	if (v.u64 && strstr(c->name, "bytes"))
		return blocks_text(b, "%s (%s bytes)", show_bytes(b, (double)v.u64),
				   show_count(b, v.u64));
	return show_count(b, v.u64);
}

/* Returns the keys of a row, such as "rank 1, GPU 0, forward", without unknown ones. */
static const char *keys_text(struct blocks *b, const struct table_type *type,
			     const union value *row, bool has_ranks)
{
	const char *all = "";

	for (size_t i = 0; i < table_keys(type); i++) {
		const struct column *c = &type->columns[i];
		const char *between = *all ? ", " : "";

		if (!strcmp(c->name, "host") || !strcmp(c->name, "pid") ||
		    !strcmp(c->name, "tid") || strstr(c->name, "_ns") ||
		    (!strcmp(c->name, "rank") && !has_ranks))
			continue;
		if (c->cell == CELL_TEXT && row[i].text && row[i].text[0])
			all = blocks_text(b, "%s%s%.70s", all, between, row[i].text);
		else if (c->cell == CELL_U64 && row[i].u64 != NO_U64)
			all = blocks_text(b, "%s%s%s %llu", all, between,
					  c->title ? c->title : c->name,
					  (unsigned long long)row[i].u64);
	}
	return *all ? all : "in this input";
}

/* Adds a table of labels and values. Long labels push the values to the right. */
static struct block_table *add_values(struct blocks *b, unsigned width)
{
	const struct block_column columns[] = {
		{ .at = EXPLAIN_LABEL_AT, .width = 50 },
		{ .at = 40, .width = width > 54 ? width - 54 : 10 },
	};
	struct block_table *t = ADD_TABLE(b, columns);

	t->has_no_titles = true;
	return t;
}

static void add_value(struct blocks *b, struct block_table *t, const char *of, const char *value)
{
	struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);

	add_cell(r, of);
	add_cell(r, value)->token = TOKEN_BOLD;
}

static void add_note(struct blocks *b, enum role role, const char *text)
{
	add_sentence(b, role, EXPLAIN_LABEL_AT, text);
	b->last->words.flow = FLOW_CLIP;
}

struct sorted {
	const union value *row;
	double by;
};

/* Returns the rows of `t` whose text in column `of` begins with `word` (NULL: all), the greatest
 * first. */
static struct sorted *take_rows(struct blocks *b, struct table *t, size_t by, const char *of,
				const char *word, size_t *count)
{
	const struct column *c = &table_type(t)->columns[by];
	size_t at = of ? table_column(t, of) : 0, len = word ? strlen(word) : 0;
	bool is_host = word && (!strcmp(word, "host") || !strcmp(word, "cause:host"));
	struct sorted *out = blocks_take(b, table_count(t), sizeof(*out));

	*count = 0;
	for (size_t i = 0; out && i < table_count(t); i++) {
		const union value *row = table_at(t, i);
		const char *text = of ? row[at].text : NULL;
		double v = c->cell == CELL_F64 ? row[by].f64 : (double)row[by].u64;

		if (column_is_text(c) || (c->cell != CELL_F64 && row[by].u64 == NO_U64))
			v = 0;
		if (!of || (text && word && !strncmp(text, word, len) &&
			    (!text[len] || (is_host && text[len] == ':'))))
			out[(*count)++] = (struct sorted){ row, isfinite(v) ? v : 0 };
	}
	SORT_BY(out, *count, DOWN(struct sorted, by));
	return out;
}

static void add_rows(struct blocks *b, unsigned width, struct tables *tables, const char *table,
		     const char *column, const char *of, const char *word)
{
	struct table *from = tables_find(tables, table);
	size_t by = from ? table_column(from, column) : 0, count;

	if (!from)
		return;
	const struct sorted *rows = take_rows(b, from, by, of, word, &count);
	struct block_table *t = add_values(b, width);
	for (size_t i = 0; i < count && i < ROWS; i++)
		add_value(b, t,
			  keys_text(b, table_type(from), rows[i].row,
				    table_count(tables_find(tables, "ranks")) > 1),
			  value_text(b, &table_type(from)->columns[by], rows[i].row[by]));
	if (count > ROWS)
		add_note(b, ROLE_NOTE, blocks_text(b, "%zu more rows", count - ROWS));
	if (!count)
		add_note(b, ROLE_NOTE, "not in this input");
}

static void add_finding(struct blocks *b, unsigned width, const struct figure *f,
			struct tables *tables)
{
	struct table *from = tables_find(tables, "findings");
	size_t rule = table_column(from, "rule"), saving = table_column(from, "saving_ns_per_step");
	const union value *row;

	for (size_t i = 0; (row = table_at(from, i)); i++) {
		if (strcmp(row[rule].text, f->name) != 0)
			continue;
		add_value(b, add_values(b, width), "saves per step at most",
			  value_text(b, &table_type(from)->columns[saving], row[saving]));
		explain_line(b, "evidence", row[table_column(from, "evidence")].text);
		if (row[table_column(from, "where")].text[0])
			explain_line(b, "where", row[table_column(from, "where")].text);
		explain_line(b, "try", row[table_column(from, "advice")].text);
		return;
	}
	add_note(b, ROLE_NOTE, "does not apply to this input");
}

/* ---- events ----------------------------------------------------------------------------- */

struct evidence_name {
	const char *name;
	enum evidence selection;
};
static const struct evidence_name of_columns[] = {
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
static enum evidence evidence_of(const struct figure *f)
{
	for (size_t i = 0; i < sizeof(of_columns) / sizeof(of_columns[0]); i++)
		if (f->type == FIGURE_COLUMN && !strcmp(of_columns[i].name, f->column->name))
			return of_columns[i].selection;
	return figure_table_evidence(f);
}

/* Uses the first figure of a rule that has events. */
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
	if (f->type == FIGURE_RULE)
		return of_rule(f->rule, selection);
	if (f->type == FIGURE_REPORT || f->type == FIGURE_CHECK || f->type == FIGURE_VERDICT)
		return false; /* tables of a report have events of their own */
	if (f->type == FIGURE_CAUSE || f->type == FIGURE_PHASE) {
		snprintf(selection, FIGURE_NAME, "%s:%.80s",
			 f->type == FIGURE_CAUSE ? "cause" : "phase", f->name);
		return true;
	}
	enum evidence e = evidence_of(f);
	if (e != EVIDENCE_COUNT)
		snprintf(selection, FIGURE_NAME, "%s", evidence_types[e].word);
	return e != EVIDENCE_COUNT;
}

/* Returns when the first window of the row's rank began. */
static uint64_t begin_of(struct tables *tables, const union value *row)
{
	struct table *windows = tables_find(tables, "windows");
	size_t at = table_column(windows, "begin_ns");
	const union value *w;

	for (size_t i = 0; (w = table_at(windows, i)); i++)
		if (w[0].u64 == row[0].u64 && w[1].text == row[1].text && w[2].u64 == row[2].u64)
			return w[at].u64;
	return row[EVIDENCE_BEGIN].u64;
}

/* Joins those of the three that are not empty with dots. */
static const char *joined(struct blocks *b, const char *first, const char *second,
			  const char *third)
{
	const char *all = first ? first : "", *const others[] = { second, third };

	for (size_t i = 0; i < 2; i++)
		if (others[i] && *others[i])
			all = blocks_text(b, "%s%s%s", all, *all ? " \xc2\xb7 " : "", others[i]);
	return all;
}

static void add_event(struct blocks *b, struct block_table *t, struct tables *tables,
		      const union value *row, bool is_bytes, bool has_place)
{
	double at_ms = ((double)row[EVIDENCE_BEGIN].u64 - (double)begin_of(tables, row)) / 1e6;
	const char *track = row[EVIDENCE_TRACK].text, *step = NULL;
	const char *what = joined(b, row[EVIDENCE_CAUSE].text,
				  show_name(b, row[EVIDENCE_NAME].text, 28), NULL);
	struct block_row *r = add_row(b, t, TOKEN_TEXT, NULL);
	double size = (double)row[EVIDENCE_SIZE].u64 / (is_bytes ? 1024 : 1e3);

	if (table_count(tables_find(tables, "ranks")) > 1 && row[0].u64 != NO_U64)
		track = blocks_text(b, "rank %llu %s", (unsigned long long)row[0].u64, track);
	if (row[EVIDENCE_IN_STEP].u64 != NO_U64)
		step = blocks_text(b, "step %llu", (unsigned long long)row[EVIDENCE_IN_STEP].u64);
	if (!*what)
		what = row[EVIDENCE_PHASE].text ? row[EVIDENCE_PHASE].text : "step";
	add_cellf(b, r, "%+.3f", at_ms)->token = TOKEN_DIM;
	add_cellf(b, r, "%.1f", size)->token = TOKEN_BOLD;
	add_cell(r, track)->token = TOKEN_DIM;
	add_cell(r, what);
	if (has_place)
		add_cell(r, joined(b, step, row[EVIDENCE_RANGE].text, row[EVIDENCE_PYTHON].text))
			->token = TOKEN_DIM;
}

/* "cause:host" selects all causes that begin with "host". */
static void add_events(struct blocks *b, unsigned width, struct tables *tables,
		       const char *selection)
{
	struct table *evidence = tables_find(tables, "behind");
	bool is_bytes = !strcmp(selection, evidence_types[EVIDENCE_MEMORY].word);
	const struct block_column columns[] = {
		{ .title = "at ms", .end = 12 },
		{ .title = is_bytes ? "KiB" : "\xc2\xb5s", .end = 24 },
		{ .title = "where", .at = 26, .width = 19 },
		{ .title = "what", .at = 47, .width = 28 },
		{ .title = "in", .at = 77, .width = width > 77 ? width - 77 : 0 },
	};
	const char *meaning = !strncmp(selection, "phase:", 6)
				      ? "intervals in which the step thread is in the phase"
			      : !strncmp(selection, "work:", 5) ? "GPU work launched in the phase"
								: "";
	const struct sorted *rows;
	size_t count = 0;

	rows = evidence ? take_rows(b, evidence, EVIDENCE_SIZE, "selection", selection, &count)
			: NULL;
	if (!count)
		return;
	for (size_t i = 0; i < EVIDENCE_COUNT; i++)
		if (!strcmp(evidence_types[i].word, selection))
			meaning = evidence_types[i].meaning;
	struct block_words *w = explain_line(b, "events", meaning);
	b->last->has_gap = true;
	w->flow = FLOW_CLIP;
	w->label_token = TOKEN_BOLD;
	w->spans->token = TOKEN_DIM;
	struct block_table *t = ADD_TABLE(b, columns);
	for (size_t i = 0; i < count && i < EVIDENCE_KEPT; i++)
		add_event(b, t, tables, rows[i].row, is_bytes, width > 77);
	if (rows[0].row[EVIDENCE_PATH].text)
		explain_line(b, "first path", rows[0].row[EVIDENCE_PATH].text);
}

void explain_input(struct blocks *b, const struct figure *f, struct tables *tables, unsigned width)
{
	char selection[FIGURE_NAME];
	struct table *t;

	if (f->type != FIGURE_REPORT)
		add_sentence(b, ROLE_TEXT, 0, "");
	switch (f->type) {
	case FIGURE_REPORT:
		break;
	case FIGURE_COLUMN:
		add_rows(b, width, tables, f->table->name, f->column->name, NULL, NULL);
		break;
	case FIGURE_CAUSE:
		add_rows(b, width, tables, "idle_causes", "ns", "cause", f->name);
		break;
	case FIGURE_PHASE:
		add_rows(b, width, tables, "phases", "wall_ns", "name", f->name);
		break;
	case FIGURE_CHECK:
		add_rows(b, width, tables, "checks", "verdict", "check", f->name);
		add_rows(b, width, tables, "checks", "text", "check", f->name);
		break;
	case FIGURE_RULE:
		add_finding(b, width, f, tables);
		break;
	case FIGURE_VERDICT:
		add_rows(b, width, tables, "verdict", "sentence", NULL, NULL);
		break;
	case FIGURE_TABLE:
		t = tables_find(tables, f->table->name);
		add_note(b, ROLE_TEXT,
			 blocks_text(b, "%zu rows in this input", t ? table_count(t) : 0));
		break;
	}
	if (!figure_selection(f, selection))
		return;
	add_events(b, width, tables, selection);
	if (f->type == FIGURE_PHASE)
		add_events(b, width, tables, blocks_text(b, "work:%.80s", f->name));
}
