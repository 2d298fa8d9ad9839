/* SPDX-License-Identifier: Apache-2.0 */
/* source_list.h - the registry of readers of formats, in the order in which equal bids win. */
#ifndef CONVERT_SOURCE_SOURCE_LIST_H
#define CONVERT_SOURCE_SOURCE_LIST_H

#include "convert/source/source.h"

#define SOURCE_LIST(X)                                                                             \
	X(log)                                                                                     \
	X(kineto)                                                                                  \
	X(xplane)                                                                                  \
	X(nsys) X(rocpd) X(rocprof) X(inspector) X(flight) X(snapshot) X(perfetto) X(chrome)

#define X(name) extern const struct source_type source_##name;
SOURCE_LIST(X)
#undef X

#define X(name) +1
enum { SOURCE_TYPES = 0 SOURCE_LIST(X) };
#undef X
extern const struct source_type *const source_types[]; /* ends with NULL */

/* What a file is that no reader claims, and what to do instead; NULL: unknown. */
const char *source_known(const char *path, const uint8_t *head, size_t len);

#endif
