/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - what lies in a file or a pipe: its bytes, or those that it compresses.
 *
 * For this folder alone.  One reader belongs to one thread.
 */
#ifndef CONVERT_INPUT_UNPACK_H
#define CONVERT_INPUT_UNPACK_H

#include "schemas/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpack;

/* Reads up to `cap` bytes; *got is 0 at the end only, and stays so.  A fault is returned at each
 * further call. */
typedef enum status (*unpack_from)(void *self, void *out, size_t cap, size_t *got,
				   struct error *err);

/* Reads from where that stands; looks at the first bytes to know what it is. */
enum status unpack_open(struct unpack **out, unpack_from from, void *self, struct error *err);
void unpack_close(struct unpack *u); /* accepts NULL */

/*
 * Up to `cap` more bytes into `out`; *got is 0 at the end only.  Damage is returned once all bytes
 * before it were, and then at each call.
 */
enum status unpack_read(struct unpack *u, uint8_t *out, size_t cap, size_t *got, struct error *err);
bool unpack_is_plain(const struct unpack *u);   /* nothing is compressed */
uint64_t unpack_packed(const struct unpack *u); /* bytes taken so far */

#endif
