/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the list and nothing else, so that no cycle of objects runs through it. */
#include "collector/probe/probe.h"

#include <stddef.h>

const struct probe_type *const probe_types[] = {
#define X(name) &probe_##name,
	PROBE_LIST(X)
#undef X
		NULL,
};
