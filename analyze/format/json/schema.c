/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Schema of json.c's output, made from the same tables. A test compares it with
 * schemas/report.schema.json. */
#include "analyze/report/hta/hta.h"
#include "analyze/report/where/where.h"
#include "analyze/format/format.h"
#include "analyze/report/report_list.h"
#include "schemas/base/json_text.h"

struct schema_writer {
	const struct table_type *types[REPORT_TABLES_MAX];
	size_t count;
	struct buf *out;
};

/* Writes the type of a column. null means unknown or not applicable; any number except sums and
 * some texts may be null. */
static void put_type(struct buf *out, const struct table_type *t, const struct column *c)
{
	switch (c->cell) {
	case CELL_TEXT:
		buf_put_text(out, column_may_be_null(t, c) ? "\"type\": [\"string\", \"null\"]"
							   : "\"type\": \"string\"");
		return;
	case CELL_WORDS:
		buf_put_text(out, "\"type\": \"array\", \"items\": {\"type\": \"string\"}");
		return;
	case CELL_BOOL:
		buf_put_text(out, "\"type\": [\"boolean\", \"null\"]");
		return;
	case CELL_F64:
		buf_put_text(out, "\"type\": [\"number\", \"null\"]");
		if (c->of)
			buf_put_text(out, ", \"minimum\": 0, \"maximum\": 100.001");
		return;
	default:
		buf_put_text(out, c->combine == SUM && name_ends_in(c->name, "_ns")
					  ? "\"type\": \"integer\", \"minimum\": 0"
					  : "\"type\": [\"integer\", \"null\"], \"minimum\": 0");
	}
}

static void put_reference(struct schema_writer *s, const struct table_type *t)
{
	switch (t->nest) {
	case NEST_OBJECT:
		buf_putf(s->out, "{\"anyOf\": [{\"$ref\": \"#/$defs/%s\"}, {\"type\": \"null\"}]}",
			 t->name);
		return;
	case NEST_MAP:
		buf_put_text(s->out, "{\"type\": \"object\", \"additionalProperties\": {");
		put_type(s->out, t, &t->columns[table_keys(t)]);
		buf_put_text(s->out, "}}");
		return;
	default:
		buf_putf(s->out, "{\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/%s\"}}",
			 t->name);
	}
}

static void put_table(struct schema_writer *s, const struct table_type *t)
{
	size_t first = t->under ? table_keys(t->under) : 0;
	const char *between = "";

	buf_putf(s->out, "  \"%s\": {\n   \"type\": \"object\",\n", t->name);
	/* Tables depend on --report, so only columns are required. */
	bool is_first = true;

	buf_put_text(s->out, "   \"required\": [");
	for (size_t i = first; i < table_columns(t); i++) {
		if (t->columns[i].cell == CELL_HIST)
			continue;
		buf_put_text(s->out, is_first ? "" : ", ");
		json_put_word(s->out, t->columns[i].name);
		is_first = false;
	}
	buf_put_text(s->out, "],\n   \"properties\": {");
	for (size_t i = first; i < table_columns(t); i++) {
		if (t->columns[i].cell == CELL_HIST)
			continue;
		buf_putf(s->out, "%s\n    \"%s\": {", between, t->columns[i].name);
		put_type(s->out, t, &t->columns[i]);
		buf_put_text(s->out, ", \"description\": ");
		json_put_word(s->out, t->columns[i].meaning ? t->columns[i].meaning : "");
		buf_put_text(s->out, "}");
		between = ",";
	}
	for (size_t i = 0; i < s->count; i++) {
		if (s->types[i]->under != t)
			continue;
		buf_putf(s->out, "%s\n    \"%s\": ", between, table_member(s->types[i]));
		put_reference(s, s->types[i]);
		between = ",";
	}
	buf_put_text(s->out, "\n   }\n  }");
}

void put_json_schema(struct buf *out)
{
	struct schema_writer s = { .count = 0, .out = out };
	const char *between = "";

	s.count = report_tables(s.types);
	for (size_t i = 0; report_compat_hta.tables[i] && s.count < REPORT_TABLES_MAX; i++)
		s.types[s.count++] = report_compat_hta.tables[i];
	for (size_t i = 0; report_compat_pytorch.tables[i] && s.count < REPORT_TABLES_MAX; i++)
		s.types[s.count++] = report_compat_pytorch.tables[i];
	buf_put_text(out,
		     "{\n \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
		     " \"$id\": \"tacho.report/1\",\n"
		     " \"title\": \"Report of tacho-analyze --format json\",\n"
		     " \"description\": \"Keys are stable: keys may be added, but none changes its "
		     "meaning. Times are integer nanoseconds, instants since the Unix epoch. null "
		     "means unknown or not applicable. With --report, only the tables of these "
		     "reports are present. Printed by tacho-analyze --schema.\",\n \"$defs\": {\n");
	for (size_t i = 0; i < s.count; i++) {
		if (s.types[i]->nest == NEST_MAP)
			continue;
		buf_put_text(out, between);
		put_table(&s, s.types[i]);
		between = ",\n";
	}
	buf_put_text(out, "\n },\n \"type\": \"object\",\n"
			  " \"required\": [\"schema\", \"inputs\", \"ranks\"],\n"
			  " \"properties\": {\n  \"schema\": {\"const\": \"tacho.report/1\"}");
	for (size_t i = 0; i < s.count; i++) {
		if (s.types[i]->under)
			continue;
		buf_putf(out, ",\n  \"%s\": ", table_member(s.types[i]));
		put_reference(&s, s.types[i]);
	}
	buf_put_text(out, "\n }\n}\n");
}
