/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - bytes with a name: a file, standard input, or what lies in either after unpacking.
 *
 * Compression is found by content, never by name, and so are tar and zip archives: an input is the
 * one trace in them, or the member that "FILE:MEMBER" names; nothing is unpacked under a name that
 * an archive has.  Reading is forward (peek, skip) until input_random() was asked once: then any
 * range can be read; what cannot seek (a pipe, a .gz) goes through an unlinked scratch file first,
 * which is the only time that bytes are written.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

enum { INPUT_PEEK_MAX = 16 * 1024 * 1024 }; /* most that input_peek() shows at once */

/* "-" is standard input.  `scratch` is a folder for unlinked files; borrowed until close. */
enum status input_open(struct input **out, const char *path, const char *scratch,
		       struct error *err);
void input_close(struct input *in);             /* accepts NULL */
const char *input_path(const struct input *in); /* as given, for messages; "-" is "(stdin)" */

/*
 * At least `want` bytes (at most INPUT_PEEK_MAX) from the present place, fewer only where the
 * input ends; *len may be more than asked for.  Borrowed until the next peek; skip keeps it.
 * Damage inside the compression is ST_TRUNCATED or ST_FORMAT, once everything before it has been
 * given.
 */
enum status input_peek(struct input *in, size_t want, const uint8_t **bytes, size_t *len,
		       struct error *err);
/*
 * From here on another thread unpacks what will be peeked at next, where that is work: a file that
 * is packed.  Where that fails reading goes on without it.  Called by the thread that reads, before
 * or between its peeks.
 */
void input_read_ahead(struct input *in);
void input_skip(struct input *in, size_t len); /* at most what the last peek gave */
uint64_t input_at(const struct input *in);     /* unpacked bytes skipped so far */

/* From here on input_read_at() works, and only it. */
enum status input_random(struct input *in, struct error *err);
uint64_t input_size(const struct input *in); /* unpacked bytes; known after input_random() */
/* Up to `len` bytes at `at`; *got is less only at the end.  Any thread. */
enum status input_read_at(const struct input *in, uint64_t at, void *bytes, size_t len, size_t *got,
			  struct error *err);

/*
 * For a progress line.  A source that gives nothing on before it has read its input to the end says
 * so by input_note(in, 0, 1), and then how much of what it read it has given on.
 */
struct input_progress {
	uint64_t read_bytes, all_bytes; /* as they are stored; all 0: unknown */
	double share;                   /* of the work, 0 to 1 */
};
void input_note(struct input *in, uint64_t given, uint64_t all);
/* Of a source that gives on at once what it reads with input_read_at(): `done` of `all` parts. */
void input_passed(struct input *in, uint64_t done, uint64_t all);
void input_look(const struct input *in, struct input_progress *out); /* any thread */

/*
 * What the operands of a command line mean: a file or "-" is itself; a folder is every file below
 * it whose name says trace (.tacho .json .json.gz .pt.trace.json ... ), by name; an archive of
 * several traces is FILE:MEMBER for each, and unpacked once to an unlinked file in `scratch` until
 * the list is freed.  ST_FORMAT when a folder holds none.  From here on no output can replace one
 * of these files.
 */
struct input_paths {
	char **paths;
	bool *searched; /* of each path: it was found in a folder, not named by the user */
	size_t special; /* FIFOs, devices and sockets that were found in folders and are left out */
	size_t count, paths_cap, searched_cap;
};
enum status input_paths_find(struct input_paths *out, char *const *operands, size_t count,
			     const char *scratch, struct error *err);
/* From here on no output takes the place of what `operand` names: a file, that at standard input,
 * the archive of FILE:MEMBER.  input_paths_find() does so. */
enum status input_keep(const char *operand, struct error *err);
/*
 * The name of a file and its bytes, by which an output says what it is made of wherever it lies;
 * the caller frees it.  NULL: there is no memory.
 */
char *input_identity(const char *path);
void input_paths_free(struct input_paths *p);
