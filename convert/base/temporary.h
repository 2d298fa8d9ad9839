/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary.h - files that must not outlive the process, even if a signal ends it.
 *
 * Note a file before making it, and forget it after it was renamed or removed.  Any thread may
 * call.  After SIGKILL files remain; their names tell what they are (.part, tacho-XXXXXX).
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

/* The path, which is copied, is a file or a folder that has only noted files. */
void temporary_note(const char *path);
void temporary_forget(const char *path); /* accepts NULL, and what was not noted */

/* Makes and notes an empty file with a unique name in a folder; *path is freed with
 * temporary_remove(). */
enum status temporary_make(char **path, const char *folder, struct error *err);
void temporary_remove(char **path); /* removes and forgets the file; accepts NULL in *path */

/* Opens a file without a name in a folder, for reading and writing; returns -1 and errno on
 * failure. */
int temporary_open(const char *folder);
/* Writes all bytes to such a file. */
enum status temporary_write(int fd, const void *bytes, size_t len, struct error *err);

/*
 * A tool's main() calls this once.  SIGINT, SIGTERM, SIGHUP and SIGPIPE then remove all noted files
 * before they end the process; an ignored signal stays ignored.
 */
void temporary_guard(void);
