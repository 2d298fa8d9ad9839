/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - readers of formats.  Stages, which wrap a source, are sources too.
 *
 * Callers pull: next() returns the next batch in the order of event.h.  A batch and all that it
 * points to is borrowed until the next call on the *same* source.  A stage (merge, context, filter)
 * may change the batch that it got and pass it on without a copy.
 *
 * open() completes the trace's tables (trace.h): the log walks its block headers, a format that is
 * not in time order (Kineto, XSpace) is read once to its end through a spool, and an input that
 * cannot seek is first copied to an unlinked scratch file.  During open() a source may use the
 * whole budget; from then until close() it holds at most `resident` bytes, so 1,024 of them fit.
 * There is no rewind: for a second pass, open the input again.
 *
 * To add a format, write NAME/source.c that exports `const struct source_type source_NAME`, add
 * X(NAME) to SOURCE_LIST below, a sample or generator for the tests and a fuzz target.  A reader of
 * events that are not in time order is a spool reader (spooled.h): its read() fills a spool and
 * makes each event by import.h, from import_begin() to import_put().
 */
#pragma once

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct input;  /* bytes with a name: unpacked, peekable, seekable (convert/input/input.h) */
struct filter; /* what the user asked for (convert/stage/filter/filter.h) */

struct spool_reader;

struct budget {
	size_t opening;      /* bytes a source may use inside open() */
	size_t resident;     /* bytes it may hold afterwards; 64 KiB by default */
	unsigned threads;    /* helpers for decode and inflate; the events do not depend on it */
	const char *scratch; /* folder for unlinked files; borrowed */
};

struct source { /* first member of every source's own struct */
	const struct source_type *type;
};

struct source_type {
	const char *name; /* as in messages and --help */
	const char *help; /* one line */
	/*
	 * Returns how sure this reader is, from 0 (another format) to 100 (certain).  `head` is up
	 * to 64 KiB from the start, decompressed.  The best bidder opens; if its open() returns
	 * ST_FORMAT at once, the next best one does.
	 */
	int (*bid)(const uint8_t *head, size_t len);
	/*
	 * `wanted` is a hint to skip whole blocks or categories early; events outside may still be
	 * returned, because a stage filters exactly.  The caller owns *out, which close() frees; it
	 * is NULL after an error.  `in` is borrowed until close().  If this is NULL, `spooled`
	 * opens.
	 */
	enum status (*open)(struct source **out, struct input *in, struct trace *trace,
			    const struct budget *budget, const struct filter *wanted,
			    struct error *err);
	const struct spool_reader *spooled; /* for a format that is not in time order, or NULL */
	/*
	 * Returns ST_OK with at least one event, ST_END, or the fault that ends this input after
	 * all that was readable before it was returned.  Single damaged records are counted
	 * (trace_lose); an event that would break the order is moved up and counted.
	 */
	enum status (*next)(struct source *s, struct batch *out, struct error *err);
	void (*close)(struct source *s);
};

enum status source_open(struct source **out, struct input *in, struct trace *trace,
			const struct budget *budget, const struct filter *wanted,
			struct error *err);
/* The same by the reader of this type, without bids. */
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
 * As input_paths_find(), but takes from a folder only files that some source claims, because the
 * folder of a run has other JSON too.  If others remain, it also leaves out Tacho's outputs, which
 * are marked in their first bytes, logs beside a file that they were made from, and JSON that JAX
 * and XProf write beside the XSpace that it was made from.  ST_FORMAT: nothing is left of a folder.
 */
struct input_paths;
struct passed_over { /* how many files of each kind were not taken */
	size_t no_trace, own, twin;
};
/* The marks of our outputs: a key in JSON and in an XSpace, and SQLite's application id. */
#define OWN_KEY           "converted_by"
#define OWN_DERIVED       "made by Tacho from the events" /* a row of Perfetto that is no input */
#define PATH_KEY          "call path" /* an argument that is found again, so it is not read */
#define SQLITE_OWN_ID     "Tach"
#define SQLITE_OWN_NUMBER "0x54616368" /* the same */
/* the singular and the plural for say_passed_over() */
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

/* Returns what a file is that no reader claims and what to do instead, or NULL if it is unknown. */
const char *source_known(const char *path, const uint8_t *head, size_t len);
