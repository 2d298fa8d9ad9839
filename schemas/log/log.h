/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the codec of a log, which turns events into blocks of bytes and back, as LOG.md
 * specifies.
 *
 *	| 16 bytes | block | block | block | ... | END block, only after a clean close |
 *	block = | 64 bytes: magic, kind, layout, sizes, rows, times, checksums | payload |
 *
 * A file that was closed, truncated or saved from a ring is read in the same manner: walk the block
 * headers once, load the table blocks, then open EVENTS blocks in the order of first_begin_ns.
 * There is no index that could be wrong.  END has totals, so that a reader can distinguish a
 * complete file from one that may be truncated.
 *
 * A block has an absolute base time and its own choice of codec for each column, and refers to
 * other blocks only by ids of tables, so blocks can be decoded in parallel.  LOG_BLOCK_ROWS and
 * LOG_BLOCK_BYTES bound it.  Tables are written before the first block that uses them.  Most events
 * are four columns: begin (as a gap), length, correlation, and the event descriptor (track, name,
 * argument schema, layout, subkind).  Value, flags, order and each argument value add a column; one
 * that is constant takes three bytes.
 *
 * Nothing here allocates, prints or starts threads, because the collector links it.  Files are
 * written through writer.h, which keeps an encoder for each layout, and read through tables.h.
 */
#pragma once

#include "schemas/model/event.h"
#include "schemas/base/status.h"

#define LOG_MAGIC "TACHO\x01\r\n" /* 8 bytes; \r\n shows a text-mode copy */
enum {
	LOG_FILE_HEADER_BYTES = 16,
	LOG_HEADER_BYTES = 64,
	LOG_BLOCK_ROWS = 8192,
	LOG_BLOCK_BYTES = 32 * 1024,
	LOG_LAYOUT_ARG = 128, /* most argument values of one layout */
	LOG_VERSION = 1,
};

/* The numbers are on disk: append only.  A reader skips and counts blocks of unknown kinds. */
/* clang-format off */
#define LOG_BLOCK_LIST(X)                                                                          \
	X(NAMES, 1) X(KEYS, 2) X(SCHEMAS, 3) X(PROCESSES, 4) X(DEVICES, 5) X(TRACKS, 6)             \
	X(FIELDS, 7) X(DESCS, 8) X(EVENTS, 9) X(WINDOWS, 10) X(ANCHORS, 11) X(LOSSES, 12)          \
	X(END, 13) X(META, 14) X(SAVED, 15)
/* clang-format on */
enum log_block_kind {
#define X(name, number) LOG_##name = number,
	LOG_BLOCK_LIST(X)
#undef X
		LOG_BLOCK_KIND_END,
};
enum log_block_flag {
	LOG_SORTED = 1,   /* rows in the order of event.h */
	LOG_DEFLATED = 2, /* the whole payload is a zlib stream */
	LOG_PART = 4,     /* part of one table row that is too long for a block */
};

struct log_block {
	uint64_t offset;              /* offset of the header in the file */
	uint32_t size;                /* payload bytes as stored */
	uint32_t raw_size;            /* payload bytes when inflated; both <= LOG_BLOCK_BYTES */
	uint32_t rows;                /* <= LOG_BLOCK_ROWS */
	uint32_t crc;                 /* CRC-32C of the payload as stored */
	uint16_t kind, layout, flags; /* layout: id of a row of FIELDS, EVENTS only */
	uint64_t first_begin_ns, last_begin_ns, last_end_ns; /* EVENTS only: over all rows */
};

/* The offset of a number of a header on disk (`at`) and in the struct, where it has the same size.
 * LOG.md has the headers as tables. */
struct log_header_word {
	uint16_t at, size, offset;
};
#define LOG_HEADER_WORD(at, object, member)                                                        \
	{                                                                                          \
		at, sizeof(((struct object *)NULL)->member), offsetof(struct object, member)       \
	}
/* These copy `count` numbers from the struct to the header, and back. */
void log_put_header_words(const struct log_header_word *words, size_t count, const void *from,
			  uint8_t *out);
void log_take_header_words(const struct log_header_word *words, size_t count, const uint8_t *header,
			   void *to);

/* Writes the first bytes of a file. */
void log_put_file_header(uint8_t out[LOG_FILE_HEADER_BYTES]);
/* Returns ST_FORMAT for a file that is no log, or one that needs a newer reader. */
enum status log_take_file_header(const uint8_t *bytes, size_t len, struct error *err);

/* Writes the header of a block with this payload and sets block->crc.  `offset` is not stored. */
void log_put_block_header(struct log_block *block, const uint8_t *payload,
			  uint8_t out[LOG_HEADER_BYTES]);

/*
 * Finds the first whole header in `bytes`, which begin at `at` in the file; *skipped is set to the
 * number of bytes before it.  ST_TRUNCATED: there is none, and none can begin in the first *skipped
 * bytes, so continue after them.  A header is valid when its own checksum is right and its numbers
 * are within bounds; the payload is not checked.
 */
enum status log_find_block(const uint8_t *bytes, size_t len, uint64_t at, struct log_block *block,
			   size_t *skipped, struct error *err);
/* Verifies the checksum of the stored payload (block->size bytes).  Call it once for each block. */
enum status log_check(const struct log_block *block, const uint8_t *payload, struct error *err);

/* An event descriptor of the file, translated to the trace. */
struct log_desc {
	uint32_t track, name, schema; /* ids of the trace, not of the file */
	uint16_t layout;
	uint8_t kind, subkind;
	uint8_t slot; /* a begin is stored as the gap after the previous event with the same slot */
};
enum { LOG_SLOTS = 64 };
/* Returns the slot of a track, an id of the file.  Tracks may share a slot, which only makes gaps
 * longer. */
static inline uint8_t log_slot(uint32_t track)
{
	return track % LOG_SLOTS;
}

enum log_role {
	LOG_BEGIN,
	LOG_LENGTH,
	LOG_DESC,
	LOG_CORRELATION,
	LOG_VALUE,
	LOG_FLAGS,
	LOG_ORDER,
	LOG_ARG,
};
/* A column of a layout in the order of the file, with the role that it has for this reader. */
struct log_column {
	uint8_t role, type, unit; /* enum log_role, enum attr_type, enum unit */
	uint8_t args;             /* LOG_ARG: place in event.args */
};
struct log_layout {
	const struct log_column *columns;
	uint16_t column_count, arg_count;
	uint8_t kind; /* KIND_UNKNOWN for a kind of a newer writer */
};

/* Holds one word for each row of a chunk, or one word for all rows if mask is 0. */
struct log_words {
	const uint64_t *at;
	uint32_t mask;
};
static inline uint64_t log_word(const struct log_words *w, uint32_t row)
{
	return w->at[row & w->mask];
}

/* A chunk of decoded rows, column by column; columns that the file lacks are zero. */
struct log_rows {
	const uint64_t *begins, *lengths, *descs, *correlations; /* descs: indices into `desc` */
	const struct log_desc *desc;
	uint32_t count;
	uint16_t arg_count;
	bool has_rare; /* value, flags or order differ between rows */
	struct log_words values, flags, orders;
	const struct log_words *args;
};

/* Makes an event of a row, with its argument values at `args`.  event.step holds the order
 * column. */
static inline void log_rows_event(const struct log_rows *r, uint32_t row, struct event *e,
				  uint64_t *args)
{
	const struct log_desc *desc = &r->desc[r->descs[row]];
	uint32_t rare = r->has_rare ? row : 0;
	uint64_t begin_ns = r->begins[row];

	for (unsigned i = 0; i < r->arg_count; i++)
		args[i] = log_word(&r->args[i], row);
	*e = (struct event){
		.begin_ns = begin_ns,
		.end_ns = begin_ns + r->lengths[row],
		.correlation = r->correlations[row],
		.bytes = log_word(&r->values, rare),
		.args = r->arg_count ? args : NULL,
		.track = desc->track,
		.name = desc->name,
		.schema = desc->schema,
		.step = (uint32_t)log_word(&r->orders, rare),
		.kind = desc->kind,
		.subkind = desc->subkind,
		.flags = (uint8_t)log_word(&r->flags, rare),
	};
}

/*
 * Decodes one EVENTS block, `rows` rows (LOG_CHUNK_ROWS, or block->rows for all) at a time, in the
 * caller's memory of log_decoder_size() bytes.  `payload` (raw_size bytes, inflated), `layout` and
 * `descs` are borrowed until the end.  log_decode_rows() returns the next chunk, which is borrowed
 * until the next call, and NULL at the end.  Rows are in order if the block is LOG_SORTED; code
 * that merges blocks compares the order column of events of equal times.  Rows whose descriptor is
 * unknown or has another layout, or whose times overflow, are left out and counted.
 */
enum { LOG_CHUNK_ROWS = 128 };
struct log_decoder;
size_t log_decoder_size(const struct log_layout *layout, const struct log_block *block,
			const uint8_t *payload, uint32_t rows);
enum status log_decode_init(struct log_decoder *d, const struct log_block *block,
			    const uint8_t *payload, const struct log_layout *layout,
			    const struct log_desc *descs, size_t desc_count, uint32_t rows,
			    struct error *err);
const struct log_rows *log_decode_rows(struct log_decoder *d);
uint32_t log_decode_lost(const struct log_decoder *d);
