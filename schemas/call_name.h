/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_name.h - CUPTI's names of calls of the driver and the runtime, as people write them.
 */
#ifndef SCHEMAS_CALL_NAME_H
#define SCHEMAS_CALL_NAME_H

#include <stddef.h>

/*
 * The length of name[0..len) without the version since which the call is so: "cudaMalloc" of
 * "cudaMalloc_v3020".  "_v2" stays, it is another function.
 */
size_t call_name_length(const char *name, size_t len);

#endif
