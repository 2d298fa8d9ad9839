/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input/unpack.h - what lies in a file or a pipe: its bytes, or those that it compresses.
 *
 * Of input.c alone.  One reader belongs to one thread.
 */
#ifndef CONVERT_INPUT_UNPACK_H
#define CONVERT_INPUT_UNPACK_H

#include "schemas/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpack;

/* Up to `room` bytes; *got is 0 at the end only, and stays so.  A fault is given once and again. */
typedef enum status (*unpack_from)(void *self, void *out, size_t room, size_t *got,
				   struct error *err);

/* Reads from where that stands; looks at the first bytes to know what it is. */
enum status unpack_open(struct unpack **out, unpack_from from, void *self, struct error *err);
void unpack_close(struct unpack *u); /* accepts NULL */

/*
 * Up to `room` more bytes into `out`; *got is 0 at the end only.  Damage is told once all bytes
 * before it have been given, and then at each call.
 */
enum status unpack_read(struct unpack *u, uint8_t *out, size_t room, size_t *got,
			struct error *err);
bool unpack_is_plain(const struct unpack *u);   /* nothing is compressed */
uint64_t unpack_packed(const struct unpack *u); /* bytes taken so far */

#endif
