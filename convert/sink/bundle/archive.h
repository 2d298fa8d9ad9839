/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.h - files into one archive that is written through an output, with a manifest of
 * their checksums as its last member.  Whoever unpacks it gets one folder.
 */
#ifndef CONVERT_SINK_BUNDLE_ARCHIVE_H
#define CONVERT_SINK_BUNDLE_ARCHIVE_H

#include "schemas/base/status.h"

#include <stddef.h>

struct out;
struct bundle;

/* tar.zst, tar.gz, tar or zip by the output's name; ST_USAGE for another.  Standard output:
 * tar.zst. `out` is borrowed until bundle_free(). */
enum status bundle_new(struct bundle **result, struct out *out, struct error *err);
void bundle_free(struct bundle *b); /* accepts NULL */

enum status bundle_put(struct bundle *b, const char *name, const void *bytes, size_t len,
		       struct error *err);
enum status bundle_put_file(struct bundle *b, const char *name, const char *path,
			    struct error *err);
/* The manifest, and the archive's end. */
enum status bundle_finish(struct bundle *b, uint64_t events, struct error *err);

#endif
