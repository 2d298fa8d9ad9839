/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - what a fuzz target is made of: bytes as a file, bytes as numbers and texts.
 *
 * A target is one function; it must give back all memory, leave nothing behind that makes the next
 * call another one, and call abort() where what came out is wrong.
 */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as a file that has a path; close() it. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	snprintf(path, 64, "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

/* ---- bytes as a sequence of numbers and texts; past the end there are zeros ---- */

struct fuzz_bytes {
	const uint8_t *at, *end;
};

static inline uint64_t fuzz_number(struct fuzz_bytes *b, size_t bytes)
{
	uint64_t v = 0;
	size_t left = (size_t)(b->end - b->at), n = bytes < left ? bytes : left;

	if (n)
		memcpy(&v, b->at, n);
	b->at += n;
	return v;
}

/* One byte, 0 .. below-1. */
static inline unsigned fuzz_below(struct fuzz_bytes *b, unsigned below)
{
	return (unsigned)(fuzz_number(b, 1) % below);
}

/* A length in one byte, and so many bytes as a text; free() it. */
static inline char *fuzz_text(struct fuzz_bytes *b)
{
	size_t left, len = fuzz_number(b, 1);
	char *text;

	left = (size_t)(b->end - b->at);
	len = len < left ? len : left;
	text = malloc(len + 1);
	if (!text)
		abort();
	if (len)
		memcpy(text, b->at, len);
	text[len] = '\0';
	b->at += len;
	return text;
}

/* All bytes as one text; free() it. */
static inline char *fuzz_all(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
