/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_words.h - what tables call the parts of an event: the same words in csv and sqlite.
 *
 * Texts that go into a table are valid UTF-8 without NUL, whatever the names of the trace hold: each
 * bad piece becomes U+FFFD.
 */
#ifndef CONVERT_SINK_WORDS_H
#define CONVERT_SINK_WORDS_H

#include "schemas/buf.h"
#include "schemas/event.h"
#include "schemas/trace.h"

/* Borrowed from the trace; never NULL. */
struct words_text {
	const char *text;
	size_t len;
};

/* "kernel"; the word of a kind that only the writer of a log knew; empty: not even that. */
struct words_text words_kind(const struct trace *t, const struct event *e);
/* What tells events of one kind apart: runtime, driver; HtoD; nvtx, cpu_op; flow_begin. */
const char *words_class(const struct event *e);
/* The event's own name, else that of its counter, else what kind of copy or wait it is. */
struct words_text words_name(const struct trace *t, const struct event *e);
const char *words_home(unsigned home); /* "stream" */

void words_put(struct buf *out, const char *text, size_t len);

/*
 * One JSON object of the event's arguments, nothing when it has none.  Of a field that is not for
 * everybody only with `all`.
 */
void words_put_args(struct buf *out, const struct trace *t, const struct event *e, bool all);
/* Of its varying ones alone. */
void words_put_vary(struct buf *out, const struct trace *t, const struct event *e);
/* One JSON object of a shape's fixed attributes, nothing when it has none. */
void words_put_fixed(struct buf *out, const struct trace *t, uint32_t shape);

#endif
