/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the events, one row each, RFC 4180 with a header and lines that end in LF: the columns
 * of sink/columns.h, and `args`, a JSON object of all other arguments (--args lean or full).
 *
 * A cell is quoted where it holds a quote, a comma or a control character.  Texts are UTF-8; what
 * was not is U+FFFD.
 */
#include "convert/sink/columns.h"
#include "convert/sink/sink_list.h"
#include "schemas/base/json_text.h"

#include <string.h>

enum { CELL_CEILING = 256 << 20 };

struct csv {
	struct sink base;
	struct column_args args;
	struct buf cell; /* scratch */
};

/* The bytes of c->cell, as a cell. */
static void put_cell(struct csv *c)
{
	const uint8_t *text = c->cell.data;
	size_t len = c->cell.len;
	bool needs_quotes = len && (text[0] == ' ' || text[len - 1] == ' ');

	for (size_t i = 0; i < len; i++)
		needs_quotes |= text[i] < 0x20 || text[i] == '"' || text[i] == ',';
	if (!needs_quotes)
		buf_put(&c->base.lines, text, len);
	else
		buf_put_byte(&c->base.lines, '"');
	for (size_t i = 0; needs_quotes && i < len; i++) {
		if (text[i] == '"')
			buf_put_byte(&c->base.lines, '"');
		buf_put_byte(&c->base.lines, text[i]);
	}
	if (needs_quotes)
		buf_put_byte(&c->base.lines, '"');
	buf_clear(&c->cell);
}

static enum status put_event(struct sink *s, const struct event *e, struct error *err)
{
	struct csv *c = (struct csv *)s;
	struct cell cells[COLUMN_END];

	columns_of_event(s->trace, e, cells);
	columns_of_track(s->trace, trace_get_track(s->trace, e->track), cells);
	for (size_t i = 0; i < COLUMN_END; i++) {
		const struct cell *cell = &cells[i];

		switch (cell->type) {
		case CELL_EMPTY:
			break;
		case CELL_U64:
			buf_put_u64_text(&s->lines, cell->u64);
			break;
		case CELL_I64:
			buf_put_i64_text(&s->lines, (int64_t)cell->u64);
			break;
		case CELL_F64:
			json_put_f64(&s->lines, cell->f64);
			break;
		case CELL_WORD:
			buf_put(&s->lines, cell->text, cell->len);
			break;
		case CELL_TEXT:
			sink_put_utf8(cell->text, cell->len, false, &c->cell);
			put_cell(c);
		}
		buf_put_byte(&s->lines, ',');
	}
	TRY(column_args_put(&c->args, e, "{", ", ", &c->cell, err));
	if (c->cell.len)
		buf_put_byte(&c->cell, '}');
	TRY(buf_status(&c->cell, err));
	put_cell(c);
	buf_put_byte(&s->lines, '\n');
	s->written++;
	return sink_flush(s, SINK_LINES_BYTES, err);
}

static enum status csv_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	struct csv *c = (struct csv *)s;

	buf_init(&c->cell, CELL_CEILING);
#define X(column, name) buf_put_text(&s->lines, name ",");
	COLUMN_LIST(X)
#undef X
	buf_put_text(&s->lines, "args\n");
	return column_args_init(&c->args, req->trace, &json_args, req->all_args, err);
}

static void csv_release(struct sink *s)
{
	struct csv *c = (struct csv *)s;

	templates_release(&c->args.templates);
	buf_release(&c->cell);
}

const struct sink_type sink_csv = {
	.name = "csv",
	.help = "one row for each event: times in ns, kind, name, process, track, args as JSON",
	.scope = SINK_WHOLE,
	.size = sizeof(struct csv),
	.open = csv_open,
	.put_event = put_event,
	.release = csv_release,
};
