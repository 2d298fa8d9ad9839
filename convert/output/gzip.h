/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h - bytes to one gzip member.  No name and no time inside: same bytes in, same bytes out, at
 * any number of threads.
 *
 * Blocks of a fixed size are deflated by themselves, each with the 32 KiB before it as its history
 * and ended on a whole byte, so that they can be made on several cores and stand behind each other
 * as one stream.  ISA-L does it where the build found it (its bytes differ from zlib's, and it
 * ignores the level), else zlib.
 */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>

struct gzip;
/* Takes packed bytes; borrowed for the call, which is made by the thread that puts. */
typedef enum status (*gzip_sink)(void *self, const void *bytes, size_t len, struct error *err);

/* level: 1 fast .. 9 small */
enum status gzip_new(struct gzip **out, int level, gzip_sink sink, void *self, struct error *err);
/* Threads beside the caller's, 0 at first; set before the first bytes.  They are started once
 * there is more than a block. */
void gzip_set_threads(struct gzip *g, unsigned threads);
enum status gzip_put(struct gzip *g, const void *bytes, size_t len, struct error *err);
enum status gzip_finish(struct gzip *g, struct error *err); /* nothing may be put after it */
void gzip_free(struct gzip *g);                             /* accepts NULL */

const char *gzip_library(void); /* "zlib 1.2.13" */
