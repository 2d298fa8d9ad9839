/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool/row.h - the rows that events wait as, and the scratch file they stand in; inside of the
 * spool.
 *
 * A row is an event with each number in as few bytes as it needs.  In memory, where it is
 * written once, it begins with its size and lacks the begin, which is its key's; in a sorted run
 * the begin is there, as distance from the row before, and the size is not.  Only the run that
 * wrote a file reads it.
 */
#ifndef CONVERT_SPOOL_ROW_H
#define CONVERT_SPOOL_ROW_H

#include "convert/source.h"
#include "schemas/bytes.h"

enum {
	ROW_MOST = 96,     /* bytes that a row without its vary words takes, or looks at */
	ROW_WORD_MOST = 9, /* each of them adds */
};

/* In memory; room for ROW_MOST + words * ROW_WORD_MOST at `out`; returns the bytes used. */
size_t row_encode(const struct event *e, uint32_t words, uint8_t *out);
uint64_t row_duration(const uint8_t *row);
/*
 * All of *e but its times' base and `vary`; *words: how many are to be taken with row_words() from
 * what is returned.  ROW_MOST bytes from `row` on may be looked at.
 */
const uint8_t *row_open(const uint8_t *row, uint64_t begin_ns, struct event *e, uint32_t *words);

/* Of a run: a row of memory as one that begins so long after the one before.  As row_encode(). */
size_t row_move(const uint8_t *row, uint64_t since_ns, uint8_t *out);
size_t row_room(const uint8_t *row); /* bytes that row_move() needs at `out` */
/* As row_open(); *begin_ns is that of the row before, then of this.  A damaged row cuts `in`. */
void row_decode(uint64_t *begin_ns, struct bytes *in, struct event *e, uint32_t *words);
void row_words(struct bytes *in, uint64_t *words, uint32_t count);

struct scratch;
/* A file without a name in `folder`, borrowed; NULL: /tmp. */
enum status scratch_open(struct scratch **out, const char *folder, struct error *err);
void scratch_close(struct scratch *s); /* accepts NULL */
/* At its end. */
enum status scratch_write(struct scratch *s, const void *bytes, size_t len, struct error *err);
uint64_t scratch_size(const struct scratch *s);
enum status scratch_read(const struct scratch *s, uint64_t at, void *bytes, size_t len,
			 struct error *err);

#endif
