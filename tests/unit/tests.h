/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests.h - every unit test, one row each: X(NAME) runs test_NAME(), which stands in some
 * tests/unit/test_*.c.  Rows are grouped by file.
 */
#ifndef TESTS_UNIT_TESTS_H
#define TESTS_UNIT_TESTS_H

/* clang-format off */
#define TEST_LIST(X) \
	X(status_fail) \
	/* the end of the list */
/* clang-format on */

#endif
