/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/sink/tensorboard/space.h"
#include "schemas/proto/xspace.h"

/* Most are shorter than 128 bytes, so that pb_end() moves nothing. */
static void put_stat(struct buf *b, uint32_t field, uint64_t key, uint32_t type, uint64_t bits)
{
	size_t at = pb_begin(b, field);

	pb_put_u64(b, XSTAT_METADATA_ID, key);
	if (type == XSTAT_DOUBLE)
		pb_put_fixed64(b, type, bits);
	else
		pb_put_u64(b, type, bits);
	pb_end(b, at);
}

void tb_stat_u64(struct buf *b, uint32_t field, uint64_t key, uint64_t v)
{
	put_stat(b, field, key, XSTAT_UINT64, v);
}

void tb_stat_i64(struct buf *b, uint32_t field, uint64_t key, int64_t v)
{
	put_stat(b, field, key, XSTAT_INT64, (uint64_t)v);
}

void tb_stat_f64(struct buf *b, uint32_t field, uint64_t key, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_stat(b, field, key, XSTAT_DOUBLE, bits);
}

void tb_stat_ref(struct buf *b, uint32_t field, uint64_t key, uint64_t ref)
{
	put_stat(b, field, key, XSTAT_REF, ref);
}

void tb_stat_text(struct buf *b, uint32_t field, uint64_t key, const char *text, size_t len)
{
	size_t at = pb_begin(b, field), value;

	pb_put_u64(b, XSTAT_METADATA_ID, key);
	value = pb_begin(b, XSTAT_TEXT);
	sink_put_utf8(text, len, true, b);
	pb_end(b, value);
	pb_end(b, at);
}
