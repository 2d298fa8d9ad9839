/* SPDX-License-Identifier: Apache-2.0 */
/* probe_list.h - the registry of producers of records, in the order in which the writer drains
 * them. */
#ifndef COLLECTOR_PROBE_PROBE_LIST_H
#define COLLECTOR_PROBE_PROBE_LIST_H

#include "collector/probe/probe.h"

#define PROBE_LIST(X) X(api) X(nvtx) X(nccl) X(memory) X(cupti) X(health)

#define X(name) extern const struct probe_type probe_##name;
PROBE_LIST(X)
#undef X

extern const struct probe_type *const probe_types[]; /* ends with NULL */

#endif
