/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/tensorboard/space.h"
#include "schemas/xspace.h"

/* Most are shorter than 128 bytes, so that pb_end() moves nothing. */
static size_t begin(struct buf *b, uint32_t field, uint64_t key)
{
	size_t at = pb_begin(b, field);

	pb_put_u64(b, XSTAT_METADATA_ID, key);
	return at;
}

void tb_stat_u64(struct buf *b, uint32_t field, uint64_t key, uint64_t v)
{
	size_t at = begin(b, field, key);

	pb_put_u64(b, XSTAT_UINT64, v);
	pb_end(b, at);
}

void tb_stat_i64(struct buf *b, uint32_t field, uint64_t key, int64_t v)
{
	size_t at = begin(b, field, key);

	pb_put_u64(b, XSTAT_INT64, (uint64_t)v);
	pb_end(b, at);
}

void tb_stat_f64(struct buf *b, uint32_t field, uint64_t key, double v)
{
	size_t at = begin(b, field, key);

	pb_put_f64(b, XSTAT_DOUBLE, v);
	pb_end(b, at);
}

void tb_stat_ref(struct buf *b, uint32_t field, uint64_t key, uint64_t ref)
{
	size_t at = begin(b, field, key);

	pb_put_u64(b, XSTAT_REF, ref);
	pb_end(b, at);
}

void tb_stat_text(struct buf *b, uint32_t field, uint64_t key, const char *text, size_t len)
{
	size_t at = begin(b, field, key), value = pb_begin(b, XSTAT_TEXT);

	tb_put_utf8(b, text, len);
	pb_end(b, value);
	pb_end(b, at);
}
