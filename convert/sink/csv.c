/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the events, one row each, RFC 4180 with a header and lines that end in LF:
 *
 *	time_ns,dur_ns,kind,class,name     columns are explained in sink/columns.h
 *	host,rank,pid,thread,device,context,stream
 *	correlation,bytes,address,value,result,number,state
 *	args         a JSON object of what else is known: --args lean or full
 *
 * A cell is quoted where it holds a quote, a comma or a control character.  Texts are UTF-8; what
 * was not is U+FFFD.
 */
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/sink/columns.h"
#include "convert/sink/sink_list.h"
#include "schemas/base/json_text.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_BYTES = 32 * 1024, LINES_CEILING = 256 << 20 };

static const struct {
	const char *name;
	enum column column;
} columns[] = {
	{ "time_ns", COLUMN_TIME },
	{ "dur_ns", COLUMN_DURATION },
	{ "kind", COLUMN_KIND },
	{ "class", COLUMN_CLASS },
	{ "name", COLUMN_NAME },
	{ "host", COLUMN_HOST },
	{ "rank", COLUMN_RANK },
	{ "pid", COLUMN_PID },
	{ "thread", COLUMN_THREAD },
	{ "device", COLUMN_DEVICE },
	{ "context", COLUMN_CONTEXT },
	{ "stream", COLUMN_STREAM },
	{ "correlation", COLUMN_CORRELATION },
	{ "bytes", COLUMN_BYTES },
	{ "address", COLUMN_ADDRESS },
	{ "value", COLUMN_VALUE },
	{ "result", COLUMN_RESULT },
	{ "number", COLUMN_NUMBER },
	{ "state", COLUMN_STATE },
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

struct csv {
	struct sink base;
	struct trace *trace;
	struct out *out;
	struct column_args args;
	struct buf lines, cell; /* cell: scratch */
};

static enum status flush_lines(struct csv *c, size_t over, struct error *err)
{
	TRY(buf_status(&c->lines, err));
	TRY(buf_status(&c->cell, err));
	if (c->lines.len < over)
		return ST_OK;
	TRY(out_write(c->out, c->lines.data, c->lines.len, err));
	buf_clear(&c->lines);
	return ST_OK;
}

static bool needs_quotes(const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] == '"' || text[i] == ',')
			return true;
	return len && (text[0] == ' ' || text[len - 1] == ' ');
}

/* The bytes of c->cell, as a cell. */
static void put_cell(struct csv *c)
{
	const uint8_t *text = c->cell.data;
	size_t len = c->cell.len;

	if (!needs_quotes(text, len)) {
		buf_put(&c->lines, text, len);
	} else {
		buf_put_byte(&c->lines, '"');
		for (size_t i = 0; i < len; i++) {
			if (text[i] == '"')
				buf_put_byte(&c->lines, '"');
			buf_put_byte(&c->lines, text[i]);
		}
		buf_put_byte(&c->lines, '"');
	}
	buf_clear(&c->cell);
}

static enum status put_event(struct csv *c, const struct event *e, struct error *err)
{
	struct cell cells[COLUMN_END];

	columns_of_event(c->trace, e, cells);
	columns_of_track(c->trace, trace_get_track(c->trace, e->track), cells);
	for (size_t i = 0; i < COLUMNS; i++) {
		const struct cell *cell = &cells[columns[i].column];

		switch (cell->type) {
		case CELL_EMPTY:
			break;
		case CELL_U64:
			buf_put_u64_text(&c->lines, cell->u64);
			break;
		case CELL_I64:
			buf_put_i64_text(&c->lines, cell->i64);
			break;
		case CELL_F64:
			json_put_f64(&c->lines, cell->f64);
			break;
		case CELL_WORD:
			buf_put(&c->lines, cell->text, cell->len);
			break;
		case CELL_TEXT:
			sink_put_utf8(cell->text, cell->len, false, &c->cell);
			put_cell(c);
		}
		buf_put_byte(&c->lines, ',');
	}
	TRY(column_args_put(&c->args, e, "{", ", ", &c->cell, err));
	if (c->cell.len)
		buf_put_byte(&c->cell, '}');
	put_cell(c);
	buf_put_byte(&c->lines, '\n');
	return flush_lines(c, LINES_BYTES, err);
}

static void csv_free(struct sink *s)
{
	struct csv *c = (struct csv *)s;

	if (!c)
		return;
	column_args_release(&c->args);
	buf_release(&c->lines);
	buf_release(&c->cell);
	free(c);
}

static enum status csv_open(struct sink **out, const struct sink_request *req, struct error *err)
{
	struct csv *c = calloc(1, sizeof(*c));
	enum status st;

	*out = NULL;
	if (!c)
		return fail_memory(err);
	c->base.type = &sink_csv;
	c->trace = req->trace;
	c->out = req->out;
	buf_init(&c->lines, LINES_CEILING);
	buf_init(&c->cell, LINES_CEILING);
	for (size_t i = 0; i < COLUMNS; i++) {
		buf_put_text(&c->lines, columns[i].name);
		buf_put_byte(&c->lines, ',');
	}
	buf_put_text(&c->lines, "args\n");
	st = column_args_init(&c->args, req->trace, &json_args, req->all_args, err);
	if (st != ST_OK) {
		csv_free(&c->base);
		return st;
	}
	*out = &c->base;
	return ST_OK;
}

static enum status csv_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct csv *c = (struct csv *)s;

	for (size_t i = 0; i < batch->count; i++) {
		TRY(put_event(c, &batch->events[i], err));
		c->base.written++;
	}
	return ST_OK;
}

static enum status csv_close(struct sink *s, struct error *err)
{
	return flush_lines((struct csv *)s, 0, err);
}

const struct sink_type sink_csv = {
	.name = "csv",
	.help = "one row for each event: times in ns, kind, name, process, track, args as JSON",
	.scope = SINK_WHOLE,
	.open = csv_open,
	.put = csv_put,
	.close = csv_close,
	.free = csv_free,
};
