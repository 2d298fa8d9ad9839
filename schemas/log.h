/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the codec of a recording: blocks of bytes <-> tables and events.  LOG.md is the law.
 *
 *	| header | block | block | block | ... | END block, only after a clean close |
 *	block  = | 64 bytes: size, kind, layout, rows, first and last time, crc32c | payload |
 *
 * There is one way to read, whether the file was closed, cut, or saved from a ring: walk the
 * block headers once (no payload), load the table blocks, then open EVENTS blocks in the order of
 * first_begin_ns.  There is no index to trust or to repair.  END carries totals, so that a reader
 * can say "complete" instead of "not known to be cut".
 *
 * A block is self-contained: absolute base time, column codecs chosen per column (constant,
 * delta + zig-zag varint with a common divisor, plain), bounded by LOG_BLOCK_ROWS and
 * LOG_BLOCK_BYTES, so any number of them decodes at once and a table id is the only thing that
 * points outside.  Tables are written before the first block that uses them.  Four columns carry
 * a timed record: gap (to the previous end on its track, or to the previous begin, whichever is
 * shorter in that block), duration, join delta, *site* - a row of the dictionary of (track, shape,
 * name, kind, subkind); AMOUNT, FLAGS and each VARY key add a column, constant ones cost nothing.
 *
 * Nothing here allocates, prints or starts threads: the collector links it.
 */
#ifndef SCHEMAS_LOG_H
#define SCHEMAS_LOG_H

#include "schemas/event.h"
#include "schemas/status.h"

#define LOG_MAGIC "TACHO\x01\r\n" /* 8 bytes; \r\n shows a text-mode copy */
enum {
	LOG_BLOCK_ROWS = 8192,
	LOG_BLOCK_BYTES = 32 * 1024,
	LOG_HEADER_BYTES = 64,
	LOG_LAYOUT_VARY = 32, /* most VARY columns of one layout; more go to the shape */
};

/* On disk, append only.  A reader skips a kind it does not know and counts it. */
#define LOG_BLOCK_LIST(X)                                                                          \
	X(META, 1) X(NAMES, 2) X(FIELDS, 3) X(TRACKS, 4) X(SHAPES, 5) X(SITES, 6)                  \
	X(EVENTS, 7) X(ANCHORS, 8) X(LOSSES, 9) X(END, 10) X(WINDOWS, 11)
enum log_block_kind {
#define X(name, number) LOG_##name = number,
	LOG_BLOCK_LIST(X)
#undef X
};
enum log_block_flag { LOG_SORTED = 1 /* rows by begin */, LOG_DEFLATED = 2 /* packed to keep */ };

struct log_block {
	uint64_t offset;     /* of its header in the file */
	uint32_t size;       /* payload bytes as stored */
	uint32_t raw_size;   /* before LOG_DEFLATED, <= LOG_BLOCK_BYTES; source_log inflates */
	uint32_t rows;       /* <= LOG_BLOCK_ROWS */
	uint32_t crc;        /* CRC-32C of the stored payload */
	uint16_t kind, layout, flags; /* layout: row of FIELDS, EVENTS only */
	uint64_t first_begin_ns, last_begin_ns, last_end_ns; /* EVENTS: of all its rows */
};
struct log_site { /* what one dictionary row becomes in a run */
	uint32_t track, name, shape;
	uint8_t kind, subkind;
	uint16_t slot; /* dense number of the track in this file, for the gap column */
};
