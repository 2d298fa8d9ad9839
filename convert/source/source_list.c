/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the list and nothing else, so that no cycle of objects runs through it. */
#include "convert/source/source.h"

const struct source_type *const source_types[] = {
#define X(name) &source_##name,
	SOURCE_LIST(X)
#undef X
		NULL,
};
