/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_column.h"

/*
 * Rows wait as words, column by column, until the block is full.  While they come in, the size of
 * the plainest coding is summed up (varints of the differences); what log_finish() chooses is
 * never larger, so a block never overruns.
 */
enum {
	ENCODER_ROWS = 4096, /* a block is full of bytes sooner */
	MEMBER_COLUMNS = 7,
	COLUMNS_MAX = MEMBER_COLUMNS + LOG_LAYOUT_VARY,
};
/* In the order of the file: what others refer to comes first.  log_tables.c writes it so. */
enum { SITES, LENGTHS, BEGINS, JOINS, AMOUNTS, FLAGS, ORDERS, VARY };

struct encoder_column {
	uint64_t last;
	uint32_t first_bytes; /* of the first row's varint */
	bool varies;          /* a constant column has no stream */
};
struct log_encoder {
	uint16_t layout;
	uint8_t kind;
	bool sorted;
	uint32_t column_count, rows;
	uint32_t sample;
	size_t bytes; /* of all streams, at most */
	uint64_t first_begin_ns, last_begin_ns, last_end_ns;
	uint64_t begin_ns, end_ns, order; /* of the row before */
	uint64_t *scratch, *ends;
	uint8_t *slots;
	uint64_t *words[COLUMNS_MAX];
	struct encoder_column columns[COLUMNS_MAX];
};

size_t log_encoder_size(unsigned vary_count)
{
	size_t columns = MEMBER_COLUMNS + (size_t)vary_count;

	return sizeof(struct log_encoder) + ENCODER_ROWS * (columns + 2) * sizeof(uint64_t) +
	       ENCODER_ROWS;
}

static void encoder_clear(struct log_encoder *e)
{
	e->rows = 0;
	e->bytes = 0;
	e->sorted = true;
	e->first_begin_ns = UINT64_MAX;
	e->last_begin_ns = e->last_end_ns = 0;
	memset(e->columns, 0, sizeof(e->columns[0]) * e->column_count);
}

void log_encode_init(struct log_encoder *e, uint16_t layout, unsigned kind, unsigned vary_count)
{
	uint64_t *words = (uint64_t *)(e + 1);

	memset(e, 0, sizeof(*e));
	e->layout = layout;
	e->kind = (uint8_t)kind;
	e->sample = COLUMN_SAMPLE;
	e->column_count = MEMBER_COLUMNS + vary_count;
	e->scratch = words;
	e->ends = words += ENCODER_ROWS;
	for (unsigned i = 0; i < e->column_count; i++)
		e->words[i] = words += ENCODER_ROWS;
	e->slots = (uint8_t *)(words + ENCODER_ROWS);
	encoder_clear(e);
}

uint32_t log_encoder_rows(const struct log_encoder *e)
{
	return e->rows;
}

static size_t payload_limit(const struct log_encoder *e)
{
	return LOG_BLOCK_BYTES - 8 - (size_t)e->column_count * COLUMN_HEADER_MAX;
}

static inline void column_add(struct log_encoder *e, unsigned index, uint64_t word)
{
	struct encoder_column *c = &e->columns[index];
	uint32_t size;

	e->words[index][e->rows] = word;
	if (word == c->last) { /* nothing in a constant column, else one byte */
		e->bytes += c->varies;
		return;
	}
	size = (uint32_t)varint_size(zigzag((int64_t)(word - c->last)));
	c->last = word;
	if (!e->rows) {
		c->first_bytes = size;
		return;
	}
	if (!c->varies)
		e->bytes += c->first_bytes + e->rows;
	c->varies = true;
	e->bytes += size;
}

static void note_times(struct log_encoder *e, const struct event *row, uint32_t order)
{
	bool later = row->begin_ns != e->begin_ns ? row->begin_ns > e->begin_ns :
		     row->end_ns != e->end_ns	  ? row->end_ns < e->end_ns :
						    order >= e->order;

	e->sorted &= later || !e->rows;
	e->begin_ns = row->begin_ns;
	e->end_ns = row->end_ns;
	e->order = order;
	if (row->begin_ns < e->first_begin_ns)
		e->first_begin_ns = row->begin_ns;
	if (row->begin_ns > e->last_begin_ns)
		e->last_begin_ns = row->begin_ns;
	if (row->end_ns > e->last_end_ns)
		e->last_end_ns = row->end_ns;
	if (e->last_begin_ns > e->last_end_ns) /* a row that ends before it begins */
		e->last_end_ns = e->last_begin_ns;
}

bool log_put(struct log_encoder *e, const struct event *row, uint32_t site, uint32_t order)
{
	if (e->rows == ENCODER_ROWS)
		return false;
	column_add(e, SITES, site);
	column_add(e, LENGTHS, row->end_ns - row->begin_ns);
	column_add(e, BEGINS, row->begin_ns);
	column_add(e, JOINS, row->correlation);
	column_add(e, AMOUNTS, row->bytes);
	column_add(e, FLAGS, row->flags);
	column_add(e, ORDERS, order);
	for (unsigned i = VARY; i < e->column_count; i++)
		column_add(e, i, row->vary[i - VARY]);
	if (e->bytes > payload_limit(e))
		return false; /* log_finish() looks only at rows that are in */
	e->slots[e->rows] = log_slot(row->track);
	note_times(e, row, order);
	e->rows++;
	return true;
}

/* What the gap of the begin column is measured from. */
static const uint64_t *ends_of(struct log_encoder *e)
{
	for (uint32_t i = 0; i < e->rows; i++)
		e->ends[i] = e->words[BEGINS][i] + e->words[LENGTHS][i];
	return e->ends;
}

/* Others that a column may be equal to: not times, not flags. */
static unsigned others_of(const struct log_encoder *e, unsigned index, const uint64_t **others)
{
	for (unsigned i = 0; i < index; i++)
		others[i] = e->words[i];
	return index < AMOUNTS ? 0 : index;
}

static size_t put_columns(struct log_encoder *e, bool plainest, uint8_t *out)
{
	const uint64_t *others[COLUMNS_MAX];
	size_t used = 0;

	for (unsigned i = 0; i < e->column_count; i++) {
		struct column_plan plan;
		struct column_words c = {
			.words = e->words[i],
			.sites = i > SITES ? e->words[SITES] : NULL,
			.slots = i == BEGINS ? e->slots : NULL,
			.ends = i == BEGINS ? ends_of(e) : i >= VARY ? e->ends : NULL,
			.scratch = e->scratch,
			.rows = e->rows,
		};

		if (plainest)
			column_choose_delta(&c, &plan);
		else
			column_choose(&c, e->sample, others, others_of(e, i, others), &plan);
		if (used + column_plan_size(&plan) > LOG_BLOCK_BYTES - 8)
			return 0;
		used += column_put(&c, &plan, out + used);
	}
	return used;
}

size_t log_finish(struct log_encoder *e, uint8_t out[LOG_HEADER_BYTES + LOG_BLOCK_BYTES])
{
	struct log_block block = {
		.rows = e->rows,
		.kind = LOG_EVENTS,
		.layout = e->layout,
		.flags = e->sorted ? LOG_SORTED : 0,
		.first_begin_ns = e->first_begin_ns,
		.last_begin_ns = e->last_begin_ns,
		.last_end_ns = e->last_end_ns,
	};

	if (!e->rows)
		return 0;
	block.size = (uint32_t)put_columns(e, false, out + LOG_HEADER_BYTES);
	if (!block.size) /* what the sample promised did not hold */
		block.size = (uint32_t)put_columns(e, true, out + LOG_HEADER_BYTES);
	block.raw_size = block.size;
	log_put_block_header(&block, out + LOG_HEADER_BYTES, out);
	encoder_clear(e);
	return LOG_HEADER_BYTES + block.size;
}
