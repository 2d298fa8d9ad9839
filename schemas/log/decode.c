/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/column.h"

/*
 * A block is decoded a chunk of rows at a time, column by column.  A column whose words are all the
 * same has one word.  log_decode_init() has checked that every stream holds its rows, so that a
 * chunk cannot overrun.
 */
struct log_decoder {
	struct log_rows rows; /* the current chunk */
	const struct log_layout *layout;
	size_t desc_count;
	uint32_t rows_left; /* rows of the block after the current chunk */
	uint32_t cap;       /* rows of a chunk */
	uint32_t lost;
	uint16_t layout_number;
	bool has_unknown;       /* the current chunk has an unknown descriptor */
	bool has_overflow;      /* the current chunk has an end that overflows */
	int column_of[LOG_ARG]; /* index of the column, by role; -1: none */
	uint64_t zero;
	uint64_t ends[LOG_SLOTS]; /* end of the last row of each slot */
	struct column_reader readers[];
};

/* Offsets of the words of each role.  The first four roles have a word for each row, even if all
 * are the same; the others are struct log_words. */
static const size_t role_places[LOG_ARG] = {
	[LOG_BEGIN] = offsetof(struct log_rows, begins),
	[LOG_LENGTH] = offsetof(struct log_rows, lengths),
	[LOG_DESC] = offsetof(struct log_rows, descs),
	[LOG_CORRELATION] = offsetof(struct log_rows, correlations),
	[LOG_VALUE] = offsetof(struct log_rows, values),
	[LOG_FLAGS] = offsetof(struct log_rows, flags),
	[LOG_ORDER] = offsetof(struct log_rows, orders),
};

size_t log_decoder_size(const struct log_layout *layout, const struct log_block *block,
			const uint8_t *payload, uint32_t rows)
{
	struct bytes in = bytes_init(payload, block->raw_size);
	bool has_words[LOG_ARG + 1] = { false };
	size_t words = 0,
	       by_desc = 0; /* number of columns with a word for each row, and for each place */
	struct column_reader r;

	for (unsigned i = 0; i < layout->column_count && column_pass(&in, &r); i++) {
		unsigned role = layout->columns[i].role;

		has_words[role < LOG_ARG ? role : LOG_ARG] = !column_is_constant(&r);
		words += !column_is_constant(&r);
		by_desc += r.transform == BY_DESC;
	}
	words += !has_words[LOG_BEGIN] + !has_words[LOG_LENGTH] + !has_words[LOG_DESC] +
		 !has_words[LOG_CORRELATION];
	return sizeof(struct log_decoder) + layout->column_count * sizeof(struct column_reader) +
	       layout->arg_count * sizeof(struct log_words) +
	       (words * rows + by_desc * DESC_PLACES) * sizeof(uint64_t);
}

/* Returns whether the columns that a transform refers to precede it. */
static bool is_in_order(const struct log_decoder *d, int column)
{
	unsigned transform = d->readers[column].transform;

	if (transform == BY_DESC)
		return d->column_of[LOG_DESC] >= 0 && d->column_of[LOG_DESC] < column;
	if (transform == BY_END)
		return d->column_of[LOG_BEGIN] >= 0 && d->column_of[LOG_BEGIN] < column &&
		       d->column_of[LOG_LENGTH] < column;
	if (transform != BY_GAP)
		return true;
	return column == d->column_of[LOG_BEGIN] && d->column_of[LOG_DESC] >= 0 &&
	       d->column_of[LOG_DESC] < column && d->column_of[LOG_LENGTH] < column;
}

static struct log_words words_of(const struct column_reader *r)
{
	return column_is_constant(r) ? (struct log_words){ &r->residual, 0 }
				     : (struct log_words){ r->words, UINT32_MAX };
}

/* Opens all columns and gives them their memory, which follows the readers. */
static enum status open_columns(struct log_decoder *d, const struct log_block *block,
				struct bytes *in, struct error *err)
{
	const struct log_layout *l = d->layout;
	struct log_words *args = (struct log_words *)(d->readers + l->column_count);
	uint64_t *memory = (uint64_t *)(args + l->arg_count);

	for (unsigned i = 0; i < l->arg_count; i++)
		args[i] = (struct log_words){ &d->zero, 0 };
	d->rows.args = args;
	for (unsigned i = 0; i < l->column_count; i++) {
		const struct log_column *c = &l->columns[i];
		struct column_reader *r = &d->readers[i];

		TRY(column_open(r, in, block, i, err));
		if (column_is_constant(r)) {
			r->residual += r->last; /* from here on `residual` is the word itself */
		} else {
			r->words = memory;
			memory += d->cap;
		}
		if (r->transform == BY_DESC) {
			r->by_desc = memory;
			memory += DESC_PLACES;
			for (unsigned k = 0; k < DESC_PLACES; k++)
				r->by_desc[k] = r->last;
		}
		if (c->role < LOG_ARG)
			d->column_of[c->role] = (int)i;
		else if (c->args < l->arg_count)
			args[c->args] = words_of(r);
	}
	for (unsigned role = 0; role < LOG_ARG; role++) {
		int column = d->column_of[role];
		struct log_words words = column < 0 ? (struct log_words){ &d->zero, 0 }
						    : words_of(&d->readers[column]);
		void *place = (char *)&d->rows + role_places[role];

		if (role > LOG_CORRELATION) {
			d->rows.has_rare |= words.mask != 0;
			*(struct log_words *)place = words;
		} else if (words.mask) {
			*(const uint64_t **)place = words.at;
		} else {
			*(const uint64_t **)place = memory;
			for (uint32_t i = 0; i < d->cap; i++)
				*memory++ = *words.at;
		}
	}
	return ST_OK;
}

enum status log_decode_init(struct log_decoder *d, const struct log_block *block,
			    const uint8_t *payload, const struct log_layout *layout,
			    const struct log_desc *descs, size_t desc_count, uint32_t rows,
			    struct error *err)
{
	struct bytes in = bytes_init(payload, block->raw_size);

	*d = (struct log_decoder){
		.rows = { .desc = descs, .arg_count = layout->arg_count },
		.layout = layout,
		.desc_count = desc_count,
		.rows_left = block->rows,
		.cap = rows,
		.layout_number = block->layout,
	};
	for (unsigned role = 0; role < LOG_ARG; role++)
		d->column_of[role] = -1;
	TRY(open_columns(d, block, &in, err));
	if (d->column_of[LOG_DESC] < 0 || d->column_of[LOG_BEGIN] < 0)
		return fail(err, ST_FORMAT, block->offset, "block of events has no column for %s",
			    d->column_of[LOG_DESC] < 0 ? "its sites" : "its times");
	for (unsigned i = 0; i < layout->column_count; i++)
		if (!is_in_order(d, (int)i))
			return fail(err, ST_FORMAT, block->offset,
				    "column %u of a block needs a column that does not precede it",
				    i);
	for (unsigned i = 0; i < LOG_SLOTS; i++)
		d->ends[i] = d->readers[d->column_of[LOG_BEGIN]].last;
	if (bytes_left(&in))
		return fail(err, ST_FORMAT, block->offset, "block has %zu bytes after its columns",
			    bytes_left(&in));
	return ST_OK;
}

/* Returns whether a row's descriptor was not read or has another layout, so that its argument
 * values would not fit. */
static bool is_unknown(const struct log_decoder *d, uint64_t desc)
{
	return desc >= d->desc_count || d->rows.desc[desc].layout != d->layout_number;
}

/* Turns gaps into begins and returns their number.  The slot of an unknown descriptor is unknown,
 * so the rows after one are lost. */
static uint32_t add_gaps(struct log_decoder *d, uint64_t divisor, uint64_t *begins, uint32_t count)
{
	const uint64_t *descs = d->rows.descs, *lengths = d->rows.lengths;
	const struct log_desc *rows = d->rows.desc;
	bool overflows = false;
	uint32_t i;

	for (i = 0; i < count && !is_unknown(d, descs[i]); i++) {
		uint64_t *end = &d->ends[rows[descs[i]].slot % LOG_SLOTS];

		begins[i] = *end + column_step(begins[i], divisor);
		*end = begins[i] + lengths[i];
		overflows |= *end < begins[i];
	}
	d->has_overflow = overflows;
	return i;
}

/* Decodes the next `count` rows of a column; returns how many of them are valid. */
static uint32_t decode_column(struct log_decoder *d, unsigned column, uint32_t count)
{
	struct column_reader *r = &d->readers[column];
	struct log_words others = { d->rows.descs, UINT32_MAX };
	uint32_t good = count;

	if (column_is_constant(r))
		return count;
	if (!column_take(r, r->words, count))
		good = 0;
	if (r->transform == BY_COLUMN)
		others = words_of(&d->readers[r->last]);
	if (r->transform == BY_GAP)
		return add_gaps(d, r->divisor, r->words, good);
	if (r->transform == BY_END)
		for (uint32_t i = 0; i < count; i++)
			r->words[i] = d->rows.begins[i] + d->rows.lengths[i] +
				      column_step(r->words[i], r->divisor);
	else
		column_sum(r, r->words, &others, count);
	return good;
}

/* Removes rows whose descriptor is unknown or whose end overflows; returns the number of the
 * others. */
static uint32_t leave_out(struct log_decoder *d, uint32_t count)
{
	const struct log_rows *r = &d->rows;
	uint32_t kept = 0;

	for (uint32_t row = 0; row < count; row++) {
		if (is_unknown(d, r->descs[row]) ||
		    r->begins[row] + r->lengths[row] < r->begins[row])
			continue;
		for (unsigned i = 0; kept != row && i < d->layout->column_count; i++)
			if (!column_is_constant(&d->readers[i]))
				d->readers[i].words[kept] = d->readers[i].words[row];
		kept++;
	}
	d->lost += count - kept;
	return kept;
}

const struct log_rows *log_decode_rows(struct log_decoder *d)
{
	d->rows.count = 0;
	while (!d->rows.count) {
		if (!d->rows_left)
			return NULL;
		const struct log_rows *r = &d->rows;
		uint32_t count = d->rows_left < d->cap ? d->rows_left : d->cap, good = count;

		d->rows_left -= count;
		for (unsigned i = 0; i < d->layout->column_count; i++) {
			uint32_t decoded = decode_column(d, i, count);

			good = decoded < good ? decoded : good;
		}
		if (good < count) {
			d->lost += count - good + d->rows_left;
			d->rows_left = 0;
		}
		if (d->readers[d->column_of[LOG_BEGIN]].transform !=
		    BY_GAP) { /* add_gaps() has checked */
			d->has_unknown = d->has_overflow = false;
			for (uint32_t i = 0; i < good; i++) {
				d->has_unknown |= is_unknown(d, r->descs[i]);
				d->has_overflow |= r->begins[i] + r->lengths[i] < r->begins[i];
			}
		}
		if (d->has_unknown || d->has_overflow)
			good = leave_out(d, good);
		d->rows.count = good;
	}
	return &d->rows;
}

uint32_t log_decode_lost(const struct log_decoder *d)
{
	return d->lost;
}
