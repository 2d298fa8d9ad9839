/* SPDX-License-Identifier: Apache-2.0 */
/* This file contains nothing but the list, so that object files do not depend on each other in a
 * cycle. */
#include "convert/source/source.h"

const struct source_type *const source_types[] = {
#define X(name) &source_##name,
	SOURCE_LIST(X)
#undef X
		NULL,
};
