/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/format/format.h"

#include "analyze/engine/engine.h"
#include "analyze/findings/rule.h"
#include "analyze/format/text/line.h"
#include "analyze/engine/number.h"
#include "analyze/report/report_list.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void test_format_numbers(void)
{
	struct time_unit ms = { 1e6, 1, "ms" };
	char t[NUMBER_TEXT], many[MANY_TEXT], span[SPAN_TEXT], cut[CUT_TEXT];

	CHECK_STR(number_text(t, 0, 1), "\xe2\x80\x93");
	CHECK_STR(number_text(t, 0.04, 1), "<0.1");
	CHECK_STR(number_text(t, 0.004, 2), "<0.01");
	CHECK_STR(number_text(t, 0.4, 0), "<1");
	CHECK_STR(number_text(t, 0.05, 1), "0.1");
	CHECK_STR(number_text(t, 999.96, 1), "1,000.0");
	CHECK_STR(number_text(t, 1234567.25, 1), "1,234,567.2");
	CHECK_STR(count_text(t, 0), "0");
	CHECK_STR(count_text(t, 216092), "216,092");
	CHECK_STR(time_text(t, 1065653000, &ms), "1,065.7");
	CHECK_STR(bytes_text(t, 19267584), "18.4 MiB");
	CHECK_STR(many_text(many, 1140, "matrix kernel"), "1,140 matrix kernels");
	CHECK_STR(many_text(many, 1, "copy"), "1 copy");
	CHECK_STR(many_text(many, 0.5, "copy"), "0.5 copies");
	CHECK_STR(span_text(span, 1234.5e9), "1,234.50 s");
	CHECK_STR(span_beside(span, 958e3, 6.6e6), "0.96 ms");
	CHECK_STR(span_beside(span, 6.6e6, 958e3), "6.6 ms");
	CHECK_STR(span_beside(span, 12345, 6.6e6), "0.012 ms");
	CHECK_STR(span_beside(span, 1, 6.6e6), "<0.001 ms");
	CHECK_STR(span_beside(span, 0, 6.6e6), "0 ms");
	CHECK_STR(span_beside(span, 6.66e9, 14.53e9), "6.66 s");
	CHECK_STR(cut_text(cut, "k\xc3\xbcrze", 2), "k\xe2\x80\xa6");
	CHECK_STR(cut_text(cut, "k\xc3\xbcrze", 6), "k\xc3\xbcrze");
	CHECK_STR(bytes_text(t, 1181116006), "1.10 GiB");
	CHECK_STR(bytes_text(t, 1193), "1.2 KiB");
	CHECK_STR(bytes_text(t, 104858), "0.1 MiB");
	CHECK_STR(time_unit_of(9.9e9, 1).name, "ms");
	CHECK_STR(time_unit_of(10e9, 1).name, "s");
	CHECK_STR(time_unit_of(0.9e6, 1).name, "\xc2\xb5s");
	CHECK_STR(time_unit_of(1e6, 1).name, "ms");
	CHECK_U64(time_unit_of(2e6, 2).decimals, 2);
}

/* Each row is rounded by itself; the rest closes to 100.0. */
void test_format_percents(void)
{
	static const double loader[] = { 591532, 0, 12026, 392919, 69176 };
	static const double thirds[] = { 1, 1, 1 }, tail[] = { 9997, 3, 0 };
	static const double damaged[] = { 1e15, 1e300 };
	int tenths[5];
	char t[NUMBER_TEXT];

	percents(loader, 5, 1065653, 3, tenths);
	CHECK_I64(tenths[0], 555);
	CHECK_I64(tenths[1], 0);
	CHECK_I64(tenths[2], 11);
	CHECK_I64(tenths[3], 369);
	CHECK_I64(tenths[4], 65);
	percents(thirds, 3, 3, 2, tenths);
	CHECK_I64(tenths[0] + tenths[1] + tenths[2], 1000);
	CHECK_I64(tenths[2], 334);
	percents(tail, 3, 10000, 2, tenths); /* nothing cannot close: the largest does */
	CHECK_I64(tenths[1], -1);
	CHECK_I64(tenths[0], 1000);
	percents(damaged, 2, 1, 2, tenths); /* in bounds, so that they can be added up */
	CHECK_I64(tenths[0], 1000000);
	CHECK_I64(tenths[1], 1000000);
	CHECK_STR(percent_text(t, -1), "<0.1");
	CHECK_STR(percent_text(t, 1000), "100.0");
	CHECK_STR(percent_text(t, 0), "\xe2\x80\x93");
}

void test_format_shares(void)
{
	static const double parts[] = { 1.5, 0, 6.0 }, halves[] = { 0, 35.7, 13.1, 51.2 };
	unsigned columns[4];

	share_out(parts, 3, 2, columns);
	CHECK_U64(columns[0], 0);
	CHECK_U64(columns[2], 2);
	share_out(halves, 4, 100, columns);
	CHECK_U64(columns[0] + columns[1] + columns[2] + columns[3], 100);
	CHECK_U64(columns[0], 0);
	CHECK_U64(columns[1], 36);
}

static struct format_request plain = { .is_utf8 = true, .width = 100 };

static const char *line_of(struct buf *out, const struct format_request *how, double cells)
{
	struct text t;

	buf_clear(out);
	text_init(&t, how, out);
	text_at(&t, 0, TOKEN_DIM, "a\x1b[2J\xff b");
	text_right(&t, 16, TOKEN_TEXT, "1.5");
	text_bar(&t, 17, TOKEN_COMM, cells);
	text_end(&t);
	return buf_text(out);
}

void test_format_lines(void)
{
	struct format_request ascii = { .width = 100 };
	struct format_request colour = { .is_utf8 = true, .width = 100, .colour = COLOUR_16 };
	struct format_request narrow = { .is_utf8 = true, .width = 18 };
	struct buf out;

	buf_init(&out, 1 << 16);
	/* what a terminal would obey is shown as what it is: nothing */
	CHECK_STR(line_of(&out, &plain, 2.5),
		  "a?[2J? b     1.5 \xe2\x96\x88\xe2\x96\x88\xe2\x96\x8c\n");
	CHECK_STR(line_of(&out, &plain, 0.01), "a?[2J? b     1.5 \xe2\x96\x8f\n");
	CHECK_STR(line_of(&out, &plain, 0), "a?[2J? b     1.5\n");
	CHECK_STR(line_of(&out, &ascii, 2.6), "a?[2J? b     1.5 ###\n");
	CHECK_STR(line_of(&out, &narrow, 9), "a?[2J? b     1.5 \xe2\x80\xa6\n");
	CHECK_STR(line_of(&out, &colour, 1), "\033[0m\033[2ma?[2J? b     \033[0m1.5 \033[0m\033[33m"
					     "\xe2\x96\x88\033[0m\n");
	buf_release(&out);
}

void test_format_cuts_names(void)
{
	struct buf out;
	struct text t;

	buf_init(&out, 1 << 16);
	text_init(&t, &plain, &out);
	CHECK_U64(text_shorten(&t, 0, 11, TOKEN_TEXT, "abcdefghijklmnop"), 11);
	text_end(&t);
	CHECK_STR(buf_text(&out), "abcdef\xe2\x80\xa6mnop\n");
	CHECK_U64(text_width("\xe2\x80\xa6"
			     "a\xe4\xb8\xad"),
		  4); /* a wide character is two */
	buf_release(&out);
}

/* ---- tables and findings of random sizes -------------------------------------------------- */

static unsigned random_below(unsigned limit)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % limit);
}

enum { TRIALS = 200, TABLE_COLUMNS = 7, TABLE_ROWS = 6, DRAWN = 1 << 14 };

/* A table whose first column is a name and whose others are figures, some wished too close. */
struct random_table {
	struct blocks blocks;
	size_t columns;
	bool is_fitted;
	const char *cells[1 + TABLE_ROWS][TABLE_COLUMNS]; /* the first row is the titles */
};

static const char *random_word(struct blocks *b, unsigned longest)
{
	static const char *const signs[] = { "a", "_", "\xc3\xa9", "\xe4\xb8\xad", "7" };
	unsigned len = 1 + random_below(longest);
	const char *word = "";

	for (unsigned i = 0; i < len; i++)
		word = blocks_text(b, "%s%s", word, signs[random_below(5)]);
	return word;
}

static void random_table_make(struct random_table *t)
{
	struct block_column columns[TABLE_COLUMNS] = { { .title = "" } };
	struct blocks *b = &t->blocks;
	bool is_fitted = random_below(4) == 0;
	struct block_table *table;
	unsigned end = 4 + random_below(60);

	blocks_init(b);
	t->columns = 2 + random_below(TABLE_COLUMNS - 1);
	for (size_t i = 0; i < t->columns; i++) {
		t->cells[0][i] = random_word(b, 8);
		columns[i] = (struct block_column){ .title = t->cells[0][i], .is_left = !i };
		if (is_fitted)
			continue;
		columns[i].width = i ? 0 : end;
		columns[i].end = i ? end += random_below(12) : 0;
	}
	table = add_table(b, columns, t->columns);
	table->is_fitted = t->is_fitted = is_fitted;
	for (size_t k = 1; k <= TABLE_ROWS; k++) {
		struct block_row *r = add_row(b, table, TOKEN_TEXT, NULL);

		for (size_t i = 0; i < t->columns; i++) {
			double value = (double)random_below(1u << random_below(31)) / 7;

			t->cells[k][i] =
				i ? show_number(b, value, random_below(3)) : random_word(b, 70);
			add_cell(r, t->cells[k][i]);
		}
	}
}

/* The whole name; or its head, the mark and its tail; or its head and what follows it later, both
 * with a mark. */
static bool is_name(const char *shown, const char *whole)
{
	static const char mark[] = "\xe2\x80\xa6";
	const char *first = strstr(shown, mark), *second = first ? strstr(first + 3, mark) : NULL;
	size_t rest = first ? strlen(first + 3) : 0;
	char *piece;
	bool found;

	if (!first)
		return !strcmp(shown, whole);
	if (strncmp(shown, whole, (size_t)(first - shown)) || rest > strlen(whole) + 3)
		return false;
	if (!second)
		return rest <= strlen(whole) && !strcmp(first + 3, whole + strlen(whole) - rest);
	piece = strndup(first + 3, (size_t)(second - first) - 3);
	found = piece && strstr(whole, piece);
	free(piece);
	return found && !second[3];
}

/* How many cells of a row a drawn line is when it is split at two blanks or more; 0: another row.
 */
static size_t cells_of(char *line, const char *const *row, size_t columns, unsigned width)
{
	size_t i = 0;
	char *end;

	if (text_width(line) > width)
		return 0;
	for (; *line && i < columns; i++) {
		line += strspn(line, " ");
		end = strstr(line, "  ");
		end = end ? end : line + strlen(line);
		if (*end)
			*end++ = '\0';
		if (i ? strcmp(line, row[i]) != 0 : !is_name(line, row[i]))
			return 0;
		line = end;
	}
	return *line ? 0 : i;
}

/* "hidden columns: a, b", over any number of lines: exactly the columns that are not shown. */
static void check_left_out(const struct random_table *table, size_t shown, char *text)
{
	char want[256] = "hidden columns:", *to = text;

	for (size_t i = shown; i < table->columns; i++)
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s%s",
			 i > shown ? "," : "", table->cells[0][i]);
	for (const char *from = text; *from; from++)
		if (*from != '\n' && (*from != ' ' || to < text + 14))
			*to++ = *from;
	*to = '\0';
	CHECK_STR(text, want);
}

/* Figures are whole and stand apart; a terminal that is too narrow shows fewer of them. */
static void check_table(const struct random_table *table, unsigned width, struct buf *out)
{
	struct format_request how = { .is_utf8 = true, .width = width };
	struct text t;
	char *line, *end;
	size_t rows = 0, cells, shown = 0;

	buf_clear(out);
	text_init(&t, &how, out);
	text_draw(&t, &table->blocks);
	for (line = (char *)(uintptr_t)buf_text(out); (end = strchr(line, '\n')); line = end + 1) {
		if (rows > TABLE_ROWS && !strncmp(line, "hidden columns:", 15)) {
			check_left_out(table, shown, line);
			break;
		}
		*end = '\0';
		if (!CHECK(rows <= TABLE_ROWS))
			return;
		cells = cells_of(line, table->cells[rows], table->columns, width);
		shown = rows ? shown : cells;
		CHECK_U64(cells, shown);
		rows++;
	}
	CHECK_U64(rows, TABLE_ROWS + 1);
	CHECK(!table->is_fitted || shown == table->columns || strchr(line, '\n') || *line == 'h');
	CHECK(shown >= 2 && (width < 140 || shown == table->columns));
}

void test_format_tables_read_back(void)
{
	static const unsigned widths[] = { 60, 80, 100, 140, 200 };
	struct random_table table;
	struct buf out;

	buf_init(&out, DRAWN);
	for (size_t trial = 0; trial < 5 * TRIALS; trial++) {
		random_table_make(&table);
		check_table(&table, widths[trial % 5], &out);
		blocks_release(&table.blocks);
	}
	buf_release(&out);
}

/* Names that differ in one place only, and are too long for their column, do not read alike. */
void test_format_names_apart(void)
{
	static const struct block_column columns[] = { { .title = "kernel", .width = 28 },
						       { .title = "ms", .end = 40 } };
	struct format_request how = { .is_utf8 = true, .width = 60 };
	char name[65] = "", *line, *end;
	const char *lines[TABLE_ROWS + 1];
	struct block_table *table;
	struct blocks b;
	struct buf out;
	struct text t;

	buf_init(&out, DRAWN);
	for (size_t trial = 0; trial < TRIALS; trial++) {
		size_t count = 0;

		blocks_init(&b);
		table = ADD_TABLE(&b, columns);
		table->is_fitted = trial % 2;
		table->columns[0].is_left = true;
		for (size_t i = 0; i < 64; i++)
			name[i] = (char)('a' + random_below(26));
		for (size_t i = 0; i < TABLE_ROWS; i++) {
			struct block_row *r = add_row(&b, table, TOKEN_TEXT, NULL);
			size_t at = 9 * i + random_below(9);
			char was = name[at];

			name[at] = '#';
			add_cell(r, blocks_text(&b, "%s", name));
			add_cell(r, "1.00");
			name[at] = was;
		}
		buf_clear(&out);
		text_init(&t, &how, &out);
		text_draw(&t, &b);
		for (line = (char *)(uintptr_t)buf_text(&out);
		     (end = strchr(line, '\n')) && count <= TABLE_ROWS; line = end + 1) {
			*end = '\0';
			lines[count++] = line;
		}
		CHECK_U64(count, TABLE_ROWS + 1);
		for (size_t i = 0; i < count; i++)
			for (size_t k = 0; k < i; k++)
				CHECK(strcmp(lines[i], lines[k]) != 0);
		blocks_release(&b);
	}
	buf_release(&out);
}

/* All words of a remedy are on the page, at every width, and no line is too long. */
void test_format_remedies_whole(void)
{
	static const unsigned widths[] = { 60, 80, 100, 140 };
	struct fix fix = { .rule = "fp32_gemm", .saving = "12,345.6", .sign = "of" };
	struct blocks b;
	struct buf out;

	buf_init(&out, DRAWN);
	for (size_t trial = 0; trial < TRIALS; trial++) {
		struct format_request how = { .is_utf8 = true, .width = widths[trial % 4] };
		const char *words = "";
		struct text t;
		struct block *list;
		char *from, *to, *end;

		blocks_init(&b);
		for (unsigned n = 1 + random_below(30); n; n--)
			words = blocks_text(&b, "%s%s%s", words, *words ? " " : "",
					    random_word(&b, n == 3 ? 150 : 14));
		fix.brief = fix.advice = words;
		list = add_block(&b, BLOCK_FINDINGS);
		list->findings.rows = &fix;
		list->findings.count = 1;
		list->findings.brief_at = 28;
		buf_clear(&out);
		text_init(&t, &how, &out);
		text_draw(&t, &b);
		for (from = (char *)(uintptr_t)buf_text(&out); (end = strchr(from, '\n'));
		     from = end + 1) {
			*end = '\0';
			CHECK(text_width(from) <= how.width);
			*end = '\n';
		}
		/* the sign stands before the saving, and the remedy has its label */
		CHECK(strstr(buf_text(&out), "1   of 12,345.6   fp32_gemm") != NULL);
		CHECK(strstr(buf_text(&out), "\n                  try") != NULL);
		/* without blanks, as a long word goes on in the next line */
		from = to = (char *)(uintptr_t)buf_text(&out);
		for (; *from; from++)
			if (*from != ' ' && *from != '\n')
				*to++ = *from;
		*to = '\0';
		for (from = to = (char *)(uintptr_t)words; *from; from++)
			if (*from != ' ')
				*to++ = *from;
		*to = '\0';
		from = strstr(buf_text(&out), words);
		CHECK(from && strstr(from + 1, words));
		blocks_release(&b);
	}
	buf_release(&out);
}

/* ---- a whole run ------------------------------------------------------------------------ */

static const struct report_type *const summary[] = { &report_summary, NULL };
static const struct report_type *const everything[] = { &report_summary, &report_check, NULL };
static const struct report_type *const kernels[] = { &report_kernels, NULL };

static struct tables *tables_of_all(char *const *paths, size_t count,
				    const struct report_type *const *reports)
{
	struct engine_outcome outcome[2];
	struct engine_request how = { .paths = paths,
				      .count = count,
				      .reports = reports,
				      .threads = 1,
				      .memory_bytes = 256 << 20,
				      .scratch = "/tmp" };
	struct name_rules *rules = NULL;
	struct tables *tables = NULL;
	struct error err = { 0 };

	CHECK_OK(name_rules_new(&rules, NULL, 0, NULL), NULL);
	how.rules = rules;
	CHECK_OK(engine_run(&tables, &how, outcome, &err), &err);
	name_rules_free(rules);
	return tables;
}

static struct tables *tables_of(const char *path, const struct report_type *const *reports)
{
	return tables_of_all((char *const[]){ (char *)(uintptr_t)path }, 1, reports);
}

static void write_text(char path[32], const char *text)
{
	int fd;

	snprintf(path, 32, "/tmp/tacho-XXXXXX");
	fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void write_trace(char path[32])
{
	static const char text[] =
		"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":"
		"9,"
		"\"tid\":9,\"ts\":100,\"dur\":300},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a<1,\\\"2\\\">(int)\",\"pid\":0,"
		"\"tid\":7,"
		"\"ts\":200,\"dur\":100,\"args\":{\"device\":0,\"stream\":7,\"correlation\":5}}]}";

	write_text(path, text);
}

void test_format_csv(void)
{
	struct format_request how = { .reports = kernels };
	struct buf out;
	char path[32];
	const char *at;

	write_trace(path);
	how.tables = tables_of(path, kernels);
	buf_init(&out, 1 << 20);
	CHECK_OK(format_csv.write(&how, &out, NULL), NULL);
	at = strchr(buf_text(&out), '\n');
	if (CHECK(at != NULL))
		CHECK_STR(at + 1,
			  ",,9,\"a<1,\"\"2\"\">(int)\",\"a<1, \"\"2\"\">\",compute,1,100000,"
			  "100,100000,100000,100000\n");
	CHECK(!strncmp(buf_text(&out), "rank,host,pid,name,short,class,count,", 37));
	how.reports = (const struct report_type *const[]){ &report_kernels, &report_steps, NULL };
	CHECK_U64(format_csv.write(&how, &out, NULL), ST_USAGE);
	buf_release(&out);
	tables_free(how.tables);
	unlink(path);
}

/* Kernels that differ in what a short name leaves out are two rows that look different. */
void test_format_short_names_apart(void)
{
	static const char text[] =
		"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a<1>(int)\",\"pid\":"
		"0,"
		"\"tid\":7,\"ts\":200,\"dur\":100,\"args\":{\"device\":0,\"stream\":7}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a<1>(float)\",\"pid\":0,"
		"\"tid\":7,\"ts\":400,\"dur\":50,\"args\":{\"device\":0,\"stream\":7}}]}";
	struct format_request how = { .reports = kernels, .is_utf8 = true, .width = 100 };
	struct buf out;
	char path[32];

	write_text(path, text);
	how.tables = tables_of(path, kernels);
	buf_init(&out, 1 << 20);
	CHECK_OK(format_text.write(&how, &out, NULL), NULL);
	CHECK(strstr(buf_text(&out), "\na<1>     compute") != NULL);
	CHECK(strstr(buf_text(&out), "\na<1> #2  compute") != NULL);
	buf_release(&out);
	tables_free(how.tables);
	unlink(path);
}

/* The same where ranks are compared: one line each, not the same name twice. */
void test_format_names_of_ranks_apart(void)
{
	static const char text[] =
		"{\"distributedInfo\":{\"rank\":%u,\"world_size\":2},\"traceEvents\":["
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a<1>(int)\",\"pid\":0,\"tid\":7,"
		"\"ts\":200,\"dur\":%u,\"args\":{\"device\":0,\"stream\":7}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a<1>(float)\",\"pid\":0,\"tid\":7,"
		"\"ts\":400,\"dur\":50,\"args\":{\"device\":0,\"stream\":7}}]}";
	struct format_request how = { .reports = summary, .is_utf8 = true, .width = 100 };
	char one[sizeof(text) + 32], paths[2][32];
	struct buf out;

	for (unsigned i = 0; i < 2; i++) {
		snprintf(one, sizeof(one), text, i, 100 + 50 * i);
		write_text(paths[i], one);
	}
	how.tables = tables_of_all((char *const[]){ paths[0], paths[1] }, 2, summary);
	buf_init(&out, 1 << 20);
	CHECK_OK(format_text.write(&how, &out, NULL), NULL);
	CHECK(strstr(buf_text(&out), "\na<1>     ") != NULL);
	CHECK(strstr(buf_text(&out), "\na<1> #2  ") != NULL);
	buf_release(&out);
	tables_free(how.tables);
	unlink(paths[0]);
	unlink(paths[1]);
}

/* Every line of a page fits, at every width, and nothing that is not a figure is drawn as one. */
void test_format_page_fits(void)
{
	struct format_request how = { .reports = summary, .is_utf8 = true };
	struct buf out;
	char path[32], *line, *end;
	unsigned widest = 0;

	write_trace(path);
	how.tables = tables_of(path, summary);
	for (how.width = 20; how.width <= 120; how.width++) {
		buf_init(&out, 1 << 20);
		CHECK_OK(format_text.write(&how, &out, NULL), NULL);
		for (line = (char *)(uintptr_t)buf_text(&out); (end = strchr(line, '\n'));
		     line = end + 1) {
			*end = '\0';
			if (text_width(line) > how.width)
				widest = how.width;
		}
		buf_release(&out);
	}
	CHECK_U64(widest, 0);
	tables_free(how.tables);
	unlink(path);
}

/* ---- a report that no renderer knows ---------------------------------------------------- */

static const struct column made_columns[] = {
	RANK_COLUMNS,
	{ "what", "what", CELL_TEXT, KEY, NULL, "a name" },
	{ "taken_ns", "taken", CELL_U64, SUM, NULL, "a time" },
	{ "change", "change", CELL_F64, DERIVED, NULL, "a number below zero" },
	{ .name = NULL },
};
static const struct table_type made_table = {
	.name = "made_rows",
	.member = "made_rows",
	.under = &table_ranks,
	.columns = made_columns,
};
static const struct table_type *const made_tables[] = { &made_table, NULL };

static enum status made_end(struct accumulator *f, struct error *err)
{
	union value keys[RANK_KEYS + 1], *row;

	keys[RANK_KEYS].text = "<b>";
	TRY(acc_row(f, "made_rows", sweep_gpu(f->sweep, 0).process, keys, &row, err));
	row[RANK_KEYS + 1].u64 += 12345678;
	return ST_OK;
}

static enum status made_finish(struct tables *all, struct error *err)
{
	table_at(tables_find(all, "made_rows"), 0)[RANK_KEYS + 2].f64 = -2.25;
	return ST_OK;
}

static const struct report_type made_report = {
	.name = "made",
	.help = "a row",
	.tables = made_tables,
	.end = made_end,
	.finish = made_finish,
};

/* A new report is shown on every page as its tables, in each page's own form. */
void test_format_new_report(void)
{
	const struct report_type *const reports[] = { &made_report, NULL };
	static const struct {
		const struct format_type *format;
		const char *title, *row;
	} pages[] = {
		{ &format_text, "MADE ROWS\nwhat  taken ms  change\n",
		  "\n<b>      12.35    -2.2\n" },
		{ &format_html, "<h2>Made rows</h2>",
		  "<tr><td class=\"left\">&lt;b&gt;</td><td class=\"\">12.35</td><td "
		  "class=\"\">-2.2</td></tr>" },
		{ &format_md, "## made_rows\n\n| rank | what | taken\\_ns | change |\n",
		  "|  | &lt;b&gt; | 12,345,678 | -2.2 |\n" },
	};
	struct format_request how = { .reports = reports, .is_utf8 = true, .width = 100 };
	struct buf out;
	char path[32];

	write_trace(path);
	how.tables = tables_of(path, reports);
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		buf_clear(&out);
		CHECK_OK(pages[i].format->write(&how, &out, NULL), NULL);
		CHECK(strstr(buf_text(&out), pages[i].title) != NULL);
		CHECK(strstr(buf_text(&out), pages[i].row) != NULL);
	}
	buf_release(&out);
	tables_free(how.tables);
	unlink(path);
}

/* ---- the schema ------------------------------------------------------------------------- */

/* As much of JSON Schema as schemas/report.schema.json uses. */
static bool fits(const cJSON *root, const cJSON *schema, const cJSON *v, char where[256]);

static bool is_type(const char *type, const cJSON *v)
{
	if (!strcmp(type, "integer"))
		return cJSON_IsNumber(v) && floor(v->valuedouble) == v->valuedouble;
	return (!strcmp(type, "object") && cJSON_IsObject(v)) ||
	       (!strcmp(type, "array") && cJSON_IsArray(v)) ||
	       (!strcmp(type, "string") && cJSON_IsString(v)) ||
	       (!strcmp(type, "number") && cJSON_IsNumber(v)) ||
	       (!strcmp(type, "boolean") && cJSON_IsBool(v)) ||
	       (!strcmp(type, "null") && cJSON_IsNull(v));
}

static bool fits_type(const cJSON *types, const cJSON *v)
{
	const cJSON *type;

	if (!types || cJSON_IsString(types))
		return !types || is_type(types->valuestring, v);
	cJSON_ArrayForEach(type, types) if (is_type(type->valuestring, v)) return true;
	return false;
}

static bool fits_value(const cJSON *schema, const cJSON *v)
{
	const cJSON *least = cJSON_GetObjectItem(schema, "minimum");
	const cJSON *most = cJSON_GetObjectItem(schema, "maximum");
	const cJSON *one = cJSON_GetObjectItem(schema, "const");
	const cJSON *some = cJSON_GetObjectItem(schema, "enum"), *item;

	if (cJSON_IsNumber(v) && least && v->valuedouble < least->valuedouble)
		return false;
	if (cJSON_IsNumber(v) && most && v->valuedouble > most->valuedouble)
		return false;
	if (one && !cJSON_Compare(one, v, true))
		return false;
	if (!some)
		return true;
	cJSON_ArrayForEach(item, some) if (cJSON_Compare(item, v, true)) return true;
	return false;
}

static bool fits_members(const cJSON *root, const cJSON *schema, const cJSON *v, char where[256])
{
	const cJSON *properties = cJSON_GetObjectItem(schema, "properties");
	const cJSON *more = cJSON_GetObjectItem(schema, "additionalProperties"), *item, *of;

	cJSON_ArrayForEach(
		item,
		cJSON_GetObjectItem(
			schema,
			"required")) if (!cJSON_GetObjectItemCaseSensitive(v, item->valuestring))
	{
		snprintf(where, 256, "%s is missing", item->valuestring);
		return false;
	}
	cJSON_ArrayForEach(item, v)
	{
		of = cJSON_GetObjectItemCaseSensitive(properties, item->string);
		of = of ? of : more;
		if (!of) {
			snprintf(where, 256, "%s is not in the schema", item->string);
			return false;
		}
		if (!fits(root, of, item, where))
			return false;
	}
	return true;
}

static bool fits(const cJSON *root, const cJSON *schema, const cJSON *v, char where[256])
{
	const cJSON *ref = cJSON_GetObjectItem(schema, "$ref");
	const cJSON *items = cJSON_GetObjectItem(schema, "items"), *item;

	const cJSON *any = cJSON_GetObjectItem(schema, "anyOf");

	cJSON_ArrayForEach(item, any) if (fits(root, item, v, where))
	{
		where[0] = '\0';
		return true;
	}
	if (any)
		return false;
	if (ref)
		schema = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "$defs"),
					     strrchr(ref->valuestring, '/') + 1);
	if (!fits_type(cJSON_GetObjectItem(schema, "type"), v) || !fits_value(schema, v)) {
		snprintf(where, 256, "%s has a wrong value", v->string ? v->string : "an item");
		return false;
	}
	if (cJSON_IsObject(v) && cJSON_GetObjectItem(schema, "properties"))
		return fits_members(root, schema, v, where);
	if (!cJSON_IsArray(v) || !items)
		return true;
	cJSON_ArrayForEach(item, v) if (!fits(root, items, item, where)) return false;
	return true;
}

static cJSON *schema_read(void)
{
	FILE *f = fopen("schemas/report.schema.json", "rb");
	char *text = calloc(1, 1 << 20);
	cJSON *schema = NULL;

	if (f && text && fread(text, 1, (1 << 20) - 1, f))
		schema = cJSON_Parse(text);
	if (f)
		fclose(f);
	free(text);
	return schema;
}

static void check_schema(const cJSON *schema, const char *path)
{
	struct format_request how = { .reports = everything };
	char where[256] = "";
	struct buf out;
	cJSON *json;

	how.tables = tables_of(path, everything);
	buf_init(&out, 1 << 26);
	CHECK_OK(format_json.write(&how, &out, NULL), NULL);
	json = cJSON_Parse(buf_text(&out));
	CHECK(json && fits(schema, schema, json, where));
	CHECK_STR(where, "");
	/* the check can fail */
	cJSON_DeleteItemFromObject(cJSON_GetObjectItem(json, "ranks")->child, "span_ns");
	CHECK(!fits(schema, schema, json, where));
	CHECK_STR(where, "span_ns is missing");
	cJSON_Delete(json);
	buf_release(&out);
	tables_free(how.tables);
}

/* The file is what the tables say. */
void test_format_json_schema_file(void)
{
	char *file = calloc(1, 1 << 20);
	FILE *f = fopen("schemas/report.schema.json", "rb");
	struct buf out;

	buf_init(&out, 1 << 20);
	put_json_schema(&out);
	if (CHECK(file && f && fread(file, 1, (1 << 20) - 1, f)))
		CHECK_STR(strcmp(buf_text(&out), file) ? "make regenerate writes it anew" : "", "");
	if (f)
		fclose(f);
	free(file);
	buf_release(&out);
}

/* Each table of a rank or of the job stands in the list of DEFINITIONS.md. */
void test_format_definitions(void)
{
	const struct table_type *types[REPORT_TABLES_MAX];
	size_t count = report_tables(types), len;
	char *text = folder_read("analyze/DEFINITIONS.md", &len);
	char *keys = text ? strstr(text, "\n## 9. Keys") : NULL;

	for (size_t i = 0; CHECK(keys != NULL) && i < count; i++) {
		const char *member = table_member(types[i]);
		char alone[64], below[80];

		if (types[i]->under && types[i]->under != &table_ranks)
			continue;
		snprintf(alone, sizeof(alone), "`%s`", member);
		snprintf(below, sizeof(below), "`ranks[].%s`", member);
		if (!strstr(keys, alone) && !strstr(keys, below))
			CHECK_STR(member, "in a row of analyze/DEFINITIONS.md, section 9");
	}
	free(text);
}

void test_format_json_schema(void)
{
	cJSON *schema = schema_read();
	char path[32], real[512];

	if (!CHECK(schema != NULL))
		return;
	write_trace(path);
	check_schema(schema, path);
	unlink(path);
	if (unit_traces()) {
		snprintf(real, sizeof(real), "%s/kineto/job128_sampled_rank0.json.gz",
			 unit_traces());
		check_schema(schema, real);
	}
	cJSON_Delete(schema);
}
