/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_encoder.h - where rows wait to become a block; inside of the codec, and for who puts very many
 * rows (log_writer.h, struct log_places).
 *
 * Rows wait as words, column by column, until a block's worth is there; all that can be done for
 * many rows at once waits for log_finish(): what the columns cost, how they are stored, whether
 * the rows are in order.  How many rows that is follows from how many bytes the block before
 * took.  Should they not fit, those that do are a block, and the others stay for the next one.
 *
 * One thread; in memory of the caller's (8-aligned), for rows of one layout.
 */
#ifndef SCHEMAS_LOG_ENCODER_H
#define SCHEMAS_LOG_ENCODER_H

#include "schemas/log.h"

enum {
	ENCODER_ROWS = 4096,
	ENCODER_STRIDE = ENCODER_ROWS + 24, /* a row's words do not all share one set of a cache */
};
/* In the order of the file: what others refer to comes first.  log_put_rows.c writes it so. */
enum { SITES, LENGTHS, BEGINS, JOINS, AMOUNTS, FLAGS, ORDERS, VARY };

/* Columns that say the same in all rows of most layouts: not stored until one does not. */
struct rare_words {
	uint64_t amount, flags, order;
};
struct log_encoder {
	uint16_t layout;
	uint8_t kind;
	bool wide; /* the rare ones are stored */
	uint32_t column_count;
	uint32_t rows, target; /* target: rows of a block */
	uint32_t sample;       /* rows that decide how a column is stored */
	struct rare_words rare;
	uint64_t *words, *scratch, *ends;
	uint8_t *slots;
};

size_t log_encoder_size(unsigned vary_count);
void log_encode_init(struct log_encoder *e, uint16_t layout, unsigned kind, unsigned vary_count,
		     uint32_t sample);
/* One block, its bytes to be appended; 0 when there were no rows.  Some may be left, or many. */
size_t log_finish(struct log_encoder *e, uint8_t out[LOG_HEADER_BYTES + LOG_BLOCK_BYTES]);
/* Before log_put() of a row whose rare words are not log_is_usual(). */
void log_put_rare(struct log_encoder *e, const struct event *row, uint32_t order);

/* The row says of the rare words what all before it do. */
static inline bool log_is_usual(const struct log_encoder *e, const struct event *row,
				uint32_t order)
{
	return !((row->bytes ^ e->rare.amount) | (row->flags ^ e->rare.flags) |
		 (order ^ e->rare.order) | e->wide);
}

/* Before the next row comes log_finish(). */
static inline bool log_is_full(const struct log_encoder *e)
{
	return e->rows >= e->target;
}

/* What every row has; `at`: words + row. */
static inline void log_put_words(uint64_t *at, uint32_t site, uint64_t begin_ns, uint64_t end_ns,
				 uint64_t join)
{
	at[SITES * ENCODER_STRIDE] = site;
	at[LENGTHS * ENCODER_STRIDE] = end_ns - begin_ns;
	at[BEGINS * ENCODER_STRIDE] = begin_ns;
	at[JOINS * ENCODER_STRIDE] = join;
}

/*
 * Rows may come in any order; `order` is 0 unless the caller keeps the input order of events of
 * equal begin and end that go to different layouts.  `row`'s track is the file's; row->vary must
 * hold vary_count words.
 */
static inline void log_put(struct log_encoder *e, const struct event *row, uint32_t site)
{
	uint64_t *at = e->words + e->rows;

	log_put_words(at, site, row->begin_ns, row->end_ns, row->correlation);
	for (unsigned i = VARY; i < e->column_count; i++)
		at[(size_t)i * ENCODER_STRIDE] = row->vary[i - VARY];
	e->slots[e->rows] = log_slot(row->track);
	e->rows++;
}

#endif
