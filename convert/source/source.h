/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the interface of sources, which read formats.  Stages, which wrap a source, are
 * sources too.
 *
 * Callers pull: next() returns the next batch in the order that event.h defines.  A batch and all
 * that it points to is borrowed until the next call on the *same* source.  A stage (merge, context,
 * filter) may change the batch that it received and pass it on without a copy.
 *
 * open() completes the trace's tables (trace.h): the log reader walks the block headers, a file
 * that is not in time order (Kineto, XSpace) is read once to its end through a spool, and an input
 * that cannot seek is first copied to an unlinked scratch file.  During open() a source may use the
 * whole budget; from then until close() it holds at most `resident` bytes, so that 1,024 sources
 * fit in memory.  A source cannot be rewound: for a second pass, open the input again.
 *
 * To add a format, write NAME/source.c that exports `const struct source_type source_NAME`, and add
 * X(NAME) to SOURCE_LIST below, a sample or generator for the tests and a fuzz target.  A reader of
 * events that are not in time order is a spool reader (spooled.h): its read() fills a spool and
 * creates each event with the functions of import.h, from import_begin() to import_put().
 */
#pragma once

#include "schemas/model/event.h"
#include "schemas/model/trace.h"

struct input;  /* a named stream of bytes: unpacked, peekable, seekable (convert/input/input.h) */
struct filter; /* which events the user selected (convert/stage/filter/filter.h) */

struct spool_reader;

struct budget {
	size_t opening;      /* bytes a source may use inside open() */
	size_t resident;     /* bytes a source may hold after open(); 64 KiB by default */
	unsigned threads;    /* helper threads for decoding; events do not depend on them */
	const char *scratch; /* folder for unlinked temporary files; borrowed */
};

struct source { /* first member of every source's own struct */
	const struct source_type *type;
};

struct source_type {
	const char *name; /* the name in messages and --help */
	const char *help; /* one line for --help */
	/*
	 * Returns how sure this reader is that it can read the input, from 0 (another format) to
	 * 100 (certain).  `head` is up to 64 KiB from the start, decompressed.  source_open() calls
	 * open() of the highest bidder; if that returns ST_FORMAT before it consumed anything, the
	 * next highest one follows.
	 */
	int (*bid)(const uint8_t *head, size_t len);
	/*
	 * Opens `in`, which is borrowed until close().  The caller owns *out, which close() frees;
	 * it is NULL after an error.  `wanted` is a hint to skip whole blocks or categories early;
	 * events outside may still be returned, because a stage filters exactly.  A type with
	 * `spooled` leaves this NULL.
	 */
	enum status (*open)(struct source **out, struct input *in, struct trace *trace,
			    const struct budget *budget, const struct filter *wanted,
			    struct error *err);
	const struct spool_reader *spooled; /* reader of a format not in time order, or NULL */
	/*
	 * Returns ST_OK with at least one event, or ST_END, or the error that ends this input,
	 * after all events that were readable before it.  A single damaged record is only counted
	 * (trace_lose).  The time of an event that would break the order is raised, and the event
	 * is counted.
	 */
	enum status (*next)(struct source *s, struct batch *out, struct error *err);
	void (*close)(struct source *s);
};

enum status source_open(struct source **out, struct input *in, struct trace *trace,
			const struct budget *budget, const struct filter *wanted,
			struct error *err);
/* Opens `in` with the reader `type`, without calling any bid(). */
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
 * Finds the inputs that `operands` name, as input_paths_find() does, but accepts from a folder only
 * files that some source claims, because the folder of a run contains other JSON too.  Unless
 * nothing would remain, it also leaves out Tacho's outputs, which are marked in their first bytes,
 * logs next to a file that they were made from, and JSON that JAX and XProf write next to the
 * XSpace that it was made from.  Returns ST_FORMAT if no file of a folder remains.
 */
struct input_paths;
struct passed_over { /* number of files that were left out, by kind */
	size_t no_trace, own, twin;
};
/* Marks of Tacho's own outputs: a key in JSON and XSpace, and the application id of SQLite. */
#define OWN_KEY           "converted_by"
#define OWN_DERIVED       "made by Tacho from the events" /* marks derived rows of Perfetto */
#define PATH_KEY          "call path" /* derived from the events, so it is not read */
#define SQLITE_OWN_ID     "Tach"
#define SQLITE_OWN_NUMBER "0x54616368" /* SQLITE_OWN_ID as a number */
/* Singular and plural of each kind, for say_passed_over(). */
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

/* The registry of readers.  If two bids are equal, the reader that is earlier in the list wins. */

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

/* Returns a phrase with the kind of a file that no reader claims and what to do instead, or NULL if
 * the kind is unknown. */
const char *source_known(const char *path, const uint8_t *head, size_t len);
