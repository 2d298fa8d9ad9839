/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/output/gzip.h"

#include "convert/base/parallel.h"
#include "schemas/base/bytes.h"

#include <stdlib.h>
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
	SPARE_JOBS = 2, /* more than there are threads, which so never wait for the next */
};

/* ---- deflate, by one library or the other ---- */

#ifdef TACHO_ISAL

enum { ISAL_LEVEL = 1 };

struct deflater {
	struct isal_zstream z;
	uint8_t level[ISAL_DEF_LVL1_DEFAULT];
};

static bool deflater_init(struct deflater *p, int level)
{
	return true;
}

static void deflater_release(struct deflater *p)
{
}

static size_t deflater_deflate(struct deflater *p, uint8_t *bytes, size_t history, size_t len,
			       uint8_t *out, size_t cap)
{
	isal_deflate_init(&p->z);
	p->z.level = ISAL_LEVEL;
	p->z.level_buf = p->level;
	p->z.level_buf_size = sizeof(p->level);
	p->z.flush = SYNC_FLUSH;
	if (history && isal_deflate_set_dict(&p->z, bytes, (uint32_t)history) != COMP_OK)
		return 0;
	p->z.next_in = bytes + history;
	p->z.avail_in = (uint32_t)len;
	p->z.next_out = out;
	p->z.avail_out = (uint32_t)cap;
	if (isal_deflate(&p->z) != COMP_OK || p->z.avail_in || !p->z.avail_out)
		return 0;
	return cap - p->z.avail_out;
}

static uint32_t checksum(const uint8_t *bytes, size_t len)
{
	return crc32_gzip_refl(0, bytes, len);
}

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

static bool deflater_init(struct deflater *p, int level)
{
	return deflateInit2(&p->z, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK;
}

static void deflater_release(struct deflater *p)
{
	deflateEnd(&p->z);
}

/* Returns how many bytes it made, which end on a whole byte; 0: they do not fit. */
static size_t deflater_deflate(struct deflater *p, uint8_t *bytes, size_t history, size_t len,
			       uint8_t *out, size_t cap)
{
	if (deflateReset(&p->z) != Z_OK ||
	    (history && deflateSetDictionary(&p->z, bytes, (uInt)history) != Z_OK))
		return 0;
	p->z.next_in = bytes + history;
	p->z.avail_in = (uInt)len;
	p->z.next_out = out;
	p->z.avail_out = (uInt)cap;
	if (deflate(&p->z, Z_SYNC_FLUSH) != Z_OK || p->z.avail_in || !p->z.avail_out)
		return 0;
	return cap - p->z.avail_out;
}

static uint32_t checksum(const uint8_t *bytes, size_t len)
{
	return (uint32_t)crc32(0, bytes, (uInt)len);
}

const char *gzip_library(void)
{
	static char text[32] = "zlib ";

	for (size_t i = 5, k = 0; zlibVersion()[k] && i + 1 < sizeof(text); i++, k++)
		text[i] = zlibVersion()[k];
	return text;
}

#endif

/* ---- blocks ---- */

struct block {
	struct block *made, *spare; /* the one that was allocated before; the next that is free */
	struct deflater deflater;
	size_t history, len, packed_len;
	uint32_t crc;
	uint8_t bytes[HISTORY_BYTES + BLOCK_BYTES]; /* history first */
	uint8_t packed[PACKED_BYTES];
};

struct gzip {
	gzip_sink sink;
	void *self;
	int level;
	unsigned threads;
	struct ahead *crew; /* NULL: no second block yet */
	struct block *now;  /* being filled */
	struct block *made, *spare;
	uint64_t total;
	uint32_t crc;
	bool begun;
};

/* Stores bytes that do not get smaller. */
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

static enum status take_block(struct gzip *g, struct block **out, struct error *err)
{
	struct block *b = g->spare;

	*out = b;
	if (b) {
		g->spare = b->spare;
		return ST_OK;
	}
	b = calloc(1, sizeof(*b));
	if (!b || !deflater_init(&b->deflater, g->level)) {
		free(b);
		return fail_memory(err);
	}
	b->made = g->made;
	g->made = *out = b;
	return ST_OK;
}

static enum status begin_member(struct gzip *g, struct error *err)
{
	/* deflate, no flags, no time; made by a Unix */
	static const uint8_t head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };

	if (g->begun)
		return ST_OK;
	g->begun = true;
	return g->sink(g->self, head, sizeof(head), err);
}

static enum status write_block(struct gzip *g, struct block *b, struct error *err)
{
	TRY(begin_member(g, err));
	TRY(g->sink(g->self, b->packed, b->packed_len, err));
	g->crc = (uint32_t)crc32_combine(g->crc, b->crc, (z_off_t)b->len);
	g->total += b->len;
	b->spare = g->spare;
	g->spare = b;
	return ST_OK;
}

/* Hands the full block to the crew; the next one has its end as history. */
static enum status give_block(struct gzip *g, struct error *err)
{
	struct block *b = g->now, *next;
	size_t most = b->history + b->len;

	if (!g->crew)
		TRY(ahead_open(&g->crew, g->threads, g->threads + SPARE_JOBS, pack, g, err));
	if (ahead_is_full(g->crew))
		TRY(write_block(g, ahead_take(g->crew), err));
	TRY(take_block(g, &next, err));
	next->len = 0;
	next->history = most < HISTORY_BYTES ? most : HISTORY_BYTES;
	memcpy(next->bytes, b->bytes + most - next->history, next->history);
	g->now = next;
	ahead_give(g->crew, b);
	return ST_OK;
}

/* ---- the whole ---- */

enum status gzip_new(struct gzip **out, int level, gzip_sink sink, void *self, struct error *err)
{
	struct gzip *g = calloc(1, sizeof(*g));

	*out = NULL;
	if (!g)
		return fail_memory(err);
	g->level = level;
	g->sink = sink;
	g->self = self;
	if (take_block(g, &g->now, err) != ST_OK) {
		gzip_free(g);
		return ST_MEMORY;
	}
	*out = g;
	return ST_OK;
}

void gzip_set_threads(struct gzip *g, unsigned threads)
{
	g->threads = threads < THREADS_MOST ? threads : THREADS_MOST;
}

enum status gzip_put(struct gzip *g, const void *bytes, size_t len, struct error *err)
{
	const uint8_t *at = bytes;

	while (len) {
		struct block *b = g->now;
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
	/* an empty last block, the checksum, and the length as far as 32 bits know it */
	uint8_t tail[10] = { 3, 0 };
	struct block *b;

	while (g->crew && (b = ahead_take(g->crew)) != NULL)
		TRY(write_block(g, b, err));
	if (g->now->len) {
		pack(g, g->now);
		TRY(write_block(g, g->now, err));
	}
	TRY(begin_member(g, err));
	put_u32(tail + 2, g->crc);
	put_u32(tail + 6, (uint32_t)g->total);
	return g->sink(g->self, tail, sizeof(tail), err);
}

void gzip_free(struct gzip *g)
{
	if (!g)
		return;
	ahead_close(g->crew);
	while (g->made) {
		struct block *b = g->made;

		g->made = b->made;
		deflater_release(&b->deflater);
		free(b);
	}
	free(g);
}
