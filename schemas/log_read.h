/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_read.h - the reading half of a log's tables, between log_translate.c and log_take_*.c.
 */
#ifndef SCHEMAS_LOG_READ_H
#define SCHEMAS_LOG_READ_H

#include "schemas/buf.h"
#include "schemas/log_row.h"
#include "schemas/log_tables.h"
#include "schemas/trace_table.h"

/* Rows by the file's id, [0] unused; rows that did not come are zero. */
struct rows {
	void *at;
	uint32_t count, room;
	uint32_t row_bytes;
};
struct file_shape {
	const struct attr *attrs; /* keys and texts are the run's */
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
	const struct attr *vary; /* layout.vary_count */
	struct attr kind_attr;   /* key 0: the kind is known */
	bool came;
};
struct log_translation {
	struct trace *trace;
	struct arena arena; /* rows are taken off its ceiling */
	struct rows names, keys, shapes, processes, tracks, layouts, sites, windows, anchors, losses;
	const char *missing; /* what a row names that did not come */
	struct log_site_deltas { /* sums so far in a block of SITES */
		uint64_t track, name, shape;
	} site;
	/* A row that comes in pieces. */
	struct buf part;
	uint64_t part_total;
	uint32_t part_id;
	uint16_t part_kind;
	/* META, END */
	uint64_t meta, end_events;
	bool ended;
};

/*
 * How a row of each kind of block is read: from `in`, which is the row alone where rows begin with
 * their length.  A row that is cut off leaves in->cut, one that names what did not come leaves
 * x->missing; both are told by the caller, and the row does not hold.
 */
struct log_row_reader {
	enum status (*take)(struct log_translation *x, uint32_t id, struct bytes *in,
			    struct error *err);
	size_t rows; /* offset of its struct rows in the translation; 0: has none */
	bool has_length;
};
extern const struct log_row_reader log_row_readers[LOG_BLOCK_KIND_END];

enum status log_take_layout(struct log_translation *x, uint32_t id, struct bytes *in,
			    struct error *err);
enum status log_take_site(struct log_translation *x, uint32_t id, struct bytes *in,
			  struct error *err);

enum status log_take_saved(struct log_translation *x, uint32_t id, struct bytes *in,
			   struct error *err);

/* NULL for an id beyond the last row. */
void *log_rows_get(const struct rows *r, uint64_t id);
/* The run's name of a file's; one that a damaged block took along is 0. */
uint32_t log_name_of(struct log_translation *x, uint64_t id);
uint32_t log_process_of(struct log_translation *x, uint64_t id);
/* The run's id of a shape with the varying keys of a layout (or NULL), and its kind. */
enum status log_shape_of(struct log_translation *x, uint64_t id, const struct file_layout *l,
			 uint32_t *to, struct error *err);
void *log_arena_room(struct log_translation *x, size_t bytes, struct error *err);

#endif
