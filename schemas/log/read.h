/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - reads the tables of a log; only translate.c, take_rows.c and saved.c use it.
 */
#pragma once

#include "schemas/base/buf.h"
#include "schemas/log/row.h"
#include "schemas/log/tables.h"
#include "schemas/model/intern.h"

/* Rows by the file's id; row 0 is unused, and rows that were not read are zero. */
struct rows {
	void *at;
	size_t cap;
	uint32_t count, row_bytes;
};
struct file_schema {
	const struct attr *attrs; /* keys and texts are ids of the trace */
	uint32_t count;
	bool came;
};
struct file_keys {
	const struct attr *keys;
	uint32_t count;
};
struct file_track {
	uint32_t to;
	uint64_t launches;
};
struct file_losses {
	uint64_t counts[LOSS_END];
};
struct file_layout {
	struct log_layout layout;
	const struct attr *args; /* layout.arg_count of them */
	struct attr kind_attr;   /* stands for a kind that is unknown here; key 0: it is known */
	bool came;
};
struct log_translation {
	struct trace *trace;
	struct arena arena; /* its ceiling is reduced by the memory of `rows` */
	struct rows names, keys, schemas, processes, tracks, layouts, descs, windows, anchors,
		losses;
	log_change_fn change; /* NULL: descriptors stay unchanged */
	void *change_arg;
	const char *missing;   /* kind of row that a row refers to but that was not read */
	struct log_desc_sums { /* sums of the differences so far in a block of DESCS */
		uint64_t track, name, schema;
	} desc;
	/* A row that comes in parts. */
	struct buf part;
	uint64_t part_total;
	uint32_t part_id;
	uint16_t part_kind;
	/* contents of META and END */
	uint64_t meta, end_events;
	bool ended;
};

/*
 * The reader of a row of each kind of block.  `in` holds only this row if rows begin with their
 * length.  A truncated row sets in->is_truncated, and one that refers to a row that was not read
 * sets x->missing; the caller reports both and does not use the row.
 */
struct log_row_reader {
	enum status (*take)(struct log_translation *x, uint32_t id, struct bytes *in,
			    struct error *err);
	const struct row_member
		*members; /* instead of `take`, for a row that is a struct of the trace */
	size_t rows;      /* offset of its struct rows in the translation; 0: none */
	bool has_length;
};
extern const struct log_row_reader log_row_readers[LOG_BLOCK_KIND_END];

/* Reads a row of a kind that has `members`. */
enum status log_take_struct(struct log_translation *x, unsigned kind, uint32_t id, struct bytes *in,
			    struct error *err);
enum status log_take_saved(struct log_translation *x, uint32_t id, struct bytes *in,
			   struct error *err);

/* Returns NULL for an id beyond the last row. */
void *log_rows_get(const struct rows *r, uint64_t id);
/* Translate a name or process of the file to its id in the trace, or 0 if its row was in a damaged
 * block. */
uint32_t log_name_of(struct log_translation *x, uint64_t id);
uint32_t log_process_of(struct log_translation *x, uint64_t id);
/* Returns the trace's argument schema for const args of the file and the argument values of a
 * layout (may be NULL).  If the layout's kind is unknown, the schema has the kind as an
 * attribute. */
enum status log_schema_of(struct log_translation *x, uint64_t id, const struct file_layout *l,
			  uint32_t *to, struct error *err);
/* Returns zeroed memory that lasts until the translation is freed, or NULL and *err. */
void *log_arena_take(struct log_translation *x, size_t bytes, struct error *err);
