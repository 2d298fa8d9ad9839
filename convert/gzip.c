/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/gzip.h"

#include <stdlib.h>
#include <zlib.h>

enum { PACKED_BYTES = 64 * 1024, GZIP_WINDOW_BITS = 15 + 16 /* + 16: gzip's frame */ };

struct gzip {
	z_stream z;
	gzip_sink sink;
	void *self;
	uint8_t packed[PACKED_BYTES];
};

enum status gzip_new(struct gzip **out, int level, gzip_sink sink, void *self, struct error *err)
{
	struct gzip *g = calloc(1, sizeof(*g));

	*out = NULL;
	if (!g)
		return fail(err, ST_MEMORY, NOWHERE, "no memory to compress with");
	if (deflateInit2(&g->z, level, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(g);
		return fail(err, ST_MEMORY, NOWHERE, "zlib has no memory to compress with");
	}
	g->sink = sink;
	g->self = self;
	*out = g;
	return ST_OK;
}

/* Until zlib has taken all its input, or with Z_FINISH given all its output. */
static enum status drive(struct gzip *g, int flush, struct error *err)
{
	int rc;

	do {
		g->z.next_out = g->packed;
		g->z.avail_out = sizeof(g->packed);
		rc = deflate(&g->z, flush);
		if (rc == Z_STREAM_ERROR)
			return fail(err, ST_IO, NOWHERE, "zlib lost its state");
		size_t len = sizeof(g->packed) - g->z.avail_out;
		if (len)
			TRY(g->sink(g->self, g->packed, len, err));
	} while (flush == Z_FINISH ? rc != Z_STREAM_END : g->z.avail_out == 0);
	return ST_OK;
}

enum status gzip_put(struct gzip *g, const void *bytes, size_t len, struct error *err)
{
	const uint8_t *at = bytes;

	while (len) { /* zlib counts in 32 bits */
		uInt piece = len > 1u << 30 ? 1u << 30 : (uInt)len;

		g->z.next_in = (Bytef *)(uintptr_t)at;
		g->z.avail_in = piece;
		TRY(drive(g, Z_NO_FLUSH, err));
		at += piece;
		len -= piece;
	}
	return ST_OK;
}

enum status gzip_finish(struct gzip *g, struct error *err)
{
	return drive(g, Z_FINISH, err);
}

void gzip_free(struct gzip *g)
{
	if (!g)
		return;
	deflateEnd(&g->z);
	free(g);
}
