/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary.h - files that must not outlive the process, even if a signal ends it.
 *
 * Note a file before creating it, and forget it after it was renamed or removed.  Any thread may
 * call these functions.  After SIGKILL files remain; their names show their purpose (.part,
 * tacho-XXXXXX).
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

/* Notes a file, or a folder that contains only noted files.  The path is copied. */
void temporary_note(const char *path);
void temporary_forget(const char *path); /* accepts NULL and unknown paths */

/* Creates and notes an empty file with a unique name in a folder; the caller frees *path with
 * temporary_remove(). */
enum status temporary_make(char **path, const char *folder, struct error *err);
void temporary_remove(char **path); /* removes and forgets the file; accepts NULL in *path */

/* Opens a file without a name in a folder, for reading and writing.  Returns -1 and sets errno if
 * it fails. */
int temporary_open(const char *folder);
/* Writes all bytes to a file of temporary_open(). */
enum status temporary_write(int fd, const void *bytes, size_t len, struct error *err);

/*
 * A tool's main() calls this once.  SIGINT, SIGTERM, SIGHUP and SIGPIPE then remove all noted files
 * before they end the process; an ignored signal stays ignored.
 */
void temporary_guard(void);
