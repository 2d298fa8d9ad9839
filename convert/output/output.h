/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - one output: a file, standard output, or a folder of files, written completely or not
 * at all.
 *
 * A file is written under a temporary name in its folder and renamed by out_commit(); without a
 * commit, out_free() removes it.  If the name ends in .gz it is compressed (gzip.h), with the same
 * bytes at any number of threads.  Standard output cannot be undone.  Replacing an input
 * (convert/base/inputs_kept.h) is refused with ST_USAGE.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out;

/* Opens an output; `path` is NULL or "-" for standard output.  A missing folder is created. */
enum status out_open(struct out **out, const char *path, bool is_folder, struct error *err);
void out_free(struct out *o); /* accepts NULL; removes files that were not committed */
/* Sets how many threads in addition to the caller's compress and write, 0 at first; to be called
 * before any bytes. */
void out_set_threads(struct out *o, unsigned threads);

/* Ends the previous file of a folder and begins the next one.  `name` is relative and without `..`;
 * folders on its path are created. */
enum status out_begin(struct out *o, const char *name, struct error *err);

enum status out_write(struct out *o, const void *bytes, size_t len, struct error *err);
/*
 * Returns memory for at least `want` (<= 64 KiB) bytes, which the caller fills and then passes with
 * out_advance(), without a copy.  Returns NULL if writing failed; the next out_write() or
 * out_commit() returns the error.
 */
uint8_t *out_reserve(struct out *o, size_t want);
void out_advance(struct out *o, size_t len);

/* A large part of the output's memory, which a sink fills event by event.  It begins zeroed except
 * for `out`; nothing else may write to `out` until the cursor is flushed. */
struct out_cursor {
	struct out *out;
	uint8_t *from, *at, *end;
};
enum { OUT_CURSOR_MOST = 60 * 1024 };
uint8_t *out_cursor_more(struct out_cursor *p, size_t want);
/* Returns p->at with space for `want` (<= OUT_CURSOR_MOST) bytes; the caller advances p->at over
 * what it filled.  Returns NULL if writing failed; out_cursor_flush() returns the error. */
static inline uint8_t *out_cursor_reserve(struct out_cursor *p, size_t want)
{
	return (size_t)(p->end - p->at) >= want ? p->at : out_cursor_more(p, want);
}
enum status out_cursor_put(struct out_cursor *p, const void *bytes, size_t len, struct error *err);
enum status out_cursor_flush(struct out_cursor *p, struct error *err);

/*
 * Returns the temporary path of the single file, for a library that writes files itself; it may be
 * written until the commit.  Returns NULL if there is none (standard output, a device, .gz, a
 * folder); the bytes must then go through out_write().
 */
const char *out_own_file(const struct out *o);

const char *out_name(const struct out *o); /* path of the current file; NULL: standard output */

enum status out_commit(struct out *o, struct error *err);
/* Ends the open file, which the commit will rename. */
enum status out_end(struct out *o, struct error *err);
/* Returns the size of the largest ended file before compression, in bytes. */
uint64_t out_largest(const struct out *o);
/* Moves the files of another output of the same folder to `o`. */
enum status out_adopt(struct out *o, struct out *other, struct error *err);
/* Returns whether the path is an existing folder or ends in a slash. */
bool out_names_folder(const char *path);
uint64_t out_bytes(const struct out *o);  /* bytes so far, before compression */
uint64_t out_stored(const struct out *o); /* bytes written to the system so far */
