/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the codec of a recording: blocks of bytes <-> events.  LOG.md is the law.
 *
 *	| 16 bytes | block | block | block | ... | END block, only after a clean close |
 *	block = | 64 bytes: magic, kind, layout, sizes, rows, times, checksums | payload |
 *
 * There is one way to read, whether the file was closed, cut, or saved from a ring: walk the
 * block headers once (no payload), load the table blocks, then open EVENTS blocks in the order of
 * first_begin_ns.  There is no index to trust or to repair.  END carries totals, so that a reader
 * can say "complete" instead of "not known to be cut".
 *
 * A block is self-contained: absolute base time, codecs chosen per column, bounded by
 * LOG_BLOCK_ROWS and LOG_BLOCK_BYTES, so any number of them decodes at once and a table id is the
 * only thing that points outside.  Tables are written before the first block that uses them.  Four
 * columns carry a timed record: begin (as a gap), end (as a duration), join, and *site* - a row of
 * the dictionary of (track, name, shape, layout, subkind); the amount, flags, order and each
 * varying number add a column, and a constant column costs three bytes.
 *
 * Nothing here allocates, prints or starts threads: the collector links it.  Who writes a file
 * uses log_writer.h, which keeps an encoder per layout; who reads one, log_tables.h with this.
 */
#ifndef SCHEMAS_LOG_H
#define SCHEMAS_LOG_H

#include "schemas/event.h"
#include "schemas/status.h"

#define LOG_MAGIC "TACHO\x01\r\n" /* 8 bytes; \r\n shows a text-mode copy */
enum {
	LOG_FILE_HEADER_BYTES = 16,
	LOG_HEADER_BYTES = 64,
	LOG_BLOCK_ROWS = 8192,
	LOG_BLOCK_BYTES = 32 * 1024,
	LOG_LAYOUT_VARY = 128, /* most varying columns of one layout */
	LOG_VERSION = 1,
};

/* On disk, append only.  A reader skips a kind it does not know and counts it. */
#define LOG_BLOCK_LIST(X)                                                                          \
	X(NAMES, 1) X(KEYS, 2) X(SHAPES, 3) X(PROCESSES, 4) X(DEVICES, 5) X(TRACKS, 6)             \
	X(FIELDS, 7) X(SITES, 8) X(EVENTS, 9) X(WINDOWS, 10) X(ANCHORS, 11) X(LOSSES, 12)          \
	X(END, 13) X(META, 14) X(SAVED, 15)
enum log_block_kind {
#define X(name, number) LOG_##name = number,
	LOG_BLOCK_LIST(X)
#undef X
	LOG_BLOCK_KIND_END,
};
enum log_block_flag {
	LOG_SORTED = 1,   /* rows in the order of event.h */
	LOG_DEFLATED = 2, /* packed to be kept: zlib, whole payload */
	LOG_PART = 4,     /* a piece of one table row that is too long for a block */
};

struct log_block {
	uint64_t offset;     /* of its header in the file */
	uint32_t size;       /* payload bytes as stored */
	uint32_t raw_size;   /* before LOG_DEFLATED; both <= LOG_BLOCK_BYTES */
	uint32_t rows;       /* <= LOG_BLOCK_ROWS */
	uint32_t crc;        /* CRC-32C of the payload as stored */
	uint16_t kind, layout, flags; /* layout: row of FIELDS, EVENTS only */
	uint64_t first_begin_ns, last_begin_ns, last_end_ns; /* EVENTS: of all its rows */
};

/* The first bytes of a file. */
void log_put_file_header(uint8_t out[LOG_FILE_HEADER_BYTES]);
/* ST_FORMAT: not a log, or one that only a newer reader knows. */
enum status log_take_file_header(const uint8_t *bytes, size_t len, struct error *err);

/* The header of a block whose payload is `payload`; sets block->crc.  `offset` is not stored. */
void log_put_block_header(struct log_block *block, const uint8_t *payload,
			  uint8_t out[LOG_HEADER_BYTES]);

/*
 * The first whole header in `bytes`, which begin at `at` in the file; *skipped gets the damaged
 * bytes before it.  ST_CUT: none, and *skipped bytes hold none whatever follows, so go on behind
 * them with more bytes, or end there.  A header is believed when its own checksum is right and its
 * numbers are within bounds; the payload was not looked at.
 */
enum status log_find_block(const uint8_t *bytes, size_t len, uint64_t at, struct log_block *block,
			   size_t *skipped, struct error *err);
/* Once per block, on the stored payload (block->size bytes): its checksum. */
enum status log_check(const struct log_block *block, const uint8_t *payload, struct error *err);

/* What one dictionary row becomes in a run. */
struct log_site {
	uint32_t track, name, shape; /* the run's */
	uint16_t layout;
	uint8_t kind, subkind;
	uint8_t slot; /* for the gap of the begin column */
};
enum { LOG_SLOTS = 64 };
/* `track` is the file's id.  Tracks that share a slot cost a longer gap, nothing else. */
static inline uint8_t log_slot(uint32_t track)
{
	return track % LOG_SLOTS;
}

enum log_role {
	LOG_BEGIN, LOG_LENGTH, LOG_SITE, LOG_JOIN, LOG_AMOUNT, LOG_FLAGS, LOG_ORDER, LOG_VARY,
};
/* The columns of a layout in the file's order, as matched with what is known here. */
struct log_column {
	uint8_t role, type, unit; /* enum log_role, enum attr_type, enum unit */
	uint8_t vary;             /* LOG_VARY: place in event.vary */
};
struct log_layout {
	const struct log_column *columns;
	uint16_t column_count, vary_count;
	uint8_t kind; /* of the run: KIND_UNKNOWN for one of a newer writer */
};

/*
 * Rows of one EVENTS block.  `payload` (raw_size bytes, inflated), `layout` and `sites` are
 * borrowed to the end.  log_decode() gives up to `cap` events, in order when LOG_SORTED, 0 at the
 * end; vary words go to `vary`, cap times vary_count.  event.step holds the order column until the
 * caller has merged: among events of equal begin and end, less comes first.  Rows whose site is
 * unknown or of another layout, or whose times overflow, are left out and counted.
 */
struct log_decoder;
size_t log_decoder_size(const struct log_layout *layout);
enum status log_decode_init(struct log_decoder *d, const struct log_block *block,
			    const uint8_t *payload, const struct log_layout *layout,
			    const struct log_site *sites, size_t site_count, struct error *err);
size_t log_decode(struct log_decoder *d, struct event *out, size_t cap, uint64_t *vary);
uint32_t log_decode_lost(const struct log_decoder *d);

/*
 * One EVENTS block being filled, in memory of the caller's (8-aligned).  log_put() returns false
 * when the block is full: finish it, put again.  log_finish() gives the bytes to append and leaves
 * the encoder empty; 0 when it was.  Rows may come in any order; `order` is 0 unless the caller
 * keeps the input order of events of equal begin and end that go to different layouts.  `row`'s
 * track is the file's; row->vary must hold vary_count words.
 */
struct log_encoder;
size_t log_encoder_size(unsigned vary_count);
void log_encode_init(struct log_encoder *e, uint16_t layout, unsigned kind, unsigned vary_count);
bool log_put(struct log_encoder *e, const struct event *row, uint32_t site, uint32_t order);
uint32_t log_encoder_rows(const struct log_encoder *e);
size_t log_finish(struct log_encoder *e, uint8_t out[LOG_HEADER_BYTES + LOG_BLOCK_BYTES]);

#endif
