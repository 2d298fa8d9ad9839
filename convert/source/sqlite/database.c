/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/sqlite/database.h"

#include "convert/input/input.h"

#include <stdio.h>
#include <string.h>

enum {
	ROW_BYTES_LEAST = 4, /* least bytes of a cell and its pointer */
	VERSION_AT = 18,
	VERSION_BYTES = 2, /* format in the file's header: 1 journal, 2 write-ahead log */
	CACHE_KIB = 4096,
	/* Instructions of SQLite between two calls of probe(); least limit of calls; and
	 * instructions allowed per byte of the file, of which real exports need less than one. */
	PROBE = 10000,
	PROBES_LEAST = 100,
	OPS_A_BYTE = 40,
};

/* ---- a file system with one file, to be read ---- */

struct database_file {
	sqlite3_file base;
	const struct input *in;
};

static int file_close(sqlite3_file *f)
{
	return SQLITE_OK;
}

static int file_read(sqlite3_file *f, void *bytes, int len, sqlite3_int64 at)
{
	const struct input *in = ((struct database_file *)f)->in;
	size_t got = 0;

	/* A truncated compressed file ends where its error is. */
	input_read_at(in, (uint64_t)at, bytes, (size_t)len, &got, NULL);
	/* A write-ahead log is not accessible here, so the header is changed to say "journal". */
	for (sqlite3_int64 i = VERSION_AT; i < VERSION_AT + VERSION_BYTES; i++)
		if (i >= at && i - at < (sqlite3_int64)got && ((uint8_t *)bytes)[i - at] == 2)
			((uint8_t *)bytes)[i - at] = 1;
	if (got == (size_t)len)
		return SQLITE_OK;
	memset((uint8_t *)bytes + got, 0, (size_t)len - got);
	return SQLITE_IOERR_SHORT_READ;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
	*size = (sqlite3_int64)input_size(((struct database_file *)f)->in);
	return SQLITE_OK;
}

static int file_control(sqlite3_file *f, int what, void *arg)
{
	return SQLITE_NOTFOUND;
}

static int file_traits(sqlite3_file *f)
{
	return SQLITE_IOCAP_IMMUTABLE;
}

/* SQLite neither locks nor writes an immutable file, so it calls none of the other methods. */
static const sqlite3_io_methods file_methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xFileSize = file_size,
	.xFileControl = file_control,
	.xDeviceCharacteristics = file_traits,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
	f->pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	*(struct database_file *)f = (struct database_file){ { &file_methods }, vfs->pAppData };
	if (out_flags)
		*out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
	return SQLITE_OK;
}

static int vfs_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	snprintf(out, (size_t)size, "%s", name);
	return SQLITE_OK;
}

/* ---- the database ---- */

static void settle(struct database *d)
{
	char sql[64];

	sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, DATABASE_VALUE_BYTES);
	sqlite3_limit(d->db, SQLITE_LIMIT_ATTACHED, 0);
	snprintf(sql, sizeof(sql), "PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY", CACHE_KIB);
	sqlite3_exec(d->db, sql, NULL, NULL, NULL);
}

/* Interrupts SQLite: a damaged tree may appear to have billions of rows, and a statement may never
 * end. */
static int probe(void *self)
{
	struct database *d = self;

	d->is_endless = d->is_endless || ++d->probes > d->probes_max;
	return d->is_endless;
}

enum status database_open(struct database *d, struct input *in, struct error *err)
{
	int64_t tables = 0;

	*d = (struct database){ .rows_max = input_size(in) / ROW_BYTES_LEAST,
				.vfs = *sqlite3_vfs_find(NULL) };
	snprintf(d->vfs_name, sizeof(d->vfs_name), "tacho-%p", (void *)d);
	d->vfs.zName = d->vfs_name;
	d->vfs.szOsFile = sizeof(struct database_file);
	d->vfs.pAppData = in;
	d->vfs.xOpen = vfs_open;
	d->vfs.xFullPathname = vfs_path;
	if (sqlite3_vfs_register(&d->vfs, 0) != SQLITE_OK)
		return fail_memory(err);
	if (sqlite3_open_v2("export", &d->db, SQLITE_OPEN_READONLY, d->vfs_name) != SQLITE_OK)
		return database_fault(d, "cannot be opened", err);
	settle(d);
	d->probes_max = PROBES_LEAST + input_size(in) * OPS_A_BYTE / PROBE;
	sqlite3_progress_handler(d->db, PROBE, probe, d);
	if (!database_number(d, "SELECT sum(1) FROM sqlite_master", &tables))
		return database_fault(d, "its list of tables cannot be read", err);
	return ST_OK;
}

void database_close(struct database *d)
{
	if (!d->vfs_name[0])
		return;
	sqlite3_close(d->db);
	sqlite3_vfs_unregister(&d->vfs);
	*d = (struct database){ 0 };
}

enum status database_fault(const struct database *d, const char *what, struct error *err)
{
	int code = sqlite3_errcode(d->db) & 0xff;
	enum status status = code == SQLITE_NOMEM ? ST_MEMORY : ST_FORMAT;

	return fail(err, status, NOWHERE, "a SQLite database of which %s: %s", what,
		    sqlite3_errmsg(d->db));
}

sqlite3_stmt *database_ask(struct database *d, const char *sql)
{
	sqlite3_stmt *s = NULL;

	sqlite3_prepare_v2(d->db, sql, -1, &s, NULL); /* stays NULL after an error */
	return s;
}

bool database_number(struct database *d, const char *sql, int64_t *out)
{
	sqlite3_stmt *s = database_ask(d, sql);
	bool found = database_row(s) && sqlite3_column_type(s, 0) == SQLITE_INTEGER;

	if (found)
		*out = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return found;
}

bool database_has(struct database *d, const char *table)
{
	sqlite3_stmt *s = database_ask(d, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND "
					  "rootpage > 0 AND name = ?1");
	bool found;

	sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
	found = database_row(s);
	sqlite3_finalize(s);
	return found;
}
