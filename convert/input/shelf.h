/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input/shelf.h - archives of many traces, unpacked once; of the input alone.
 *
 * A packed archive can only be read forward, so that its 1,000th member would cost unpacking all
 * before it.  Listing an archive reads it whole: its unpacked bytes go to an unlinked scratch file
 * on the way, and where each member begins is remembered.  A help only: where the disk has no room
 * for it, or the file is another by now, members are found by reading forward as ever.
 *
 * What is remembered is of the process, by the file's identity, until input_shelf_clear().  Any
 * thread.
 */
#ifndef CONVERT_INPUT_SHELF_H
#define CONVERT_INPUT_SHELF_H

#include "convert/input/archive.h"

/*
 * `address` of each member whose name says trace.  Nothing of a file that is no archive;
 * ST_FORMAT when it is one, but none that can be read.
 */
enum status input_shelf_list(const char *path, const char *scratch, archive_name each, void *self,
			     struct error *err);
/* `fd` of an archive, at the member where that is known: perhaps another descriptor, then the
 * first is closed. */
int input_shelf_take(int fd, const char *member);
void input_shelf_clear(void);

/* An unlinked file in a folder; -1: none can be made there. */
int input_scratch_open(const char *folder);

#endif
