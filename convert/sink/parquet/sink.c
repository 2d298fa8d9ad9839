/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of Parquet files, one for each table of data_tables.h, for DuckDB, pandas or Spark:
 *
 *	SELECT n.text, count(*), sum(e.dur_ns) FROM 'events.parquet' e
 *	JOIN 'names.parquet' n ON n.id = e.name WHERE e.kind = 'kernel' GROUP BY 1;
 *
 * Files of the folder are written one after the other.  Rows of events come mixed with those of
 * steps and phases, which wait in scratch files as finished bytes.
 */
#include "convert/output/output.h"
#include "convert/sink/parquet/internal.h"
#include "convert/spool/scratch.h"

#include <stdio.h>

enum { COPY_BYTES = 16 * 1024, NAME_MOST = 64 };

struct folder {
	struct sink base;
	const char *scratch_folder; /* borrowed */
	struct data_tables tables;
	struct parquet files[TABLE_COUNT];
	struct scratch *waiting[TABLE_COUNT]; /* bytes of files that cannot be written yet */
	struct waiter {
		struct folder *folder;
		enum data_table_id table;
	} waiters[TABLE_COUNT];
};

static enum status write_now(void *self, const void *bytes, size_t len, struct error *err)
{
	return out_write(self, bytes, len, err);
}

static enum status write_later(void *self, const void *bytes, size_t len, struct error *err)
{
	const struct waiter *w = self;
	struct scratch **scratch = &w->folder->waiting[w->table];

	if (!*scratch)
		TRY(scratch_open(scratch, w->folder->scratch_folder, err));
	return scratch_write(*scratch, bytes, len, err);
}

static enum status put_row(void *self, enum data_table_id table, const struct cell *cells,
			   struct error *err)
{
	struct folder *f = self;

	return parquet_put(&f->files[table], cells, err);
}

static enum status begin_file(struct folder *f, enum data_table_id table, struct error *err)
{
	char name[NAME_MOST];

	snprintf(name, sizeof(name), "%s.parquet", data_tables[table].name);
	return out_begin(f->base.out, name, err);
}

static enum status begin_table(struct folder *f, enum data_table_id table, struct error *err)
{
	TRY(begin_file(f, table, err));
	return parquet_init(&f->files[table], &data_tables[table], write_now, f->base.out, err);
}

static enum status end_table(struct folder *f, enum data_table_id table, struct error *err)
{
	TRY(parquet_end(&f->files[table], err));
	parquet_release(&f->files[table]);
	return ST_OK;
}

static enum status folder_open(struct sink *s, const struct sink_request *req, struct error *err)
{
	struct folder *f = (struct folder *)s;

	f->scratch_folder = req->budget->scratch;
	f->tables = (struct data_tables){
		.trace = req->trace, .context = req->context, .self = f, .put = put_row
	};
	TRY(data_tables_init(&f->tables, err));
	for (enum data_table_id i = 0; i < TABLE_EVENTS; i++) {
		TRY(begin_table(f, i, err));
		TRY(data_tables_put_static(&f->tables, i, err));
		TRY(end_table(f, i, err));
	}
	for (enum data_table_id i = TABLE_EVENTS + 1; i < TABLE_COUNT; i++) {
		f->waiters[i] = (struct waiter){ f, i };
		TRY(parquet_init(&f->files[i], &data_tables[i], write_later, &f->waiters[i], err));
	}
	return begin_table(f, TABLE_EVENTS, err);
}

static enum status folder_put(struct sink *s, const struct batch *batch, struct error *err)
{
	struct folder *f = (struct folder *)s;

	TRY(data_tables_put_batch(&f->tables, batch, err));
	s->written = f->tables.events;
	return ST_OK;
}

static enum status copy_waiting(struct folder *f, enum data_table_id table, struct error *err)
{
	uint64_t size = scratch_size(f->waiting[table]);
	uint8_t bytes[COPY_BYTES];

	TRY(begin_file(f, table, err));
	for (uint64_t at = 0; at < size; at += sizeof(bytes)) {
		size_t len = size - at < sizeof(bytes) ? (size_t)(size - at) : sizeof(bytes);

		TRY(scratch_read(f->waiting[table], at, bytes, len, err));
		TRY(out_write(f->base.out, bytes, len, err));
	}
	return ST_OK;
}

static enum status folder_close(struct sink *s, struct error *err)
{
	struct folder *f = (struct folder *)s;

	TRY(data_tables_put_end(&f->tables, err));
	for (enum data_table_id i = TABLE_EVENTS; i < TABLE_COUNT; i++) {
		TRY(end_table(f, i, err));
		if (i != TABLE_EVENTS)
			TRY(copy_waiting(f, i, err));
	}
	return ST_OK;
}

static void folder_release(struct sink *s)
{
	struct folder *f = (struct folder *)s;

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		parquet_release(&f->files[i]);
		scratch_close(f->waiting[i]);
	}
	data_tables_release(&f->tables);
}

const struct sink_type sink_parquet = {
	.name = "parquet",
	.help = "a folder of Parquet files, one for each table of sqlite; for DuckDB, pandas, "
		"Spark",
	.scope = SINK_WHOLE,
	.is_folder = true,
	.is_binary = true,
	.file_name = "",
	.needs = NEED_STEP,
	.size = sizeof(struct folder),
	.open = folder_open,
	.put = folder_put,
	.close = folder_close,
	.release = folder_release,
};
