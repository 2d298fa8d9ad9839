/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h - compresses bytes to one gzip member.  It has no name and no time, so the same input
 * gives the same output at any number of threads.
 *
 * Blocks of a fixed size are deflated independently, each with the 32 KiB before it as history and
 * ended at a whole byte, so several cores can make them and they follow one another as one stream.
 * ISA-L deflates if the build found it (its bytes differ from zlib's, and it ignores the level),
 * otherwise zlib.
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

struct gzip;
/* Takes packed bytes, which are borrowed for the call; the thread that puts calls it. */
typedef enum status (*gzip_sink)(void *self, const void *bytes, size_t len, struct error *err);

/* level: 1 fast .. 9 small */
enum status gzip_new(struct gzip **out, int level, gzip_sink sink, void *self, struct error *err);
/* Sets the number of threads beside the caller's, 0 at first, before the first bytes.  They start
 * when there is more than one block. */
void gzip_set_threads(struct gzip *g, unsigned threads);
enum status gzip_put(struct gzip *g, const void *bytes, size_t len, struct error *err);
enum status gzip_finish(struct gzip *g, struct error *err); /* nothing may be put after it */
void gzip_free(struct gzip *g);                             /* accepts NULL */

const char *gzip_library(void); /* "zlib 1.2.13" */
