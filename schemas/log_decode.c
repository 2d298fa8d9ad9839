/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log_column.h"

/*
 * A block is decoded a chunk of rows at a time, column by column; a column whose words are all the
 * same has one word.  log_decode_init() has seen that every stream holds its rows, so that a chunk
 * cannot overrun.
 */
struct log_decoder {
	struct log_rows rows; /* the present chunk */
	const struct log_layout *layout;
	size_t site_count;
	uint32_t rows_left; /* that no chunk was made of */
	uint32_t room;      /* rows of a chunk */
	uint32_t lost;
	uint32_t given;     /* rows of the chunk, by log_decode() */
	uint16_t layout_number;
	bool has_unknown;   /* a site in the present chunk */
	bool has_overflow;  /* a time in it */
	int column_of[LOG_VARY]; /* of a role; -1: none */
	uint64_t zero;
	uint64_t ends[LOG_SLOTS]; /* of the row before on a slot */
	struct column_reader readers[];
};

/* Those of which each row has a word, also when it is the same in all. */
static const uint64_t **core_words(struct log_rows *r, unsigned role)
{
	switch (role) {
	case LOG_BEGIN:
		return &r->begins;
	case LOG_LENGTH:
		return &r->lengths;
	case LOG_SITE:
		return &r->sites;
	case LOG_JOIN:
		return &r->joins;
	default:
		return NULL;
	}
}

static struct log_words *rare_words(struct log_rows *r, unsigned role)
{
	return role == LOG_AMOUNT ? &r->amounts : role == LOG_FLAGS ? &r->flags : &r->orders;
}

/* What the columns of a block need: a word for each row, and one for each place of a site. */
struct columns_need {
	uint32_t words, by_site;
};

static struct columns_need columns_need(const struct log_layout *layout,
					const struct log_block *block, const uint8_t *payload)
{
	struct bytes in = bytes_init(payload, block->raw_size);
	bool has_words[LOG_VARY + 1] = { false };
	struct columns_need n = { 0, 0 };
	struct column_reader r;

	for (unsigned i = 0; i < layout->column_count && column_pass(&in, &r); i++) {
		unsigned role = layout->columns[i].role;

		has_words[role < LOG_VARY ? role : LOG_VARY] = !column_is_constant(&r);
		n.words += !column_is_constant(&r);
		n.by_site += r.transform == BY_SITE;
	}
	n.words += !has_words[LOG_BEGIN] + !has_words[LOG_LENGTH] + !has_words[LOG_SITE] +
		   !has_words[LOG_JOIN];
	return n;
}

size_t log_decoder_size(const struct log_layout *layout, const struct log_block *block,
			const uint8_t *payload, uint32_t rows)
{
	struct columns_need n = columns_need(layout, block, payload);

	return sizeof(struct log_decoder) +
	       layout->column_count * sizeof(struct column_reader) +
	       layout->vary_count * sizeof(struct log_words) +
	       ((size_t)n.words * rows + (size_t)n.by_site * SITE_PLACES) * sizeof(uint64_t);
}

/* Sites and lengths stand before what needs them. */
static bool is_in_order(const struct log_decoder *d, int column)
{
	unsigned transform = d->readers[column].transform;

	if (transform == BY_SITE)
		return d->column_of[LOG_SITE] >= 0 && d->column_of[LOG_SITE] < column;
	if (transform == BY_END)
		return d->column_of[LOG_BEGIN] >= 0 && d->column_of[LOG_BEGIN] < column &&
		       d->column_of[LOG_LENGTH] < column;
	if (transform != BY_GAP)
		return true;
	return column == d->column_of[LOG_BEGIN] && d->column_of[LOG_SITE] >= 0 &&
	       d->column_of[LOG_SITE] < column && d->column_of[LOG_LENGTH] < column;
}

static struct log_words words_of(const struct column_reader *r)
{
	return column_is_constant(r) ? (struct log_words){ &r->residual, 0 }
				     : (struct log_words){ r->words, UINT32_MAX };
}

/* Room for the words of a column, places before the first of a site; behind it in *room. */
static void take_room(struct log_decoder *d, struct column_reader *r, uint64_t **room)
{
	if (column_is_constant(r)) {
		r->residual += r->last; /* it is the word itself from here on */
		return;
	}
	r->words = *room;
	*room += d->room;
	if (r->transform != BY_SITE)
		return;
	r->by_site = *room;
	for (unsigned i = 0; i < SITE_PLACES; i++)
		r->by_site[i] = r->last;
	*room += SITE_PLACES;
}

static void note_column(struct log_decoder *d, unsigned column, struct log_words *vary)
{
	const struct log_column *c = &d->layout->columns[column];

	if (c->role < LOG_VARY)
		d->column_of[c->role] = (int)column;
	else if (c->vary < d->layout->vary_count)
		vary[c->vary] = words_of(&d->readers[column]);
}

/* The words of a role: its column's, or as many that are the same. */
static void set_role(struct log_decoder *d, unsigned role, uint64_t **room)
{
	int column = d->column_of[role];
	struct log_words words = column < 0 ? (struct log_words){ &d->zero, 0 }
					    : words_of(&d->readers[column]);
	const uint64_t **core = core_words(&d->rows, role);

	if (!core) {
		d->rows.has_rare |= words.mask != 0;
		*rare_words(&d->rows, role) = words;
		return;
	}
	*core = words.mask ? words.at : *room;
	if (words.mask)
		return;
	for (uint32_t i = 0; i < d->room; i++)
		(*room)[i] = *words.at;
	*room += d->room;
}

static enum status open_columns(struct log_decoder *d, const struct log_block *block,
				struct bytes *in, struct error *err)
{
	const struct log_layout *l = d->layout;
	struct log_words *vary = (struct log_words *)(d->readers + l->column_count);
	uint64_t *room = (uint64_t *)(vary + l->vary_count);

	for (unsigned i = 0; i < l->vary_count; i++)
		vary[i] = (struct log_words){ &d->zero, 0 };
	d->rows.vary = vary;
	for (unsigned i = 0; i < l->column_count; i++) {
		TRY(column_open(&d->readers[i], in, block, i, err));
		take_room(d, &d->readers[i], &room);
		note_column(d, i, vary);
	}
	for (unsigned role = 0; role < LOG_VARY; role++)
		set_role(d, role, &room);
	return ST_OK;
}

enum status log_decode_init(struct log_decoder *d, const struct log_block *block,
			    const uint8_t *payload, const struct log_layout *layout,
			    const struct log_site *sites, size_t site_count, uint32_t rows,
			    struct error *err)
{
	struct bytes in = bytes_init(payload, block->raw_size);

	*d = (struct log_decoder){
		.rows = { .site = sites, .vary_count = layout->vary_count }, .layout = layout,
		.site_count = site_count, .rows_left = block->rows, .room = rows,
		.layout_number = block->layout,
	};
	for (unsigned role = 0; role < LOG_VARY; role++)
		d->column_of[role] = -1;
	TRY(open_columns(d, block, &in, err));
	if (d->column_of[LOG_SITE] < 0 || d->column_of[LOG_BEGIN] < 0)
		return fail(err, ST_FORMAT, block->offset,
			    "block of events has no column for %s",
			    d->column_of[LOG_SITE] < 0 ? "its sites" : "its times");
	for (unsigned i = 0; i < layout->column_count; i++)
		if (!is_in_order(d, (int)i))
			return fail(err, ST_FORMAT, block->offset,
				    "column %u of a block needs one that does not come before", i);
	for (unsigned i = 0; i < LOG_SLOTS; i++)
		d->ends[i] = d->readers[d->column_of[LOG_BEGIN]].last;
	if (bytes_left(&in))
		return fail(err, ST_FORMAT, block->offset, "block has %zu bytes after its columns",
			    bytes_left(&in));
	return ST_OK;
}

/* Unknown, or of another layout, whose varying numbers would not fit. */
static bool is_unknown(const struct log_decoder *d, uint64_t site)
{
	return site >= d->site_count || d->rows.site[site].layout != d->layout_number;
}

/* The rows that could be told: behind an unknown site no gap can be. */
static uint32_t add_gaps(struct log_decoder *d, uint64_t divisor, uint64_t *begins, uint32_t count)
{
	const uint64_t *sites = d->rows.sites, *lengths = d->rows.lengths;
	const struct log_site *rows = d->rows.site;
	bool overflows = false;
	uint32_t i;

	for (i = 0; i < count && !is_unknown(d, sites[i]); i++) {
		uint64_t *end = &d->ends[rows[sites[i]].slot % LOG_SLOTS];

		begins[i] = *end + column_step(begins[i], divisor);
		*end = begins[i] + lengths[i];
		overflows |= *end < begins[i];
	}
	d->has_overflow = overflows;
	return i;
}

static void add_ends(const struct log_decoder *d, uint64_t divisor, uint64_t *words, uint32_t count)
{
	const uint64_t *begins = d->rows.begins, *lengths = d->rows.lengths;

	for (uint32_t i = 0; i < count; i++)
		words[i] = begins[i] + lengths[i] + column_step(words[i], divisor);
}

/* The rows of the chunk that could be told. */
static uint32_t decode_column(struct log_decoder *d, unsigned column, uint32_t count)
{
	struct column_reader *r = &d->readers[column];
	struct log_words others = { d->rows.sites, UINT32_MAX };
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
		add_ends(d, r->divisor, r->words, count);
	else
		column_sum(r, r->words, &others, count);
	return good;
}

/* What gaps have not looked at. */
static void check_rows(struct log_decoder *d, uint32_t count)
{
	const struct log_rows *r = &d->rows;

	d->has_unknown = d->has_overflow = false;
	for (uint32_t i = 0; i < count; i++) {
		d->has_unknown |= is_unknown(d, r->sites[i]);
		d->has_overflow |= r->begins[i] + r->lengths[i] < r->begins[i];
	}
}

/* Rows whose site is unknown, or whose times overflow, are taken out. */
static uint32_t leave_out(struct log_decoder *d, uint32_t count)
{
	const struct log_rows *r = &d->rows;
	uint32_t kept = 0;

	for (uint32_t row = 0; row < count; row++) {
		if (is_unknown(d, r->sites[row]) ||
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

static void next_chunk(struct log_decoder *d)
{
	uint32_t count = d->rows_left < d->room ? d->rows_left : d->room, good = count;

	d->rows_left -= count;
	for (unsigned i = 0; i < d->layout->column_count; i++) {
		uint32_t told = decode_column(d, i, count);

		good = told < good ? told : good;
	}
	if (good < count) {
		d->lost += count - good + d->rows_left;
		d->rows_left = 0;
	}
	if (d->readers[d->column_of[LOG_BEGIN]].transform != BY_GAP)
		check_rows(d, good);
	if (d->has_unknown || d->has_overflow)
		good = leave_out(d, good);
	d->rows.count = good;
}

const struct log_rows *log_decode_rows(struct log_decoder *d)
{
	d->rows.count = d->given = 0;
	while (!d->rows.count) {
		if (!d->rows_left)
			return NULL;
		next_chunk(d);
	}
	return &d->rows;
}

size_t log_decode(struct log_decoder *d, struct event *out, size_t cap, uint64_t *vary)
{
	size_t count = 0;

	while (count < cap) {
		if (d->given == d->rows.count && !log_decode_rows(d))
			break;
		log_rows_event(&d->rows, d->given++, &out[count], vary);
		if (d->rows.vary_count)
			vary += d->rows.vary_count;
		count++;
	}
	return count;
}

uint32_t log_decode_lost(const struct log_decoder *d)
{
	return d->lost;
}
