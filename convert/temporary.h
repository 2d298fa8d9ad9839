/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary.h - files that must not outlive the process: what a signal ends is removed first.
 *
 * A file is noted before it is made and forgotten after it was renamed or removed.  Any thread.
 * Who is ended by SIGKILL leaves them; their names say what they are (.part, tacho-XXXXXX).
 */
#ifndef CONVERT_TEMPORARY_H
#define CONVERT_TEMPORARY_H

/* A file, or a folder of nothing but noted files.  Copied. */
void temporary_note(const char *path);
void temporary_forget(const char *path); /* accepts NULL, and what was not noted */

/*
 * Of a tool's main(), once: SIGINT, SIGTERM, SIGHUP and SIGPIPE remove what is noted and then end
 * the process as they would have; one that is ignored stays so.
 */
void temporary_guard(void);

#endif
