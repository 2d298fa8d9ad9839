/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/input/internal.h"

#include <stdlib.h>
#include <zlib.h>
#ifdef TACHO_ISAL
#include <isa-l.h>
#endif

enum {
	STEP_BYTES = 1 << 30,  /* both libraries count in 32 bits */
	WINDOW_GZIP = 15 + 16, /* zlib's largest window, only gzip framing */
};

struct inflater {
	z_stream z;
#ifdef TACHO_ISAL
	struct inflate_state *isal; /* NULL: zlib is used */
#endif
	const char *fault;
};

static uint32_t at_most(size_t len)
{
	return len < STEP_BYTES ? (uint32_t)len : STEP_BYTES;
}

#ifdef TACHO_ISAL
static bool isal_open(struct inflater *f)
{
	f->isal = malloc(sizeof(*f->isal));
	if (!f->isal)
		return false;
	isal_inflate_init(f->isal);
	f->isal->crc_flag = ISAL_GZIP;
	return true;
}

static const char *isal_fault(int result)
{
	switch (result) {
	case ISAL_INCORRECT_CHECKSUM:
		return "incorrect data check";
	case ISAL_INVALID_WRAPPER:
	case ISAL_UNSUPPORTED_METHOD:
		return "incorrect header";
	}
	return "no valid deflate stream";
}

static enum inflate_outcome isal_step(struct inflater *f, const uint8_t **in, size_t *in_len,
				      uint8_t *out, size_t cap, size_t *got)
{
	uint32_t in_most = at_most(*in_len), out_most = at_most(cap), taken;
	struct inflate_state *s = f->isal;
	int result;

	s->next_in = (uint8_t *)(uintptr_t)*in;
	s->avail_in = in_most;
	s->next_out = out;
	s->avail_out = out_most;
	result = isal_inflate(s);
	taken = in_most - s->avail_in;
	*got = out_most - s->avail_out;
	*in += taken;
	*in_len -= taken;
	if (result < 0 || result == ISAL_NEED_DICT) {
		f->fault = isal_fault(result);
		return INFLATE_DAMAGED;
	}
	if (s->block_state == ISAL_BLOCK_FINISH)
		return INFLATE_END;
	return taken || *got ? INFLATE_ON : INFLATE_STARVED;
}
#endif

enum status inflater_open(struct inflater **out, enum inflate_with with, struct error *err)
{
	struct inflater *f = calloc(1, sizeof(*f));
	bool opened = f != NULL;

	*out = f;
#ifdef TACHO_ISAL
	if (opened && with == INFLATE_FASTEST)
		opened = isal_open(f);
	else
#endif
		opened = opened && inflateInit2(&f->z, WINDOW_GZIP) == Z_OK;
	if (opened)
		return ST_OK;
	free(f);
	*out = NULL;
	return fail_memory(err);
}

void inflater_close(struct inflater *f)
{
	if (!f)
		return;
#ifdef TACHO_ISAL
	free(f->isal);
	if (!f->isal)
#endif
		inflateEnd(&f->z);
	free(f);
}

void inflater_reset(struct inflater *f)
{
#ifdef TACHO_ISAL
	if (f->isal) {
		isal_inflate_reset(f->isal);
		f->isal->crc_flag = ISAL_GZIP;
		return;
	}
#endif
	inflateReset(&f->z);
}

enum inflate_outcome inflater_step(struct inflater *f, const uint8_t **in, size_t *in_len,
				   uint8_t *out, size_t cap, size_t *got)
{
	uint32_t in_most = at_most(*in_len), taken;
	int result;

#ifdef TACHO_ISAL
	if (f->isal)
		return isal_step(f, in, in_len, out, cap, got);
#endif
	f->z.next_in = (Bytef *)(uintptr_t)*in;
	f->z.avail_in = in_most;
	f->z.next_out = out;
	f->z.avail_out = at_most(cap);
	result = inflate(&f->z, Z_NO_FLUSH);
	taken = in_most - f->z.avail_in;
	*in += taken;
	*in_len -= taken;
	*got = (size_t)(f->z.next_out - out);
	switch (result) {
	case Z_OK:
		return INFLATE_ON;
	case Z_STREAM_END:
		return INFLATE_END;
	case Z_BUF_ERROR:
		return INFLATE_STARVED;
	case Z_MEM_ERROR:
		return INFLATE_NO_MEMORY;
	}
	f->fault = f->z.msg ? f->z.msg : "no valid deflate stream";
	return INFLATE_DAMAGED;
}

const char *inflater_fault(const struct inflater *f)
{
	return f->fault ? f->fault : "";
}
