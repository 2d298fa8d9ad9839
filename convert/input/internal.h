/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what lies between a file or a pipe and the bytes that input.h gives: compression,
 * archives, another thread.  One of each belongs to one thread, where nothing else is said.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* inflate.c: the members of a gzip file, through zlib or a faster library that was there when this
 * was built; used by unpack.c alone.  Both give the same bytes. */
struct inflater;

enum inflate_with { INFLATE_FASTEST, INFLATE_ZLIB };

enum inflate_outcome {
	INFLATE_ON,      /* some bytes were read or written */
	INFLATE_END,     /* of a member; inflater_reset() before the next */
	INFLATE_STARVED, /* needs more packed bytes */
	INFLATE_DAMAGED,
	INFLATE_NO_MEMORY,
};

enum status inflater_open(struct inflater **out, enum inflate_with with, struct error *err);
void inflater_close(struct inflater *f); /* accepts NULL */
void inflater_reset(struct inflater *f);

/* From *in, of *in_len bytes, to `out`; both are moved on by what was taken. */
enum inflate_outcome inflater_step(struct inflater *f, const uint8_t **in, size_t *in_len,
				   uint8_t *out, size_t cap, size_t *got);
const char *inflater_fault(const struct inflater *f); /* of INFLATE_DAMAGED */

/* unpack.c: the bytes of a file or a pipe, or those that it compresses. */
enum { UNPACK_HEAD_BYTES = 512 };

struct unpack;

/* Reads up to `cap` bytes; *got is 0 at the end only, and stays so.  A fault is returned at each
 * further call. */
typedef enum status (*unpack_from)(void *self, void *out, size_t cap, size_t *got,
				   struct error *err);

/* An unpack_from of a descriptor, `fd` points to it. */
enum status unpack_from_fd(void *fd, void *out, size_t cap, size_t *got, struct error *err);

/* Reads from where that stands; looks at the first bytes to know what it is. */
enum status unpack_open(struct unpack **out, unpack_from from, void *self, struct error *err);
void unpack_close(struct unpack *u); /* accepts NULL */

/*
 * Up to `cap` more bytes into `out`; *got is 0 at the end only.  Damage is returned once all bytes
 * before it were, and then at each call.
 */
enum status unpack_read(struct unpack *u, uint8_t *out, size_t cap, size_t *got, struct error *err);
/* The first of these bytes, UNPACK_HEAD_BYTES or all that there are; they are read later all the
 * same.  Before the first read. */
const uint8_t *unpack_head(struct unpack *u, size_t *len);
bool unpack_is_plain(const struct unpack *u);   /* nothing is compressed */
uint64_t unpack_packed(const struct unpack *u); /* bytes taken so far */

/*
 * archive.c: traces in a tar or zip archive, read forward.
 *
 * Names in an archive are looked at and shown, nothing is ever written under them.  A member is
 * addressed by its name, or as "#N", the Nth from 1, where the name is not fit to be shown.  An
 * archive inside an archive stays closed.
 */
struct archive_in;

/* Whether these bytes are an archive's, by the first of them; or a member's of one. */
bool archive_is(struct unpack *u);
bool archive_begins(const uint8_t *head, size_t len);

/*
 * `from` gives the unpacked bytes of the archive.  A member by its address, or with NULL the first
 * whose name says trace and that is not a report or manifest of our own; ST_FORMAT when
 * there is none.
 */
enum status archive_in_open(struct archive_in **out, unpack_from from, void *self,
			    const char *member, struct error *err);
void archive_in_close(struct archive_in *a); /* accepts NULL */
/*
 * The member's bytes, as an unpack_from over the archive.  Of a member that was not asked for by
 * its address: when another trace follows, that is a fault, returned in place of the end.
 */
enum status archive_in_read(void *archive, void *out, size_t cap, size_t *got, struct error *err);

/* `address` of a member whose name says trace; borrowed for the call. */
typedef enum status (*archive_name)(void *self, const char *address, struct error *err);
/* Calls `each` for the member that was opened and all after it. */
enum status archive_in_list(struct archive_in *a, archive_name each, void *self, struct error *err);
/* Where the member at hand begins in the unpacked bytes; whether a list came to the archive's end.
 */
uint64_t archive_in_at(const struct archive_in *a);
bool archive_in_is_over(const struct archive_in *a);

/* The last part of a path; hidden files never do (input/paths.c). */
bool input_name_says_trace(const char *name);

/*
 * archive_cache.c: archives of many traces, unpacked once.
 *
 * A packed archive can only be read forward, so that its 1,000th member would cost unpacking all
 * before it.  Listing an archive reads it whole: its unpacked bytes go to an unlinked scratch file
 * on the way, and the place where each member begins is remembered.  Where the disk has no space
 * for it, or the file has changed, members are found by reading forward.
 *
 * Archives are remembered by the file's identity, for the whole process, until
 * archive_cache_clear().  Any thread may call.
 */

/*
 * Calls `each` with the address of each member whose name says trace: never for a file that is no
 * archive.  ST_FORMAT when it is one, but none that can be read.
 */
enum status archive_cache_list(const char *path, const char *scratch, archive_name each, void *self,
			       struct error *err);
/* A descriptor that stands at the member where its place is known: then `fd` was closed; else
 * `fd`. */
int archive_cache_seek(int fd, const char *member);
void archive_cache_clear(void);

/* readahead.c: bytes that are unpacked on another thread before they are asked for.  While it is
 * open only that thread may touch what it reads from. */
struct input_ahead;

enum { INPUT_AHEAD_KEEP = 64 * 1024 };

enum status input_ahead_open(struct input_ahead **out, unpack_from from, void *self,
			     struct error *err);
/*
 * The next block, as `from` would give its bytes: *len bytes at *bytes, at most INPUT_AHEAD_KEEP,
 * are put before it, and *bytes and *len are then all of it, borrowed until the next call.  At the
 * end both stay as they are, and the fault is returned.
 */
enum status input_ahead_lend(struct input_ahead *a, const uint8_t **bytes, size_t *len,
			     struct error *err);
/* Waits for a read that has begun; bytes that were not asked for are gone.  Accepts NULL. */
void input_ahead_close(struct input_ahead *a);
