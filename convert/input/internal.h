/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the layers between a file or pipe and the bytes of input.h: compression, archives
 * and reading ahead.  An object belongs to one thread unless stated otherwise.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* inflate.c: inflates gzip members with zlib, or with a faster library if the build found one; the
 * bytes are the same.  Only unpack.c uses it. */
struct inflater;

enum inflate_with { INFLATE_FASTEST, INFLATE_ZLIB };

enum inflate_outcome {
	INFLATE_ON,      /* some bytes were read or written */
	INFLATE_END,     /* end of a member; call inflater_reset() before the next */
	INFLATE_STARVED, /* needs more compressed bytes */
	INFLATE_DAMAGED,
	INFLATE_NO_MEMORY,
};

enum status inflater_open(struct inflater **out, enum inflate_with with, struct error *err);
void inflater_close(struct inflater *f); /* accepts NULL */
void inflater_reset(struct inflater *f);

/* Inflates *in, which has *in_len bytes, to `out`.  Advances *in and *in_len by the bytes consumed,
 * and sets *got to the bytes written. */
enum inflate_outcome inflater_step(struct inflater *f, const uint8_t **in, size_t *in_len,
				   uint8_t *out, size_t cap, size_t *got);
const char *inflater_fault(const struct inflater *f); /* text for INFLATE_DAMAGED */

/* unpack.c: the bytes of a file or a pipe, decompressed if necessary. */
enum { UNPACK_HEAD_BYTES = 512 };

struct unpack;

/* Reads up to `cap` bytes; *got is 0 only at the end, and then for every call.  Calls after an
 * error return it again. */
typedef enum status (*unpack_from)(void *self, void *out, size_t cap, size_t *got,
				   struct error *err);

/* An unpack_from for the file descriptor to which `fd` points. */
enum status unpack_from_fd(void *fd, void *out, size_t cap, size_t *got, struct error *err);

/* Reads from the current position of `from` and recognizes the compression by the first bytes. */
enum status unpack_open(struct unpack **out, unpack_from from, void *self, struct error *err);
void unpack_close(struct unpack *u); /* accepts NULL */

/*
 * Reads up to `cap` more bytes into `out`; *got is 0 only at the end.  An error is returned after
 * all bytes before it, and then by each call.
 */
enum status unpack_read(struct unpack *u, uint8_t *out, size_t cap, size_t *got, struct error *err);
/* Returns the first UNPACK_HEAD_BYTES bytes, or fewer at the end, without consuming them.  Must be
 * called before the first read. */
const uint8_t *unpack_head(struct unpack *u, size_t *len);
bool unpack_is_plain(const struct unpack *u);   /* nothing is compressed */
uint64_t unpack_packed(const struct unpack *u); /* compressed bytes consumed so far */

/*
 * archive.c: traces in a tar or zip archive, read forward.
 *
 * Names in an archive are only compared and shown; no file is ever created under them.  A member is
 * addressed by its name, or as "#N" (from 1) if the name cannot be shown safely.  An archive inside
 * an archive is not opened.
 */
struct archive_in;

/* Return whether the first bytes are those of an archive. */
bool archive_is(struct unpack *u);
bool archive_begins(const uint8_t *head, size_t len);

/*
 * Opens a member by its address, or, if `member` is NULL, the first one that has the name of a
 * trace and is not a report or manifest of ours.  `from` returns the decompressed bytes of the
 * archive.  Returns ST_FORMAT if there is no such member.
 */
enum status archive_in_open(struct archive_in **out, unpack_from from, void *self,
			    const char *member, struct error *err);
void archive_in_close(struct archive_in *a); /* accepts NULL */
/*
 * Reads the member's bytes; it is an unpack_from with the archive as `self`.  If the member was not
 * opened by its address and another trace follows, the end is an error.
 */
enum status archive_in_read(void *archive, void *out, size_t cap, size_t *got, struct error *err);

/* Receives the `address` of a member with the name of a trace, borrowed for the call. */
typedef enum status (*archive_name)(void *self, const char *address, struct error *err);
/* Calls `each` for the open member and all members after it. */
enum status archive_in_list(struct archive_in *a, archive_name each, void *self, struct error *err);
/* Return the offset of the current member in the decompressed bytes, and whether a list reached the
 * end of the archive. */
uint64_t archive_in_at(const struct archive_in *a);
bool archive_in_is_over(const struct archive_in *a);

/* Returns whether `name`, the last part of a path, is the name of a trace; hidden files are not
 * traces (input/paths.c). */
bool input_name_says_trace(const char *name);

/*
 * archive_cache.c: unpacks an archive of many traces only once.
 *
 * A compressed archive can only be read forward, so opening its 1,000th member would unpack all
 * members before it.  Listing an archive reads all of it, so this also copies the decompressed
 * bytes to an unlinked scratch file and records where each member begins.  If the disk has no space
 * for it, or the file has changed, members are found by reading forward.
 *
 * Archives are identified by device, inode, size and time of change.  The cache lasts for the whole
 * process, until archive_cache_clear().  Any thread may call these functions.
 */

/*
 * Calls `each` with the address of each member that has the name of a trace; never calls it for a
 * file that is not an archive.  Returns ST_FORMAT if the archive cannot be read.
 */
enum status archive_cache_list(const char *path, const char *scratch, archive_name each, void *self,
			       struct error *err);
/* If the cache knows the position of the member, closes `fd` and returns a descriptor at that
 * position; otherwise returns `fd`. */
int archive_cache_seek(int fd, const char *member);
void archive_cache_clear(void);

/* readahead.c: reads bytes in advance on another thread.  While it is open, only that thread may
 * use `self` of `from`. */
struct input_ahead;

enum { INPUT_AHEAD_KEEP = 64 * 1024 };

enum status input_ahead_open(struct input_ahead **out, unpack_from from, void *self,
			     struct error *err);
/*
 * Copies the *len bytes at *bytes, at most INPUT_AHEAD_KEEP, in front of the next block of `from`,
 * and sets *bytes and *len to both together, borrowed until the next call.  At the end it changes
 * neither and returns the error of `from`, if any.
 */
enum status input_ahead_lend(struct input_ahead *a, const uint8_t **bytes, size_t *len,
			     struct error *err);
/* Waits for a read that has begun and drops unread bytes.  Accepts NULL. */
void input_ahead_close(struct input_ahead *a);
