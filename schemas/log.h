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

/* One word for each row of a chunk; mask 0: the same for all. */
struct log_words {
	const uint64_t *at;
	uint32_t mask;
};
static inline uint64_t log_word(const struct log_words *w, uint32_t row)
{
	return w->at[row & w->mask];
}

/* A chunk of decoded rows, column by column; what is not in the file is zeros. */
struct log_rows {
	const uint64_t *begins, *lengths, *sites, *joins; /* sites: rows of `site` */
	const struct log_site *site;
	uint32_t count;
	uint16_t vary_count;
	bool has_rare; /* else amount, flags and order are the same in all rows */
	struct log_words amounts, flags, orders;
	const struct log_words *vary;
};

/* Row `row` as an event, its varying words at `vary`; event.step holds the order column. */
static inline void log_rows_event(const struct log_rows *r, uint32_t row, struct event *e,
				  uint64_t *vary)
{
	const struct log_site *site = &r->site[r->sites[row]];
	uint32_t rare = r->has_rare ? row : 0;
	uint64_t begin_ns = r->begins[row];

	for (unsigned i = 0; i < r->vary_count; i++)
		vary[i] = log_word(&r->vary[i], row);
	*e = (struct event){
		.begin_ns = begin_ns,
		.end_ns = begin_ns + r->lengths[row],
		.correlation = r->joins[row],
		.bytes = log_word(&r->amounts, rare),
		.vary = r->vary_count ? vary : NULL,
		.track = site->track,
		.name = site->name,
		.shape = site->shape,
		.step = (uint32_t)log_word(&r->orders, rare),
		.kind = site->kind,
		.subkind = site->subkind,
		.flags = (uint8_t)log_word(&r->flags, rare),
	};
}

/*
 * Rows of one EVENTS block, `rows` (LOG_CHUNK_ROWS, or block->rows for all) at a time, in memory of
 * the caller's of log_decoder_size().  `payload` (raw_size bytes, inflated), `layout` and `sites`
 * are borrowed to the end.  log_decode_rows() gives the next chunk, borrowed until the next call,
 * NULL at the end; log_decode() up to `cap` events, 0 at the end, with their vary words at `vary`,
 * cap times vary_count.  Both in order when LOG_SORTED.  The order column is for who merges: among
 * events of equal begin and end, less comes first.  Rows whose site is unknown or of another
 * layout, or whose times overflow, are left out and counted.
 */
enum { LOG_CHUNK_ROWS = 128 };
struct log_decoder;
size_t log_decoder_size(const struct log_layout *layout, const struct log_block *block,
			const uint8_t *payload, uint32_t rows);
enum status log_decode_init(struct log_decoder *d, const struct log_block *block,
			    const uint8_t *payload, const struct log_layout *layout,
			    const struct log_site *sites, size_t site_count, uint32_t rows,
			    struct error *err);
const struct log_rows *log_decode_rows(struct log_decoder *d);
size_t log_decode(struct log_decoder *d, struct event *out, size_t cap, uint64_t *vary);
uint32_t log_decode_lost(const struct log_decoder *d);

#endif
