/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of events with one row each.  It follows RFC 4180, with a header and lines that end in
 * LF.  Its columns are those of sink/columns.h, and `args`, a JSON object of all other arguments
 * (--args lean or full).
 *
 * Text cells are written as convert/base/csv.h defines.
 */
#include "convert/sink/columns.h"
#include "convert/sink/sink.h"
#include "convert/base/csv.h"
#include "schemas/base/json_text.h"

#include <math.h>

enum { CELL_CEILING = 256 << 20 };

struct csv {
	struct sink base;
	struct column_args args;
	struct buf cell; /* scratch: the arguments */
};

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
			if (isfinite(cell->f64))
				json_put_f64(&s->lines, cell->f64);
			else /* words that readers of numbers accept */
				buf_put_text(&s->lines, isnan(cell->f64) ? "nan"
							: cell->f64 > 0  ? "inf"
									 : "-inf");
			break;
		case CELL_WORD:
			buf_put(&s->lines, cell->text, cell->len);
			break;
		case CELL_TEXT:
			csv_put_text(&s->lines, cell->text, cell->len);
		}
		buf_put_byte(&s->lines, ',');
	}
	TRY(column_args_put(&c->args, e, "{", ", ", &c->cell, err));
	if (c->cell.len)
		buf_put_byte(&c->cell, '}');
	TRY(buf_status(&c->cell, err));
	csv_put_text(&s->lines, buf_text(&c->cell), c->cell.len);
	buf_clear(&c->cell);
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
	.help = "one row for each event, args as JSON; text that a spreadsheet would execute is "
		"prefixed with '",
	.scope = SINK_WHOLE,
	.size = sizeof(struct csv),
	.open = csv_open,
	.put_event = put_event,
	.release = csv_release,
};
