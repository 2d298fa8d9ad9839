/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs_kept.h - remembers which files are inputs, so that no output replaces one.
 *
 * Files are compared by device and inode, because a file may have several names.  The list lasts as
 * long as the process, because a page is written after its inputs are closed.  Only one thread may
 * use it.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Remembers a path of `len` bytes, which is copied; "-" is standard input. */
enum status inputs_kept_note(const char *path, size_t len, struct error *err);
bool inputs_kept_has(const struct stat *st);
