/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - the frame of the unit tests.
 *
 * A test is `void test_NAME(void)`; the build lists all of them in BUILD/tests/unit/tests.h.  A
 * check that fails is noted and the test goes on; every check returns whether it held, for `if
 * (!CHECK(p)) return;`.  A test that checks nothing fails, unless it says SKIP("why") and returns.
 * Tests run one after the other in one process, but checks may be made on any thread.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include "tests/unit/tests.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK(cond) unit_check((cond), __FILE__, __LINE__, #cond)
/* Value first, what it should be second. */
#define CHECK_U64(got, want)        unit_check_u64((got), (want), __FILE__, __LINE__, #got)
#define CHECK_I64(got, want)        unit_check_i64((got), (want), __FILE__, __LINE__, #got)
#define CHECK_F64(got, want, slack) unit_check_f64((got), (want), (slack), __FILE__, __LINE__, #got)
#define CHECK_STR(got, want)        unit_check_str((got), (want), __FILE__, __LINE__, #got)
#define CHECK_MEM(got, want, len)   unit_check_mem((got), (want), (len), __FILE__, __LINE__, #got)
/* The status is ST_OK; otherwise the text of `err` (may be NULL) is shown. */
#define CHECK_OK(status, err) unit_check_ok((int)(status), (err), __FILE__, __LINE__, #status)
#define SKIP(...)             unit_skip(__VA_ARGS__)

struct error;

bool unit_check(bool held, const char *file, int line, const char *text);
bool unit_check_u64(uint64_t got, uint64_t want, const char *file, int line, const char *text);
bool unit_check_i64(int64_t got, int64_t want, const char *file, int line, const char *text);
bool unit_check_f64(double got, double want, double slack, const char *file, int line,
		    const char *text);
bool unit_check_str(const char *got, const char *want, const char *file, int line,
		    const char *text);
bool unit_check_mem(const void *got, const void *want, size_t len, const char *file, int line,
		    const char *text);
bool unit_check_ok(int status, const struct error *err, const char *file, int line,
		   const char *text);
void unit_skip(const char *why, ...) __attribute__((format(printf, 1, 2)));

/* Where the sample traces are: $TACHO_TRACES, else ../shared/traces; NULL when there is none. */
const char *unit_traces(void);
/*
 * Calls `check` with the path of each Kineto file among them, and returns how many there are;
 * without any the test is skipped and this is 0.
 */
size_t unit_kineto_traces(void (*check)(const char *path, void *arg), void *arg);

#define X(name) void test_##name(void);
TEST_LIST(X)
#undef X

#endif
