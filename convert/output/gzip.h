/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h - compresses bytes to one gzip member.  The header has no name and no time, so the same
 * input gives the same output at any number of threads.
 *
 * Blocks of a fixed size are deflated independently, each with the 32 KiB before it as history and
 * ending on a whole byte.  Therefore several threads can deflate them, and together they form one
 * stream.  ISA-L deflates if the build found it (its bytes differ from zlib's, and it ignores the
 * level), otherwise zlib.
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

struct gzip;
/* Receives compressed bytes, which are borrowed for the call, on the thread that calls gzip_put().
 * */
typedef enum status (*gzip_sink)(void *self, const void *bytes, size_t len, struct error *err);

/* Begins a member; `level` is 1 (fast) to 9 (small). */
enum status gzip_new(struct gzip **out, int level, gzip_sink sink, void *self, struct error *err);
/* Sets the number of threads in addition to the caller's, which is 0 at first; to be called before
 * the first bytes.  The threads start when there is more than one block. */
void gzip_set_threads(struct gzip *g, unsigned threads);
enum status gzip_put(struct gzip *g, const void *bytes, size_t len, struct error *err);
enum status gzip_finish(struct gzip *g, struct error *err); /* nothing may follow */
void gzip_free(struct gzip *g);                             /* accepts NULL */

const char *gzip_library(void); /* such as "zlib 1.2.13" */
