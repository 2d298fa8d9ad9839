/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/sqlite/tables.h"

#include <stdio.h>
#include <string.h>

enum { STATEMENT_BYTES = 512 };

/*
 * Times are ns since the Unix epoch, or since what the input counts from (meta.epoch_known 0).
 * `timeline` is what most questions begin with: events with names, tracks and processes in words.
 */
static const struct {
	const char *name, *columns;
	int count;
} tables[SQLITE_TABLE_COUNT] = {
	/* key: tool, input, whole (the input was closed properly), synthetic, epoch_known */
	[SQLITE_META] = { "meta", "key TEXT, value", 2 },
	/* every text that events and tracks point to; bad UTF-8 is U+FFFD */
	[SQLITE_NAMES] = { "names", "id INTEGER PRIMARY KEY, text TEXT", 2 },
	/* rank NULL, world_size NULL: unknown; attrs: JSON of what else is known of it */
	[SQLITE_PROCESSES] = { "processes",
			       "id INTEGER PRIMARY KEY, host TEXT, pid INTEGER, rank INTEGER, "
			       "world_size INTEGER, command TEXT, attrs TEXT",
			       7 },
	/* ordinal: CUDA's number of the GPU in that process */
	[SQLITE_DEVICES] = { "devices",
			     "id INTEGER PRIMARY KEY, process INTEGER, ordinal INTEGER, "
			     "name TEXT, attrs TEXT",
			     5 },
	/* home: stream, thread, pool, counter; number: id of the stream or thread */
	[SQLITE_TRACKS] = { "tracks",
			    "id INTEGER PRIMARY KEY, process INTEGER, home TEXT, name INTEGER, "
			    "device INTEGER, context INTEGER, number INTEGER",
			    7 },
	/* arguments that many events share, one JSON object */
	[SQLITE_SCHEMAS] = { "shapes", "id INTEGER PRIMARY KEY, args TEXT", 2 },
	/* stretches that were recorded */
	[SQLITE_WINDOWS] = { "windows",
			     "process INTEGER, asked TEXT, begin_ns INTEGER, end_ns INTEGER, "
			     "own_ns INTEGER, cut_short INTEGER",
			     6 },
	/* in order of time; correlation joins work on a GPU to its call, within a process;
	 * bytes: of copies, fills, memory; address: of memory; value: of a counter; result: of a
	 * call; number: of a step, a range's sequence number, a flow's id; state: began_earlier,
	 * never_ended; args: JSON of this event alone, beside those of its shape */
	[SQLITE_EVENTS] = { "events",
			    "id INTEGER PRIMARY KEY, begin_ns INTEGER, dur_ns INTEGER, kind TEXT, "
			    "class TEXT, name INTEGER, track INTEGER, correlation INTEGER, "
			    "bytes INTEGER, address INTEGER, value REAL, result INTEGER, "
			    "number INTEGER, state TEXT, shape INTEGER, args TEXT",
			    16 },
	/* what is missing and why; process NULL: of the input as a whole */
	[SQLITE_LOSSES] = { "losses", "process INTEGER, reason TEXT, count INTEGER", 3 },
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

static enum status broken(struct sqlite_tables *t, struct error *err)
{
	int code = t->db ? sqlite3_errcode(t->db) : SQLITE_NOMEM;

	return fail(err, code == SQLITE_NOMEM ? ST_MEMORY : ST_IO, NOWHERE,
		    "the database cannot be written: %s",
		    t->db ? sqlite3_errmsg(t->db) : "out of memory");
}

static enum status run(struct sqlite_tables *t, const char *sql, struct error *err)
{
	return sqlite3_exec(t->db, sql, NULL, NULL, NULL) == SQLITE_OK ? ST_OK : broken(t, err);
}

static enum status make_table(struct sqlite_tables *t, int i, struct error *err)
{
	char sql[STATEMENT_BYTES];
	int len;

	snprintf(sql, sizeof(sql), "CREATE TABLE %s(%s)", tables[i].name, tables[i].columns);
	TRY(run(t, sql, err));
	len = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?", tables[i].name);
	for (int c = 1; c < tables[i].count; c++)
		len += snprintf(sql + len, sizeof(sql) - (size_t)len, ",?");
	snprintf(sql + len, sizeof(sql) - (size_t)len, ")");
	if (sqlite3_prepare_v3(t->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &t->inserts[i], NULL) !=
	    SQLITE_OK)
		return broken(t, err);
	return ST_OK;
}

enum status sqlite_begin(struct sqlite_tables *t, const char *path, struct error *err)
{
	*t = (struct sqlite_tables){ 0 };
	if (sqlite3_open_v2(path, &t->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
	    SQLITE_OK)
		return broken(t, err);
	/* nobody but us has the file, and without a whole one there is none: no journal */
	TRY(run(t,
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
		"PRAGMA page_size=8192; PRAGMA cache_size=-4096; PRAGMA user_version=1; BEGIN",
		err));
	for (int i = 0; i < SQLITE_TABLE_COUNT; i++)
		TRY(make_table(t, i, err));
	return ST_OK;
}

enum status sqlite_put_row(struct sqlite_tables *t, enum sqlite_table table, struct error *err)
{
	sqlite3_stmt *s = t->inserts[table];

	if (sqlite3_step(s) != SQLITE_DONE)
		return broken(t, err);
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return ST_OK;
}

enum status sqlite_finish(struct sqlite_tables *t, struct error *err)
{
	sqlite3 *db = t->db;

	TRY(run(t, at_end, err));
	for (int i = 0; i < SQLITE_TABLE_COUNT; i++)
		sqlite3_finalize(t->inserts[i]);
	memset(t->inserts, 0, sizeof(t->inserts));
	if (sqlite3_close(db) != SQLITE_OK)
		return broken(t, err);
	t->db = NULL;
	return ST_OK;
}

void sqlite_release(struct sqlite_tables *t)
{
	for (int i = 0; i < SQLITE_TABLE_COUNT; i++)
		sqlite3_finalize(t->inserts[i]);
	sqlite3_close(t->db);
	*t = (struct sqlite_tables){ 0 };
}
