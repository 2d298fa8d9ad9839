/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool/row.h - the rows of a sorted run, and the scratch file they stand in; inside of the spool.
 *
 * A row is an event with each number in one, two, four or eight bytes, begin and join as distance
 * from the row before.  Only the run that wrote a file reads it.
 */
#ifndef CONVERT_SPOOL_ROW_H
#define CONVERT_SPOOL_ROW_H

#include "convert/source.h"
#include "schemas/bytes.h"

enum {
	ROW_MOST = 80,     /* bytes that a row without its vary words takes, or looks at */
	ROW_WORD_MOST = 9, /* each of them adds */
};

struct row_state { /* zeroed at the start of a run */
	uint64_t begin_ns, join;
};

/* Room for ROW_MOST + words * ROW_WORD_MOST at `out`; returns the bytes used. */
size_t row_encode(struct row_state *state, const struct event *e, uint32_t words, uint8_t *out);

/*
 * All of *e but `vary`; *has_words when a word for each vary key of e->shape follows, for
 * row_words().  A damaged row cuts `in`.
 */
void row_decode(struct row_state *state, struct bytes *in, struct event *e, bool *has_words);
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
