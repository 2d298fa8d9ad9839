/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite database with events, names, tracks, processes, devices, argument schemas, windows and
 * losses, so that sqlite3, DuckDB or pandas answer questions of your own:
 *
 *	SELECT name, count(*), sum(dur_ns) FROM timeline WHERE kind = 'kernel' GROUP BY name
 *	ORDER BY 3 DESC LIMIT 10;
 *
 * One transaction without a journal into the output's temporary file; memory is SQLite's page
 * cache, and as much again while an index is sorted.  Standard output, which cannot seek, gets a
 * copy of a scratch file.  Names of tables and columns are stable: more may be added, none change
 * meaning.
 */
#include "convert/base/temporary.h"
#include "convert/output/output.h"
#include "convert/sink/columns.h"
#include "convert/sink/sink_list.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_CEILING = 256 << 20, COPY_BYTES = 16 * 1024, STATEMENT_BYTES = 512 };

enum table {
	TABLE_META,
	TABLE_NAMES,
	TABLE_PROCESSES,
	TABLE_DEVICES,
	TABLE_TRACKS,
	TABLE_SCHEMAS,
	TABLE_WINDOWS,
	TABLE_EVENTS,
	TABLE_LOSSES,
	TABLE_COUNT,
};

/*
 * Times are ns since the Unix epoch, or since what the input counts from (meta.epoch_known 0).
 * `timeline` is what most questions begin with: events with names, tracks and processes in words.
 */
static const struct {
	const char *name, *columns;
	int count;
} tables[TABLE_COUNT] = {
	/* key: tool, input, whole (the input was closed properly), synthetic, epoch_known */
	[TABLE_META] = { "meta", "key TEXT, value", 2 },
	/* every text that events and tracks point to; bad UTF-8 is U+FFFD */
	[TABLE_NAMES] = { "names", "id INTEGER PRIMARY KEY, text TEXT", 2 },
	/* rank NULL, world_size NULL: unknown; attrs: JSON of what else is known of it */
	[TABLE_PROCESSES] = { "processes",
			      "id INTEGER PRIMARY KEY, host TEXT, pid INTEGER, rank INTEGER, "
			      "world_size INTEGER, command TEXT, attrs TEXT",
			      7 },
	/* ordinal: CUDA's number of the GPU in that process */
	[TABLE_DEVICES] = { "devices",
			    "id INTEGER PRIMARY KEY, process INTEGER, ordinal INTEGER, "
			    "name TEXT, attrs TEXT",
			    5 },
	/* home: stream, thread, pool, counter; number: id of the stream or thread */
	[TABLE_TRACKS] = { "tracks",
			   "id INTEGER PRIMARY KEY, process INTEGER, home TEXT, name INTEGER, "
			   "device INTEGER, context INTEGER, number INTEGER",
			   7 },
	/* arguments that many events share, one JSON object */
	[TABLE_SCHEMAS] = { "shapes", "id INTEGER PRIMARY KEY, args TEXT", 2 },
	/* the time spans that were recorded */
	[TABLE_WINDOWS] = { "windows",
			    "process INTEGER, asked TEXT, begin_ns INTEGER, end_ns INTEGER, "
			    "own_ns INTEGER, cut_short INTEGER",
			    6 },
	/* in order of time; correlation joins work on a GPU to its call, within a process;
	 * bytes: of copies, fills, memory; address: of memory; value: of a counter; result: of a
	 * call; number: of a step, a range's sequence number, a flow's id; state: began_earlier,
	 * never_ended; args: JSON of this event alone, beside those of its schema */
	[TABLE_EVENTS] = { "events",
			   "id INTEGER PRIMARY KEY, begin_ns INTEGER, dur_ns INTEGER, kind TEXT, "
			   "class TEXT, name INTEGER, track INTEGER, correlation INTEGER, "
			   "bytes INTEGER, address INTEGER, value REAL, result INTEGER, "
			   "number INTEGER, state TEXT, shape INTEGER, args TEXT",
			   16 },
	/* what is missing and why; process NULL: of the input as a whole */
	[TABLE_LOSSES] = { "losses", "process INTEGER, reason TEXT, count INTEGER", 3 },
};

static const char at_end[] =
	"CREATE INDEX events_name ON events(name);"
	"CREATE INDEX events_track ON events(track, begin_ns);"
	"CREATE INDEX events_time ON events(begin_ns);"
	"CREATE INDEX events_correlation ON events(correlation) WHERE correlation IS NOT NULL;"
	"CREATE INDEX names_text ON names(text);"
	"CREATE VIEW timeline AS SELECT e.id, e.begin_ns, e.dur_ns, e.kind, e.class,"
	" coalesce(n.text, tn.text, '') AS name, p.host, p.rank, p.pid, k.home, k.device,"
	" k.context, CASE WHEN k.home = 'stream' THEN k.number END AS stream,"
	" CASE WHEN k.home = 'thread' THEN k.number END AS thread, e.correlation, e.bytes,"
	" e.address, e.value, e.result, e.number, e.state, e.args, s.args AS shape_args"
	" FROM events e LEFT JOIN names n ON n.id = e.name LEFT JOIN tracks k ON k.id = e.track"
	" LEFT JOIN names tn ON tn.id = k.name AND k.home = 'counter'"
	" LEFT JOIN processes p ON p.id = k.process LEFT JOIN shapes s ON s.id = e.shape;"
	"COMMIT;";

struct database {
	struct sink base;
	sqlite3 *db;
	sqlite3_stmt *inserts[TABLE_COUNT];
	char *scratch;   /* NULL: the output's own file is written */
	struct buf text; /* scratch, which SQLite borrows until the row is put */
};

static enum status broken(struct database *d, struct error *err)
{
	int code = d->db ? sqlite3_errcode(d->db) : SQLITE_NOMEM;

	return fail(err, code == SQLITE_NOMEM ? ST_MEMORY : ST_IO, NOWHERE,
		    "the database cannot be written: %s",
		    d->db ? sqlite3_errmsg(d->db) : "out of memory");
}

static enum status run(struct database *d, const char *sql, struct error *err)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ? ST_OK : broken(d, err);
}

static enum status make_table(struct database *d, int i, struct error *err)
{
	char sql[STATEMENT_BYTES];
	int len;

	snprintf(sql, sizeof(sql), "CREATE TABLE %s(%s)", tables[i].name, tables[i].columns);
	TRY(run(d, sql, err));
	len = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?", tables[i].name);
	for (int c = 1; c < tables[i].count; c++)
		len += snprintf(sql + len, sizeof(sql) - (size_t)len, ",?");
	snprintf(sql + len, sizeof(sql) - (size_t)len, ")");
	return sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &d->inserts[i],
				  NULL) == SQLITE_OK
		       ? ST_OK
		       : broken(d, err);
}

/* ---- rows ---- */

/* A row of cells and, where it has any, of attributes as JSON behind them. */
static enum status put_row(struct database *d, enum table table, const struct cell *cells,
			   int count, const struct attr *attrs, size_t attr_count,
			   const uint64_t *values, struct error *err)
{
	sqlite3_stmt *s = d->inserts[table];

	for (int i = 0; i < count; i++) {
		const struct cell *cell = &cells[i];

		switch (cell->type) {
		case CELL_EMPTY: /* what is not bound is NULL */
			break;
		case CELL_U64:
		case CELL_I64:
			sqlite3_bind_int64(s, i + 1, (sqlite3_int64)cell->u64);
			break;
		case CELL_F64:
			sqlite3_bind_double(s, i + 1, cell->f64);
			break;
		case CELL_WORD:
			sqlite3_bind_text(s, i + 1, cell->text, (int)cell->len, SQLITE_STATIC);
			break;
		case CELL_TEXT:
			buf_clear(&d->text);
			sink_put_utf8(cell->text, cell->len, false, &d->text);
			sqlite3_bind_text(s, i + 1, buf_text(&d->text), (int)d->text.len,
					  SQLITE_TRANSIENT);
		}
	}
	if (attr_count) {
		buf_clear(&d->text);
		put_json_attrs(&d->text, d->base.trace, attrs, attr_count, values);
		sqlite3_bind_text(s, count + 1, buf_text(&d->text), (int)d->text.len,
				  SQLITE_STATIC);
	}
	TRY(buf_status(&d->text, err));
	if (sqlite3_step(s) != SQLITE_DONE)
		return broken(d, err);
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return ST_OK;
}

/* A row with the constant arguments of a schema; schema 0: none. */
#define PUT_ROW(table, schema, ...)                                                                \
	TRY(put_row(d, table, (const struct cell[]){ __VA_ARGS__ },                                \
		    sizeof((const struct cell[]){ __VA_ARGS__ }) / sizeof(struct cell),            \
		    trace_get_schema(d->base.trace, schema)->consts,                               \
		    trace_get_schema(d->base.trace, schema)->const_count, NULL, err))

/* Tables that are complete before the first event. */
static enum status put_tables(struct database *d, struct error *err)
{
	const struct trace *t = d->base.trace;
	const struct provenance *from = trace_provenance(d->base.trace);

	PUT_ROW(TABLE_META, 0, cell_word("tool"), cell_word("Tacho " TACHO_VERSION));
	PUT_ROW(TABLE_META, 0, cell_word("input"),
		{ .type = CELL_TEXT,
		  .text = trace_text(t, from->format, NULL),
		  .len = strlen(trace_text(t, from->format, NULL)) });
	PUT_ROW(TABLE_META, 0, cell_word("whole"), cell_u64(true, from->is_whole));
	PUT_ROW(TABLE_META, 0, cell_word("synthetic"), cell_u64(true, from->is_synthetic));
	PUT_ROW(TABLE_META, 0, cell_word("epoch_known"), cell_u64(true, from->epoch_known));
	for (uint32_t i = 1; i <= trace_count(t, TRACE_NAMES); i++)
		PUT_ROW(TABLE_NAMES, 0, cell_u64(true, i), cell_name(t, i));
	for (uint32_t i = 1; i <= trace_count(t, TRACE_PROCESSES); i++) {
		const struct process *p = trace_get_process(t, i);

		PUT_ROW(TABLE_PROCESSES, p->schema, cell_u64(true, i), cell_name(t, p->host),
			cell_u64(true, p->pid), cell_u64(p->rank != NO_RANK, p->rank),
			cell_u64(p->world_size > 0, p->world_size), cell_name(t, p->command));
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_DEVICES); i++) {
		const struct device *v = trace_get_device(t, i);

		PUT_ROW(TABLE_DEVICES, v->schema, cell_u64(true, i), cell_u64(true, v->process),
			cell_u64(true, v->id), cell_name(t, v->name));
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_TRACKS); i++) {
		const struct track *k = trace_get_track(t, i);

		PUT_ROW(TABLE_TRACKS, 0, cell_u64(true, i), cell_u64(true, k->process),
			cell_word(track_type_word(k->type)), cell_u64(k->name != 0, k->name),
			cell_u64(k->device != NO_ID, k->device),
			cell_u64(k->context != NO_ID && k->type != TRACK_THREAD, k->context),
			cell_u64(k->type != TRACK_COUNTER, k->id));
	}
	for (uint32_t i = 1; i <= trace_count(t, TRACE_SCHEMAS); i++)
		PUT_ROW(TABLE_SCHEMAS, i, cell_u64(true, i));
	for (uint32_t i = 1; i <= trace_count(t, TRACE_WINDOWS); i++) {
		const struct window *w = trace_get_window(t, i);

		PUT_ROW(TABLE_WINDOWS, 0, cell_u64(true, w->process), cell_name(t, w->spec),
			cell_u64(true, w->begin_ns), cell_u64(w->end_ns > 0, w->end_ns),
			cell_u64(true, w->own_ns), cell_u64(true, w->cut_short));
	}
	return ST_OK;
}

/* Losses are final at the end only; process NULL: of the input as a whole. */
static enum status put_losses(struct database *d, struct error *err)
{
	for (unsigned why = 0; why < LOSS_END; why++) {
		struct cell reason = cell_word(loss_text((enum loss)why));
		uint64_t rest = trace_lost(d->base.trace, 0, (enum loss)why);

		for (uint32_t i = 1; i <= trace_count(d->base.trace, TRACE_PROCESSES); i++) {
			uint64_t own = trace_lost(d->base.trace, i, (enum loss)why);

			rest -= own < rest ? own : rest;
			if (own)
				PUT_ROW(TABLE_LOSSES, 0, cell_u64(true, i), reason,
					cell_u64(true, own));
		}
		if (rest)
			PUT_ROW(TABLE_LOSSES, 0, { 0 }, reason, cell_u64(true, rest));
	}
	return ST_OK;
}

static enum status put_event(struct sink *s, const struct event *e, struct error *err)
{
	struct database *d = (struct database *)s;
	const struct arg_schema *schema = trace_get_schema(s->trace, e->schema);
	struct cell of[COLUMN_END];

	columns_of_event(s->trace, e, of);
	const struct cell cells[] = {
		cell_u64(true, ++s->written),
		of[COLUMN_TIME],
		of[COLUMN_DURATION],
		of[COLUMN_KIND],
		of[COLUMN_CLASS],
		cell_u64(e->name, e->name),
		cell_u64(e->track, e->track),
		of[COLUMN_CORRELATION],
		of[COLUMN_BYTES],
		of[COLUMN_ADDRESS],
		of[COLUMN_VALUE],
		of[COLUMN_RESULT],
		of[COLUMN_NUMBER],
		of[COLUMN_STATE],
		cell_u64(e->schema, e->schema),
	};

	/* The constant arguments stand in the table of schemas. */
	return put_row(d, TABLE_EVENTS, cells, sizeof(cells) / sizeof(*cells), schema->args,
		       e->args ? schema->arg_count : 0, e->args, err);
}

/* ---- the sink ---- */

static enum status database_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	struct database *d = (struct database *)s;
	const char *folder = req->budget->scratch ? req->budget->scratch : "/tmp";
	const char *path = out_own_file(req->out);

	buf_init(&d->text, TEXT_CEILING);
	if (!path)
		TRY(temporary_make(&d->scratch, folder, err));
	if (sqlite3_open_v2(path ? path : d->scratch, &d->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
		return broken(d, err);
	/* nobody but us has the file, and without a whole one there is none: no journal */
	TRY(run(d,
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
		"PRAGMA page_size=8192; PRAGMA cache_size=-4096; PRAGMA user_version=1; BEGIN",
		err));
	for (int i = 0; i < TABLE_COUNT; i++)
		TRY(make_table(d, i, err));
	return put_tables(d, err);
}

static enum status copy_scratch(struct database *d, struct error *err)
{
	uint8_t bytes[COPY_BYTES];
	int fd = open(d->scratch, O_RDONLY | O_CLOEXEC);
	enum status status = ST_OK;
	ssize_t n = -1;

	while (fd >= 0 && status == ST_OK && (n = read(fd, bytes, sizeof(bytes))) > 0)
		status = out_write(d->base.out, bytes, (size_t)n, err);
	if (n < 0)
		status = fail(err, ST_IO, NOWHERE, "cannot read %s: %s", d->scratch,
			      strerror(errno));
	if (fd >= 0)
		close(fd);
	return status;
}

static enum status database_close(struct sink *s, struct error *err)
{
	struct database *d = (struct database *)s;

	TRY(put_losses(d, err));
	TRY(run(d, at_end, err));
	for (int i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(d->inserts[i]);
	memset(d->inserts, 0, sizeof(d->inserts));
	if (sqlite3_close(d->db) != SQLITE_OK)
		return broken(d, err);
	d->db = NULL;
	return d->scratch ? copy_scratch(d, err) : ST_OK;
}

static void database_release(struct sink *s)
{
	struct database *d = (struct database *)s;

	for (int i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(d->inserts[i]);
	sqlite3_close(d->db);
	temporary_remove(&d->scratch);
	buf_release(&d->text);
}

const struct sink_type sink_sqlite = {
	.name = "sqlite",
	.help = "SQLite database: events, names, tracks, processes, losses; for sqlite3, DuckDB",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.size = sizeof(struct database),
	.open = database_open,
	.put_event = put_event,
	.close = database_close,
	.release = database_release,
};
