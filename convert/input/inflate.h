/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.h - the members of a gzip file, through zlib or a faster library that was there
 * when this was built; used by unpack.c alone.  Both give the same bytes.
 */
#ifndef CONVERT_INPUT_INFLATE_H
#define CONVERT_INPUT_INFLATE_H

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inflater;

enum inflate_with { INFLATE_FASTEST, INFLATE_ZLIB };

enum inflate_outcome {
	INFLATE_ON,      /* some bytes were read or written */
	INFLATE_END,     /* of a member; inflater_reset() before the next */
	INFLATE_STARVED, /* needs more packed bytes */
	INFLATE_DAMAGED,
	INFLATE_NO_MEMORY,
};

enum status inflater_open(struct inflater **out, enum inflate_with with, struct error *err);
void inflater_close(struct inflater *f); /* accepts NULL */
void inflater_reset(struct inflater *f);

/* From *in, of *in_len bytes, to `out`; both are moved on by what was taken. */
enum inflate_outcome inflater_step(struct inflater *f, const uint8_t **in, size_t *in_len,
				   uint8_t *out, size_t cap, size_t *got);
const char *inflater_fault(const struct inflater *f); /* of INFLATE_DAMAGED */

#endif
