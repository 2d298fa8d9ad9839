/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the file of a flight recorder, its magic and its blocks' checksums made right: what
 * is found in it lies in it, once.
 */
#include "schemas/log/ring.h"
#include "tests/fuzz/log_sign.h"
#include "tests/fuzz/target.h"

struct file {
	const uint8_t *bytes;
	size_t size;
};

static enum status read_at(const void *arg, uint64_t at, void *bytes, size_t len, size_t *got,
			   struct error *err)
{
	const struct file *f = arg;

	*got = at < f->size ? f->size - at : 0;
	if (*got > len)
		*got = len;
	if (*got)
		memcpy(bytes, f->bytes + at, *got);
	return ST_OK;
}

/* One block: magic, length, checksums, a small number. */
static size_t sign_block(uint8_t *header, size_t left)
{
	size_t len = get_u32(header + 16) % 256;

	len = len < left ? len : left;
	memcpy(header, "TBLK", 4);
	put_u16(header + 8, get_u16(header + 8) % 32);
	put_u32(header + 16, (uint32_t)len);
	put_u32(header + 20, (uint32_t)len);
	put_u32(header + 28, crc32c(0, header + LOG_HEADER_BYTES, len));
	log_ring_number(header, header[40] % 32);
	return log_ring_pad(LOG_HEADER_BYTES + len);
}

/* A header of sizes that fit the file, small numbers, then blocks one behind the other. */
static void sign(uint8_t *bytes, size_t size, const uint8_t *words)
{
	struct log_ring_consts consts = { .pid = 7 };
	size_t at = LOG_RING_HEADER, i;

	consts.half_bytes = (size - at) / 4 / LOG_RING_ALIGN * LOG_RING_ALIGN;
	consts.event_bytes = (size - at) / LOG_RING_ALIGN * LOG_RING_ALIGN - 2 * consts.half_bytes;
	consts.size = at + 2 * consts.half_bytes + consts.event_bytes;
	log_ring_put_consts(&consts, bytes);
	for (i = 0; i < 7; i++)
		put_u64(bytes + LOG_RING_TABLES + 8 * i, words[i] % 64);
	while (at + LOG_HEADER_BYTES <= size)
		at += sign_block(bytes + at, size - at - LOG_HEADER_BYTES);
}

static void read_ring(const uint8_t *bytes, size_t size)
{
	static struct log_ring r;
	struct file file = { bytes, size };
	struct log_block block;
	struct log_saved saved;
	uint64_t number, events = 0, turns = 0;

	if (log_ring_open(&r, read_at, &file, NULL) != ST_OK)
		return;
	while (log_ring_next_table(&r, &block, NULL) == ST_OK)
		if (block.offset + LOG_HEADER_BYTES + block.size > size || ++turns > size)
			abort();
	while (log_ring_next_events(&r, &block, &number, NULL) == ST_OK) {
		if (block.offset + LOG_HEADER_BYTES + block.size > size || number < r.lowest ||
		    number > r.highest || ++events > r.blocks)
			abort();
	}
	log_ring_saved(&r, "death", &saved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* the input is what stands behind the header: a fuzzer likes short ones */
	size_t all = LOG_RING_HEADER + size;
	uint8_t *copy = calloc(1, all + 1);

	read_ring(data, size);
	memcpy(copy + LOG_RING_HEADER, data, size);
	if (size >= 7) {
		sign(copy, all, data);
		read_ring(copy, all);
	}
	free(copy);
	return 0;
}
