/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/parquet/internal.h"

#include "convert/sink/parquet/thrift.h"
#include "schemas/base/vec.h"

#include <stdlib.h>

enum { PAGE_CEILING = 512 << 20, LEVELS_HEAD = 4 };

/* These numbers are defined by parquet.thrift. */
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DICTIONARY = 8 };
enum { PHYSICAL_INT64 = 2, PHYSICAL_DOUBLE = 5, PHYSICAL_BYTES = 6 };
enum { REPETITION_OPTIONAL = 1, CONVERTED_UTF8 = 0, CODEC_NONE = 0, FORMAT_VERSION = 1 };

static const char magic[4] = { 'P', 'A', 'R', '1' };

static int physical_of(const struct data_column *c)
{
	switch (c->type) {
	case TABLE_KEY:
	case TABLE_INTEGER:
		return PHYSICAL_INT64;
	case TABLE_REAL:
		return PHYSICAL_DOUBLE;
	default:
		return PHYSICAL_BYTES;
	}
}

/* Returns whether a column has a dictionary: its values repeat from row to row. */
static bool has_dictionary(const struct data_column *c)
{
	return physical_of(c) == PHYSICAL_BYTES || c->refers;
}

static enum status put_bytes(struct parquet *p, const void *bytes, size_t len, struct error *err)
{
	p->at += len;
	return p->write(p->self, bytes, len, err);
}

enum status parquet_init(struct parquet *p, const struct data_table *table,
			 enum status (*write)(void *self, const void *bytes, size_t len,
					      struct error *err),
			 void *self, struct error *err)
{
	*p = (struct parquet){ .table = table, .write = write, .self = self };
	p->width = data_table_width(table);
	buf_init(&p->page, PAGE_CEILING);
	buf_init(&p->head, PAGE_CEILING);
	buf_init(&p->text, PAGE_CEILING);
	for (size_t i = 0; i < p->width; i++) {
		buf_init(&p->columns[i].defined, PAGE_CEILING);
		buf_init(&p->columns[i].plain, PAGE_CEILING);
		buf_init(&p->columns[i].places, PAGE_CEILING);
		buf_init(&p->columns[i].begins, PAGE_CEILING);
	}
	return put_bytes(p, magic, sizeof(magic), err);
}

void parquet_release(struct parquet *p)
{
	for (size_t i = 0; i < p->width; i++) {
		buf_release(&p->columns[i].defined);
		buf_release(&p->columns[i].plain);
		buf_release(&p->columns[i].places);
		buf_release(&p->columns[i].begins);
		hash_release(&p->columns[i].index);
	}
	buf_release(&p->page);
	buf_release(&p->head);
	buf_release(&p->text);
	free(p->chunks);
	free(p->group_rows);
	*p = (struct parquet){ 0 };
}

/* ---- pages ---- */

/* Appends values of `width` bits each, the lowest bits first, as one run of groups of eight. */
static void put_packed(struct buf *b, const uint32_t *values, size_t count, unsigned width)
{
	size_t groups = (count + 7) / 8;
	uint64_t word = 0;
	unsigned bits = 0;

	buf_put_varint(b, groups << 1 | 1);
	for (size_t i = 0; i < groups * 8; i++) {
		word |= (uint64_t)(i < count ? values[i] : 0) << bits;
		for (bits += width; bits >= 8; bits -= 8, word >>= 8)
			buf_put_byte(b, (uint8_t)word);
	}
}

/* Writes p->page as a page, with its header before it. */
static enum status put_page(struct parquet *p, int type, size_t values, int encoding,
			    struct error *err)
{
	struct thrift t = { &p->head, 0 }, inner;

	TRY(buf_status(&p->page, err));
	buf_clear(&p->head);
	thrift_i32(&t, 1, type);
	thrift_i32(&t, 2, (int64_t)p->page.len);
	thrift_i32(&t, 3, (int64_t)p->page.len);
	inner = thrift_struct(&t, type == PAGE_DATA ? 5 : 7);
	thrift_i32(&inner, 1, (int64_t)values);
	thrift_i32(&inner, 2, encoding);
	if (type == PAGE_DATA) {
		thrift_i32(&inner, 3, ENCODING_RLE);
		thrift_i32(&inner, 4, ENCODING_RLE);
	}
	thrift_end(&inner);
	thrift_end(&t);
	TRY(buf_status(&p->head, err));
	TRY(put_bytes(p, p->head.data, p->head.len, err));
	return put_bytes(p, p->page.data, p->page.len, err);
}

static enum status end_column(struct parquet *p, const struct data_column *what,
			      struct parquet_column *c, struct parquet_chunk *chunk,
			      struct error *err)
{
	size_t distinct = c->begins.len / sizeof(uint32_t);
	uint64_t begin = p->at;
	unsigned width = 0;

	*chunk = (struct parquet_chunk){ .values = p->rows };
	if (has_dictionary(what)) {
		chunk->dictionary_at = (int64_t)p->at;
		buf_clear(&p->page);
		buf_put(&p->page, c->plain.data, c->plain.len);
		TRY(put_page(p, PAGE_DICTIONARY, distinct, ENCODING_PLAIN, err));
		while (distinct && (distinct - 1) >> width)
			width++;
	}
	chunk->data_at = (int64_t)p->at;
	buf_clear(&p->page);
	/* Definition levels mark the rows that have a value: their length in bytes, then one run of
	 * bits. */
	size_t at = p->page.len, bytes = (p->rows + 7) / 8;

	buf_put_u32(&p->page, 0);
	buf_put_varint(&p->page, bytes << 1 | 1);
	buf_put(&p->page, c->defined.data, bytes);
	if (p->page.status == ST_OK)
		put_u32(p->page.data + at, (uint32_t)(p->page.len - at - LEVELS_HEAD));
	if (has_dictionary(what)) {
		buf_put_byte(&p->page, (uint8_t)width);
		put_packed(&p->page, (const uint32_t *)(const void *)c->places.data, c->values,
			   width);
	} else {
		buf_put(&p->page, c->plain.data, c->plain.len);
	}
	TRY(put_page(p, PAGE_DATA, p->rows,
		     has_dictionary(what) ? ENCODING_DICTIONARY : ENCODING_PLAIN, err));
	chunk->size = (int64_t)(p->at - begin);
	c->values = 0;
	buf_clear(&c->defined);
	buf_clear(&c->plain);
	buf_clear(&c->places);
	buf_clear(&c->begins);
	hash_clear(&c->index);
	return ST_OK;
}

static enum status end_group(struct parquet *p, struct error *err)
{
	if (!p->rows)
		return ST_OK;
	TRY(vec_reserve(&p->chunks, &p->chunk_cap, (p->group_count + 1) * p->width, err));
	TRY(vec_reserve(&p->group_rows, &p->group_cap, p->group_count + 1, err));
	for (size_t i = 0; i < p->width; i++)
		TRY(end_column(p, &p->table->columns[i], &p->columns[i],
			       &p->chunks[p->group_count * p->width + i], err));
	p->group_rows[p->group_count++] = p->rows;
	p->all_rows += p->rows;
	p->rows = 0;
	return ST_OK;
}

/* ---- rows ---- */

/* Returns the place of a value in the dictionary, adding the value if it is new. */
static enum status find_place(struct parquet_column *c, const void *value, size_t len,
			      uint32_t *out, struct error *err)
{
	uint64_t hash = hash_text(value, len);
	const uint32_t *begins = (const uint32_t *)(const void *)c->begins.data;
	size_t count = c->begins.len / sizeof(uint32_t);

	for (size_t at = hash_first(&c->index, hash);
	     (*out = hash_item(&c->index, &at, hash)) != HASH_NONE; at = hash_next(&c->index, at)) {
		size_t end = *out + 1 < count ? begins[*out + 1] : c->plain.len;

		if (end - begins[*out] == len &&
		    memcmp(c->plain.data + begins[*out], value, len) == 0)
			return ST_OK;
	}
	*out = (uint32_t)count;
	buf_put_u32(&c->begins, (uint32_t)c->plain.len);
	buf_put(&c->plain, value, len);
	TRY(buf_status(&c->plain, err));
	return hash_add(&c->index, hash, *out, err);
}

/* Encodes a value: eight bytes, or a length and a text. */
static void encode(const struct data_column *what, const struct cell *cell, struct buf *scratch,
		   struct buf *out)
{
	const char *text;
	size_t len;

	buf_clear(out);
	if (physical_of(what) == PHYSICAL_BYTES) {
		text = cell_text(cell, scratch, &len);
		buf_put_u32(out, (uint32_t)len);
		buf_put(out, text, len);
	} else {
		buf_put_u64(out, cell->u64); /* u64 also has the bits of a real number */
	}
}

enum status parquet_put(struct parquet *p, const struct cell *cells, struct error *err)
{
	size_t bytes = 0;
	uint32_t place;

	for (size_t i = 0; i < p->width; i++) {
		const struct data_column *what = &p->table->columns[i];
		struct parquet_column *c = &p->columns[i];
		bool is_there = cells[i].type != CELL_EMPTY;

		if (p->rows % 8 == 0)
			buf_put_byte(&c->defined, 0);
		TRY(buf_status(&c->defined, err));
		c->defined.data[p->rows / 8] |= (uint8_t)(is_there << p->rows % 8);
		if (!is_there)
			continue;
		c->values++;
		encode(what, &cells[i], &p->text, &p->head);
		TRY(buf_status(&p->text, err));
		TRY(buf_status(&p->head, err));
		if (has_dictionary(what)) {
			TRY(find_place(c, p->head.data, p->head.len, &place, err));
			buf_put_u32(&c->places, place);
			TRY(buf_status(&c->places, err));
		} else {
			buf_put(&c->plain, p->head.data, p->head.len);
		}
		TRY(buf_status(&c->plain, err));
		bytes += c->plain.len;
	}
	if (++p->rows == PARQUET_GROUP_ROWS || bytes >= PARQUET_GROUP_BYTES)
		return end_group(p, err);
	return ST_OK;
}

/* ---- the footer ---- */

static void put_schema(struct parquet *p, struct thrift *t)
{
	thrift_list(t, 2, THRIFT_STRUCT, p->width + 1);
	struct thrift root = { t->out, 0 };
	thrift_text(&root, 4, p->table->name);
	thrift_i32(&root, 5, (int64_t)p->width);
	thrift_end(&root);
	for (size_t i = 0; i < p->width; i++) {
		const struct data_column *c = &p->table->columns[i];
		struct thrift column = { t->out, 0 }, logical, text;

		thrift_i32(&column, 1, physical_of(c));
		thrift_i32(&column, 3, REPETITION_OPTIONAL);
		thrift_text(&column, 4, c->name);
		if (physical_of(c) == PHYSICAL_BYTES) {
			thrift_i32(&column, 6, CONVERTED_UTF8);
			logical = thrift_struct(&column, 10);
			text = thrift_struct(&logical, 1);
			thrift_end(&text);
			thrift_end(&logical);
		}
		thrift_end(&column);
	}
}

static void put_chunk(const struct data_column *c, const struct parquet_chunk *chunk,
		      struct buf *out)
{
	int64_t begin = chunk->dictionary_at ? chunk->dictionary_at : chunk->data_at;
	struct thrift t = { out, 0 }, meta;

	thrift_i64(&t, 2, begin);
	meta = thrift_struct(&t, 3);
	thrift_i32(&meta, 1, physical_of(c));
	thrift_list(&meta, 2, THRIFT_I32, has_dictionary(c) ? 3 : 2);
	thrift_put_int(&meta, ENCODING_PLAIN);
	thrift_put_int(&meta, ENCODING_RLE);
	if (has_dictionary(c))
		thrift_put_int(&meta, ENCODING_DICTIONARY);
	thrift_list(&meta, 3, THRIFT_TEXT, 1);
	thrift_put_text(&meta, c->name);
	thrift_i32(&meta, 4, CODEC_NONE);
	thrift_i64(&meta, 5, chunk->values);
	thrift_i64(&meta, 6, chunk->size);
	thrift_i64(&meta, 7, chunk->size);
	thrift_i64(&meta, 9, chunk->data_at);
	if (chunk->dictionary_at)
		thrift_i64(&meta, 11, chunk->dictionary_at);
	thrift_end(&meta);
	thrift_end(&t);
}

enum status parquet_end(struct parquet *p, struct error *err)
{
	struct thrift t = { &p->page, 0 }, pair = { &p->page, 0 };
	size_t len;

	TRY(end_group(p, err));
	buf_clear(&p->page);
	thrift_i32(&t, 1, FORMAT_VERSION);
	put_schema(p, &t);
	thrift_i64(&t, 3, (int64_t)p->all_rows);
	thrift_list(&t, 4, THRIFT_STRUCT, p->group_count);
	for (size_t i = 0; i < p->group_count; i++) {
		struct thrift group = { t.out, 0 };
		int64_t size = 0;

		thrift_list(&group, 1, THRIFT_STRUCT, p->width);
		for (size_t k = 0; k < p->width; k++) {
			put_chunk(&p->table->columns[k], &p->chunks[i * p->width + k], t.out);
			size += p->chunks[i * p->width + k].size;
		}
		thrift_i64(&group, 2, size);
		thrift_i64(&group, 3, (int64_t)p->group_rows[i]);
		thrift_end(&group);
	}
	thrift_list(&t, 5, THRIFT_STRUCT, 1);
	thrift_text(&pair, 1, "description");
	thrift_text(&pair, 2, p->table->meaning);
	thrift_end(&pair);
	thrift_text(&t, 6, "Tacho " TACHO_VERSION);
	thrift_end(&t);
	len = p->page.len;
	buf_put_u32(&p->page, (uint32_t)len);
	buf_put(&p->page, magic, sizeof(magic));
	TRY(buf_status(&p->page, err));
	return put_bytes(p, p->page.data, p->page.len, err);
}
