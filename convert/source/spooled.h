/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spooled.h - the source of a format whose events are not in time order.
 *
 * The source reads its file to the end when it opens, keeps the events in a spool, and returns the
 * error that ended the input, if any, after the last of them.  A format provides a spool reader;
 * what its read() allocates, read() frees before it returns.
 */
#pragma once

#include "convert/spool/spool.h"

/* Added to a file's times while they are in a spool, because the times may be negative and their
 * epoch may be known only at the end of the file. */
#define SPOOL_BIAS ((int64_t)1 << 62)

struct spool_source {
	struct source base;
	struct trace *trace;
	struct spool *spool;
	bool is_biased;   /* times in the spool have SPOOL_BIAS added */
	int64_t base_ns;  /* nanoseconds to add to the file's times; known at the end of the file */
	uint32_t process; /* counts events before the epoch as lost; 0: the input does */
	struct error fault; /* the error that ended the input */
	struct input *in;   /* for reporting progress; borrowed */
	uint64_t given;     /* number of events returned so far */
	void *own;          /* state of the format's own next(); spool_source_close() frees it */
};

struct spool_reader {
	size_t own_bytes; /* bytes of the opening budget for its windows and tables */
	unsigned spools;  /* number of spools that share the remaining budget */
	/*
	 * Reads all of `in` into s->spool; `left` is the budget of one spool and `err` is not NULL.
	 * An error that ends the input after something was readable is stored in s->fault; other
	 * errors are returned.
	 */
	enum status (*read)(struct spool_source *s, struct input *in, const struct budget *left,
			    struct error *err);
};

/* Opens a source with type->spooled, as source_type.open() does. */
enum status spool_source_open(struct source **out, const struct source_type *type, struct input *in,
			      struct trace *trace, const struct budget *budget, struct error *err);
/* The next() and close() of a type with `spooled`. */
enum status spool_source_next(struct source *source, struct batch *out, struct error *err);
void spool_source_close(struct source *source);

/*
 * Declares, at the end of read(), that the spool's times are biased, that the file's clock started
 * `base_ns` after the epoch (0: unknown), and that its first event begins at `first_ns` of that
 * clock (INT64_MAX: there is no event).  If the start of the clock is unknown and times are
 * negative, the whole file is shifted to begin at zero.  If it is known, an event before 1970
 * counts as lost.
 */
void spool_source_clock(struct spool_source *s, uint64_t base_ns, int64_t first_ns);

/* Adds a process for the file at `path` to the trace; the reader may set its host and rank later.
 * */
enum status spool_source_process(struct spool_source *s, const char *path, struct error *err);
