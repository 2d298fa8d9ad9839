/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.h - what results and versions of CUPTI mean for people: one sentence, with the remedy.
 * Constant data, any thread.
 */
#ifndef COLLECTOR_PROBE_CUPTI_MESSAGES_H
#define COLLECTOR_PROBE_CUPTI_MESSAGES_H

#include "collector/probe/cupti/lib.h"

/* Never NULL; a result without a sentence of its own is described in `space`. */
const char *cupti_result_message(const struct cupti_lib *lib, int result, char space[160]);
/* What a fault of a version needs to matter. */
enum cupti_fault_condition {
	FAULT_CLOCK = 1,         /* another tool has set CUPTI's clock */
	FAULT_GRAPHS = 2,        /* CUDA graphs were recorded by node */
	FAULT_SECOND_WINDOW = 4, /* there was a window before */
	FAULT_ANY = 7,
};
/*
 * Fault `number` (from 0) among those of this version that matter under the conditions `when`;
 * NULL: there are no more.
 */
const char *cupti_fault_message(uint32_t api_version, unsigned when, unsigned number);
/* Versions whose cuptiFinalize() works. */
bool cupti_can_finalize(uint32_t api_version);

#endif
