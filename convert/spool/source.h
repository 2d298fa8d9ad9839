/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool/source.h - the source of a format that is in no order: read once to its end while it opens,
 * its events wait in a spool, and what ended the input is told behind them.
 *
 * A format gives its plan; what it keeps while it reads is its own and gone when read() returns.
 */
#ifndef CONVERT_SPOOL_SOURCE_H
#define CONVERT_SPOOL_SOURCE_H

#include "convert/spool.h"

/* What biased times in a spool are counted from: those of a file may be negative, and what they are
 * to be counted from may stand last in it. */
#define SPOOL_BIAS ((int64_t)1 << 62)

struct spool_source {
	struct source base;
	struct trace *trace;
	struct spool *spool;
	bool is_biased;    /* times in the spool are the file's nanoseconds plus SPOOL_BIAS ... */
	int64_t base_ns;   /* ... and these are to be added to the file's; known at the end */
	uint32_t process;  /* whose loss events before the epoch are; 0: the input's */
	struct error fault; /* what ended the input */
};

struct spool_plan {
	const struct source_type *type;
	const char *what;  /* "a Kineto source", for messages */
	size_t own_bytes;  /* of the opening budget: windows and tables of the reader */
	unsigned spools;   /* that share what is left */
	/*
	 * All of `in` into s->spool; `left` is the budget of one spool.  Needs `err`: a fault that
	 * ends the input behind what was readable goes to s->fault, any other is returned.
	 */
	enum status (*read)(struct spool_source *s, struct input *in, const struct budget *left,
			    struct error *err);
};

enum status spool_source_open(struct source **out, const struct spool_plan *plan, struct input *in,
			      struct trace *trace, const struct budget *budget, struct error *err);
/* For the table of the format. */
enum status spool_source_next(struct source *source, struct batch *out, struct error *err);
void spool_source_close(struct source *source);

/*
 * For read(), at its end: the spool's times are biased, the file gives `base_ns` since the epoch (0:
 * none), and its first event begins at `first_ns` of its own clock (INT64_MAX: no event).  Where the
 * file counts from nobody knows what, times below zero move all of it to begin at zero; an event of
 * a known clock from before 1970 is lost as one without a time.
 */
void spool_source_clock(struct spool_source *s, uint64_t base_ns, int64_t first_ns);

/* A row of its own, whatever else the trace holds, whose true identity is known later. */
enum status spool_source_process(struct spool_source *s, const char *path, struct error *err);

#endif
