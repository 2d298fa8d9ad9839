/* SPDX-License-Identifier: Apache-2.0 */
/* This file contains only the list, so that object files do not depend on each other in a cycle. */
#include "collector/probe/probe.h"

#include <stddef.h>

const struct probe_type *const probe_types[] = {
#define X(name) &probe_##name,
	PROBE_LIST(X)
#undef X
		NULL,
};
