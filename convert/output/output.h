/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - one output: a file, standard output, or a folder of files.  All or nothing.
 *
 * A file is written under a temporary name in its folder and renamed by out_commit(); without it
 * out_free() removes what was begun.  A name that ends in .gz is deflated on the way (gzip.h), the
 * bytes the same at any number of threads.  Standard output cannot be taken back.  An input
 * (convert/base/inputs_kept.h) is never written over: ST_USAGE.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out;

/* `path` NULL or "-": standard output.  A folder is made if it is not there. */
enum status out_open(struct out **out, const char *path, bool is_folder, struct error *err);
void out_free(struct out *o); /* accepts NULL; takes back what was not committed */
/* Threads that compress and write beside the caller's, 0 at first; set before any bytes. */
void out_set_threads(struct out *o, unsigned threads);

/* In a folder: ends the file before and begins this one.  `name` is relative, without `..`; folders
 * on the path are made.  Not for single files. */
enum status out_begin(struct out *o, const char *name, struct error *err);

enum status out_write(struct out *o, const void *bytes, size_t len, struct error *err);
/*
 * The fast path: memory for at least `want` (<= 64 KiB) bytes, to be filled and then advanced over.
 * NULL: writing failed; the error is kept and returned by the next out_write() or out_commit().
 */
uint8_t *out_reserve(struct out *o, size_t want);
void out_advance(struct out *o, size_t len);

/* Memory of the output that is reserved in large parts and filled event by event.  It begins zeroed
 * except for `out`; nobody else writes to `out` until it is flushed. */
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
 * For a library that writes files by itself: the path of the one file under its temporary name, to
 * be written there until the commit; NULL when there is none (standard output, a device, .gz, a
 * folder): then the bytes go through out_write().
 */
const char *out_own_file(const struct out *o);

const char *out_name(const struct out *o); /* of the file being written; NULL: standard output */

enum status out_commit(struct out *o, struct error *err);
/* Ends the file that is open, which cannot be written to any more; it waits for the commit. */
enum status out_end(struct out *o, struct error *err);
/* Bytes of the largest file that was ended, before compression. */
uint64_t out_largest(const struct out *o);
/* The files of another folder's output become those of `o`; both are of one folder. */
enum status out_adopt(struct out *o, struct out *other, struct error *err);
/* A folder that is there, or a name that ends in a slash. */
bool out_names_folder(const char *path);
uint64_t out_bytes(const struct out *o);  /* written so far, before compression */
uint64_t out_stored(const struct out *o); /* given to the system so far, after it */
