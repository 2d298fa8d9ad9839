/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - one Parquet file: rows of a table, column by column, in groups of rows.
 *
 *	PAR1  [dictionary page] data page ... for each column, for each group  footer  length  PAR1
 *
 * It holds one group in memory.  The caller chooses where bytes go, so that two files can be made
 * at once.  Nothing is compressed, but dictionaries hold texts and references, which repeat.
 */
#pragma once

#include "convert/sink/data_tables.h"
#include "schemas/base/map.h"

enum {
	PARQUET_GROUP_ROWS = 1 << 16,
	PARQUET_GROUP_BYTES = 8 << 20, /* or fewer rows, where a group has so many bytes */
};

struct parquet_column {          /* of the group that is being filled */
	uint32_t values;         /* that are not NULL */
	struct buf defined;      /* a bit for each row */
	struct buf plain;        /* values; of a dictionary's column the distinct ones */
	struct buf places;       /* uint32_t: of a value, in the dictionary */
	struct buf begins;       /* uint32_t: of a distinct value, in `plain` */
	struct hash_index index; /* of distinct values */
};

struct parquet_chunk {         /* of the footer */
	int64_t dictionary_at; /* 0: none */
	int64_t data_at, size, values;
};

struct parquet {
	const struct data_table *table;
	void *self;
	enum status (*write)(void *self, const void *bytes, size_t len, struct error *err);
	size_t width;
	struct parquet_column columns[TABLE_COLUMNS_MOST];
	uint32_t rows;                /* of the group */
	uint64_t all_rows, at;        /* of the file; bytes of it so far */
	struct parquet_chunk *chunks; /* width for each group */
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
