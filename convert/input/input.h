/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the bytes of a file or of standard input, after decompression.
 *
 * Compression and tar and zip archives are recognized by content, never by name.  The input is the
 * only trace in an archive, or the member that "FILE:MEMBER" names; no file is ever created under a
 * name from an archive.  Reading is forward (peek, skip) until input_random() is called; after that
 * any range can be read.  Only input_random() copies an input that cannot seek (a pipe, a .gz) to
 * an unlinked scratch file.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

enum { INPUT_PEEK_MAX = 16 * 1024 * 1024 }; /* most bytes that one input_peek() returns */

/* Opens `path`; "-" is standard input.  `scratch` is a folder for unlinked files; it is copied. */
enum status input_open(struct input **out, const char *path, const char *scratch,
		       struct error *err);
void input_close(struct input *in);             /* accepts NULL */
const char *input_path(const struct input *in); /* as given, for messages; "-" becomes "(stdin)" */

/*
 * Returns at least `want` bytes (at most INPUT_PEEK_MAX) at the current position, fewer only at the
 * end; *len may be more than `want`.  They are borrowed until the next peek, also across a skip.
 * Damaged compression returns ST_TRUNCATED or ST_FORMAT after all bytes before it were returned.
 */
enum status input_peek(struct input *in, size_t want, const uint8_t **bytes, size_t *len,
		       struct error *err);
/*
 * Makes another thread unpack a compressed input ahead of the peeks.  If there is no thread,
 * reading continues without it.  The reading thread calls this before or between its peeks.
 */
void input_read_ahead(struct input *in);
void input_skip(struct input *in, size_t len); /* at most the *len of the last peek */
uint64_t input_at(const struct input *in);     /* decompressed bytes skipped so far */

/* Prepares random access.  After this call only input_read_at() may be used. */
enum status input_random(struct input *in, struct error *err);
uint64_t input_size(const struct input *in); /* decompressed bytes; known after input_random() */
/* Reads up to `len` bytes at offset `at`; *got is less only at the end.  Any thread may call it. */
enum status input_read_at(const struct input *in, uint64_t at, void *bytes, size_t len, size_t *got,
			  struct error *err);

/*
 * Progress of reading, for the progress line.  A source that reads its input to the end before it
 * delivers events calls input_note(in, 0, 1), and then reports how many of all events it has
 * delivered.
 */
struct input_progress {
	uint64_t read_bytes, all_bytes; /* compressed bytes; all 0: unknown */
	double share;                   /* share of the work that is done, 0 to 1 */
};
void input_note(struct input *in, uint64_t given, uint64_t all);
/* Reports progress of a source that delivers at once what it reads with input_read_at(): `done` of
 * `all` parts. */
void input_passed(struct input *in, uint64_t done, uint64_t all);
void input_look(const struct input *in, struct input_progress *out); /* any thread may call it */

/*
 * The paths that the operands of a command line stand for.  A file or "-" stands for itself.  A
 * folder stands for every file below it with the name of a trace (.tacho .json .json.gz
 * .pt.trace.json ...), sorted by name.  An archive of several traces stands for FILE:MEMBER of
 * each; it is unpacked once to an unlinked file in `scratch`, which exists until the list is freed.
 * input_paths_find() returns ST_FORMAT if a folder has no trace.  After it no output can replace
 * one of these files.  input_paths_free() must be called after an error too.
 */
enum { INPUT_OTHERS_MOST = 64 };
struct input_paths {
	char **paths;
	bool *searched; /* for each path: found in a folder, not named by the user */
	size_t special; /* FIFOs, devices and sockets in folders, which are left out */
	size_t count, paths_cap, searched_cap;
	/* other files in folders, without the name of a trace, up to a limit */
	char *others[INPUT_OTHERS_MOST];
	size_t other_count;
};
enum status input_paths_find(struct input_paths *out, char *const *operands, size_t count,
			     const char *scratch, struct error *err);
/* Ensures that no output can replace the file that `operand` names: a file, the one at standard
 * input, or the archive of FILE:MEMBER.  input_paths_find() calls it. */
enum status input_keep(const char *operand, struct error *err);
/*
 * Returns the name of a file without its folder and its size in bytes, with which an output records
 * its inputs; the caller frees it.  Returns NULL if memory is short.
 */
char *input_identity(const char *path);
void input_paths_free(struct input_paths *p);
