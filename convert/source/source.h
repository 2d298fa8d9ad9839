/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - readers of formats; everything above them that gives events is a source too.
 *
 * Pull on this side: next() gives the next batch, in the order of event.h.  A batch and all it
 * points to is borrowed until the next call on the *same* source; a stage that wraps a source
 * (merge, step, link, filter) may write into the batch it got and pass it on, uncopied.
 *
 * open() ends with the trace's tables complete (trace.h), whatever that takes: the log walks its
 * block headers; a format that is not in time order (Kineto, XSpace) is read once to its end
 * through a spool; an input that cannot seek is kept in an unlinked scratch file first.  open()
 * may use the whole budget, alone; from then to close() a source holds `resident` bytes at most,
 * so 1,024 of them fit.  There is no rewind: who needs a second pass opens the input again.
 *
 * To add a format: write NAME/source.c that exports `const struct source_type source_NAME`, add
 * X(NAME) to SOURCE_LIST below, a sample or generator for the tests and a fuzz target.  A reader of
 * events that stand in no order of time is a spool reader (spooled.h): its read() fills a spool,
 * and makes each event by import.h, from import_begin() to import_put().
 */
#pragma once

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct input;  /* bytes with a name: unpacked, peekable, seekable (convert/input/input.h) */
struct filter; /* what the user asked for (convert/stage/filter/filter.h) */

struct spool_reader;

struct budget {
	size_t opening;   /* bytes a source may use inside open() */
	size_t resident;  /* bytes it may hold afterwards; 64 KiB by default */
	unsigned threads; /* helpers for decode and inflate, 0: none; same events at any number */
	const char *scratch; /* folder for unlinked files; borrowed */
};

struct source { /* first member of every source's own struct */
	const struct source_type *type;
};

struct source_type {
	const char *name; /* as in messages and --help */
	const char *help; /* one line */
	/*
	 * How sure this reader is: 0 not mine .. 100 certain.  `head` is up to 64 KiB from the
	 * start, after any compression.  The best bidder opens; if its open() returns ST_FORMAT at
	 * its first look, the next best is asked.
	 */
	int (*bid)(const uint8_t *head, size_t len);
	/*
	 * `wanted` is a hint to skip early (whole blocks, whole categories): events outside may
	 * still be given, a stage filters exactly.  *out is owned by the caller, close() frees it;
	 * it is NULL after an error.  `in` is borrowed until close().  NULL: `spooled` opens it.
	 */
	enum status (*open)(struct source **out, struct input *in, struct trace *trace,
			    const struct budget *budget, const struct filter *wanted,
			    struct error *err);
	const struct spool_reader *spooled; /* of a format in no order of time, else NULL */
	/*
	 * ST_OK with at least one event; ST_END; or the fault that ends this input, after all
	 * that was readable before it has been given.  Single damaged records are lost and
	 * counted (trace_lose), an event that would break the order is moved up to it and counted.
	 */
	enum status (*next)(struct source *s, struct batch *out, struct error *err);
	void (*close)(struct source *s);
};

enum status source_open(struct source **out, struct input *in, struct trace *trace,
			const struct budget *budget, const struct filter *wanted,
			struct error *err);
/* The same without bids, by the reader of this type. */
enum status source_open_as(struct source **out, const struct source_type *type, struct input *in,
			   struct trace *trace, const struct budget *budget,
			   const struct filter *wanted, struct error *err);
static inline enum status source_next(struct source *s, struct batch *out, struct error *err)
{
	*out = (struct batch){ .count = 0 };
	return s->type->next(s, out, err);
}
/* Accepts NULL. */
static inline void source_close(struct source *s)
{
	if (s)
		s->type->close(s);
}

/*
 * input_paths_find(), and of what lies in a folder only files that some source claims: the folder
 * of a run holds other JSON too.  Where others are left, outputs of Tacho are no inputs, which they
 * say in their first bytes; a log is one where a file that it was made of lies there too.  Nor is
 * JSON that JAX and XProf write beside the XSpace that it was made from.  ST_FORMAT when nothing is
 * left of a folder.
 */
struct input_paths;
struct passed_over { /* how many files of each kind were not taken */
	size_t no_trace, own, twin;
};
/* How outputs say that they are ours: a key in JSON and in an XSpace, SQLite's application id. */
#define OWN_KEY           "converted_by"
#define OWN_DERIVED       "made by Tacho from the events" /* a row of Perfetto that is no input */
#define PATH_KEY          "call path" /* an argument that is found again, so it is not read */
#define SQLITE_OWN_ID     "Tach"
#define SQLITE_OWN_NUMBER "0x54616368" /* the same */
/* of one and of several, for say_passed_over() */
#define PASSED_NO_TRACE "file that is not a trace", "files that are not traces"
#define PASSED_OWN                                                                                 \
	"file that Tacho wrote (name it to read it)",                                              \
		"files that Tacho wrote (name them to read them)"
#define PASSED_TWIN                                                                                \
	"JSON file next to an XSpace that is read instead",                                        \
		"JSON files next to an XSpace that is read instead"
#define PASSED_SPECIAL "FIFO, device or socket", "FIFOs, devices or sockets"
enum status source_paths_find(struct input_paths *out, char *const *operands, size_t count,
			      const char *scratch, struct passed_over *passed, struct error *err);

/* The registry of readers of formats, in the order in which equal bids win. */

#define SOURCE_LIST(X)                                                                             \
	X(log)                                                                                     \
	X(kineto)                                                                                  \
	X(xplane)                                                                                  \
	X(nsys) X(rocpd) X(rocprof) X(inspector) X(flight) X(snapshot) X(perfetto) X(chrome)

#define X(name) extern const struct source_type source_##name;
SOURCE_LIST(X)
#undef X

#define X(name) +1
enum { SOURCE_TYPES = 0 SOURCE_LIST(X) };
#undef X
extern const struct source_type *const source_types[]; /* ends with NULL */

/* What a file is that no reader claims, and what to do instead; NULL: unknown. */
const char *source_known(const char *path, const uint8_t *head, size_t len);
