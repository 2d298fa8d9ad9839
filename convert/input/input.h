/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the bytes of a file or of standard input, after unpacking.
 *
 * Compression and tar and zip archives are recognised by content, never by name.  The input is the
 * only trace in an archive, or the member that "FILE:MEMBER" names; no file is ever created under a
 * name from an archive.  Reading is forward (peek, skip) until input_random() is called; after that
 * any range can be read.  Only then an input that cannot seek (a pipe, a .gz) is copied to an
 * unlinked scratch file.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

enum { INPUT_PEEK_MAX = 16 * 1024 * 1024 }; /* most that input_peek() shows at once */

/* "-" is standard input.  `scratch` is a folder for unlinked files, borrowed until close. */
enum status input_open(struct input **out, const char *path, const char *scratch,
		       struct error *err);
void input_close(struct input *in);             /* accepts NULL */
const char *input_path(const struct input *in); /* as given, for messages; "-" is "(stdin)" */

/*
 * Shows at least `want` bytes (at most INPUT_PEEK_MAX) at the current position, fewer only at the
 * end; *len may be more.  They are borrowed until the next peek, also across a skip.  Damaged
 * compression is ST_TRUNCATED or ST_FORMAT after everything before it was returned.
 */
enum status input_peek(struct input *in, size_t want, const uint8_t **bytes, size_t *len,
		       struct error *err);
/*
 * Makes another thread unpack a compressed input ahead of the peeks.  If there is no thread,
 * reading continues without it.  The reading thread calls this before or between its peeks.
 */
void input_read_ahead(struct input *in);
void input_skip(struct input *in, size_t len); /* at most what the last peek gave */
uint64_t input_at(const struct input *in);     /* unpacked bytes skipped so far */

/* After this call only input_read_at() may be used. */
enum status input_random(struct input *in, struct error *err);
uint64_t input_size(const struct input *in); /* unpacked bytes; known after input_random() */
/* Reads up to `len` bytes at `at`; *got is less only at the end.  Any thread may call. */
enum status input_read_at(const struct input *in, uint64_t at, void *bytes, size_t len, size_t *got,
			  struct error *err);

/*
 * How far reading is, for the progress line.  A source that reads its input to the end before it
 * delivers events calls input_note(in, 0, 1), and then notes how much it has delivered.
 */
struct input_progress {
	uint64_t read_bytes, all_bytes; /* as they are stored; all 0: unknown */
	double share;                   /* of the work, 0 to 1 */
};
void input_note(struct input *in, uint64_t given, uint64_t all);
/* For a source that delivers at once what it reads by input_read_at(): `done` of `all` parts. */
void input_passed(struct input *in, uint64_t done, uint64_t all);
void input_look(const struct input *in, struct input_progress *out); /* any thread */

/*
 * The paths that the operands of a command line mean.  A file or "-" is itself.  A folder is every
 * file below it with the name of a trace (.tacho .json .json.gz .pt.trace.json ...), sorted by
 * name.  An archive of several traces is FILE:MEMBER for each; it is unpacked once to an unlinked
 * file in `scratch` until the list is freed.  ST_FORMAT: a folder has no trace.  After this no
 * output can replace one of these files.  input_paths_free() is also called after a fault.
 */
enum { INPUT_OTHERS_MOST = 64 };
struct input_paths {
	char **paths;
	bool *searched; /* of each path: it was found in a folder, not named by the user */
	size_t special; /* FIFOs, devices and sockets that were found in folders and are left out */
	size_t count, paths_cap, searched_cap;
	/* files of folders whose names are not those of traces, up to a limit */
	char *others[INPUT_OTHERS_MOST];
	size_t other_count;
};
enum status input_paths_find(struct input_paths *out, char *const *operands, size_t count,
			     const char *scratch, struct error *err);
/* After this no output can replace the file that `operand` names: a file, the one at standard
 * input, or the archive of FILE:MEMBER.  input_paths_find() calls it. */
enum status input_keep(const char *operand, struct error *err);
/*
 * Returns the name of a file and its size in bytes, by which an output says what it was made from,
 * without the folder; the caller frees it.  Returns NULL without memory.
 */
char *input_identity(const char *path);
void input_paths_free(struct input_paths *p);
