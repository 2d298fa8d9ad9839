/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_write.h - the writing half of a log's tables, between log_tables.c and log_put_rows.c.
 */
#ifndef SCHEMAS_LOG_WRITE_H
#define SCHEMAS_LOG_WRITE_H

#include "schemas/buf.h"
#include "schemas/log_row.h"
#include "schemas/log_tables.h"
#include "schemas/trace_table.h"

/* Tables of a file in the order in which a reader needs them. */
enum {
	T_NAMES, T_META, T_KEYS, T_SHAPES, T_PROCESSES, T_DEVICES, T_TRACKS, T_FIELDS, T_SITES,
	T_WINDOWS, T_ANCHORS, T_LOSSES, TABLES,
};

/* A row of FIELDS (a kind and its varying keys) or of KEYS (the fixed keys of a shape). */
struct keys_row {
	const struct attr *keys; /* bits unused */
	uint32_t count;
	uint8_t kind; /* KEYS: 0 */
};
struct written {
	uint32_t rows;
	uint32_t *crcs; /* of rows that may change; NULL: none may */
	uint32_t room;
};
struct log_mark {
	const struct trace *trace;
	struct arena arena;
	struct table layouts, lists;
	struct written written[TABLES];
	uint16_t *site_layouts; /* by site, 0: not asked yet */
	uint32_t *shape_lists;  /* by shape, 0: none, UINT32_MAX: not asked yet */
	uint32_t site_room, shape_room, shapes_seen;
	size_t ceiling;
	/* The block being filled. */
	struct buf payload, row;
	uint32_t first_id, rows;
	struct site site_before;
};

/* How a row of each table gets into mark->row: not at all where there is nothing to say. */
struct log_row_writer {
	void (*put)(struct log_mark *m, uint32_t id);
	uint16_t kind;   /* of its blocks */
	bool may_change; /* a row that was written may have to be written again */
};
extern const struct log_row_writer log_row_writers[TABLES];

#endif
