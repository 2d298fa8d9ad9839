/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - files that a test writes and reads back, in a folder that goes away with the test.
 */
#ifndef TESTS_UNIT_FOLDER_H
#define TESTS_UNIT_FOLDER_H

#include <stddef.h>

struct folder {
	char folder[64]; /* absolute, under /tmp */
	char path[512];  /* of the file that was named last */
};

/* Fails a check and gives an empty folder name when there is none to be had. */
void folder_make(struct folder *s);
void folder_remove(struct folder *s); /* removes all that is in it */

/* The path of `name`, whose folders are made; valid until the next call. */
const char *folder_path(struct folder *s, const char *name);
const char *folder_write(struct folder *s, const char *name, const void *bytes, size_t len);
/* One gzip member, or several when `append`. */
const char *folder_gzip(struct folder *s, const char *name, const void *bytes, size_t len,
			int append);

/*
 * All of a file, and a NUL behind it; free() it.  NULL and no bytes where there is none: the test's
 * checks of what stands in it fail then.
 */
void *folder_read(const char *path, size_t *len);

#endif
