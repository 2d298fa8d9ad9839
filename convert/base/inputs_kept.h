/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs_kept.h - which files are inputs, so that no output takes the place of one.
 *
 * Files are compared by device and inode, because one file may have many names: a link, a path
 * through another folder.  The list lives as long as the process: a page is written when its inputs
 * are closed already.  One thread.
 */
#pragma once

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* The path of `len` bytes, copied; "-" is standard input. */
enum status inputs_kept_note(const char *path, size_t len, struct error *err);
bool inputs_kept_has(const struct stat *st);
