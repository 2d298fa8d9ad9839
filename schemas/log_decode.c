/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_column.h"

/*
 * A block is decoded a chunk of rows at a time: each column to words, then the words to events.
 * log_decode_init() has seen that every stream holds its rows, so that a chunk cannot overrun.
 */
enum { CHUNK_ROWS = 256 };

struct log_decoder {
	const struct log_layout *layout;
	const struct log_site *sites;
	size_t site_count;
	uint16_t layout_number;
	uint32_t rows_left;            /* that no chunk was made of */
	uint32_t lost;
	uint32_t chunk_at, chunk_rows; /* rows of the chunk that were looked at; that it has */
	uint64_t ends[LOG_SLOTS];      /* of the row before on a slot */
	int column_of[LOG_VARY];       /* of a role; -1: none */
	const uint64_t *of_role[LOG_VARY]; /* words in the chunk; zeros where there is none */
	uint64_t zeros[CHUNK_ROWS];
	const struct log_site *row_sites[CHUNK_ROWS]; /* of the chunk; NULL: unknown */
	uint64_t *words; /* CHUNK_ROWS for each column */
	struct column_reader readers[];
};

size_t log_decoder_size(const struct log_layout *layout)
{
	return sizeof(struct log_decoder) +
	       layout->column_count *
		       (sizeof(struct column_reader) + CHUNK_ROWS * sizeof(uint64_t));
}

static uint64_t *words_of(struct log_decoder *d, unsigned column)
{
	return d->words + (size_t)column * CHUNK_ROWS;
}

static void find_roles(struct log_decoder *d)
{
	for (unsigned role = 0; role < LOG_VARY; role++) {
		d->column_of[role] = -1;
		d->of_role[role] = d->zeros;
	}
	for (unsigned i = 0; i < d->layout->column_count; i++) {
		unsigned role = d->layout->columns[i].role;

		if (role >= LOG_VARY)
			continue;
		d->column_of[role] = (int)i;
		d->of_role[role] = words_of(d, i);
	}
}

/* Sites and lengths stand before what needs them. */
static bool is_in_order(const struct log_decoder *d, int column)
{
	unsigned transform = d->readers[column].transform;

	if (transform == BY_SITE)
		return d->column_of[LOG_SITE] >= 0 && d->column_of[LOG_SITE] < column;
	if (transform == BY_END)
		return d->column_of[LOG_BEGIN] < column && d->column_of[LOG_LENGTH] < column;
	if (transform != BY_GAP)
		return true;
	return column == d->column_of[LOG_BEGIN] && d->column_of[LOG_SITE] >= 0 &&
	       d->column_of[LOG_SITE] < column && d->column_of[LOG_LENGTH] < column;
}

static void fill_constant(struct log_decoder *d, unsigned column)
{
	uint64_t *words = words_of(d, column);

	for (unsigned i = 0; i < CHUNK_ROWS; i++)
		words[i] = d->readers[column].last + d->readers[column].residual;
}

enum status log_decode_init(struct log_decoder *d, const struct log_block *block,
			    const uint8_t *payload, const struct log_layout *layout,
			    const struct log_site *sites, size_t site_count, struct error *err)
{
	struct bytes in = bytes_init(payload, block->raw_size);

	memset(d, 0, sizeof(*d));
	d->layout = layout;
	d->layout_number = block->layout;
	d->sites = sites;
	d->site_count = site_count;
	d->rows_left = block->rows;
	d->words = (uint64_t *)(d->readers + layout->column_count);
	find_roles(d);
	if (d->column_of[LOG_SITE] < 0 || d->column_of[LOG_BEGIN] < 0)
		return fail(err, ST_FORMAT, block->offset,
			    "block of events has no column for %s",
			    d->column_of[LOG_SITE] < 0 ? "its sites" : "its times");
	for (unsigned i = 0; i < layout->column_count; i++) {
		TRY(column_open(&d->readers[i], &in, block, i, err));
		if (!is_in_order(d, (int)i))
			return fail(err, ST_FORMAT, block->offset,
				    "column %u of a block needs one that does not come before", i);
		if (column_is_constant(&d->readers[i]))
			fill_constant(d, i);
	}
	for (unsigned i = 0; i < LOG_SLOTS; i++)
		d->ends[i] = d->readers[d->column_of[LOG_BEGIN]].last;
	if (bytes_left(&in))
		return fail(err, ST_FORMAT, block->offset, "block has %zu bytes after its columns",
			    bytes_left(&in));
	return ST_OK;
}

/* NULL: unknown, or of another layout, whose varying numbers would not fit. */
static void find_sites(struct log_decoder *d, uint32_t count)
{
	const uint64_t *ids = d->of_role[LOG_SITE];

	for (uint32_t i = 0; i < count; i++) {
		const struct log_site *site = ids[i] < d->site_count ? &d->sites[ids[i]] : NULL;

		d->row_sites[i] = site && site->layout == d->layout_number ? site : NULL;
	}
}

/* The rows that could be told: behind an unknown site no gap can be. */
static uint32_t add_gaps(struct log_decoder *d, uint64_t divisor, uint64_t *begins, uint32_t count)
{
	const uint64_t *lengths = d->of_role[LOG_LENGTH];

	for (uint32_t i = 0; i < count; i++) {
		uint64_t *end;

		if (!d->row_sites[i])
			return i;
		end = &d->ends[d->row_sites[i]->slot % LOG_SLOTS];
		begins[i] = *end + column_step(begins[i], divisor);
		*end = begins[i] + lengths[i];
	}
	return count;
}

static const uint64_t *row_ends(const struct log_decoder *d, uint64_t *ends, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		ends[i] = d->of_role[LOG_BEGIN][i] + d->of_role[LOG_LENGTH][i];
	return ends;
}

/* The rows of the chunk that could be told. */
static uint32_t decode_column(struct log_decoder *d, unsigned column, uint32_t count)
{
	struct column_reader *r = &d->readers[column];
	uint64_t *words = words_of(d, column);
	const uint64_t *others = d->of_role[LOG_SITE];
	uint64_t ends[CHUNK_ROWS];
	uint32_t good = count;

	if (!column_is_constant(r)) {
		if (!column_take(r, words, count))
			good = 0;
		if (r->transform == BY_COLUMN)
			others = words_of(d, (unsigned)r->last);
		if (r->transform == BY_END)
			others = row_ends(d, ends, count);
		if (r->transform == BY_GAP)
			good = add_gaps(d, r->divisor, words, good);
		else
			column_sum(r, words, others, count);
	}
	if ((int)column == d->column_of[LOG_SITE])
		find_sites(d, count);
	return good;
}

static void next_chunk(struct log_decoder *d)
{
	uint32_t count = d->rows_left < CHUNK_ROWS ? d->rows_left : CHUNK_ROWS, good = count;

	d->rows_left -= count;
	for (unsigned i = 0; i < d->layout->column_count; i++) {
		uint32_t told = decode_column(d, i, count);

		good = told < good ? told : good;
	}
	if (good < count) {
		d->lost += count - good + d->rows_left;
		d->rows_left = 0;
	}
	d->chunk_at = 0;
	d->chunk_rows = good;
}

static void put_vary(const struct log_decoder *d, uint32_t row, uint64_t *vary)
{
	const struct log_column *c = d->layout->columns;

	for (unsigned i = 0; i < d->layout->column_count; i++)
		if (c[i].role == LOG_VARY)
			vary[c[i].vary] = d->words[(size_t)i * CHUNK_ROWS + row];
}

static inline bool put_event(const struct log_decoder *d, uint32_t row, struct event *e)
{
	const struct log_site *site = d->row_sites[row];
	uint64_t begin_ns = d->of_role[LOG_BEGIN][row];
	uint64_t end_ns = begin_ns + d->of_role[LOG_LENGTH][row];

	if (!site || end_ns < begin_ns)
		return false;
	*e = (struct event){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.correlation = d->of_role[LOG_JOIN][row],
		.bytes = d->of_role[LOG_AMOUNT][row],
		.track = site->track,
		.name = site->name,
		.shape = site->shape,
		.step = (uint32_t)d->of_role[LOG_ORDER][row],
		.kind = site->kind,
		.subkind = site->subkind,
		.flags = (uint8_t)d->of_role[LOG_FLAGS][row],
	};
	return true;
}

size_t log_decode(struct log_decoder *d, struct event *out, size_t cap, uint64_t *vary)
{
	unsigned vary_count = d->layout->vary_count;
	size_t count = 0;

	while (count < cap) {
		uint32_t row = d->chunk_at;

		if (row == d->chunk_rows) {
			if (!d->rows_left)
				break;
			next_chunk(d);
			continue;
		}
		d->chunk_at++;
		if (!put_event(d, row, &out[count])) {
			d->lost++;
			continue;
		}
		if (vary_count) {
			put_vary(d, row, vary);
			out[count].vary = vary;
			vary += vary_count;
		}
		count++;
	}
	return count;
}

uint32_t log_decode_lost(const struct log_decoder *d)
{
	return d->lost;
}
