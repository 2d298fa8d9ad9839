/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the parts of a bundle. */
#pragma once

#include "schemas/base/status.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Puts files into one archive, which is written through an output, with a manifest of their
 * checksums as its last member.  It unpacks to one folder.
 */

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

/* SHA-256 (FIPS 180-4) of bytes that come in several parts. */

enum { SHA256_TEXT = 65 }; /* hexadecimal, with its NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_put(struct sha256 *s, const void *bytes, size_t len);
char *sha256_text(struct sha256 *s, char out[SHA256_TEXT]); /* ends it; returns `out` */
