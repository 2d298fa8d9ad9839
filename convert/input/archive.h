/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.h - traces in a tar or zip archive, read forward.  For this folder alone.
 *
 * Names in an archive are looked at and shown, nothing is ever written under them.  A member is
 * addressed by its name, or as "#N", the Nth from 1, where the name is not fit to be shown.  An
 * archive inside an archive stays closed.
 */
#ifndef CONVERT_INPUT_ARCHIVE_H
#define CONVERT_INPUT_ARCHIVE_H

#include "convert/input/unpack.h"

enum { ARCHIVE_HEAD_BYTES = 512 };

/* By the first ARCHIVE_HEAD_BYTES of the unpacked bytes. */
bool archive_is(const uint8_t *head, size_t len);

struct archive_in;

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

#endif
