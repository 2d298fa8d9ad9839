/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_cache.h - archives of many traces, unpacked once.  For this folder alone.
 *
 * A packed archive can only be read forward, so that its 1,000th member would cost unpacking all
 * before it.  Listing an archive reads it whole: its unpacked bytes go to an unlinked scratch file
 * on the way, and the place where each member begins is remembered.  Where the disk has no space
 * for it, or the file has changed, members are found by reading forward.
 *
 * Archives are remembered by the file's identity, for the whole process, until
 * archive_cache_clear().  Any thread may call.
 */
#ifndef CONVERT_INPUT_ARCHIVE_CACHE_H
#define CONVERT_INPUT_ARCHIVE_CACHE_H

#include "convert/input/archive.h"

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

#endif
