/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - what static analysis cannot see for itself, as it looks at one file at a time.  Included
 * before each file by static.sh, never in a build.
 *
 * fail() returns the status that it is given, which is never ST_OK: so what TRY() and `status` guard
 * is guarded.
 */
#include "schemas/status.h"

#define fail(err, why, at, ...) (fail((err), (why), (at), __VA_ARGS__), (enum status)(why))
