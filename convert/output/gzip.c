/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/output/gzip.h"

#include "convert/base/parallel.h"
#include "schemas/base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef TACHO_ISAL
#include <isa-l.h>
#endif

enum {
	BLOCK_BYTES = 256 * 1024,
	HISTORY_BYTES = 32 * 1024,
	STORED_MOST = 65535, /* bytes of a stored block */
	PACKED_BYTES = BLOCK_BYTES + BLOCK_BYTES / 8 + 4096,
	THREADS_MOST = 8,
	SPARE_JOBS = 2, /* more jobs than threads, so that no thread waits */
};

/* ---- deflate, by one library or the other ---- */

#ifdef TACHO_ISAL

enum { ISAL_LEVEL = 1 };
struct deflater {
	struct isal_zstream z;
	uint8_t level[ISAL_DEF_LVL1_DEFAULT];
};

#define WORD_(x) #x
#define WORD(x)  WORD_(x)

const char *gzip_library(void)
{
	return "ISA-L " WORD(ISAL_MAJOR_VERSION) "." WORD(ISAL_MINOR_VERSION) "." WORD(
		ISAL_PATCH_VERSION);
}

#else

struct deflater {
	z_stream z;
};

const char *gzip_library(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "zlib %s", zlibVersion());
	return text;
}

#endif

static bool deflater_init(struct deflater *d, int level)
{
#ifdef TACHO_ISAL
	return true; /* each block is initialized anew, at ISA-L's own level */
#else
	return deflateInit2(&d->z, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK;
#endif
}

static void deflater_release(struct deflater *d)
{
#ifndef TACHO_ISAL
	deflateEnd(&d->z);
#endif
}

/* Returns the length of the output, which ends on a whole byte, or 0 if it does not fit. */
static size_t deflater_deflate(struct deflater *d, uint8_t *bytes, size_t history, size_t len,
			       uint8_t *out, size_t cap)
{
	bool is_good;

#ifdef TACHO_ISAL
	isal_deflate_init(&d->z);
	d->z.level = ISAL_LEVEL;
	d->z.level_buf = d->level;
	d->z.level_buf_size = sizeof(d->level);
	d->z.flush = SYNC_FLUSH;
#endif
	d->z.next_in = bytes + history;
	d->z.avail_in = (uint32_t)len;
	d->z.next_out = out;
	d->z.avail_out = (uint32_t)cap;
#ifdef TACHO_ISAL
	is_good = !history || isal_deflate_set_dict(&d->z, bytes, (uint32_t)history) == COMP_OK;
	is_good = is_good && isal_deflate(&d->z) == COMP_OK;
#else
	is_good = deflateReset(&d->z) == Z_OK &&
		  (!history || deflateSetDictionary(&d->z, bytes, (uInt)history) == Z_OK) &&
		  deflate(&d->z, Z_SYNC_FLUSH) == Z_OK;
#endif
	return is_good && !d->z.avail_in && d->z.avail_out ? cap - d->z.avail_out : 0;
}

static uint32_t checksum(const uint8_t *bytes, size_t len)
{
#ifdef TACHO_ISAL
	return crc32_gzip_refl(0, bytes, len);
#else
	return (uint32_t)crc32(0, bytes, (uInt)len);
#endif
}

/* ---- blocks ---- */

struct block {
	struct deflater deflater;
	size_t history, len, packed_len;
	uint32_t crc;
	uint8_t bytes[HISTORY_BYTES + BLOCK_BYTES]; /* `history` bytes come first */
	uint8_t packed[PACKED_BYTES];
};

struct gzip {
	gzip_sink sink;
	void *self;
	int level;
	unsigned threads;
	struct job_queue *crew; /* NULL: no second block yet */
	/* Filled, deflated and written in turn; NULL: not allocated yet. */
	struct block *blocks[THREADS_MOST + SPARE_JOBS + 1];
	size_t turn; /* index of the block that is being filled */
	uint64_t total;
	uint32_t crc;
};

/* Stores bytes that deflate would not make smaller.  Returns the length of the output. */
static size_t store(uint8_t *out, const uint8_t *bytes, size_t len)
{
	uint8_t *at = out;

	while (len) {
		uint16_t part = (uint16_t)(len < STORED_MOST ? len : STORED_MOST);

		*at = 0;
		put_u16(at + 1, part);
		put_u16(at + 3, (uint16_t)~part);
		memcpy(at + 5, bytes, part);
		at += 5 + part;
		bytes += part;
		len -= part;
	}
	return (size_t)(at - out);
}

static void pack(void *self, void *job)
{
	struct block *b = job;
	uint8_t *bytes = b->bytes + b->history;

	b->crc = checksum(bytes, b->len);
	b->packed_len = deflater_deflate(&b->deflater, b->bytes, b->history, b->len, b->packed,
					 sizeof(b->packed));
	if (!b->packed_len)
		b->packed_len = store(b->packed, bytes, b->len);
}

static enum status write_block(struct gzip *g, struct block *b, struct error *err)
{
	TRY(g->sink(g->self, b->packed, b->packed_len, err));
	g->crc = (uint32_t)crc32_combine(g->crc, b->crc, (z_off_t)b->len);
	g->total += b->len;
	return ST_OK;
}

/* Makes the block at index `turn` the one to fill; its history is the end of the previous block. */
static enum status next_block(struct gzip *g, size_t turn, struct error *err)
{
	const struct block *before = g->blocks[g->turn];
	struct block *b = g->blocks[turn];
	size_t most = before ? before->history + before->len : 0;

	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b || !deflater_init(&b->deflater, g->level)) {
			free(b);
			return fail_memory(err);
		}
		g->blocks[turn] = b;
	}
	b->len = 0;
	b->history = most < HISTORY_BYTES ? most : HISTORY_BYTES;
	if (before)
		memcpy(b->bytes, before->bytes + most - b->history, b->history);
	g->turn = turn;
	return ST_OK;
}

/* Passes the full block to the threads. */
static enum status give_block(struct gzip *g, struct error *err)
{
	struct block *b = g->blocks[g->turn];

	if (!g->crew)
		TRY(job_queue_open(&g->crew, g->threads, g->threads + SPARE_JOBS, pack, g, err));
	if (job_queue_is_full(g->crew))
		TRY(write_block(g, job_queue_take(g->crew), err));
	TRY(next_block(g, (g->turn + 1) % (g->threads + SPARE_JOBS + 1), err));
	job_queue_give(g->crew, b);
	return ST_OK;
}

/* ---- the stream ---- */

enum status gzip_new(struct gzip **out, int level, gzip_sink sink, void *self, struct error *err)
{
	/* deflate, no flags, no time, created on Unix */
	static const uint8_t head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	struct gzip *g = calloc(1, sizeof(*g));
	enum status status;

	*out = NULL;
	if (!g)
		return fail_memory(err);
	g->level = level;
	g->sink = sink;
	g->self = self;
	status = next_block(g, 0, err);
	if (status == ST_OK)
		status = sink(self, head, sizeof(head), err);
	if (status == ST_OK)
		*out = g;
	else
		gzip_free(g);
	return status;
}

void gzip_set_threads(struct gzip *g, unsigned threads)
{
	g->threads = threads < THREADS_MOST ? threads : THREADS_MOST;
}

enum status gzip_put(struct gzip *g, const void *bytes, size_t len, struct error *err)
{
	const uint8_t *at = bytes;

	while (len) {
		struct block *b = g->blocks[g->turn];
		size_t part = BLOCK_BYTES - b->len < len ? BLOCK_BYTES - b->len : len;

		if (!part) {
			TRY(give_block(g, err));
			continue;
		}
		memcpy(b->bytes + b->history + b->len, at, part);
		b->len += part;
		at += part;
		len -= part;
	}
	return ST_OK;
}

enum status gzip_finish(struct gzip *g, struct error *err)
{
	/* an empty last block, the checksum, and the length modulo 2^32 */
	uint8_t tail[10] = { 3, 0 };
	struct block *b;

	while (g->crew && (b = job_queue_take(g->crew)) != NULL)
		TRY(write_block(g, b, err));
	b = g->blocks[g->turn];
	if (b->len) {
		pack(g, b);
		TRY(write_block(g, b, err));
	}
	put_u32(tail + 2, g->crc);
	put_u32(tail + 6, (uint32_t)g->total);
	return g->sink(g->self, tail, sizeof(tail), err);
}

void gzip_free(struct gzip *g)
{
	if (!g)
		return;
	job_queue_close(g->crew);
	for (size_t i = 0; i < sizeof(g->blocks) / sizeof(*g->blocks); i++) {
		if (g->blocks[i])
			deflater_release(&g->blocks[i]->deflater);
		free(g->blocks[i]);
	}
	free(g);
}
