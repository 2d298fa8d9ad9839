/* SPDX-License-Identifier: Apache-2.0 */
/* schemas/LOG.md specifies the log: what it says is compared with what the code does. */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "schemas/base/buf.h"
#include "schemas/log/log.h"
#include "schemas/log/writer.h"
#include "schemas/model/records.h"
#include "schemas/model/trace.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tests run in the root of the repository. */
static char *document(void)
{
	size_t len;
	char *text = folder_read("schemas/LOG.md", &len);

	CHECK(len > 1000);
	return text;
}

static uint32_t name(struct trace *t, const char *text)
{
	return trace_name(t, text, strlen(text), NULL);
}

/* Writes the trace of section 9. */
static void write_example(struct buf *out)
{
	static const uint64_t numbers[3][4] = {
		{ UINT64_C(1700000000000001000), 3200, 90, 40 },
		{ UINT64_C(1700000000000005200), 3520, 93, 41 },
		{ UINT64_C(1700000000000009720), 3200, 96, 42 },
	};
	struct trace *t;
	struct log_writer *w;
	struct process p = { .pid = 4711, .rank = 0, .world_size = 2 };
	struct track k = { .type = TRACK_STREAM, .device = 0, .context = 1, .id = 7 };
	struct attr consts = { .type = ATTR_I64, .unit = UNIT_COUNT, .bits = 80 };
	struct attr args = { .type = ATTR_I64, .unit = UNIT_ID };
	struct arg_schema schema = { &consts, &args, 1, 1 };
	struct event_desc desc = { .kind = KIND_KERNEL };

	trace_new(&t, 1 << 20, NULL);
	p.host = name(t, "node1");
	k.process = trace_process(t, &p, NULL);
	consts.key = name(t, "grid_x");
	args.key = name(t, "grid_id");
	desc.track = trace_track(t, &k, NULL);
	desc.name = name(t, "gemm");
	desc.schema = trace_schema(t, &schema, NULL);
	CHECK_OK(log_writer_new(&w, t, 1 << 22, NULL), NULL);
	log_writer_begin(w, out, NULL);
	for (unsigned i = 0; i < 3; i++) {
		struct event e = {
			.begin_ns = numbers[i][0],
			.end_ns = numbers[i][0] + numbers[i][1],
			.correlation = numbers[i][2],
			.args = &numbers[i][3],
			.track = desc.track,
			.name = desc.name,
			.schema = desc.schema,
			.kind = KIND_KERNEL,
		};

		log_writer_put(w, &e, trace_desc(t, &desc, NULL), 0, out, NULL);
	}
	CHECK_OK(log_writer_end(w, out, NULL), NULL);
	log_writer_free(w);
	trace_free(t);
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10;
}

/* Appends the bytes of one line: offset, two blanks, bytes in groups, two blanks or the end. */
static void take_line(const char *line, struct buf *out)
{
	const char *p = line + 6;

	CHECK_U64(strtoul(line, NULL, 16), out->len);
	while (isxdigit((unsigned char)p[0]) && isxdigit((unsigned char)p[1])) {
		buf_put_byte(out, (uint8_t)(digit(p[0]) * 16 + digit(p[1])));
		p += 2;
		if (p[0] == ' ' && p[1] != ' ')
			p++;
	}
}

void test_log_document_example(void)
{
	char *text = document(), *line, *rest;
	struct buf written, expected;

	buf_init(&written, 1 << 16);
	buf_init(&expected, 1 << 16);
	write_example(&written);
	line = strstr(text, "## 9. Example");
	line = line ? strstr(line, "```\n") : NULL;
	if (CHECK(line != NULL)) {
		for (line = strtok_r(line + 4, "\n", &rest); line && line[0] != '`';
		     line = strtok_r(NULL, "\n", &rest))
			take_line(line, &expected);
		if (CHECK_U64(expected.len, written.len))
			CHECK_MEM(expected.data, written.data, expected.len);
	}
	buf_release(&written);
	buf_release(&expected);
	free(text);
}

/* The lines of the table whose first line is `head`, or "" with a failed check; freed by the
 * caller. */
static char *table_of(const char *text, const char *head)
{
	const char *begin = strstr(text, head), *end = begin;

	CHECK(begin != NULL);
	if (!begin)
		return strdup("");
	CHECK(strstr(begin + 1, head) == NULL);
	while (end && end[0] == '|')
		end = strchr(end, '\n') ? strchr(end, '\n') + 1 : NULL;
	return strndup(begin, end ? (size_t)(end - begin) : strlen(begin));
}

static size_t lines_of(const char *table)
{
	size_t lines = 0;

	for (; *table; table++)
		lines += *table == '\n';
	return lines;
}

enum { HEAD_LINES = 2 }; /* of a table: its heading, and the line below */

/* Each list of numbers stands in its own table of LOG.md, and that table has no other row. */
void test_log_document_lists(void)
{
	char *text = document(), row[128];
	char *blocks = table_of(text, "| kind | block | each row begins with its length |\n");
	char *losses = table_of(text, "| reason of a loss | |\n");
	char *units = table_of(text, "| unit | |\n");
	size_t block_count = 0, loss_count = 0;

#define X(word, number)                                                                            \
	snprintf(row, sizeof(row), "\n| %d | %s |", number, #word);                                \
	CHECK(strstr(blocks, row) != NULL);                                                        \
	block_count++;
	LOG_BLOCK_LIST(X)
#undef X
#define X(word, number, why)                                                                       \
	snprintf(row, sizeof(row), "\n| %d | %s |\n", number, why);                                \
	CHECK(strstr(losses, row) != NULL);                                                        \
	loss_count++;
	LOSS_LIST(X)
#undef X
	for (unsigned unit = 0; unit < UNIT_END; unit++) {
		snprintf(row, sizeof(row), "\n| %u | %s |\n", unit,
			 unit ? unit_name(unit) : "none");
		if (!CHECK(strstr(units, row) != NULL))
			CHECK_STR(row, "in LOG.md");
	}
	CHECK_U64(lines_of(blocks), HEAD_LINES + block_count);
	CHECK_U64(lines_of(losses), HEAD_LINES + loss_count);
	CHECK_U64(lines_of(units), HEAD_LINES + UNIT_END);
	free(blocks);
	free(losses);
	free(units);
	free(text);
}

/* Every field that records.def has, in the section of its kind. */
void test_log_document_fields(void)
{
	char *text = document(), *section = strstr(text, "## 10. "), row[96];
	size_t count;
	const struct record *r = records(&count);

	CHECK(section != NULL);
	for (size_t i = 0; section && i < count; i++) {
		char *begin, *end;

		snprintf(row, sizeof(row), "\n### %d %s\n", r[i].kind, kind_word(r[i].kind));
		begin = strstr(section, row);
		if (!begin) {
			CHECK_STR(kind_word(r[i].kind), "in a heading of section 10 of LOG.md");
			continue;
		}
		end = strstr(begin + 1, "\n### ");
		for (size_t k = 0; k < r[i].field_count; k++) {
			const struct field *f = &r[i].fields[k];
			char *found;

			if (f->place == PLACE_BEGIN || f->place == PLACE_END ||
			    f->place == PLACE_NAME)
				continue;
			snprintf(row, sizeof(row), "`%s`", f->name);
			found = strstr(begin, row);
			if (!CHECK(found && (!end || found < end)))
				CHECK_STR(f->name, "in LOG.md");
		}
	}
	free(text);
}
