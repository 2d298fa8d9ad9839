/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - an unlinked file, which is appended to, read at any offset, and disappears with the
 * process.
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

struct scratch;
/* Creates the file in `folder`, which is borrowed; NULL means /tmp.  Returns ST_IO if no file can
 * be created there. */
enum status scratch_open(struct scratch **out, const char *folder, struct error *err);
void scratch_close(struct scratch *s); /* accepts NULL */
/* Appends bytes.  Returns ST_IO if the disk is full. */
enum status scratch_write(struct scratch *s, const void *bytes, size_t len, struct error *err);
/* Returns the number of bytes written so far; 0 for NULL. */
uint64_t scratch_size(const struct scratch *s);
/* Reads `len` bytes at offset `at`, all of which must exist. */
enum status scratch_read(const struct scratch *s, uint64_t at, void *bytes, size_t len,
			 struct error *err);
