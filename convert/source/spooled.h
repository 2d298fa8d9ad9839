/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spooled.h - the source of a format whose events stand in no order of time.
 *
 * Its file is read once to its end while the source opens, the events wait in a spool, and a fault
 * that ended the input is returned after the last of them.  A format describes itself by a spool
 * reader; what read() keeps lives until it returns.
 */
#pragma once

#include "convert/spool/spool.h"

/* Times in a spool are the file's plus this, because the file's may be negative, and because the
 * epoch they count from may stand at the end of the file. */
#define SPOOL_BIAS ((int64_t)1 << 62)

struct spool_source {
	struct source base;
	struct trace *trace;
	struct spool *spool;
	bool is_biased;     /* times in the spool have SPOOL_BIAS added */
	int64_t base_ns;    /* is added to the file's times; set at its end */
	uint32_t process;   /* which loses events from before the epoch, 0: the input as a whole */
	struct error fault; /* what ended the input */
	struct input *in;   /* for its progress */
	uint64_t given;     /* events */
	void *own;          /* of the format's own next(); freed */
};

struct spool_reader {
	size_t own_bytes; /* of the opening budget: windows and tables of the reader */
	unsigned spools;  /* how many spools share the rest of it */
	/*
	 * Reads all of `in` into s->spool; `left` is the budget of one spool.  Needs `err`.  A
	 * fault that ends the input after something was readable goes to s->fault, any other is
	 * returned.
	 */
	enum status (*read)(struct spool_source *s, struct input *in, const struct budget *left,
			    struct error *err);
};

/* Opens a source by type->spooled. */
enum status spool_source_open(struct source **out, const struct source_type *type, struct input *in,
			      struct trace *trace, const struct budget *budget, struct error *err);
/* For the type of the format. */
enum status spool_source_next(struct source *source, struct batch *out, struct error *err);
void spool_source_close(struct source *source);

/*
 * For read(), at its end: declares that the spool's times are biased, that the file's clock started
 * `base_ns` after the epoch (0: unknown), and that its first event begins at `first_ns` of that
 * clock (INT64_MAX: there is no event).  If the start of the clock is unknown, times below zero
 * shift the whole file to begin at zero; if not, an event before 1970 counts as lost.
 */
void spool_source_clock(struct spool_source *s, uint64_t base_ns, int64_t first_ns);

/* Makes a process of its own for the file at `path`; who it really is may be set later. */
enum status spool_source_process(struct spool_source *s, const char *path, struct error *err);
