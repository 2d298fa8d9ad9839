/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - one output: a file, standard output, or a folder of files, written completely or not
 * at all.
 *
 * A file is written under a temporary name in its folder and renamed by out_commit(); without that,
 * out_free() removes it.  If the name ends in .gz it is deflated (gzip.h), with the same bytes at
 * any number of threads.  Standard output cannot be undone.  Replacing an input
 * (convert/base/inputs_kept.h) is refused with ST_USAGE.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out;

/* `path` NULL or "-": standard output.  A folder is made if it is not there. */
enum status out_open(struct out **out, const char *path, bool is_folder, struct error *err);
void out_free(struct out *o); /* accepts NULL; removes what was not committed */
/* Sets how many threads beside the caller's compress and write, 0 at first, before any bytes. */
void out_set_threads(struct out *o, unsigned threads);

/* Ends the previous file of a folder and begins the next.  `name` is relative and without `..`;
 * folders on its path are made. */
enum status out_begin(struct out *o, const char *name, struct error *err);

enum status out_write(struct out *o, const void *bytes, size_t len, struct error *err);
/*
 * The fast path: returns memory for at least `want` (<= 64 KiB) bytes, which the caller fills and
 * then advances over.  NULL: writing failed, and the next out_write() or out_commit() returns the
 * error.
 */
uint8_t *out_reserve(struct out *o, size_t want);
void out_advance(struct out *o, size_t len);

/* Memory of the output that is reserved in large parts and filled event by event.  It begins zeroed
 * except for `out`, to which nothing else writes until the cursor is flushed. */
struct out_cursor {
	struct out *out;
	uint8_t *from, *at, *end;
};
enum { OUT_CURSOR_MOST = 60 * 1024 };
uint8_t *out_cursor_more(struct out_cursor *p, size_t want);
/* Reserves `want` (<= OUT_CURSOR_MOST) bytes at p->at, which the caller moves over what it filled.
 * NULL: writing failed, and out_cursor_flush() returns why. */
static inline uint8_t *out_cursor_reserve(struct out_cursor *p, size_t want)
{
	return (size_t)(p->end - p->at) >= want ? p->at : out_cursor_more(p, want);
}
enum status out_cursor_put(struct out_cursor *p, const void *bytes, size_t len, struct error *err);
enum status out_cursor_flush(struct out_cursor *p, struct error *err);

/*
 * For a library that writes files itself: returns the temporary path of the one file, which may be
 * written until the commit.  Returns NULL if there is none (standard output, a device, .gz, a
 * folder); then the bytes go through out_write().
 */
const char *out_own_file(const struct out *o);

const char *out_name(const struct out *o); /* of the file being written; NULL: standard output */

enum status out_commit(struct out *o, struct error *err);
/* Ends the open file, which then waits for the commit. */
enum status out_end(struct out *o, struct error *err);
/* Returns the bytes of the largest ended file before compression. */
uint64_t out_largest(const struct out *o);
/* Moves the files of another output of the same folder to `o`. */
enum status out_adopt(struct out *o, struct out *other, struct error *err);
/* Whether the path is an existing folder or ends in a slash. */
bool out_names_folder(const char *path);
uint64_t out_bytes(const struct out *o);  /* written so far, before compression */
uint64_t out_stored(const struct out *o); /* given to the system so far, after it */
