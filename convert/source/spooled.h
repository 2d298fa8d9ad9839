/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spooled.h - the source of a format whose events are not in time order.
 *
 * The source reads its file to the end when it opens, keeps the events in a spool, and returns a
 * fault that ended the input after the last of them.  A format provides a spool reader; what read()
 * allocates lasts until it returns.
 */
#pragma once

#include "convert/spool/spool.h"

/* Is added to the file's times in a spool, because these may be negative and because their epoch
 * may be at the end of the file. */
#define SPOOL_BIAS ((int64_t)1 << 62)

struct spool_source {
	struct source base;
	struct trace *trace;
	struct spool *spool;
	bool is_biased;     /* times in the spool have SPOOL_BIAS added */
	int64_t base_ns;    /* to be added to the file's times; known at its end */
	uint32_t process;   /* counts events before the epoch as lost; 0: the input does */
	struct error fault; /* what ended the input */
	struct input *in;   /* for its progress */
	uint64_t given;     /* events */
	void *own;          /* of the format's own next(); freed */
};

struct spool_reader {
	size_t own_bytes; /* for the reader's windows and tables, from the opening budget */
	unsigned spools;  /* how many spools share the rest of it */
	/*
	 * Reads all of `in` into s->spool; `left` is the budget of one spool and `err` is not
	 * NULL.  A fault that ends the input after something was readable goes to s->fault; others
	 * are returned.
	 */
	enum status (*read)(struct spool_source *s, struct input *in, const struct budget *left,
			    struct error *err);
};

/* Opens a source by type->spooled. */
enum status spool_source_open(struct source **out, const struct source_type *type, struct input *in,
			      struct trace *trace, const struct budget *budget, struct error *err);
/* The `next` of such a format's type. */
enum status spool_source_next(struct source *source, struct batch *out, struct error *err);
void spool_source_close(struct source *source);

/*
 * For read(), at its end: declares that the spool's times are biased, that the file's clock started
 * `base_ns` after the epoch (0: unknown), and that its first event begins at `first_ns` of that
 * clock (INT64_MAX: there is no event).  If the start of the clock is unknown, times below zero
 * shift the whole file to begin at zero; if not, an event before 1970 counts as lost.
 */
void spool_source_clock(struct spool_source *s, uint64_t base_ns, int64_t first_ns);

/* Adds a process for the file at `path`; its identity may be set later. */
enum status spool_source_process(struct spool_source *s, const char *path, struct error *err);
