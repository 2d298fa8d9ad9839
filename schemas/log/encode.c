/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/encoder.h"

#include "schemas/log/column.h"

enum {
	STRIDE = ENCODER_STRIDE,
	MEMBER_COLUMNS = ARG,
	COLUMNS_MAX = MEMBER_COLUMNS + LOG_LAYOUT_ARG,
	PAYLOAD_MOST = LOG_BLOCK_BYTES - 8, /* the last number of a stream is written as a word */
	FILLED = PAYLOAD_MOST / 16 * 15,    /* the size that a block is meant to reach */
	SAMPLE_LEAST = 64,                  /* rows from which the size of a block is estimated */
};

size_t log_encoder_size(unsigned arg_count)
{
	size_t columns = MEMBER_COLUMNS + (size_t)arg_count + 2;

	return sizeof(struct log_encoder) + columns * STRIDE * sizeof(uint64_t) + ENCODER_ROWS;
}

void log_encode_init(struct log_encoder *e, uint16_t layout, unsigned kind, unsigned arg_count,
		     uint32_t sample)
{
	memset(e, 0, sizeof(*e));
	e->layout = layout;
	e->kind = (uint8_t)kind;
	e->column_count = MEMBER_COLUMNS + arg_count;
	e->target = ENCODER_ROWS;
	e->sample = sample;
	e->words = (uint64_t *)(e + 1);
	e->scratch = e->words + (size_t)e->column_count * STRIDE;
	e->ends = e->scratch + STRIDE;
	e->slots = (uint8_t *)(e->ends + STRIDE);
}

static uint64_t *column(const struct log_encoder *e, size_t index)
{
	return e->words + index * STRIDE;
}

static bool is_rare(const struct log_encoder *e, unsigned index)
{
	return !e->wide && index >= VALUES && index <= ORDERS;
}

/* ---- rows ---- */

void log_put_rare(struct log_encoder *e, const struct event *event, uint32_t order)
{
	struct rare_words row = { event->bytes, event->flags, order };
	uint64_t *at = e->words;
	uint32_t from = e->rows;

	if (!from) {
		e->rare = row;
		e->wide = false;
		return;
	}
	if (!e->wide)
		from = 0;
	e->wide = true;
	for (uint32_t i = from; i < e->rows; i++) {
		at[VALUES * STRIDE + i] = e->rare.value;
		at[FLAGS * STRIDE + i] = e->rare.flags;
		at[ORDERS * STRIDE + i] = e->rare.order;
	}
	at += e->rows;
	at[VALUES * STRIDE] = row.value;
	at[FLAGS * STRIDE] = row.flags;
	at[ORDERS * STRIDE] = row.order;
}

/* ---- blocks ---- */

/* Chooses the form of all columns and writes those that fit; returns the size of all in bytes. */
static size_t put_columns(struct log_encoder *e, uint32_t rows, bool plainest, uint8_t *out)
{
	const uint64_t *others[COLUMNS_MAX];
	const uint64_t *begins = column(e, BEGINS), *lengths = column(e, LENGTHS);
	size_t used = 0;

#pragma GCC unroll 4
	for (uint32_t i = 0; i < rows; i++)
		e->ends[i] = begins[i] + lengths[i];
	for (unsigned i = 0; i < e->column_count; i++) {
		struct column_form form;
		struct column_words c = {
			.words = column(e, i),
			.descs = i > DESCS ? column(e, DESCS) : NULL,
			.slots = i == BEGINS ? e->slots : NULL,
			.ends = i == BEGINS || i >= ARG ? e->ends : NULL,
			.scratch = e->scratch,
			.rows = rows,
		};

		others[i] = is_rare(e, i) ? NULL : c.words;
		if (is_rare(e, i)) {
			form = (struct column_form){ .transform = BY_VALUE, .packing = PACK_CONST };
			form.base = i == VALUES  ? e->rare.value
				    : i == FLAGS ? e->rare.flags
						 : e->rare.order;
		} else if (plainest) {
			column_choose_delta(&c, &form);
		} else { /* do not compare times or flags with other columns */
			column_choose(&c, e->sample, others, i < VALUES ? 0 : i, &form);
		}
		if (used + column_form_size(&form) <= PAYLOAD_MOST)
			column_put(&c, &form, out + used);
		used += column_form_size(&form);
	}
	return used;
}

/* Returns how many rows fit in any case, with each number as the varint of its difference to the
 * previous row. */
static uint32_t rows_that_fit(const struct log_encoder *e)
{
	size_t limit = PAYLOAD_MOST - (size_t)e->column_count * COLUMN_HEADER_MAX, bytes = 0;
	uint32_t row;

	for (row = 0; row < e->rows; row++) {
		for (unsigned i = 0; i < e->column_count; i++) {
			const uint64_t *word = column(e, i) + row;

			if (!is_rare(e, i))
				bytes += varint_size(
					zigzag((int64_t)(*word - (row ? word[-1] : 0))));
		}
		if (bytes > limit)
			break;
	}
	return row ? row : 1;
}

/* Encodes all rows if they fit, otherwise the first ones; *rows is set to their number. */
static uint32_t fill_block(struct log_encoder *e, uint32_t *rows, uint8_t *out)
{
	size_t size = put_columns(e, e->rows, false, out);

	*rows = e->rows;
	if (e->rows >= SAMPLE_LEAST || size > PAYLOAD_MOST) {
		uint64_t wanted = (uint64_t)e->rows * FILLED / (size ? size : 1);

		e->target = wanted > ENCODER_ROWS ? ENCODER_ROWS : wanted ? (uint32_t)wanted : 1;
	}
	if (size > PAYLOAD_MOST) {
		*rows = e->target < e->rows ? e->target : rows_that_fit(e);
		size = put_columns(e, *rows, false, out);
	}
	if (size > PAYLOAD_MOST) { /* the rows after the sample need more space than the sample */
		*rows = rows_that_fit(e);
		e->target = *rows;
		size = put_columns(e, *rows, true, out);
	}
	return (uint32_t)size;
}

static bool in_order(const struct log_encoder *e, uint32_t i)
{
	const uint64_t *begin = column(e, BEGINS) + i, *length = column(e, LENGTHS) + i;
	const uint64_t *order = column(e, ORDERS) + i;

	if (begin[0] != begin[-1])
		return begin[0] > begin[-1];
	if (length[0] != length[-1])
		return length[0] < length[-1];
	return !e->wide || order[0] >= order[-1];
}

/* Returns whether each word is greater than the one before, or false if a word is 2^63 or more.
 * The loop has no branch. */
static bool are_ascending(const uint64_t *words, uint32_t rows)
{
	uint64_t bad = words[0];

#pragma GCC unroll 4
	for (uint32_t i = 1; i < rows; i++)
		bad |= words[i] | (words[i] - words[i - 1] - 1);
	return bad >> 63 == 0;
}

static uint64_t greatest(const uint64_t *words, uint32_t rows)
{
	uint64_t high = words[0];

#pragma GCC unroll 4
	for (uint32_t i = 1; i < rows; i++)
		high = words[i] > high ? words[i] : high;
	return high;
}

static uint64_t least(const uint64_t *words, uint32_t rows)
{
	uint64_t low = words[0];

#pragma GCC unroll 4
	for (uint32_t i = 1; i < rows; i++)
		low = words[i] < low ? words[i] : low;
	return low;
}

/* Sets the times and the order flag of a block. put_columns() has computed the ends. */
static void note_times(const struct log_encoder *e, struct log_block *block)
{
	const uint64_t *begins = column(e, BEGINS);
	uint64_t last_end = greatest(e->ends, block->rows);
	uint32_t i = 1;

	if (are_ascending(begins, block->rows)) {
		block->flags = LOG_SORTED;
		block->first_begin_ns = begins[0];
		block->last_begin_ns = begins[block->rows - 1];
	} else {
		while (i < block->rows && in_order(e, i))
			i++;
		block->flags = i >= block->rows ? LOG_SORTED : 0;
		block->first_begin_ns = least(begins, block->rows);
		block->last_begin_ns = greatest(begins, block->rows);
	}
	/* The end of a row may have overflowed. */
	block->last_end_ns = last_end > block->last_begin_ns ? last_end : block->last_begin_ns;
}

size_t log_finish(struct log_encoder *e, uint8_t out[LOG_HEADER_BYTES + LOG_BLOCK_BYTES])
{
	struct log_block block = { .kind = LOG_EVENTS, .layout = e->layout };

	if (!e->rows)
		return 0;
	block.size = fill_block(e, &block.rows, out + LOG_HEADER_BYTES);
	block.raw_size = block.size;
	note_times(e, &block);
	log_put_block_header(&block, out + LOG_HEADER_BYTES, out);
	size_t left = e->rows - block.rows; /* these rows stay for the next block */
	for (unsigned i = 0; left && i < e->column_count; i++)
		if (!is_rare(e, i))
			memmove(column(e, i), column(e, i) + block.rows, left * sizeof(uint64_t));
	if (left)
		memmove(e->slots, e->slots + block.rows, left);
	e->rows = (uint32_t)left;
	return LOG_HEADER_BYTES + block.size;
}
