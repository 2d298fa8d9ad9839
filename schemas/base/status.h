/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - how functions report failure.
 *
 * A function that can fail returns enum status and takes `struct error *` last.  The function that
 * finds the fault fills the error, once, with fail(); all callers pass it up with TRY().  Only the
 * main.c of a tool prints, exits or reads the environment.
 *
 * A damaged or unknown *record* is no failure: it is counted (trace_lose) and reading continues.
 * Damaged *framing* ends that input, after what was readable before it has been delivered.
 */
#pragma once

#include <stdint.h>

/* Each row has a name, the tools' exit code (documented, never changed) and a text for people. */
/* clang-format off */
#define STATUS_LIST(X)                                            \
	X(OK,      0, "ok")                                       \
	X(END,     0, "end of input")                             \
	X(USAGE,   2, "usage error")                                \
	X(OVER,    3, "a requested limit was exceeded") /* --fail-over */ \
	X(FORMAT,  4, "malformed input")                          \
	X(TRUNCATED,     4, "the input ends early")                         \
	X(IO,      5, "input or output failed")                   \
	X(CEILING, 6, "a memory or size limit was reached")                           \
	X(MEMORY,  6, "out of memory")                            \
	X(ABSENT,  7, "not available on this machine")
/* clang-format on */

enum status {
#define X(name, exit, text) ST_##name,
	STATUS_LIST(X)
#undef X
};

#define NOWHERE UINT64_MAX /* `at` of an error that has no place in a file */

struct error {
	enum status status;
	uint64_t at;    /* byte offset in the (unpacked) input, or NOWHERE */
	char text[200]; /* one sentence: lower case, no full stop, no newline */
};

/*
 * Fills `err` and returns `status`:  return fail(err, ST_TRUNCATED, off, "header needs %zu bytes",
 * n); `err` may be NULL.  A long text is truncated, and control characters, which damaged files may
 * contain, become '?'.  The path and the tool's name are added by main.c.  An argument may be the
 * text of `err` itself: fail(err, st, err->at, "%s: %s", where, err->text) adds to it.
 */
enum status fail(struct error *err, enum status status, uint64_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Fills the only message for ST_MEMORY, because what the memory was for does not help anybody. */
enum status fail_memory(struct error *err);

/* These return columns of STATUS_LIST; an unknown number reads as ST_IO. */
int status_exit(enum status status);
const char *status_text(enum status status);

/*
 * Declares a variable that is released when its scope is left, also by TRY() or return:
 *
 *	RELEASED_BY(buf_release) struct buf text;
 *
 * `release` gets its address.  Initialise the variable before anything can leave the scope.
 */
#define RELEASED_BY(release) __attribute__((cleanup(release)))

#define TRY(expr)                                                                                  \
	do {                                                                                       \
		enum status try_ = (expr);                                                         \
		if (try_ != ST_OK)                                                                 \
			return try_;                                                               \
	} while (0)
