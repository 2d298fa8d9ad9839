/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - protobuf messages of any size in an input, walked through one window.
 *
 * A message is a span of the file; its fields are read one after the other, and what is not looked
 * into costs its key and length only.  Needs input_random().  Damage ends the span it is found in,
 * never the one around it.
 */
#ifndef CONVERT_SOURCE_XPLANE_FILE_H
#define CONVERT_SOURCE_XPLANE_FILE_H

#include "schemas/base/bytes.h"
#include "schemas/base/pb.h"
#include "schemas/base/status.h"

struct input;

enum { XPLANE_WINDOW = 256 * 1024 }; /* bytes; the most that xplane_file_bytes() shows */

struct xplane_file {
	const struct input *in; /* borrowed */
	uint64_t size;
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;
};

struct xplane_span { /* a message's bytes in the file: at <= end <= size */
	uint64_t at, end;
	bool is_truncated;
};
struct xplane_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t u64;
	struct xplane_span span; /* PB_BYTES; where it reached beyond the message it ends there */
};

enum status xplane_file_init(struct xplane_file *f, const struct input *in, struct error *err);
void xplane_file_release(struct xplane_file *f);
struct xplane_span xplane_file_all(const struct xplane_file *f);

/*
 * *more is false at the end of the message, or where it is damaged: s->is_truncated.  A field that
 * reaches beyond the message is given, as far as it is there, and is the last.
 */
enum status xplane_file_next(struct xplane_file *f, struct xplane_span *s, struct xplane_field *out,
			     bool *more, struct error *err);

/* The same, but passes over fields that are not messages or texts of this number. */
enum status xplane_file_find(struct xplane_file *f, struct xplane_span *s, uint32_t number,
			     struct xplane_field *out, bool *more, struct error *err);

/* A whole message or text in memory, borrowed until the next call on `f`; false: it is longer than
 * XPLANE_WINDOW. */
enum status xplane_file_bytes(struct xplane_file *f, const struct xplane_span *s, struct bytes *out,
			      bool *fits, struct error *err);

#endif
