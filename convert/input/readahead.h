/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readahead.h - bytes that are unpacked on another thread before they are asked for; for
 * input.c alone.  While it is open only that thread may touch what it reads from.
 */
#ifndef CONVERT_INPUT_READAHEAD_H
#define CONVERT_INPUT_READAHEAD_H

#include "convert/input/unpack.h"

struct input_ahead;

enum { INPUT_AHEAD_KEEP = 64 * 1024 };

enum status input_ahead_open(struct input_ahead **out, unpack_from from, void *self,
			     struct error *err);
/* As `from` would give them. */
enum status input_ahead_read(struct input_ahead *a, void *out, size_t cap, size_t *got,
			     struct error *err);
/*
 * Without copying them: *len bytes at *bytes, at most INPUT_AHEAD_KEEP, are put before the next
 * block, and *bytes and *len are then all of it, borrowed until the next call of either kind.  At
 * the end both stay as they are, and the fault is returned.
 */
enum status input_ahead_lend(struct input_ahead *a, const uint8_t **bytes, size_t *len,
			     struct error *err);
/* Waits for a read that has begun; bytes that were not asked for are gone.  Accepts NULL. */
void input_ahead_close(struct input_ahead *a);

#endif
