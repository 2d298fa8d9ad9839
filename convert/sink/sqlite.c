/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite database with the tables and views of data_tables.h, so that sqlite3, DuckDB or pandas
 * can answer other questions:
 *
 *	SELECT name, count(*), sum(dur_ns) FROM timeline WHERE kind = 'kernel' GROUP BY name
 *	ORDER BY 3 DESC LIMIT 10;
 *
 * All rows are written in one transaction without a journal into the output's temporary file.  It
 * needs the memory of SQLite's page cache, and as much again while an index is sorted.  Standard
 * output, which cannot seek, gets a copy of a scratch file.  `SELECT * FROM description` documents
 * tables and columns.
 */
#include "convert/base/temporary.h"
#include "convert/output/output.h"
#include "convert/sink/sink.h"
#include "convert/sink/data_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_CEILING = 256 << 20, COPY_BYTES = 16 * 1024 };

static const char indexes[] =
	"CREATE INDEX events_name ON events(name);"
	"CREATE INDEX events_track ON events(track, begin_ns);"
	"CREATE INDEX events_time ON events(begin_ns);"
	"CREATE INDEX events_correlation ON events(correlation) WHERE correlation IS NOT NULL;"
	"CREATE INDEX names_text ON names(text);"
	"CREATE INDEX steps_time ON steps(process, begin_ns);"
	"CREATE INDEX phases_time ON phases(process, begin_ns);";

struct database {
	struct sink base;
	sqlite3 *db;
	struct data_tables tables;
	sqlite3_stmt *inserts[TABLE_COUNT];
	char *scratch;   /* NULL: the output's own file is written directly */
	struct buf text; /* scratch */
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

static enum status make_table(struct database *d, const struct data_table *t, sqlite3_stmt **insert,
			      struct error *err)
{
	static const char *const types[] = { [TABLE_KEY] = " INTEGER PRIMARY KEY",
					     [TABLE_INTEGER] = " INTEGER",
					     [TABLE_REAL] = " REAL",
					     [TABLE_TEXT] = " TEXT",
					     [TABLE_ANY] = "" };
	size_t width = data_table_width(t);
	struct buf *b = &d->text;

	buf_clear(b);
	buf_putf(b, "CREATE TABLE %s(", t->name);
	for (size_t i = 0; i < width; i++) {
		const struct data_column *c = &t->columns[i];

		buf_putf(b, "%s%s%s", i ? ", " : "", c->name, types[c->type]);
		if (c->refers)
			buf_putf(b, " REFERENCES %s(id)", c->refers);
	}
	buf_put_text(b, ")");
	TRY(run(d, buf_text(b), err));
	buf_clear(b);
	buf_putf(b, "INSERT INTO %s VALUES(?", t->name);
	for (size_t i = 1; i < width; i++)
		buf_put_text(b, ",?");
	buf_put_text(b, ")");
	return sqlite3_prepare_v3(d->db, buf_text(b), -1, SQLITE_PREPARE_PERSISTENT, insert,
				  NULL) == SQLITE_OK
		       ? ST_OK
		       : broken(d, err);
}

static enum status put_row(void *self, enum data_table_id table, const struct cell *cells,
			   struct error *err)
{
	struct database *d = self;
	sqlite3_stmt *s = d->inserts[table];
	int count = (int)data_table_width(&data_tables[table]);
	const char *text;
	size_t len;

	for (int i = 0; i < count; i++) {
		const struct cell *cell = &cells[i];

		switch (cell->type) {
		case CELL_EMPTY: /* parameters that are not bound are NULL */
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
			text = cell_text(cell, &d->text, &len);
			sqlite3_bind_text(s, i + 1, text, (int)len, SQLITE_TRANSIENT);
		}
	}
	TRY(buf_status(&d->text, err));
	if (sqlite3_step(s) != SQLITE_DONE)
		return broken(d, err);
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return ST_OK;
}

/* ---- the sink ---- */

static enum status database_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	struct database *d = (struct database *)s;
	const char *folder = req->budget->scratch ? req->budget->scratch : "/tmp";
	const char *path = out_own_file(req->out);

	buf_init(&d->text, TEXT_CEILING);
	d->tables = (struct data_tables){
		.trace = req->trace, .context = req->context, .self = d, .put = put_row
	};
	TRY(data_tables_init(&d->tables, err));
	if (!path)
		TRY(temporary_make(&d->scratch, folder, err));
	if (sqlite3_open_v2(path ? path : d->scratch, &d->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
		return broken(d, err);
	/* no journal: no other process uses the file, and an incomplete file is discarded */
	TRY(run(d,
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
		"PRAGMA page_size=8192; PRAGMA cache_size=-4096; PRAGMA user_version=1;"
		"PRAGMA application_id=" SQLITE_OWN_NUMBER "; BEGIN",
		err));
	for (size_t i = 0; i < TABLE_COUNT; i++)
		TRY(make_table(d, &data_tables[i], &d->inserts[i], err));
	for (enum data_table_id i = 0; i < TABLE_EVENTS; i++)
		TRY(data_tables_put_static(&d->tables, i, err));
	return ST_OK;
}

static enum status database_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct database *d = (struct database *)s;

	TRY(data_tables_put_batch(&d->tables, batch, err));
	s->written = d->tables.events;
	return ST_OK;
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

	TRY(data_tables_put_end(&d->tables, err));
	TRY(run(d, indexes, err));
	for (const struct data_view *v = data_views; v->name; v++) {
		buf_clear(&d->text);
		buf_putf(&d->text, "CREATE VIEW %s AS %s", v->name, v->select);
		TRY(run(d, buf_text(&d->text), err));
	}
	TRY(run(d, "COMMIT", err));
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
	data_tables_release(&d->tables);
	buf_release(&d->text);
}

const struct sink_type sink_sqlite = {
	.name = "sqlite",
	.help = "SQLite database: events, steps, launches ...; the table description documents it",
	.scope = SINK_WHOLE,
	.is_binary = true,
	.needs = NEED_STEP,
	.size = sizeof(struct database),
	.open = database_open,
	.put = database_put,
	.close = database_close,
	.release = database_release,
};
