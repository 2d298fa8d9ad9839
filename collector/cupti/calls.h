/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/calls.h - names of CUDA's functions by callback id, and which of them say nothing.
 *
 * Names come from the loaded library, so they are right for any version.  The table of what is left
 * out is of names: calls that only ask, poll or keep a thread's state, of which a training step makes
 * thousands.  State is static; filled once, constant afterwards.
 */
#ifndef COLLECTOR_CUPTI_CALLS_H
#define COLLECTOR_CUPTI_CALLS_H

#include "collector/cupti/lib.h"

void cupti_calls_open(const struct cupti_lib *lib);
/* Without the version that CUDA adds ("cudaLaunchKernel_v7000"); NULL: no such call. */
const char *cupti_call_name(enum cupti_domain domain, uint32_t cbid, size_t *len);
bool cupti_call_is_noise(enum cupti_domain domain, uint32_t cbid);
/* Tells CUPTI to make no records of noise; after each Enable of the kind.  Calls told. */
unsigned cupti_calls_mute(const struct cupti_lib *lib, enum cupti_domain domain);

/* By name, without a library. */
bool cupti_name_is_noise(const char *name, size_t len);

#endif
