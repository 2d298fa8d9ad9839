/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_encoder.h"

#include "schemas/log_column.h"

enum {
	STRIDE = ENCODER_STRIDE,
	MEMBER_COLUMNS = VARY,
	COLUMNS_MAX = MEMBER_COLUMNS + LOG_LAYOUT_VARY,
	ROOM = LOG_BLOCK_BYTES - 8, /* a stream's last number may be written with a whole word */
	FILLED = ROOM / 16 * 15,    /* what a block is meant to come to */
	TELLING_ROWS = 64,          /* fewer say nothing about the rows to come */
};

size_t log_encoder_size(unsigned vary_count)
{
	size_t columns = MEMBER_COLUMNS + (size_t)vary_count + 2;

	return sizeof(struct log_encoder) + columns * STRIDE * sizeof(uint64_t) + ENCODER_ROWS;
}

void log_encode_init(struct log_encoder *e, uint16_t layout, unsigned kind, unsigned vary_count,
		     uint32_t sample)
{
	memset(e, 0, sizeof(*e));
	e->layout = layout;
	e->kind = (uint8_t)kind;
	e->column_count = MEMBER_COLUMNS + vary_count;
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
	return !e->wide && index >= AMOUNTS && index <= ORDERS;
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
		at[AMOUNTS * STRIDE + i] = e->rare.amount;
		at[FLAGS * STRIDE + i] = e->rare.flags;
		at[ORDERS * STRIDE + i] = e->rare.order;
	}
	at += e->rows;
	at[AMOUNTS * STRIDE] = row.amount;
	at[FLAGS * STRIDE] = row.flags;
	at[ORDERS * STRIDE] = row.order;
}

/* ---- blocks ---- */

/* What the gap of the begin column is measured from. */
static const uint64_t *ends_of(struct log_encoder *e, uint32_t rows)
{
	const uint64_t *begins = column(e, BEGINS), *lengths = column(e, LENGTHS);

#pragma GCC unroll 4
	for (uint32_t i = 0; i < rows; i++)
		e->ends[i] = begins[i] + lengths[i];
	return e->ends;
}

/* Others that a column may be equal to: not times, not flags. */
static unsigned others_of(const struct log_encoder *e, unsigned index, const uint64_t **others)
{
	for (unsigned i = 0; i < index; i++)
		others[i] = is_rare(e, i) ? NULL : column(e, i);
	return index < AMOUNTS ? 0 : index;
}

static void plan_rare(const struct log_encoder *e, unsigned index, struct column_plan *plan)
{
	*plan = (struct column_plan){ .transform = BY_VALUE, .packing = PACK_CONST };
	plan->base = index == AMOUNTS ? e->rare.amount :
		     index == FLAGS   ? e->rare.flags :
					e->rare.order;
}

/* Returns the bytes of all columns; written are those that have room. */
static size_t put_columns(struct log_encoder *e, uint32_t rows, bool plainest, uint8_t *out)
{
	const uint64_t *others[COLUMNS_MAX];
	size_t used = 0;

	for (unsigned i = 0; i < e->column_count; i++) {
		struct column_plan plan;
		struct column_words c = {
			.words = column(e, i),
			.sites = i > SITES ? column(e, SITES) : NULL,
			.slots = i == BEGINS ? e->slots : NULL,
			.ends = i == BEGINS ? ends_of(e, rows) : i >= VARY ? e->ends : NULL,
			.scratch = e->scratch,
			.rows = rows,
		};

		if (is_rare(e, i))
			plan_rare(e, i, &plan);
		else if (plainest)
			column_choose_delta(&c, &plan);
		else
			column_choose(&c, e->sample, others, others_of(e, i, others), &plan);
		if (used + column_plan_size(&plan) <= ROOM)
			column_put(&c, &plan, out + used);
		used += column_plan_size(&plan);
	}
	return used;
}

static size_t step_bytes(const uint64_t *words, uint32_t row)
{
	return varint_size(zigzag((int64_t)(words[row] - (row ? words[row - 1] : 0))));
}

/* So many rows fit if each number is the varint of its difference from the row before. */
static uint32_t rows_that_fit(const struct log_encoder *e)
{
	size_t limit = ROOM - (size_t)e->column_count * COLUMN_HEADER_MAX, bytes = 0;
	uint32_t row;

	for (row = 0; row < e->rows; row++) {
		for (unsigned i = 0; i < e->column_count; i++)
			bytes += is_rare(e, i) ? 0 : step_bytes(column(e, i), row);
		if (bytes > limit)
			break;
	}
	return row ? row : 1;
}

static uint32_t rows_for(uint32_t rows, size_t bytes)
{
	uint64_t wanted = (uint64_t)rows * FILLED / (bytes ? bytes : 1);

	return wanted > ENCODER_ROWS ? ENCODER_ROWS : wanted ? (uint32_t)wanted : 1;
}

/* Of all rows if they fit, else of the first ones; *rows gets how many. */
static uint32_t fill_block(struct log_encoder *e, uint32_t *rows, uint8_t *out)
{
	size_t size = put_columns(e, e->rows, false, out);

	*rows = e->rows;
	if (e->rows >= TELLING_ROWS || size > ROOM)
		e->target = rows_for(e->rows, size);
	if (size > ROOM) {
		*rows = e->target < e->rows ? e->target : rows_that_fit(e);
		size = put_columns(e, *rows, false, out);
	}
	if (size > ROOM) { /* what the sample promised did not hold */
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

/* Each is more than the one before, and all are less than 2^63: one look without a branch. */
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

/* Behind put_columns(), which left the ends. */
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
	/* a row may end before it begins */
	block->last_end_ns = last_end > block->last_begin_ns ? last_end : block->last_begin_ns;
}

/* The rows of the block leave, what is behind them stays. */
static void encoder_pass(struct log_encoder *e, uint32_t rows)
{
	size_t left = e->rows - rows;

	for (unsigned i = 0; left && i < e->column_count; i++)
		if (!is_rare(e, i))
			memmove(column(e, i), column(e, i) + rows, left * sizeof(uint64_t));
	if (left)
		memmove(e->slots, e->slots + rows, left);
	e->rows = (uint32_t)left;
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
	encoder_pass(e, block.rows);
	return LOG_HEADER_BYTES + block.size;
}
