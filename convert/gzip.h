/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h - bytes to one gzip member, through zlib.  No name and no time inside: same bytes in, same
 * bytes out.
 */
#ifndef CONVERT_GZIP_H
#define CONVERT_GZIP_H

#include "schemas/status.h"

#include <stddef.h>
#include <stdint.h>

struct gzip;
/* Takes packed bytes; borrowed for the call. */
typedef enum status (*gzip_sink)(void *self, const void *bytes, size_t len, struct error *err);

/* level: 1 fast .. 9 small */
enum status gzip_new(struct gzip **out, int level, gzip_sink sink, void *self, struct error *err);
enum status gzip_put(struct gzip *g, const void *bytes, size_t len, struct error *err);
enum status gzip_finish(struct gzip *g, struct error *err); /* nothing may be put after it */
void gzip_free(struct gzip *g);                             /* accepts NULL */

#endif
