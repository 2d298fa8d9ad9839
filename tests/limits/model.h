/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - what static analysis cannot see for itself, as it looks at one file at a time. Included
 * before each file by static.sh, never in a build.
 *
 * fail() returns the status that it is given, which is never ST_OK: so what TRY() and `status`
 * guard is guarded.
 */
#include "schemas/base/status.h"

#include "schemas/base/vec.h"

#define fail_memory(err) (fail_memory(err), ST_MEMORY)
#undef vec_reserve /* after it has succeeded there are items */
#define vec_reserve(items, cap, wanted, err)                                                       \
	(vec_grow((items), (cap), (wanted), sizeof(**(items)), (err)) == ST_OK && *(items)         \
		 ? ST_OK                                                                           \
		 : ST_MEMORY)
#define fail(err, why, at, ...) (fail((err), (why), (at), __VA_ARGS__), (enum status)(why))
