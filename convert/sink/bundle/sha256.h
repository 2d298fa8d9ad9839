/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256 (FIPS 180-4) of bytes that come in several parts. */
#ifndef CONVERT_SINK_BUNDLE_SHA256_H
#define CONVERT_SINK_BUNDLE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_TEXT = 65 }; /* hexadecimal, with its NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_put(struct sha256 *s, const void *bytes, size_t len);
char *sha256_text(struct sha256 *s, char out[SHA256_TEXT]); /* ends it; returns `out` */

#endif
