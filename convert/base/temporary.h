/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary.h - files that must not outlive the process: what a signal ends is removed first.
 *
 * A file is noted before it is made and forgotten after it was renamed or removed.  Any thread.
 * Who is ended by SIGKILL leaves them; their names say what they are (.part, tacho-XXXXXX).
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

/* A file, or a folder of nothing but noted files.  Copied. */
void temporary_note(const char *path);
void temporary_forget(const char *path); /* accepts NULL, and what was not noted */

/* Makes and notes an empty file with a name of its own in a folder; *path is freed with
 * temporary_remove(). */
enum status temporary_make(char **path, const char *folder, struct error *err);
void temporary_remove(char **path); /* removes and forgets the file; accepts NULL in *path */

/* A file without a name in a folder, for reading and writing; -1 and errno: none can be made. */
int temporary_open(const char *folder);
/* Writes all bytes to such a file. */
enum status temporary_write(int fd, const void *bytes, size_t len, struct error *err);

/*
 * Of a tool's main(), once: SIGINT, SIGTERM, SIGHUP and SIGPIPE remove what is noted and then end
 * the process as they would have; one that is ignored stays so.
 */
void temporary_guard(void);
