/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/ring.h"

#include "schemas/base/bytes.h"
#include "schemas/base/crc32c.h"

enum {
	AT_VERSION = 8, /* offsets in the constant part of the ring's header */
	AT_CRC = 12,
	CRC_FROM = 16,
	AT_HEADER_CRC = 4, /* offsets in a block's header */
	CRC_OF_HEADER_FROM = 8,
	AT_NUMBER = 56,
	HALF_LEAST = 128 * 1024,
	SIZE_LEAST = 1 << 20,
};
static const struct log_header_word const_words[] = {
	LOG_HEADER_WORD(16, log_ring_consts, size),
	LOG_HEADER_WORD(24, log_ring_consts, half_bytes),
	LOG_HEADER_WORD(32, log_ring_consts, event_bytes),
	LOG_HEADER_WORD(40, log_ring_consts, pid),
	LOG_HEADER_WORD(44, log_ring_consts, rank),
	LOG_HEADER_WORD(48, log_ring_consts, started),
	LOG_HEADER_WORD(56, log_ring_consts, max_bytes),
	LOG_HEADER_WORD(64, log_ring_consts, min_free),
	LOG_HEADER_WORD(72, log_ring_consts, host), /* text: the bytes as they are */
};
static const struct log_header_word ring_words[] = {
	LOG_HEADER_WORD(LOG_RING_TABLES, log_ring, tables),
	LOG_HEADER_WORD(LOG_RING_BEGUN, log_ring, begun),
	LOG_HEADER_WORD(LOG_RING_BEGUN_ROWS, log_ring, begun_rows),
	LOG_HEADER_WORD(LOG_RING_ALIVE, log_ring, alive_ns),
	LOG_HEADER_WORD(LOG_RING_UNTIL, log_ring, until_ns),
	LOG_HEADER_WORD(LOG_RING_SAVED, log_ring, saved),
	LOG_HEADER_WORD(LOG_RING_SAVED_UNTIL, log_ring, saved_until_ns),
};
enum {
	CONST_WORDS = sizeof(const_words) / sizeof(const_words[0]),
	RING_WORDS = sizeof(ring_words) / sizeof(ring_words[0]),
};

bool log_ring_divide(uint64_t size, uint64_t most_tables, struct log_ring_consts *out)
{
	uint64_t half = size / 8;

	if (size < SIZE_LEAST || size > (uint64_t)1 << 46)
		return false;
	if (half > most_tables)
		half = most_tables;
	if (half < HALF_LEAST)
		half = HALF_LEAST;
	out->half_bytes = half / LOG_RING_ALIGN * LOG_RING_ALIGN;
	out->event_bytes =
		(size - LOG_RING_HEADER - 2 * out->half_bytes) / LOG_RING_ALIGN * LOG_RING_ALIGN;
	out->size = LOG_RING_HEADER + 2 * out->half_bytes + out->event_bytes;
	return true;
}

void log_ring_put_consts(const struct log_ring_consts *f, uint8_t out[LOG_RING_CONST_BYTES])
{
	memset(out, 0, LOG_RING_CONST_BYTES);
	memcpy(out, LOG_RING_MAGIC, 8);
	put_u32(out + AT_VERSION, LOG_RING_VERSION);
	log_put_header_words(const_words, CONST_WORDS, f, out);
	put_u32(out + AT_CRC, crc32c(0, out + CRC_FROM, LOG_RING_CONST_BYTES - CRC_FROM));
}

void log_ring_number(uint8_t *block, uint64_t number)
{
	put_u64(block + AT_NUMBER, number);
	put_u32(block + AT_HEADER_CRC,
		crc32c(0, block + CRC_OF_HEADER_FROM, LOG_HEADER_BYTES - CRC_OF_HEADER_FROM));
}

/* ---- reading ---- */

static uint64_t events_at(const struct log_ring *r)
{
	return LOG_RING_HEADER + 2 * r->consts.half_bytes;
}

/* Reads the header of a block at `at`.  *number is 0 if there is none, or if its block is not
 * complete by `end`. */
static enum status header_at(struct log_ring *r, uint64_t at, uint64_t end, struct log_block *block,
			     uint64_t *number, struct error *err)
{
	size_t skipped;

	if (at < r->window_at || at + LOG_HEADER_BYTES > r->window_at + r->window_len) {
		r->window_at = at;
		TRY(r->read(r->arg, at, r->window, sizeof(r->window), &r->window_len, err));
	}
	if (at + LOG_HEADER_BYTES > r->window_at + r->window_len)
		return ST_END;
	const uint8_t *p = r->window + (at - r->window_at);
	*number = 0;
	if (end - at < LOG_HEADER_BYTES ||
	    log_find_block(p, LOG_HEADER_BYTES, at, block, &skipped, NULL) != ST_OK || skipped ||
	    block->size > end - at - LOG_HEADER_BYTES)
		return ST_OK;
	*number = get_u64(p + AT_NUMBER);
	return ST_OK;
}

static uint64_t span_of(const struct log_block *block)
{
	return log_ring_pad(LOG_HEADER_BYTES + block->size);
}

/* Finds the next block of events from *at on; returns ST_END if there is none before `end`. */
static enum status find_events(struct log_ring *r, uint64_t *at, uint64_t end,
			       struct log_block *block, uint64_t *number, struct error *err)
{
	while (*at + LOG_HEADER_BYTES <= end) {
		TRY(header_at(r, *at, end, block, number, err));
		if (*number && block->kind == LOG_EVENTS) {
			*at += span_of(block);
			return ST_OK;
		}
		*at += LOG_RING_ALIGN;
	}
	return ST_END;
}

static enum status look_for_events(struct log_ring *r, struct error *err)
{
	uint64_t at = events_at(r), end = r->consts.size, number;
	uint64_t most = r->consts.event_bytes / LOG_RING_ALIGN;
	struct log_block block;
	enum status st = ST_END;

	/* behind the last block of a ring that was never full there is nothing */
	while (r->blocks < r->begun &&
	       (st = find_events(r, &at, end, &block, &number, err)) == ST_OK) {
		if (!r->lowest || number < r->lowest) {
			r->lowest = number;
			r->lowest_at = block.offset;
		}
		if (number > r->highest)
			r->highest = number;
		r->blocks++;
		r->bytes += LOG_HEADER_BYTES + block.size;
	}
	if (st != ST_END && st != ST_OK)
		return st;
	r->missing = r->blocks ? r->highest - r->lowest + 1 - r->blocks : 0;
	if (r->missing > most)
		r->missing = most;
	if (r->begun > r->highest) { /* the process died while it wrote this block */
		r->missing++;
		r->missing_rows = r->begun_rows <= LOG_BLOCK_ROWS ? r->begun_rows : 0;
	}
	return ST_OK;
}

enum status log_ring_open(struct log_ring *r, log_ring_read_fn read, const void *arg,
			  struct error *err)
{
	uint8_t header[LOG_RING_WORDS_END];
	size_t got = 0;

	memset(r, 0, offsetof(struct log_ring, window));
	r->read = read;
	r->arg = arg;
	TRY(read(arg, 0, header, sizeof(header), &got, err));
	const uint8_t *bytes = header;

	if (got < 8 || memcmp(bytes, LOG_RING_MAGIC, 8) != 0)
		return fail(err, ST_FORMAT, 0, "not the ring of a flight recorder");
	if (got < LOG_RING_WORDS_END)
		return fail(err, ST_TRUNCATED, 0, "header of the ring is truncated");
	if (get_u32(bytes + AT_CRC) != crc32c(0, bytes + CRC_FROM, LOG_RING_CONST_BYTES - CRC_FROM))
		return fail(err, ST_FORMAT, AT_CRC, "header of the ring is damaged");
	if (get_u32(bytes + AT_VERSION) != LOG_RING_VERSION)
		return fail(err, ST_FORMAT, AT_VERSION,
			    "ring of version %u; this program reads version %d",
			    get_u32(bytes + AT_VERSION), LOG_RING_VERSION);
	log_take_header_words(const_words, CONST_WORDS, bytes, &r->consts);
	r->consts.host[LOG_RING_HOST - 1] = '\0';
	uint64_t areas = r->consts.size - LOG_RING_HEADER;
	if (r->consts.size < LOG_RING_HEADER || r->consts.half_bytes > areas / 2 ||
	    r->consts.event_bytes != areas - 2 * r->consts.half_bytes ||
	    r->consts.half_bytes % LOG_RING_ALIGN || r->consts.event_bytes % LOG_RING_ALIGN)
		return fail(err, ST_FORMAT, const_words[0].at,
			    "the parts of the ring are inconsistent");
	log_take_header_words(ring_words, RING_WORDS, header, r);
	r->table_at = LOG_RING_HEADER + (r->tables & 1) * r->consts.half_bytes;
	r->table_next = r->tables >> 1;
	TRY(look_for_events(r, err));
	r->event_at = r->lowest_at;
	return ST_OK;
}

enum status log_ring_next_table(struct log_ring *r, struct log_block *block, struct error *err)
{
	uint64_t end = LOG_RING_HEADER + ((r->tables & 1) + 1) * r->consts.half_bytes, number;

	if (!r->tables || r->table_at + LOG_HEADER_BYTES > end)
		return ST_END;
	TRY(header_at(r, r->table_at, end, block, &number, err));
	/* A block whose number does not follow is older than this use of the half. */
	if (!number || number != r->table_next || block->kind == LOG_EVENTS)
		return ST_END;
	r->table_next++;
	r->table_at += span_of(block);
	return ST_OK;
}

enum status log_ring_next_events(struct log_ring *r, struct log_block *block, uint64_t *number,
				 struct error *err)
{
	enum status st = ST_END;

	if (!r->lowest || r->given == r->highest)
		return ST_END;
	if (!r->wrapped)
		st = find_events(r, &r->event_at, r->consts.size, block, number, err);
	if (st == ST_END && !r->wrapped) {
		r->wrapped = true;
		r->event_at = events_at(r);
	}
	if (st == ST_END)
		st = find_events(r, &r->event_at, r->lowest_at, block, number, err);
	if (st == ST_OK)
		r->given = *number;
	return st;
}

void log_ring_saved(const struct log_ring *r, const char *why, struct log_saved *out)
{
	*out = (struct log_saved){
		.why = why,
		.step = NOWHERE,
		.until_ns = r->until_ns,
		.alive_ns = r->alive_ns,
		.torn = r->missing,
		.torn_rows = r->missing_rows,
	};
}
