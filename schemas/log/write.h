/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.h - writes the tables of a log; only tables.c and put_rows.c use it.
 */
#pragma once

#include "schemas/base/buf.h"
#include "schemas/log/row.h"
#include "schemas/log/tables.h"
#include "schemas/model/intern.h"

/* The tables of a file in the order in which a reader needs them. */
enum {
	T_NAMES,
	T_META,
	T_KEYS,
	T_SCHEMAS,
	T_PROCESSES,
	T_DEVICES,
	T_TRACKS,
	T_FIELDS,
	T_DESCS,
	T_WINDOWS,
	T_ANCHORS,
	T_LOSSES,
	TABLES,
};

/* A row of FIELDS (a kind and the keys of its argument values) or of KEYS (those of const args). */
struct keys_row {
	const struct attr *keys; /* bits unused */
	uint32_t count;
	uint8_t kind; /* KEYS: 0 */
};
/* The rows of a table that are in the file. */
struct written {
	uint32_t rows;
	uint32_t *crcs; /* CRC of each row, if rows may change; otherwise NULL */
	size_t crc_cap;
};
struct log_mark {
	const struct trace *trace;
	struct arena arena;
	struct intern layouts, lists;
	struct written written[TABLES];
	uint16_t *desc_layouts; /* by event descriptor; 0: none yet */
	size_t desc_cap;
	uint32_t *schema_lists; /* by argument schema; 0: it has no const args */
	size_t schema_cap;
	uint32_t schemas_done;
	size_t ceiling;
	/* The block that is being filled. */
	struct buf payload, row;
	uint32_t first_id, rows;
	struct event_desc desc_before;
};

/* The writer of a row of each table. */
struct log_row_writer {
	void (*put)(struct log_mark *m, uint32_t id);
	const struct row_member
		*members; /* instead of `put`, for a row that is a struct of the trace */
	uint16_t kind;    /* enum log_block_kind */
	uint8_t of_trace; /* enum trace_table: table of the trace with as many rows */
	bool may_change;  /* a row that was written may have to be written again */
};
extern const struct log_row_writer log_row_writers[TABLES];
/* Appends a block of a table to `out`. */
void log_put_table_block(const struct buf *payload, unsigned kind, unsigned flags, uint32_t rows,
			 struct buf *out);
/* Appends row `id` of a table to m->row. */
void log_put_row(struct log_mark *m, unsigned table, uint32_t id);
