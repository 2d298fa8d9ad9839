/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti/say.h - what results and versions of CUPTI mean for people: one sentence, with the remedy.
 * Constant data, any thread.
 */
#ifndef COLLECTOR_CUPTI_SAY_H
#define COLLECTOR_CUPTI_SAY_H

#include "collector/cupti/lib.h"

/* Never NULL; for a result without a sentence its name and number are in `room`. */
const char *cupti_say_result(const struct cupti_lib *lib, int result, char room[160]);
/* What a fault of a version needs to matter. */
enum cupti_say_when {
	SAY_CLOCK = 1,  /* another tool has set CUPTI's clock */
	SAY_GRAPHS = 2, /* CUDA graphs were recorded by node */
	SAY_AGAIN = 4,  /* there was a window before */
	SAY_ALL = 7,
};
/* Known faults of this version that matter when `when` holds, from 0; NULL: no more. */
const char *cupti_say_version(uint32_t api_version, unsigned when, unsigned number);
/* cuptiFinalize() is known to work. */
bool cupti_can_finalize(uint32_t api_version);

#endif
