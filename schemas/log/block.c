/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/log.h"

#include "schemas/base/bytes.h"
#include "schemas/base/crc32c.h"

/* "TBLK", for which a reader searches after damage. */
#define BLOCK_MAGIC 0x4b4c4254u

/* Offsets of the header's members; LOG.md has them as a table. */
enum {
	AT_MAGIC = 0,
	AT_HEADER_CRC = 4,
	AT_KIND = 8,
	AT_FLAGS = 10,
	AT_LAYOUT = 12,
	AT_SIZE = 16,
	AT_RAW_SIZE = 20,
	AT_ROWS = 24,
	AT_CRC = 28,
	AT_FIRST_BEGIN = 32,
	AT_LAST_BEGIN = 40,
	AT_LAST_END = 48,
};

void log_put_file_header(uint8_t out[LOG_FILE_HEADER_BYTES])
{
	memcpy(out, LOG_MAGIC, 8);
	put_u32(out + 8, LOG_VERSION);
	put_u32(out + 12, crc32c(0, out, 12));
}

enum status log_take_file_header(const uint8_t *bytes, size_t len, struct error *err)
{
	size_t compared = len < 8 ? len : 8;

	if (!len || memcmp(bytes, LOG_MAGIC, compared) != 0)
		return fail(err, ST_FORMAT, 0, "not a Tacho log");
	if (len < LOG_FILE_HEADER_BYTES)
		return fail(err, ST_TRUNCATED, 0, "file header is cut off: %zu of %d bytes", len,
			    LOG_FILE_HEADER_BYTES);
	if (get_u32(bytes + 12) != crc32c(0, bytes, 12))
		return fail(err, ST_FORMAT, 8, "file header is damaged");
	if (get_u32(bytes + 8) != LOG_VERSION)
		return fail(err, ST_FORMAT, 8, "log of version %u, this program reads version %d",
			    get_u32(bytes + 8), LOG_VERSION);
	return ST_OK;
}

void log_put_block_header(struct log_block *block, const uint8_t *payload,
			  uint8_t out[LOG_HEADER_BYTES])
{
	block->crc = crc32c(0, payload, block->size);
	memset(out, 0, LOG_HEADER_BYTES);
	put_u32(out + AT_MAGIC, BLOCK_MAGIC);
	put_u16(out + AT_KIND, block->kind);
	put_u16(out + AT_FLAGS, block->flags);
	put_u16(out + AT_LAYOUT, block->layout);
	put_u32(out + AT_SIZE, block->size);
	put_u32(out + AT_RAW_SIZE, block->raw_size);
	put_u32(out + AT_ROWS, block->rows);
	put_u32(out + AT_CRC, block->crc);
	put_u64(out + AT_FIRST_BEGIN, block->first_begin_ns);
	put_u64(out + AT_LAST_BEGIN, block->last_begin_ns);
	put_u64(out + AT_LAST_END, block->last_end_ns);
	put_u32(out + AT_HEADER_CRC, crc32c(0, out + AT_KIND, LOG_HEADER_BYTES - AT_KIND));
}

static bool header_take(const uint8_t *p, uint64_t at, struct log_block *block)
{
	if (get_u32(p + AT_MAGIC) != BLOCK_MAGIC ||
	    get_u32(p + AT_HEADER_CRC) != crc32c(0, p + AT_KIND, LOG_HEADER_BYTES - AT_KIND))
		return false;
	*block = (struct log_block){
		.offset = at,
		.size = get_u32(p + AT_SIZE),
		.raw_size = get_u32(p + AT_RAW_SIZE),
		.rows = get_u32(p + AT_ROWS),
		.crc = get_u32(p + AT_CRC),
		.kind = get_u16(p + AT_KIND),
		.layout = get_u16(p + AT_LAYOUT),
		.flags = get_u16(p + AT_FLAGS),
		.first_begin_ns = get_u64(p + AT_FIRST_BEGIN),
		.last_begin_ns = get_u64(p + AT_LAST_BEGIN),
		.last_end_ns = get_u64(p + AT_LAST_END),
	};
	if (block->size > LOG_BLOCK_BYTES || block->raw_size > LOG_BLOCK_BYTES ||
	    block->rows > LOG_BLOCK_ROWS)
		return false;
	if (!(block->flags & LOG_DEFLATED) && block->size != block->raw_size)
		return false;
	return block->first_begin_ns <= block->last_begin_ns &&
	       block->last_begin_ns <= block->last_end_ns;
}

enum status log_find_block(const uint8_t *bytes, size_t len, uint64_t at, struct log_block *block,
			   size_t *skipped, struct error *err)
{
	size_t i = 0;

	while (len - i >= LOG_HEADER_BYTES) {
		if (header_take(bytes + i, at + i, block)) {
			*skipped = i;
			return ST_OK;
		}
		const uint8_t *next = memchr(bytes + i + 1, BLOCK_MAGIC & 0xff, len - i - 1);
		i = next ? (size_t)(next - bytes) : len;
	}
	*skipped = i;
	return fail(err, ST_TRUNCATED, at + i, "block header is cut off: %zu of %d bytes", len - i,
		    LOG_HEADER_BYTES);
}

enum status log_check(const struct log_block *block, const uint8_t *payload, struct error *err)
{
	if (crc32c(0, payload, block->size) != block->crc)
		return fail(err, ST_FORMAT, block->offset,
			    "block is damaged: its checksum is wrong");
	return ST_OK;
}
