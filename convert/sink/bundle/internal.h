/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of a bundle. */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Writes files into one archive, which goes to an output, with a manifest of their checksums as its
 * last member.  The archive unpacks to one folder.
 */

struct out;
struct bundle;

/* Begins a tar.zst, tar.gz, tar or zip archive, depending on the ending of the output's name;
 * another ending is ST_USAGE.  Standard output gets tar.zst.  `out` is borrowed until
 * bundle_free(). */
enum status bundle_new(struct bundle **result, struct out *out, struct error *err);
void bundle_free(struct bundle *b); /* accepts NULL */

enum status bundle_put(struct bundle *b, const char *name, const void *bytes, size_t len,
		       struct error *err);
enum status bundle_put_file(struct bundle *b, const char *name, const char *path,
			    struct error *err);
/* Writes the manifest and ends the archive.  `events` is the number of events in the log. */
enum status bundle_finish(struct bundle *b, uint64_t events, struct error *err);

/* SHA-256 (FIPS 180-4) of bytes that come in several parts. */

enum { SHA256_TEXT = 65 }; /* hexadecimal digits and a NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_put(struct sha256 *s, const void *bytes, size_t len);
char *sha256_text(struct sha256 *s, char out[SHA256_TEXT]); /* ends the hash; returns `out` */
