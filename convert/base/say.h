/* SPDX-License-Identifier: Apache-2.0 */
/*
 * say.h - lines of a tool on standard error.
 *
 * Names of files and texts of traces come from anywhere, and a terminal obeys some of them: they
 * are tamed here (utf8_tame()), so that no line has to think of it.
 */
#ifndef CONVERT_BASE_SAY_H
#define CONVERT_BASE_SAY_H

#include "schemas/base/status.h"

#include <stddef.h>

/* "TOOL: text", one line. */
void say(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "TOOL: passed over 3 FIFOs, ..."; nothing where there are none. */
void say_passed_over(const char *tool, size_t count, const char *one, const char *several);
/* "TOOL: file: byte 44: text"; `file` may be NULL. */
void say_error(const char *tool, const char *file, const struct error *err);

#endif
