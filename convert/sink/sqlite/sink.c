/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite database with events, names, tracks, processes, devices, argument schemas, windows and
 * losses (sqlite/tables.c), so that sqlite3, DuckDB or pandas answer questions of your own:
 *
 *	SELECT name, count(*), sum(dur_ns) FROM timeline WHERE kind = 'kernel' GROUP BY name
 *	ORDER BY 3 DESC LIMIT 10;
 *
 * One transaction without a journal into the output's temporary file; memory is SQLite's page
 * cache, and as much again while an index is sorted.  Standard output, which cannot seek, gets a
 * copy of a scratch file.
 */
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/sink/columns.h"
#include "convert/sink/sink_list.h"
#include "convert/sink/sqlite/tables.h"
#include "convert/base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_CEILING = 256 << 20, COPY_BYTES = 64 * 1024 };

struct database {
	struct sink base;
	struct trace *trace;
	struct out *out;
	struct sqlite_tables tables;
	char *scratch; /* NULL: the output's own file is written */
	struct buf text;
};

/* ---- rows ---- */

/* Columns are numbered from 1; what is not bound is NULL. */
static void bind_cell(struct database *d, sqlite3_stmt *s, int column, const struct cell *cell)
{
	switch (cell->type) {
	case CELL_EMPTY:
		break;
	case CELL_U64:
	case CELL_I64: /* the same word */
		sqlite3_bind_int64(s, column, cell->i64);
		break;
	case CELL_F64:
		sqlite3_bind_double(s, column, cell->f64);
		break;
	case CELL_WORD:
		sqlite3_bind_text(s, column, cell->text, (int)cell->len, SQLITE_STATIC);
		break;
	case CELL_TEXT:
		buf_clear(&d->text);
		sink_put_utf8(cell->text, cell->len, false, &d->text);
		sqlite3_bind_text(s, column, buf_text(&d->text), (int)d->text.len,
				  SQLITE_TRANSIENT);
	}
}

/* Arguments as JSON.  SQLite borrows d->text until the row is put: they are bound last. */
static void bind_args(struct database *d, sqlite3_stmt *s, int column, const struct attr *attrs,
		      size_t count, const uint64_t *values)
{
	buf_clear(&d->text);
	put_json_attrs(&d->text, d->trace, attrs, count, values);
	if (d->text.len)
		sqlite3_bind_text(s, column, buf_text(&d->text), (int)d->text.len, SQLITE_STATIC);
}

/* A row of cells, and behind them the constant arguments of a schema; schema 0: none. */
static enum status put_row(struct database *d, enum sqlite_table table, const struct cell *cells,
			   int count, uint32_t schema, struct error *err)
{
	const struct arg_schema *row = trace_get_schema(d->trace, schema);
	sqlite3_stmt *s = d->tables.inserts[table];

	for (int i = 0; i < count; i++)
		bind_cell(d, s, i + 1, &cells[i]);
	if (schema)
		bind_args(d, s, count + 1, row->consts, row->const_count, NULL);
	TRY(buf_status(&d->text, err));
	return sqlite_put_row(&d->tables, table, err);
}
#define PUT_ROW(table, schema, ...)                                                                \
	TRY(put_row(d, table, (const struct cell[]){ __VA_ARGS__ },                                \
		    sizeof((const struct cell[]){ __VA_ARGS__ }) / sizeof(struct cell), schema,    \
		    err))

/* Tables that are complete before the first event. */
static enum status put_tables(struct database *d, struct error *err)
{
	const struct trace *t = d->trace;
	const struct provenance *from = trace_provenance(d->trace);

	PUT_ROW(SQLITE_META, 0, cell_word("tool"), cell_word("Tacho " TACHO_VERSION));
	PUT_ROW(SQLITE_META, 0, cell_word("input"),
		{ .type = CELL_TEXT,
		  .text = trace_text(t, from->format, NULL),
		  .len = strlen(trace_text(t, from->format, NULL)) });
	PUT_ROW(SQLITE_META, 0, cell_word("whole"), cell_u64(true, from->is_whole));
	PUT_ROW(SQLITE_META, 0, cell_word("synthetic"), cell_u64(true, from->is_synthetic));
	PUT_ROW(SQLITE_META, 0, cell_word("epoch_known"), cell_u64(true, from->epoch_known));
	for (uint32_t i = 1; i <= trace_count(t, TRACE_NAMES); i++)
		PUT_ROW(SQLITE_NAMES, 0, cell_u64(true, i), cell_name(t, i));
	for (uint32_t i = 1; i <= trace_count(t, TRACE_PROCESSES); i++) {
		const struct process *p = trace_get_process(t, i);

		PUT_ROW(SQLITE_PROCESSES, p->schema, cell_u64(true, i), cell_name(t, p->host),
			cell_u64(true, p->pid), cell_u64(p->rank != NO_RANK, p->rank),
			cell_u64(p->world_size > 0, p->world_size), cell_name(t, p->command));
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_DEVICES); i++) {
		const struct device *v = trace_get_device(t, i);

		PUT_ROW(SQLITE_DEVICES, v->schema, cell_u64(true, i), cell_u64(true, v->process),
			cell_u64(true, v->id), cell_name(t, v->name));
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_TRACKS); i++) {
		const struct track *k = trace_get_track(t, i);

		PUT_ROW(SQLITE_TRACKS, 0, cell_u64(true, i), cell_u64(true, k->process),
			cell_word(track_type_word(k->type)), cell_u64(k->name != 0, k->name),
			cell_u64(k->device != NO_ID, k->device),
			cell_u64(k->context != NO_ID && k->type != TRACK_THREAD, k->context),
			cell_u64(k->type != TRACK_COUNTER, k->id));
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_SCHEMAS); i++)
		PUT_ROW(SQLITE_SCHEMAS, i, cell_u64(true, i));
	for (uint32_t i = 1; i <= trace_count(t, TRACE_WINDOWS); i++) {
		const struct window *w = trace_get_window(t, i);

		PUT_ROW(SQLITE_WINDOWS, 0, cell_u64(true, w->process), cell_name(t, w->spec),
			cell_u64(true, w->begin_ns), cell_u64(w->end_ns > 0, w->end_ns),
			cell_u64(true, w->own_ns), cell_u64(true, w->cut_short));
	}
	return ST_OK;
}

/* Losses are known at the end only; process NULL: of the input as a whole. */
static enum status put_losses(struct database *d, struct error *err)
{
	for (unsigned why = 0; why < LOSS_END; why++) {
		struct cell reason = cell_word(loss_text((enum loss)why));
		uint64_t rest = trace_lost(d->trace, 0, (enum loss)why);

		for (uint32_t i = 1; i <= trace_count(d->trace, TRACE_PROCESSES); i++) {
			uint64_t own = trace_lost(d->trace, i, (enum loss)why);

			rest -= own < rest ? own : rest;
			if (own)
				PUT_ROW(SQLITE_LOSSES, 0, cell_u64(true, i), reason,
					cell_u64(true, own));
		}
		if (rest)
			PUT_ROW(SQLITE_LOSSES, 0, { 0 }, reason, cell_u64(true, rest));
	}
	return ST_OK;
}

/* ---- events ---- */

static enum status put_event(struct database *d, const struct event *e, struct error *err)
{
	/* Columns of the table, and cells for them. */
	static const uint8_t columns[][2] = {
		{ 2, COLUMN_TIME },     { 3, COLUMN_DURATION },    { 4, COLUMN_KIND },
		{ 5, COLUMN_CLASS },    { 8, COLUMN_CORRELATION }, { 9, COLUMN_BYTES },
		{ 10, COLUMN_ADDRESS }, { 11, COLUMN_VALUE },      { 12, COLUMN_RESULT },
		{ 13, COLUMN_NUMBER },  { 14, COLUMN_STATE },
	};
	const struct arg_schema *schema = trace_get_schema(d->trace, e->schema);
	sqlite3_stmt *s = d->tables.inserts[SQLITE_EVENTS];
	struct cell cells[COLUMN_END];

	columns_of_event(d->trace, e, cells);
	sqlite3_bind_int64(s, 1, (sqlite3_int64)++d->base.written);
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		bind_cell(d, s, columns[i][0], &cells[columns[i][1]]);
	if (e->name)
		sqlite3_bind_int64(s, 6, e->name);
	if (e->track)
		sqlite3_bind_int64(s, 7, e->track);
	if (e->schema)
		sqlite3_bind_int64(s, 15, e->schema);
	if (e->args) /* the constant ones stand in the table of schemas */
		bind_args(d, s, 16, schema->args, schema->arg_count, e->args);
	TRY(buf_status(&d->text, err));
	return sqlite_put_row(&d->tables, SQLITE_EVENTS, err);
}

/* ---- the sink ---- */

static void database_free(struct sink *sink)
{
	struct database *d = (struct database *)sink;

	if (!d)
		return;
	sqlite_release(&d->tables);
	temporary_remove(&d->scratch);
	buf_release(&d->text);
	free(d);
}

static enum status database_open(struct sink **out, const struct sink_request *req,
				 struct error *err)
{
	struct database *d = calloc(1, sizeof(*d));
	const char *folder = req->budget->scratch ? req->budget->scratch : "/tmp";
	const char *path = out_own_file(req->out);
	enum status st = ST_OK;

	*out = NULL;
	if (!d)
		return fail_memory(err);
	d->base.type = &sink_sqlite;
	d->trace = req->trace;
	d->out = req->out;
	buf_init(&d->text, TEXT_CEILING);
	if (!path)
		st = temporary_make(&d->scratch, folder, err);
	if (st == ST_OK)
		st = sqlite_begin(&d->tables, path ? path : d->scratch, err);
	if (st == ST_OK)
		st = put_tables(d, err);
	if (st != ST_OK) {
		database_free(&d->base);
		return st;
	}
	*out = &d->base;
	return ST_OK;
}

static enum status database_put(struct sink *sink, const struct batch *batch, struct error *err)
{
	for (size_t i = 0; i < batch->count; i++)
		TRY(put_event((struct database *)sink, &batch->events[i], err));
	return ST_OK;
}

static enum status copy_scratch(struct database *d, struct error *err)
{
	enum status st = ST_OK;
	char *bytes = malloc(COPY_BYTES);
	int fd = open(d->scratch, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	if (!bytes || fd < 0)
		st = fail(err, bytes ? ST_IO : ST_MEMORY, NOWHERE, "cannot read %s", d->scratch);
	while (st == ST_OK && (n = read(fd, bytes, COPY_BYTES)) > 0)
		st = out_write(d->out, bytes, (size_t)n, err);
	if (st == ST_OK && n < 0)
		st = fail(err, ST_IO, NOWHERE, "cannot read %s: %s", d->scratch, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(bytes);
	return st;
}

static enum status database_close(struct sink *sink, struct error *err)
{
	struct database *d = (struct database *)sink;

	TRY(put_losses(d, err));
	TRY(sqlite_finish(&d->tables, err));
	return d->scratch ? copy_scratch(d, err) : ST_OK;
}

const struct sink_type sink_sqlite = {
	.name = "sqlite",
	.help = "SQLite database: events, names, tracks, processes, losses; for sqlite3, DuckDB",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.open = database_open,
	.put = database_put,
	.close = database_close,
	.free = database_free,
};
