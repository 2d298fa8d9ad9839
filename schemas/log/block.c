/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/log/log.h"

#include "schemas/base/bytes.h"
#include "schemas/base/crc32c.h"

/* "TBLK"; a reader searches for it after a damaged block. */
#define BLOCK_MAGIC 0x4b4c4254u

enum { AT_MAGIC = 0, AT_HEADER_CRC = 4, CRC_FROM = 8 };

static const struct log_header_word block_words[] = {
	LOG_HEADER_WORD(8, log_block, kind),
	LOG_HEADER_WORD(10, log_block, flags),
	LOG_HEADER_WORD(12, log_block, layout),
	LOG_HEADER_WORD(16, log_block, size),
	LOG_HEADER_WORD(20, log_block, raw_size),
	LOG_HEADER_WORD(24, log_block, rows),
	LOG_HEADER_WORD(28, log_block, crc),
	LOG_HEADER_WORD(32, log_block, first_begin_ns),
	LOG_HEADER_WORD(40, log_block, last_begin_ns),
	LOG_HEADER_WORD(48, log_block, last_end_ns),
};
enum { BLOCK_WORDS = sizeof(block_words) / sizeof(block_words[0]) };

void log_put_header_words(const struct log_header_word *words, size_t count, const void *from,
			  uint8_t *out)
{
	for (const struct log_header_word *w = words; w < words + count; w++)
		memcpy(out + w->at, (const char *)from + w->offset, w->size);
}

void log_take_header_words(const struct log_header_word *words, size_t count, const uint8_t *header,
			   void *to)
{
	for (const struct log_header_word *w = words; w < words + count; w++)
		memcpy((char *)to + w->offset, header + w->at, w->size);
}

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
		return fail(err, ST_TRUNCATED, 0, "file header is truncated: %zu of %d bytes", len,
			    LOG_FILE_HEADER_BYTES);
	if (get_u32(bytes + 12) != crc32c(0, bytes, 12))
		return fail(err, ST_FORMAT, 8, "file header is damaged");
	if (get_u32(bytes + 8) != LOG_VERSION)
		return fail(err, ST_FORMAT, 8, "log of version %u; this program reads version %d",
			    get_u32(bytes + 8), LOG_VERSION);
	return ST_OK;
}

void log_put_block_header(struct log_block *block, const uint8_t *payload,
			  uint8_t out[LOG_HEADER_BYTES])
{
	block->crc = crc32c(0, payload, block->size);
	memset(out, 0, LOG_HEADER_BYTES);
	put_u32(out + AT_MAGIC, BLOCK_MAGIC);
	log_put_header_words(block_words, BLOCK_WORDS, block, out);
	put_u32(out + AT_HEADER_CRC, crc32c(0, out + CRC_FROM, LOG_HEADER_BYTES - CRC_FROM));
}

static bool header_take(const uint8_t *p, uint64_t at, struct log_block *block)
{
	if (get_u32(p + AT_MAGIC) != BLOCK_MAGIC ||
	    get_u32(p + AT_HEADER_CRC) != crc32c(0, p + CRC_FROM, LOG_HEADER_BYTES - CRC_FROM))
		return false;
	*block = (struct log_block){ .offset = at };
	log_take_header_words(block_words, BLOCK_WORDS, p, block);
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
	return fail(err, ST_TRUNCATED, at + i, "block header is truncated: %zu of %d bytes",
		    len - i, LOG_HEADER_BYTES);
}

enum status log_check(const struct log_block *block, const uint8_t *payload, struct error *err)
{
	if (crc32c(0, payload, block->size) != block->crc)
		return fail(err, ST_FORMAT, block->offset,
			    "block is damaged: its checksum is wrong");
	return ST_OK;
}
