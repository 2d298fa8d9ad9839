/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - names of CUDA functions by callback id, and which calls are left out as noise.
 *
 * Names come from the loaded library, so they fit its version.  The table of noise lists function
 * names: calls that only query, poll or change a thread's state, of which a training step makes
 * thousands.  State is static, filled once and constant afterwards.
 */
#ifndef COLLECTOR_PROBE_CUPTI_CALLS_H
#define COLLECTOR_PROBE_CUPTI_CALLS_H

#include "collector/probe/cupti/lib.h"

void cupti_calls_open(const struct cupti_lib *lib);
/* Without the version that CUDA adds ("cudaLaunchKernel_v7000"); NULL: no such call. */
const char *cupti_call_name(enum cupti_domain domain, uint32_t cbid, size_t *len);
bool cupti_call_is_noise(enum cupti_domain domain, uint32_t cbid);
/*
 * Asks CUPTI not to record noise; to be called after each Enable of the kind.  Returns how many
 * calls were switched off.
 */
unsigned cupti_calls_mute(const struct cupti_lib *lib, enum cupti_domain domain);

/* By name, without a library. */
bool cupti_name_is_noise(const char *name, size_t len);

#endif
