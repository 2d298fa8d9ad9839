/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.h - collects rows of one layout until they become a block; only the codec uses it.
 *
 * Rows are kept as words, column by column, until there are enough for a block.  log_finish() then
 * chooses how columns are stored and whether the rows are in order.  How many rows are enough is
 * estimated from the size of the previous block.  If they do not fit, those that do become a block
 * and the others stay for the next one.
 *
 * An encoder belongs to one thread.  The caller provides its memory, aligned to 8 bytes.
 */
#pragma once

#include "schemas/log/log.h"

enum {
	ENCODER_ROWS = 4096,
	ENCODER_STRIDE = ENCODER_ROWS + 24, /* keeps the words of a row in different cache sets */
};
/* The columns in the order of the file and of FIELDS; columns that others refer to come first. */
enum { DESCS, LENGTHS, BEGINS, CORRELATIONS, VALUES, FLAGS, ORDERS, ARG };

/* Words that are the same in all rows of most layouts; they become columns at the first
 * difference. */
struct rare_words {
	uint64_t value, flags, order;
};
struct log_encoder {
	uint16_t layout;
	uint8_t kind;
	bool wide; /* the rare words are columns */
	uint32_t column_count;
	uint32_t rows, target; /* target: rows of a block */
	uint32_t sample;       /* rows that decide how a column is stored */
	struct rare_words rare;
	uint64_t *words, *scratch, *ends;
	uint8_t *slots;
};

size_t log_encoder_size(unsigned arg_count);
void log_encode_init(struct log_encoder *e, uint16_t layout, unsigned kind, unsigned arg_count,
		     uint32_t sample);
/* Encodes one block and returns its length, or 0 without rows.  Some rows may remain. */
size_t log_finish(struct log_encoder *e, uint8_t out[LOG_HEADER_BYTES + LOG_BLOCK_BYTES]);
/* Call this before log_put() of a row that is not log_is_usual(). */
void log_put_rare(struct log_encoder *e, const struct event *row, uint32_t order);

/* Returns whether the rare words of a row equal those of all rows before it. */
static inline bool log_is_usual(const struct log_encoder *e, const struct event *row,
				uint32_t order)
{
	return !((row->bytes ^ e->rare.value) | (row->flags ^ e->rare.flags) |
		 (order ^ e->rare.order) | e->wide);
}

/* Returns whether log_finish() has to be called before the next row. */
static inline bool log_is_full(const struct log_encoder *e)
{
	return e->rows >= e->target;
}

/*
 * Adds a row.  Rows may come in any order; `order` is 0 unless the caller keeps the input order of
 * events of equal begin and end that go to different layouts.  row->track is the id in the file,
 * and row->args has arg_count words.
 */
static inline void log_put(struct log_encoder *e, const struct event *row, uint32_t desc)
{
	uint64_t *at = e->words + e->rows;

	at[DESCS * ENCODER_STRIDE] = desc;
	at[LENGTHS * ENCODER_STRIDE] = row->end_ns - row->begin_ns;
	at[BEGINS * ENCODER_STRIDE] = row->begin_ns;
	at[CORRELATIONS * ENCODER_STRIDE] = row->correlation;
	for (unsigned i = ARG; i < e->column_count; i++)
		at[(size_t)i * ENCODER_STRIDE] = row->args[i - ARG];
	e->slots[e->rows] = log_slot(row->track);
	e->rows++;
}
