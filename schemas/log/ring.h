/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - the file of a flight recorder, which holds the latest blocks of a log in constant size.
 *
 *	| header, 4 KiB | tables, half 0 | tables, half 1 | events, as a ring |
 *
 * Blocks are those of log.h and begin at multiples of LOG_RING_ALIGN.  Their numbers are in the
 * eight bytes of the header that readers of a log ignore, so blocks can be copied into a log
 * unchanged.  LOG.md section 11 specifies the bytes.  One process writes, in an order that leaves
 * whole blocks whenever it dies.  Any process may read at any time: a block that is overwritten
 * meanwhile fails its checksum.  A reader relies only on checksums: it looks for blocks in the
 * whole area and orders them by number.
 */
#pragma once

#include "schemas/log/log.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;

#define LOG_RING_MAGIC "TACHO\x02\r\n" /* 8 bytes */
enum {
	LOG_RING_VERSION = 1,
	LOG_RING_HEADER = 4096,
	LOG_RING_CONST_BYTES = 256, /* constant bytes of the header */
	LOG_RING_ALIGN = 64,
	LOG_RING_HOST = 64,
	LOG_RING_WINDOW = 16 * 1024, /* bytes of one read */
};

/* The offsets of the words of the header that change; each is written in one store. */
enum log_ring_word {
	LOG_RING_TABLES = 256, /* number of the first block of the valid tables, times 2, + half */
	LOG_RING_BEGUN = 264,  /* number of the block of events written now or last */
	LOG_RING_BEGUN_ROWS = 272,
	LOG_RING_ALIVE = 280,       /* ns: the writer's last sign of life */
	LOG_RING_UNTIL = 288,       /* ns: all events that had ended by then are in the ring */
	LOG_RING_SAVED = 296,       /* number of the last block of events that is in a saved log */
	LOG_RING_SAVED_UNTIL = 304, /* ns: LOG_RING_UNTIL at that time */
	LOG_RING_WORDS_END = 312,
};

/* The constant part of the header. */
struct log_ring_consts {
	uint64_t size;       /* bytes of the file */
	uint64_t half_bytes; /* bytes of each half of the tables, which follow the header */
	uint64_t event_bytes;
	uint32_t pid, rank; /* rank UINT32_MAX: none */
	uint64_t started;   /* start of the process: field 22 of /proc/PID/stat; 0: unknown */
	uint64_t max_bytes, min_free; /* bytes, for a log saved from it; 0: no limit */
	char host[LOG_RING_HOST];     /* NUL-terminated */
};

/* Divides a file of `size` bytes into halves and events; returns false if it is too small. */
bool log_ring_divide(uint64_t size, uint64_t most_tables, struct log_ring_consts *out);
void log_ring_put_consts(const struct log_ring_consts *f, uint8_t out[LOG_RING_CONST_BYTES]);
/* Stores a number in the header at the beginning of a block. */
void log_ring_number(uint8_t *block, uint64_t number);

static inline uint64_t log_ring_pad(uint64_t bytes)
{
	return (bytes + LOG_RING_ALIGN - 1) / LOG_RING_ALIGN * LOG_RING_ALIGN;
}

/* Reads up to `len` bytes at `at`; *got is less than `len` only at the end. */
typedef enum status (*log_ring_read_fn)(const void *arg, uint64_t at, void *bytes, size_t len,
					size_t *got, struct error *err);

struct log_ring {
	struct log_ring_consts consts;
	uint64_t tables, begun, begun_rows, alive_ns, until_ns, saved, saved_until_ns;
	/* These are about the blocks of events in the ring. */
	uint64_t lowest, highest, blocks, bytes; /* lowest 0: none */
	uint64_t missing;      /* missing blocks between them, and one that was incomplete */
	uint64_t missing_rows; /* events in the incomplete block; 0: unknown */

	/* Only ring.c uses these. */
	log_ring_read_fn read;
	const void *arg;
	uint64_t lowest_at, table_at, table_next, event_at;
	uint64_t given; /* number of the latest block that log_ring_next_events() returned */
	bool wrapped;
	uint64_t window_at;
	size_t window_len;
	uint8_t window[LOG_RING_WINDOW];
};

/* Reads the header and looks for blocks.  Returns ST_FORMAT if the file is no ring or is
 * damaged. */
enum status log_ring_open(struct log_ring *r, log_ring_read_fn read, const void *arg,
			  struct error *err);
/*
 * Returns the next table block in order, and ST_END after the last.  `block->offset` is its place
 * in the file.  The payload is not checked.
 */
enum status log_ring_next_table(struct log_ring *r, struct log_block *block, struct error *err);
/* Returns the next block of events in the same way; *number is set to the number of the block. */
enum status log_ring_next_events(struct log_ring *r, struct log_block *block, uint64_t *number,
				 struct error *err);

/* A row of SAVED: the reason and time at which a log was saved. */
struct log_saved {
	const char *why;                 /* the trigger: slow, hang, signal, death, command */
	uint64_t at_ns;                  /* when it was triggered; 0 unknown */
	uint64_t step;                   /* NOWHERE: none */
	uint64_t value_ns, threshold_ns; /* the measured value and the limit that it exceeded */
	uint64_t from_ns;                /* nothing since then was overwritten; 0: nothing at all */
	uint64_t until_ns, alive_ns;     /* LOG_RING_UNTIL, LOG_RING_ALIVE */
	uint64_t torn, torn_rows; /* blocks that were not whole, and their rows (0: unknown) */
	uint64_t left_out_rows;   /* rows left out because the disk was full */
	bool by_itself;           /* the recorded process saved the log itself */
};
/* Appends a whole block of SAVED. */
void log_put_saved(const struct log_saved *s, struct buf *out);
/* Fills the SAVED row of a log that is saved without the ring's writer, which may have died. */
void log_ring_saved(const struct log_ring *r, const char *why, struct log_saved *out);
