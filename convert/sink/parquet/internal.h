/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - writes one Parquet file: the rows of a table in groups, column by column.
 *
 *	PAR1  [dictionary page] data page ... for each column, for each group  footer  length  PAR1
 *
 * Only one group is in memory.  The caller chooses where bytes go, so that two files can be written
 * at once.  Nothing is compressed, but texts and references, which repeat, are in dictionaries.
 */
#pragma once

#include "convert/sink/data_tables.h"
#include "schemas/base/map.h"

enum {
	PARQUET_GROUP_ROWS = 1 << 16,
	PARQUET_GROUP_BYTES = 8 << 20, /* a group of this size ends even with fewer rows */
};

struct parquet_column {          /* a column of the group that is being filled */
	uint32_t values;         /* number of values that are not NULL */
	struct buf defined;      /* a bit per row: it has a value */
	struct buf plain;        /* encoded values; with a dictionary: the distinct ones */
	struct buf places;       /* uint32_t per value: its place in the dictionary */
	struct buf begins;       /* uint32_t per distinct value: its offset in `plain` */
	struct hash_index index; /* index of the distinct values */
};

struct parquet_chunk {         /* a column of a group, for the footer */
	int64_t dictionary_at; /* file offset; 0: none */
	int64_t data_at, size, values;
};

struct parquet {
	const struct data_table *table;
	void *self;
	enum status (*write)(void *self, const void *bytes, size_t len, struct error *err);
	size_t width;
	struct parquet_column columns[TABLE_COLUMNS_MOST];
	uint32_t rows;                /* rows of the current group */
	uint64_t all_rows, at;        /* rows of the file; bytes written so far */
	struct parquet_chunk *chunks; /* `width` chunks per group */
	uint64_t *group_rows;
	size_t group_count, chunk_cap, group_cap;
	struct buf page, head, text;
};

/* Begins a file. */
enum status parquet_init(struct parquet *p, const struct data_table *table,
			 enum status (*write)(void *self, const void *bytes, size_t len,
					      struct error *err),
			 void *self, struct error *err);
enum status parquet_put(struct parquet *p, const struct cell *cells, struct error *err);
/* Ends the file. */
enum status parquet_end(struct parquet *p, struct error *err);
void parquet_release(struct parquet *p); /* accepts a zeroed one */
