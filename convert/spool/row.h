/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - events as bytes, while they wait in a spool; inside of it.
 *
 *	size of what follows, 4 bytes | kind | subkind | phase | flags | varints: duration, track,
 *	name, argument schema, correlation, value, step, owner, number of argument values, they
 *
 * The begin is not in the row: in memory it is in the event's key, and in a sorted run the
 * distance from the row before stands in front of it, as a varint.  A row is read only by the
 * process that wrote it.
 */
#ifndef CONVERT_SPOOL_ROW_H
#define CONVERT_SPOOL_ROW_H

#include "schemas/base/bytes.h"
#include "schemas/model/event.h"

enum { ROW_HEAD = 4, ROW_FIELDS = 9 };

/* The most bytes that a row with `words` argument values takes, a run's varint before it included.
 */
static inline size_t row_most(uint32_t words)
{
	return ROW_HEAD + 4 + (size_t)(ROW_FIELDS + 1 + words) * VARINT_MAX;
}

/* Writes a row to `out`, which has row_most(); returns its bytes. */
size_t row_encode(const struct event *e, uint32_t words, uint8_t *out);
/*
 * Reads a row up to its argument values, which are left in `in` for row_words(): *words of them.
 * e->args is NULL.  A damaged row sets in->is_truncated.
 */
void row_decode(struct bytes *in, uint64_t begin_ns, struct event *e, uint32_t *words);
void row_words(struct bytes *in, uint64_t *words, uint32_t count);

#endif
