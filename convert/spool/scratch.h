/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - an unlinked file, which is appended to, read at any place and gone with the process.
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

struct scratch;
/* `folder` is borrowed; NULL means /tmp.  Returns ST_IO if no file can be made there. */
enum status scratch_open(struct scratch **out, const char *folder, struct error *err);
void scratch_close(struct scratch *s); /* accepts NULL */
/* Appends bytes.  Returns ST_IO if the disk is full. */
enum status scratch_write(struct scratch *s, const void *bytes, size_t len, struct error *err);
/* Bytes written so far; 0 for NULL. */
uint64_t scratch_size(const struct scratch *s);
/* Reads `len` bytes at `at`; all of them must be there. */
enum status scratch_read(const struct scratch *s, uint64_t at, void *bytes, size_t len,
			 struct error *err);
